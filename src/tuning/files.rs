//! Files that one rank reads and writes for all.

use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, openat};

use fft_core::{Comm, Error, agree};

use super::lock::Lock;

/// The text of a file, read by rank 0, or why it cannot be read; the same on every rank.
/// Collective.
///
/// # Errors
/// When a rank has gone or the library fails.
pub(crate) fn read(comm: &dyn Comm, path: &Path) -> Result<Result<String, String>, Error> {
    let found = match comm.rank() {
        0 => std::fs::read_to_string(path),
        _ => Ok(String::new()),
    };
    // The first byte says whether a text or an error follows.
    let text = match found {
        Ok(text) => format!("+{text}"),
        Err(error) => format!("-{error}"),
    };
    let text = String::from_utf8_lossy(&fft_comm::broadcast(comm, text.as_bytes())?).into_owned();
    Ok(match text.strip_prefix('+') {
        Some(text) => Ok(text.to_owned()),
        None => Err(text[1..].to_owned()),
    })
}

/// Replaces a file by a text of rank 0, as a whole: readers find the old or the new text.
/// Collective.
///
/// # Errors
/// On every rank: [`Error::OnRank`] when it cannot be written.
pub(crate) fn replace(
    comm: &dyn Comm,
    path: &Path,
    text: impl FnOnce() -> String,
) -> Result<(), Error> {
    let written = if comm.rank() == 0 { write(path, &text()) } else { Ok(()) };
    agree(comm, written.map_err(|error| refused(path, error, "a file that can be written")))
}

/// As [`replace`], by a text that `change` makes from the old one, which is `None` if there is no
/// file. Others that update the file wait, also on other hosts. Collective.
///
/// # Errors
/// On every rank: [`Error::OnRank`] when it cannot be locked, read or written, or `change` refuses.
pub(crate) fn update(
    comm: &dyn Comm,
    path: &Path,
    change: impl FnOnce(Option<&str>) -> Result<String, String>,
) -> Result<(), Error> {
    let updated = if comm.rank() == 0 { change_locked(path, change) } else { Ok(()) };
    agree(comm, updated)
}

fn change_locked(
    path: &Path,
    change: impl FnOnce(Option<&str>) -> Result<String, String>,
) -> Result<(), Error> {
    let path = &followed(path);
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(refused(path, "a folder, a device or a pipe", "a regular file"));
    }
    let _lock = Lock::of(path)?;
    let old = match std::fs::read_to_string(path) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => None,
        read => Some(read.map_err(|why| refused(path, why, "a file of text"))?),
    };
    let text = change(old.as_deref()).map_err(|why| {
        refused(path, why, "a file of wisdom; remove it, or name another, to begin anew")
    })?;
    write(path, &text).map_err(|why| refused(path, why, "a file that can be written"))
}

fn refused(path: &Path, found: impl ToString, expected: &str) -> Error {
    Error::argument(format!("file {}", path.display()), found, expected)
}

/// As many symbolic links as Linux follows.
const MAX_LINKS: usize = 40;

/// The file that a path leads to through symbolic links, whether it exists or not.
fn followed(path: &Path) -> PathBuf {
    let mut path = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        match std::fs::read_link(&path) {
            Ok(target) => path = folder(&path).join(target),
            Err(_) => break,
        }
    }
    path
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let path = &followed(path);
    let old = std::fs::metadata(path).ok();
    if old.as_ref().is_some_and(|old| !old.is_file()) {
        // A device or a pipe, such as /dev/stdout, must not be replaced.
        return std::fs::write(path, text);
    }
    path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
    if old.is_some() {
        // A file that this user may not write must not be replaced.
        OpenOptions::new().write(true).open(path)?;
    }
    if let Some(file) = unnamed(folder(path)) {
        fill(&file, old, text)?;
        let number = format!("/proc/self/fd/{}", file.as_raw_fd());
        // No call replaces a file by one without a name.
        let named = beside().make_in(folder(path), |name| {
            Ok(linkat(CWD, &number, CWD, name, AtFlags::SYMLINK_FOLLOW)?)
        })?;
        named.persist(path).map_err(|failure| failure.error)?;
        return Ok(());
    }
    let named = beside().permissions(Permissions::from_mode(0o666)).tempfile_in(folder(path))?;
    fill(named.as_file(), old, text)?;
    named.persist(path).map_err(|failure| failure.error)?;
    Ok(())
}

/// A name that no other process has, on this host or another.
fn beside() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".thriffty-").suffix(".new");
    builder
}

/// A file without a name, which disappears however the program ends. `None` if the file system does
/// not support such files, or cannot name them later.
fn unnamed(folder: &Path) -> Option<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = File::from(openat(CWD, folder, flags, Mode::from_raw_mode(0o666)).ok()?);
    Path::new("/proc/self/fd").join(file.as_raw_fd().to_string()).exists().then_some(file)
}

/// Writes a text, with the owner and the mode of the file that is replaced.
fn fill(mut file: &File, old: Option<Metadata>, text: &str) -> io::Result<()> {
    if let Some(old) = old {
        let (new, uid, gid) = (file.metadata()?, old.uid(), old.gid());
        if (new.uid(), new.gid()) != (uid, gid) {
            // Only the system's administrator can give a file to somebody else.
            fchown(file, Some(uid), Some(gid)).map_err(|why| {
                let text = format!("cannot keep its owner, user {uid} and group {gid}: {why}");
                io::Error::new(why.kind(), text)
            })?;
        }
        file.set_permissions(old.permissions())?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests;
