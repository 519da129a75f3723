//! Return codes, the state of MPI, and the end of the job.

use std::ffi::{CStr, c_char, c_int};
use std::io::Write;
use std::sync::OnceLock;

use fft_core::Error;
use mpi::ffi;

/// The tag of all messages; the communicators keep them apart from other programs' messages.
pub(in crate::mpi) const TAG: c_int = 1;

fn describe(code: c_int) -> String {
    let mut text = [0 as c_char; ffi::MPI_MAX_ERROR_STRING as usize + 1];
    let mut len = 0;
    // SAFETY: the buffer has the room that MPI_Error_string may use, and one zero more.
    let known = unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr(), &mut len) };
    if known != ffi::MPI_SUCCESS as c_int {
        return format!("MPI error {code}");
    }
    // SAFETY: the buffer ends with a zero.
    unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned()
}

pub(super) fn checked(rank: usize, call: &'static str, code: c_int) -> Result<(), Error> {
    if code == ffi::MPI_SUCCESS as c_int {
        Ok(())
    } else {
        Err(Error::Transport { rank, call, text: describe(code) })
    }
}

/// For calls that other ranks wait for. If one fails, it ends the job, because they would not learn
/// of the failure.
pub(super) fn vital(rank: usize, call: &'static str, code: c_int) {
    checked(rank, call, code).unwrap_or_else(|error| awaited(error));
}

/// Ends the job, because other ranks wait for the call that failed here and would wait forever.
pub(in crate::mpi) fn awaited(error: Error) -> ! {
    let line = format!("{error}; other ranks wait for this one, so that the job ends\n");
    // The job ends, whether this can be printed or not.
    let _ = std::io::stderr().write_all(line.as_bytes());
    abort(101)
}

/// The rank in MPI_COMM_WORLD, for errors without another communicator; 0 if MPI was never seen to
/// run.
pub(super) fn world_rank() -> usize {
    static RANK: OnceLock<usize> = OnceLock::new();
    if !is_running() {
        return RANK.get().copied().unwrap_or(0);
    }
    *RANK.get_or_init(|| {
        let mut rank = 0;
        // SAFETY: MPI is running; the call is local and writes one int.
        unsafe { ffi::MPI_Comm_rank(ffi::RSMPI_COMM_WORLD, &mut rank) };
        usize::try_from(rank).unwrap_or(0)
    })
}

/// Whether MPI has been initialised and not yet finalised.
pub(in crate::mpi) fn is_running() -> bool {
    is_initialized() && !is_finalized()
}

pub(super) fn is_initialized() -> bool {
    let mut flag = 0;
    // SAFETY: MPI_Initialized may be called at any time and writes one int.
    unsafe { ffi::MPI_Initialized(&mut flag) };
    flag != 0
}

pub(super) fn is_finalized() -> bool {
    let mut flag = 0;
    // SAFETY: MPI_Finalized may be called at any time and writes one int.
    let code = unsafe { ffi::MPI_Finalized(&mut flag) };
    code != ffi::MPI_SUCCESS as c_int || flag != 0
}

pub(in crate::mpi) fn abort(code: i32) -> ! {
    if is_running() {
        // SAFETY: MPI is running; the call ends the process.
        unsafe { ffi::MPI_Abort(ffi::RSMPI_COMM_WORLD, code) };
    }
    std::process::exit(code)
}
