//! Which threads may call MPI.
//!
//! | level of MPI | threads |
//! |---|---|
//! | `MPI_THREAD_SINGLE`, `MPI_THREAD_FUNNELED` | the one that initialised MPI |
//! | `MPI_THREAD_SERIALIZED` | any, one at a time |
//! | `MPI_THREAD_MULTIPLE` | any |
//!
//! Whether calls overlap cannot be checked here. Callers of unsafe functions promise that they do
//! not; other communicators can be used only on the thread that made them.

use std::ffi::c_int;
use std::thread::ThreadId;

use fft_core::Error;
use mpi::{Threading, ffi};

use super::calls::{is_finalized, is_initialized, world_rank};

/// The threads that may call MPI on an object.
#[derive(Clone, Copy, Debug)]
pub(in crate::mpi) enum Callers {
    /// Any: MPI allows several, or calls do not overlap.
    Any,
    /// The thread that made the object; others need this level.
    One { thread: ThreadId, level: &'static str },
}

pub(in crate::mpi) fn any_thread() -> bool {
    mpi::environment::threading_support() == Threading::Multiple
}

/// Checks that MPI has been initialised and not yet finalised.
pub(super) fn running(call: &'static str) -> Result<(), Error> {
    let refuse = |text| Err(Error::Transport { rank: world_rank(), call, text });
    if is_finalized() {
        return refuse("MPI has been finalised".into());
    }
    if !is_initialized() {
        let name = mpi::environment::library_version().unwrap_or_default();
        let name = name.split([',', '\n']).next().unwrap_or_default();
        return refuse(format!("MPI has not been initialised; that of this library is {name}"));
    }
    Ok(())
}

impl Callers {
    /// The callers of a communicator that this thread makes. If they are `serial`, the calls of all
    /// threads do not overlap.
    ///
    /// # Errors
    /// [`Error::Transport`] when MPI is not running, or this thread may not call it.
    pub(super) fn here(call: &'static str, serial: bool) -> Result<Self, Error> {
        running(call)?;
        match mpi::environment::threading_support() {
            Threading::Multiple => return Ok(Self::Any),
            Threading::Serialized if serial => return Ok(Self::Any),
            _ => {}
        }
        let level = if serial { "MPI_THREAD_SERIALIZED" } else { "MPI_THREAD_MULTIPLE" };
        let mut main: c_int = 0;
        // SAFETY: MPI is running; the call writes one int.
        unsafe { ffi::MPI_Is_thread_main(&mut main) };
        if main == 0 {
            let text = format!("called on another thread than initialised MPI, without {level}");
            return Err(Error::Transport { rank: world_rank(), call, text });
        }
        Ok(Self::One { thread: std::thread::current().id(), level })
    }

    /// Checks that this thread is one of them, and that MPI has not been finalised.
    ///
    /// # Errors
    /// [`Error::Transport`].
    pub(in crate::mpi) fn check(self, rank: usize, call: &'static str) -> Result<(), Error> {
        if let Self::One { thread, level } = self
            && thread != std::thread::current().id()
        {
            let text = format!(
                "called on another thread than the communicator was made on, without {level}"
            );
            return Err(Error::Transport { rank, call, text });
        }
        if is_finalized() {
            return Err(Error::Transport { rank, call, text: "MPI has been finalised".into() });
        }
        Ok(())
    }
}
