//! Messages in the device's message memory.

use fft_core::{Error, Transfer, Wire};

use crate::abi::form::is_coded_by_host;

/// The alignment of messages.
pub(super) const ALIGN: usize = 128;

/// A message.
pub(super) struct StagedMessage {
    pub(super) transfer: Transfer,
    pub(super) wire: Wire,
    /// The wire on the device.
    pub(super) on_device: Wire,
    /// Its first byte in message memory.
    pub(super) place: usize,
}

impl StagedMessage {
    pub(super) fn is_coded_by_host(&self) -> bool {
        is_coded_by_host(self.wire)
    }
}

/// The error of a message that the device could not decode.
pub(crate) fn undecoded(rank: usize, from: usize, wire: Wire) -> Error {
    let found = "a message that does not decode".into();
    Error::Header { rank, from, found, expected: format!("one of wire {wire}") }
}
