//! Device buffers of messages.

use super::device_buffer::DeviceBuffer;
use super::slot::Slot;

/// The device buffers of a reshape's messages: one piece for sends, one for receives.
///
/// Offsets are multiples of [`SLOT_ALIGN`](crate::SLOT_ALIGN), and messages are padded to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageBuffers {
    /// The memory of sends, then of receives.
    pub memory: [DeviceBuffer; 2],
    /// The offset of each message.
    pub places: [Vec<usize>; 2],
}

impl MessageBuffers {
    /// The buffer of a message to send, of at most `bytes` bytes.
    pub fn outgoing(&self, number: usize, bytes: usize) -> Slot {
        self.slot(0, number, bytes)
    }

    /// The buffer of a message to receive, of at most `bytes` bytes.
    pub fn incoming(&self, number: usize, bytes: usize) -> Slot {
        self.slot(1, number, bytes)
    }

    fn slot(&self, side: usize, number: usize, bytes: usize) -> Slot {
        let place = self.places[side][number];
        Slot::opaque(self.memory[side].part(place..place + bytes))
    }
}
