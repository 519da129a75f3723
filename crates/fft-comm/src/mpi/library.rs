//! The MPI library: how it is initialised, identified and finalised.

use std::marker::PhantomData;

use fft_core::Error;

use super::ffi;
use super::mpi_comm::MpiComm;

/// MPI, initialised by [`init`] and finalised on drop. A drop during a panic ends the job with
/// status 101, because other ranks may wait for this one.
#[must_use = "MPI is finalised when this is dropped"]
pub struct Mpi {
    universe: ::mpi::environment::Universe,
    not_send: PhantomData<*const ()>,
}

/// Initialises MPI for use by one thread per process.
///
/// # Errors
/// [`Error::Transport`] when this process has initialised MPI before: use [`MpiComm::of`] then.
pub fn init() -> Result<Mpi, Error> {
    let universe = ::mpi::initialize_with_threading(::mpi::Threading::Funneled);
    let text = "MPI is already initialised; make communicators with MpiComm::of";
    let error = || Error::Transport { rank: 0, call: "MPI_Init_thread", text: text.into() };
    Ok(Mpi { universe: universe.ok_or_else(error)?.0, not_send: PhantomData })
}

impl Drop for Mpi {
    fn drop(&mut self) {
        if std::thread::panicking() {
            abort(101);
        }
    }
}

impl Mpi {
    /// All processes of the job.
    ///
    /// # Errors
    /// [`Error::Transport`] when the library fails.
    pub fn world(&self) -> Result<MpiComm, Error> {
        MpiComm::of(&self.universe.world())
    }

    /// The library's version string.
    pub fn library(&self) -> String {
        library()
    }
}

pub(crate) fn library() -> String {
    ::mpi::environment::library_version().unwrap_or_else(|_| "unknown".into())
}

/// Ends all processes of the job with this exit status, for failures that cannot be agreed on.
pub fn abort(code: i32) -> ! {
    ffi::abort(code)
}

/// Waits until the other processes have dropped, or learned the end of, every communicator that
/// this process has dropped. For tests.
#[doc(hidden)]
pub fn complete_calls() {
    ffi::complete_calls();
}
