//! Messages and their states: the records of `kernels/message.cuh`.

use bytemuck::{Pod, Zeroable};
use fft_core::Packed;

use super::boxes::TiledBox;

pub(super) const HEADER: usize = 8;

/// `Message` of the kernels, where the fields are explained.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct MessageRecord {
    pub(crate) tiled: TiledBox,
    pub(crate) place: u64,
    pub(crate) room: u64,
    pub(crate) fixed: u64,
    pub(crate) table: u64,
    pub(crate) filled: u64,
    pub(crate) head: u64,
}

impl MessageRecord {
    /// Whether it is sent raw, whatever the data. An empty message counts as one that is not.
    pub(crate) fn never_shrinks(&self) -> bool {
        self.room > 0 && HEADER as u64 + self.fixed >= self.room
    }
}

/// `State` of the kernels.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct StateRecord {
    pub(crate) bytes: u64,
    pub(crate) squared_error: f64,
    pub(crate) units: u64,
    pub(crate) raw: u32,
    pub(crate) bad: u32,
}

impl StateRecord {
    /// The outcome of encoding the message.
    pub(crate) fn packed(self) -> Packed {
        Packed { bytes: self.bytes as usize, squared_error: self.squared_error }
    }
}
