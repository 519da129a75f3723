//! What the exchanges have in common.

use std::ops::Range;

use fft_core::{Error, Flight, MessagePlan, MessageSpec, Slot};

/// The error of an exchange whose messages a panic has taken.
pub(super) fn panicked(rank: usize) -> Error {
    Error::Transport { rank, call: "an exchange", text: "a panic has ended it".to_owned() }
}

/// The error of a reshape that was not reserved for.
pub(super) fn unreserved(message_plan: &MessagePlan) -> Error {
    let what = format!("reshape {}", message_plan.reshape);
    Error::argument("message_plan", what, "one that was reserved for")
}

/// The messages of these chunks, out of `all`; the last chunk includes all later ones.
pub(super) fn of_chunks(specs: &[MessageSpec], chunks: Range<usize>, all: usize) -> Range<usize> {
    let before = |chunk| specs.partition_point(|spec| spec.chunk.min(all - 1) < chunk);
    before(chunks.start)..before(chunks.end)
}

/// A slot for a message. If memory is short, remembers the error and returns an empty slot to be
/// sent instead, because the receiver waits for a message.
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
