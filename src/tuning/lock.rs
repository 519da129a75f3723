//! A lock on a file that several processes change.

use std::fs::{File, Metadata, Permissions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use fft_core::{Error, PerProcess, locked};
use rustix::fs::{FlockOperation, OFlags, fcntl_lock};
use rustix::io::retry_on_intr;

/// Held by the thread that changes a file, because the system's record locks belong to processes.
static PROCESS: PerProcess<Mutex<()>> = PerProcess::new(Mutex::default);

/// The right to change a file, until it is dropped.
///
/// It is a record lock, which file systems of several hosts support, on an empty file next to the
/// locked one. The empty file is never removed, because others may wait for a lock on it.
pub(super) struct Lock {
    /// Closed before other threads go on, because closing any handle of a file releases its locks.
    _file: File,
    _process: MutexGuard<'static, ()>,
}

impl Lock {
    /// Waits until no other process or thread holds the lock of this file.
    ///
    /// # Errors
    /// [`Error::Argument`] when the empty file cannot be made or locked.
    pub(super) fn of(path: &Path) -> Result<Self, Error> {
        let process = locked(PROCESS.get());
        let mut name = std::ffi::OsString::from(".");
        name.push(path.file_name().unwrap_or_default());
        name.push(".lock");
        let beside = path.with_file_name(name);
        let refused = |why: std::io::Error| {
            let expected = "a file that can be locked, as others may write at the same time";
            Error::argument(format!("file {}", beside.display()), why, expected)
        };
        // Whoever may write to the folder could have made a link to another file, which would get
        // another owner.
        let no_links = OFlags::NOFOLLOW.bits() as i32;
        let mut options = File::options();
        let opened = options.create(true).append(true).custom_flags(no_links).open(&beside);
        let file = opened.map_err(refused)?;
        if let Ok(locked) = std::fs::metadata(path) {
            open_to_writers_of(&locked, &file);
        }
        retry_on_intr(|| fcntl_lock(&file, FlockOperation::LockExclusive))
            .map_err(|why| refused(why.into()))?;
        Ok(Self { _file: file, _process: process })
    }
}

/// Gives the lock the permissions of the locked file, so that only users who may write that file
/// can hold up others. Only the lock's owner can do this; for other users its permissions stay as
/// they are.
fn open_to_writers_of(locked: &Metadata, lock: &File) {
    let Ok(found) = lock.metadata() else { return };
    if (found.uid(), found.gid()) != (locked.uid(), locked.gid()) {
        // Only the system's administrator can give a file to somebody else.
        let given = fchown(lock, Some(locked.uid()), Some(locked.gid()));
        let _ = given.or_else(|_| fchown(lock, None, Some(locked.gid())));
    }
    // Its owner can always open it, also when the file may be written again.
    let mode = 0o600 | locked.mode() & 0o066;
    if found.mode() & 0o777 != mode {
        let _ = lock.set_permissions(Permissions::from_mode(mode));
    }
}
