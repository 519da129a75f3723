//! The unit of `MPI_Alltoallv`.

use std::ffi::c_int;
use std::mem::MaybeUninit;

use fft_core::{Error, SLOT_ALIGN};
use mpi::ffi;

use super::calls::{checked, may_call};

pub(in crate::mpi) struct LineType(pub(super) ffi::MPI_Datatype);

// SAFETY: handles are valid in every thread of the process. It is used through a `RawComm`, which
// checks the thread, and freed only where MPI may be called.
unsafe impl Send for LineType {}

impl LineType {
    pub(in crate::mpi) fn new(rank: usize) -> Result<Self, Error> {
        let mut line = MaybeUninit::uninit();
        // SAFETY: results are written on success; the type is committed before use.
        unsafe {
            let n = SLOT_ALIGN as c_int;
            let code = ffi::MPI_Type_contiguous(n, ffi::RSMPI_UINT8_T, line.as_mut_ptr());
            checked(rank, "MPI_Type_contiguous", code)?;
            let mut line = line.assume_init();
            checked(rank, "MPI_Type_commit", ffi::MPI_Type_commit(&mut line))?;
            Ok(Self(line))
        }
    }
}

impl Drop for LineType {
    fn drop(&mut self) {
        if may_call("MPI_Type_free").is_ok() {
            // SAFETY: the type is ours, committed, and not in use by any pending operation.
            unsafe { ffi::MPI_Type_free(&mut self.0) };
        }
    }
}
