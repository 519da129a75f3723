//! Where the messages of a reshape lie in device memory.

use super::device_buffer::DeviceBuffer;
use super::slot::Slot;

/// Where the messages of a reshape lie in memory that the host does not look into: the outgoing ones in one piece of it, the
/// incoming ones in another. Places are multiples of [`SLOT_ALIGN`](crate::SLOT_ALIGN), with room up to the next one after
/// each message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageBuffers {
    /// Out, in.
    pub memory: [DeviceBuffer; 2],
    /// The first byte of each message, by number.
    pub places: [Vec<usize>; 2],
}

impl MessageBuffers {
    /// The berth of an outgoing message of at most so many bytes.
    pub fn outgoing(&self, number: usize, bytes: usize) -> Slot {
        self.slot(0, number, bytes)
    }

    /// The berth of an incoming message of at most so many bytes.
    pub fn incoming(&self, number: usize, bytes: usize) -> Slot {
        self.slot(1, number, bytes)
    }

    fn slot(&self, side: usize, number: usize, bytes: usize) -> Slot {
        let place = self.places[side][number];
        Slot::opaque(self.memory[side].part(place..place + bytes))
    }
}
