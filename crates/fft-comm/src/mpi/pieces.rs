//! Messages in pieces, and the state of those under way.

use std::ffi::c_int;

use fft_core::Slot;

#[derive(Clone, Copy)]
pub(super) struct Pieces {
    pub(super) limit: usize,
}

impl Pieces {
    /// The number of pieces of a message of at most `bound` bytes: the same at both ends.
    pub(super) fn of(self, bound: usize) -> usize {
        bound.div_ceil(self.limit).max(1)
    }

    /// The first byte and the length of piece `k` of a message of `len` bytes.
    pub(super) fn piece(self, len: usize, k: usize) -> (usize, c_int) {
        let first = (k * self.limit).min(len);
        (first, (len - first).min(self.limit) as c_int)
    }
}

pub(super) struct Entry {
    pub(super) slot: Option<Slot>,
    pub(super) name: Name,
    pub(super) is_received: bool,
    pub(super) pieces: usize,
    pub(super) bytes: usize,
}

/// The other end of a message.
#[derive(Clone, Copy)]
pub(super) struct Peer {
    pub(super) rank: usize,
    pub(super) tag: c_int,
}

/// Two numbers by which the caller identifies a message.
pub(super) type Name = (usize, usize);

/// What has completed.
pub(super) enum Done {
    Not,
    Sent { name: Name, slot: Slot },
    Received { name: Name, slot: Slot },
}
