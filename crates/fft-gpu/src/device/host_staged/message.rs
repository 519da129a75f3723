//! Messages in the device's message memory.

use fft_core::{Error, Transfer, Wire};

use crate::abi::form::has_kernels;

/// The alignment of messages.
pub(super) const ALIGN: usize = 128;

/// A message.
pub(super) struct StagedMessage {
    pub(super) transfer: Transfer,
    pub(super) wire: Wire,
    /// Its first byte in message memory.
    pub(super) place: usize,
}

impl StagedMessage {
    /// The wire on the device.
    pub(super) fn on_device(&self) -> Wire {
        if self.is_coded_by_host() { Wire::Raw } else { self.wire }
    }

    pub(super) fn is_coded_by_host(&self) -> bool {
        !has_kernels(self.wire)
    }

    /// Whether the device codes it.
    pub(super) fn is_coded(&self) -> bool {
        self.on_device() != Wire::Raw
    }
}

/// The error of a message that the device could not decode.
pub(crate) fn undecoded(rank: usize, from: usize, wire: Wire) -> Error {
    let found = "a message that does not decode".into();
    Error::Header { rank, from, found, expected: format!("one of wire {wire}") }
}
