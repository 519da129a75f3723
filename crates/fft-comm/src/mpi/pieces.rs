//! Messages in pieces, and what is known of those under way.

use std::ffi::c_int;

use fft_core::Slot;

/// How long messages are cut up.
#[derive(Clone, Copy)]
pub(super) struct Pieces {
    /// The most bytes of a piece.
    pub(super) limit: usize,
}

impl Pieces {
    /// Into how many pieces a message of at most so many bytes is cut, on both sides.
    pub(super) fn of(self, bound: usize) -> usize {
        bound.div_ceil(self.limit).max(1)
    }

    /// Where piece `k` of a message of `len` bytes begins, and its bytes.
    pub(super) fn piece(self, len: usize, k: usize) -> (usize, c_int) {
        let first = (k * self.limit).min(len);
        (first, (len - first).min(self.limit) as c_int)
    }
}

/// A message under way.
pub(super) struct Entry {
    pub(super) slot: Option<Slot>,
    /// Number of the announcement, for a message to be received.
    pub(super) number: Option<usize>,
    /// Pieces that are not complete.
    pub(super) pieces: usize,
    /// Bytes that came.
    pub(super) bytes: usize,
}

/// An operation that is complete, and its slot; or that none is yet.
pub(super) enum Done {
    Not,
    Sent(Slot),
    Received { number: usize, slot: Slot },
}
