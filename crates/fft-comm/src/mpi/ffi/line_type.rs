//! The unit of `MPI_Alltoallv`.

use std::ffi::c_int;
use std::mem::MaybeUninit;

use fft_core::{Error, SLOT_ALIGN};
use mpi::ffi;

use super::callers::Callers;
use super::calls::checked;

pub(in crate::mpi) struct LineType {
    pub(super) handle: ffi::MPI_Datatype,
    rank: usize,
    callers: Callers,
}

// SAFETY: handles are valid in every thread of the process. It is used through a `RawComm`, which
// checks the thread, and freed only where MPI may be called.
unsafe impl Send for LineType {}

impl LineType {
    /// For communicators that the same threads use.
    pub(super) fn new(rank: usize, callers: Callers) -> Result<Self, Error> {
        callers.check(rank, "MPI_Type_contiguous")?;
        let mut line = MaybeUninit::uninit();
        // SAFETY: results are written on success; the type is committed before use.
        unsafe {
            let n = SLOT_ALIGN as c_int;
            let code = ffi::MPI_Type_contiguous(n, ffi::RSMPI_UINT8_T, line.as_mut_ptr());
            checked(rank, "MPI_Type_contiguous", code)?;
            let mut line = line.assume_init();
            checked(rank, "MPI_Type_commit", ffi::MPI_Type_commit(&mut line))?;
            Ok(Self { handle: line, rank, callers })
        }
    }
}

impl Drop for LineType {
    fn drop(&mut self) {
        if self.callers.check(self.rank, "MPI_Type_free").is_ok() {
            // SAFETY: the type is ours, committed, and not in use by any pending operation.
            unsafe { ffi::MPI_Type_free(&mut self.handle) };
        }
    }
}
