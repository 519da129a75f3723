//! What the exchanges have in common.

use std::ops::Range;

use fft_core::{Error, Flight, MessageSpec, Slot};

/// The messages of these chunks, out of `all`; the last chunk includes all later ones.
pub(super) fn of_chunks(specs: &[MessageSpec], chunks: Range<usize>, all: usize) -> Range<usize> {
    let before = |chunk| specs.partition_point(|spec| spec.chunk.min(all - 1) < chunk);
    before(chunks.start)..before(chunks.end)
}

/// A slot for a message. Where memory is short, remembers the error and returns an empty slot to be
/// sent instead, as the receiver waits for a message.
pub(super) fn slot_or_empty(
    flight: &mut dyn Flight,
    bytes: usize,
    lacked: &mut Result<(), Error>,
) -> Result<Slot, Error> {
    flight.slot(bytes).or_else(|error| {
        *lacked = lacked.clone().and(Err(error));
        flight.slot(0)
    })
}
