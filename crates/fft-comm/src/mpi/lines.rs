//! Counts of 31 bits, as MPI has them.

use std::ffi::c_int;

use fft_core::{Error, SLOT_ALIGN};

/// The most bytes that such a count can express, in whole lines.
pub(super) const LONGEST: usize = c_int::MAX as usize / SLOT_ALIGN * SLOT_ALIGN;

/// A count for a call, or the error that it is too large.
pub(super) fn count(rank: usize, what: &'static str, n: usize) -> Result<c_int, Error> {
    let text = || format!("{n} exceeds what this call can count");
    c_int::try_from(n).map_err(|_| Error::Transport { rank, call: what, text: text() })
}

/// Parts of a buffer in units of lines.
#[derive(Default)]
pub(super) struct Lines {
    pub(super) counts: Vec<c_int>,
    pub(super) places: Vec<c_int>,
    /// Bytes up to the end of the last part.
    pub(super) end: usize,
}

impl Lines {
    pub(super) fn set(&mut self, parts: &[(usize, usize)], rank: usize) -> Result<(), Error> {
        self.counts.clear();
        self.places.clear();
        self.end = 0;
        for &(first, bytes) in parts {
            assert!(first.is_multiple_of(SLOT_ALIGN), "parts start at multiples of {SLOT_ALIGN}");
            let lines = bytes.div_ceil(SLOT_ALIGN);
            self.counts.push(count(rank, "MPI_Alltoallv", lines)?);
            self.places.push(count(rank, "MPI_Alltoallv", first / SLOT_ALIGN)?);
            self.end = self.end.max(first + lines * SLOT_ALIGN);
        }
        Ok(())
    }
}
