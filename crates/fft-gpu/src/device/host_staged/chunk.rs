//! Chunks of messages, and their launches.

use std::ops::Range;
use std::sync::Arc;

use fft_core::{MessageSpec, Wire};

use super::message::StagedMessage;
use crate::base::GpuError;
use crate::ffi::{Block, CudaEvent, DeviceSlot};
use crate::kernel::message_slots::SlotTransfer;
use crate::kernel::{Inbox, Outbox};

/// The messages of a chunk that have one wire on the device.
pub(super) struct WireGroup<B> {
    pub(super) messages: Vec<usize>,
    /// The lengths of messages that have arrived.
    pub(super) lengths: Vec<usize>,
    pub(super) boxed: B,
}

/// A chunk of outgoing messages.
pub(super) struct OutChunk<T> {
    pub(super) loads: Vec<WireGroup<Outbox<T>>>,
    pub(super) packed: CudaEvent,
    /// Whether the host, or the stream of copies, waits for that.
    pub(super) waited: bool,
}

/// A chunk of incoming messages.
pub(super) struct InChunk<T> {
    pub(super) loads: Vec<WireGroup<Inbox<T>>>,
    pub(super) range: Range<usize>,
    /// Messages that have not arrived.
    pub(super) missing: usize,
}

/// The numbers of messages by chunk, in order.
pub(super) fn chunks(specs: &[MessageSpec]) -> Vec<Range<usize>> {
    let mut chunks: Vec<Range<usize>> = Vec::new();
    for (number, spec) in specs.iter().enumerate() {
        match chunks.last_mut() {
            Some(last) if specs[last.start].chunk == spec.chunk => last.end = number + 1,
            _ => chunks.push(number..number + 1),
        }
    }
    chunks
}

/// The messages of a chunk by wire; `make` prepares the messages of one wire.
pub(super) fn loads<B>(
    all: &[StagedMessage],
    range: Range<usize>,
    memory: &Arc<Block>,
    make: impl Fn(Wire, &[SlotTransfer<'_>]) -> Result<B, GpuError>,
) -> Result<Vec<WireGroup<B>>, GpuError> {
    let mut wires: Vec<Wire> = Vec::new();
    for message in &all[range.clone()] {
        if !wires.contains(&message.on_device) {
            wires.push(message.on_device);
        }
    }
    let load = |wire: Wire| {
        let messages: Vec<_> = range.clone().filter(|&i| all[i].on_device == wire).collect();
        let end = |i: usize| all.get(i + 1).map_or(memory.bytes(), |next| next.place);
        let slot = |i: usize| DeviceSlot::of_block(memory, all[i].place..end(i));
        let boxes: Vec<_> = messages.iter().map(|&i| (&all[i].transfer, slot(i))).collect();
        Ok(WireGroup { boxed: make(wire, &boxes)?, lengths: vec![0; messages.len()], messages })
    };
    wires.into_iter().map(load).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_a_chunk_follow_each_other() {
        let spec = |chunk| MessageSpec { peer: 0, bytes: 1, chunk };
        assert_eq!(chunks(&[0, 0, 1, 3, 3, 3].map(spec)), [0..2, 2..3, 3..6]);
        assert!(chunks(&[]).is_empty());
    }
}
