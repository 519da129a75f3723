//! Outcomes of calls: a status, and a text.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use thriffty::{Error, ErrorKind};

/// The outcome of a call. `thriffty_last_error` has the reason in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Status {
    /// Success.
    Ok = 0,
    /// Bricks that do not tile the grid: they overlap, leave a gap, or are not inside.
    Geometry = 1,
    /// Any other argument, or different ones on different ranks.
    Argument = 2,
    /// No memory.
    Memory = 3,
    /// A damaged or unexpected message.
    Message = 4,
    /// A failure of MPI or of a process group, an invalid communicator, or a rank that left.
    Transport = 5,
    /// Too little memory that the ranks of a host can share: enlarge it, or choose another exchange
    /// than "shared".
    SharedMemory = 6,
    /// No plan, copy or communicator, a destroyed one, or one that was made before this process was
    /// forked.
    Plan = 7,
    /// A bug of the library, on this rank only, so others may wait. The plan or copy cannot be used
    /// again.
    Internal = 8,
    /// No such CUDA device, an unusable one, or a library that was built without CUDA.
    Device = 9,
    /// The system did not start enough threads.
    Threads = 10,
}

#[derive(Debug)]
pub(crate) enum Failure {
    Library(Error),
    /// The handle is not a live plan, copy or communicator.
    Handle(&'static str, usize),
    /// One in which something panicked before.
    Broken(&'static str),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Library(error)
    }
}

impl Failure {
    pub(crate) fn status(&self) -> Status {
        let kind = match self {
            Self::Library(error) => error.kind(),
            Self::Handle(..) => return Status::Plan,
            Self::Broken(_) => return Status::Internal,
        };
        match kind {
            ErrorKind::Geometry => Status::Geometry,
            ErrorKind::Argument => Status::Argument,
            ErrorKind::Memory => Status::Memory,
            ErrorKind::Message => Status::Message,
            ErrorKind::Transport => Status::Transport,
            ErrorKind::SharedMemory => Status::SharedMemory,
            ErrorKind::Device => Status::Device,
            ErrorKind::Threads => Status::Threads,
            // A kind that was added, and forgotten here.
            _ => Status::Internal,
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Library(error) => error.to_string(),
            Self::Handle(what, 0) => format!("the {what} is NULL"),
            Self::Handle(what, number) => {
                let why =
                    "it was never made, was destroyed, or is from before a process was forked";
                format!("{number:#x} is not a {what} of this process: {why}")
            }
            Self::Broken(what) => format!("the {what} failed by a bug of the library before"),
        }
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Remembers why a call of this thread failed.
fn remember(text: &str) {
    let text = CString::new(thriffty::warnings::escaped(text)).unwrap_or_default();
    // A thread that is ending has no storage for it any more.
    let _ = LAST.try_with(|last| last.replace(text));
}

/// Why the last call of this thread that failed did so.
pub(crate) fn last() -> *const c_char {
    let nothing: &'static CStr = c"";
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(nothing.as_ptr())
}

/// Runs the body of a call. An error or a panic is remembered, and becomes its status.
pub(crate) fn attempt<R>(body: impl FnOnce() -> Result<R, Failure>) -> Result<R, Status> {
    // The state after a panic is never used: the plan is poisoned, and everything else is dropped.
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(failure)) => {
            remember(&failure.text());
            Err(failure.status())
        }
        Err(panic) => {
            remember(&format!("a bug of the library: {}", said(&*panic)));
            // What was thrown could panic again when it is dropped.
            std::mem::forget(panic);
            Err(Status::Internal)
        }
    }
}

/// As [`attempt`], for calls that return nothing but a status.
pub(crate) fn status(body: impl FnOnce() -> Result<(), Failure>) -> Status {
    attempt(body).err().unwrap_or(Status::Ok)
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it did not say which")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_status_with_its_text() {
        let status = status(|| panic!("one\0two"));
        assert_eq!(status, Status::Internal);
        let text = LAST.with(|last| last.borrow().to_string_lossy().into_owned());
        assert_eq!(text, r"a bug of the library: one\u{0}two");
    }

    #[test]
    fn every_kind_of_error_has_a_status() {
        let of = |kind| Error::OnRank { rank: 0, kind, message: "no".into() };
        let found = ErrorKind::ALL.map(|kind| Failure::from(of(kind)).status());
        let all = [
            Status::Geometry,
            Status::Argument,
            Status::Memory,
            Status::Message,
            Status::Transport,
            Status::SharedMemory,
            Status::Device,
            Status::Threads,
        ];
        assert_eq!(found, all);
        let failure = Failure::from(Error::Memory { rank: 1, bytes: 7 });
        assert_eq!(failure.status(), Status::Memory);
        assert_eq!(failure.text(), "rank 1 could not allocate 7 bytes");
        let failure = Failure::from(Error::NoDevice { rank: 2, why: "none".into() });
        assert_eq!(failure.status(), Status::Device);
        let failure = Failure::from(Error::Threads { found: None, wanted: 3, why: "no".into() });
        assert_eq!(failure.status(), Status::Threads);
        assert_eq!(failure.text(), "3 threads could not be started, one for each rank: no");
        assert_eq!(Failure::Handle("plan", 3).status(), Status::Plan);
        assert_eq!(Failure::Broken("plan").status(), Status::Internal);
    }
}
