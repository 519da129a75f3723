//! A lock on a file that several processes change.

use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fft_core::Error;
use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::io::retry_on_intr;

/// Held by the thread that changes a file: the system's record locks are those of processes.
static PROCESS: Mutex<()> = Mutex::new(());

/// The right to change a file, until it is dropped.
///
/// It is a record lock, which file systems of several hosts support, on an empty file beside it.
/// That file stays: a new one would not be the one that others wait for.
pub(super) struct Lock {
    /// Closed before other threads go on, as closing any handle of a file gives up its locks.
    _file: File,
    _process: MutexGuard<'static, ()>,
}

impl Lock {
    /// Waits until no other process or thread holds the lock of this file.
    ///
    /// # Errors
    /// [`Error::Argument`] when the file beside it cannot be made or locked.
    pub(super) fn of(path: &Path) -> Result<Self, Error> {
        let process = PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
        let mut name = std::ffi::OsString::from(".");
        name.push(path.file_name().unwrap_or_default());
        name.push(".lock");
        let beside = path.with_file_name(name);
        let refused = |why: std::io::Error| {
            let expected = "a file that can be locked, as others may write at the same time";
            Error::argument(format!("file {}", beside.display()), why, expected)
        };
        let opened = File::options().create(true).append(true).open(&beside);
        let file = opened.map_err(refused)?;
        // Others must be able to lock it, too; only its owner can allow that.
        let _ = file.set_permissions(Permissions::from_mode(0o666));
        retry_on_intr(|| fcntl_lock(&file, FlockOperation::LockExclusive))
            .map_err(|why| refused(why.into()))?;
        Ok(Self { _file: file, _process: process })
    }
}
