//! Files that take the place of others as a whole: readers find the old one or the new one.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags, Uid, fchown, linkat, openat};
use tempfile::NamedTempFile;

use crate::ranks::signals::guarded;

/// As many symbolic links as Linux follows.
const MAX_LINKS: usize = 40;

/// A new file next to the one that it will replace. Removed when dropped, or when a signal ends the
/// program.
#[derive(Debug)]
pub(crate) struct Replacement {
    path: PathBuf,
    file: New,
    /// The permissions of the file that is replaced.
    permissions: Option<Permissions>,
}

#[derive(Debug)]
enum New {
    /// A file without a name, which disappears however the program ends.
    Unnamed(File),
    Named(NamedTempFile),
}

/// For `map_err`: an error for an action that failed.
pub(super) fn cannot(action: &str) -> impl FnOnce(io::Error) -> String {
    move |error| format!("cannot {action}: {error}")
}

impl Replacement {
    /// Makes the file, which is empty. Symbolic links are followed. Owner, group and mode are taken
    /// from the file that is replaced, if any. `has_name` if other processes open it.
    ///
    /// # Errors
    ///
    /// If there cannot be a file at the path, or its file may not be written or would lose its
    /// owner.
    pub(crate) fn create(path: &Path, has_name: bool) -> Result<Self, String> {
        let path = follow(path).map_err(cannot("follow the symbolic link"))?;
        let old = fs::metadata(&path).ok();
        let regular = old.as_ref().is_none_or(Metadata::is_file);
        let Some(name) = path.file_name().filter(|_| regular) else {
            return Err("found a directory or a device, expected a regular file".into());
        };
        if old.is_some() {
            OpenOptions::new().write(true).open(&path).map_err(cannot("write"))?;
        }
        // A file that will be private is never open to others. Otherwise the umask applies.
        let mode = if old.is_some() { 0o600 } else { 0o666 };
        let unnamed = if has_name { None } else { unnamed(folder(&path), mode) };
        let file = match unnamed {
            Some(file) => New::Unnamed(file),
            None => New::Named(
                temporary(&path, name, |builder, folder| {
                    builder.permissions(Permissions::from_mode(mode)).tempfile_in(folder)
                })
                .map_err(cannot("create a temporary file beside it"))?,
            ),
        };
        let permissions = old.as_ref().map(Metadata::permissions);
        let new = Self { path, file, permissions };
        old.map_or(Ok(()), |old| keep_owner(new.file(), &old))?;
        Ok(new)
    }

    pub(crate) fn file(&self) -> &File {
        match &self.file {
            New::Unnamed(file) => file,
            New::Named(file) => file.as_file(),
        }
    }

    /// A path by which this process opens the new file; others too if it has a name.
    pub(crate) fn open_by(&self) -> PathBuf {
        match &self.file {
            New::Unnamed(file) => by_number(file),
            New::Named(file) => file.path().to_path_buf(),
        }
    }

    /// Gives the file its final name.
    ///
    /// # Errors
    ///
    /// If the file cannot be synced or renamed; then it is removed.
    pub(crate) fn commit(self) -> Result<(), String> {
        let Self { path, file, permissions } = self;
        let rename = "rename the temporary file to it";
        let sync = |file: &File| {
            permissions
                .map_or(Ok(()), |mode| file.set_permissions(mode))
                .map_err(cannot("set its mode"))?;
            file.sync_all().map_err(cannot("sync"))
        };
        match file {
            New::Named(file) => {
                sync(file.as_file())?;
                file.persist(&path).map_err(|failure| cannot(rename)(failure.error))?;
            }
            New::Unnamed(file) => {
                sync(&file)?;
                let name = path.file_name().unwrap_or_default();
                // No call replaces a file by one without a name.
                let named = temporary(&path, name, |builder, folder| {
                    builder.make_in(folder, |name| {
                        let flags = AtFlags::SYMLINK_FOLLOW;
                        Ok(linkat(CWD, by_number(&file), CWD, name, flags)?)
                    })
                });
                let named = named.map_err(cannot("name the new file"))?;
                named.persist(&path).map_err(|failure| cannot(rename)(failure.error))?;
            }
        }
        let folder = File::open(folder(&path)).and_then(|folder| folder.sync_all());
        folder.map_err(cannot("sync its folder"))
    }
}

/// Writes a text as a whole file; into a pipe or a device directly.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), String> {
    let special = fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir());
    if special {
        return fs::write(path, text).map_err(cannot("write"));
    }
    let new = Replacement::create(path, false)?;
    new.file().write_all(text.as_bytes()).map_err(cannot("write"))?;
    new.commit()
}

/// Makes `.NAME.XXXXXX.tmp` next to `path`.
fn temporary<F>(
    path: &Path,
    name: &std::ffi::OsStr,
    make: impl FnOnce(&mut tempfile::Builder<'_, '_>, &Path) -> io::Result<NamedTempFile<F>>,
) -> io::Result<NamedTempFile<F>> {
    let prefix: OsString = [".".as_ref(), name, ".".as_ref()].into_iter().collect();
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(".tmp");
    guarded(|| make(&mut builder, folder(path)), NamedTempFile::path)
}

/// A file without a name, if the file system supports such files and can name them later.
fn unnamed(folder: &Path, mode: u32) -> Option<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = File::from(openat(CWD, folder, flags, Mode::from_raw_mode(mode)).ok()?);
    by_number(&file).exists().then_some(file)
}

fn by_number(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

fn keep_owner(file: &File, old: &Metadata) -> Result<(), String> {
    let new = file.metadata().map_err(cannot("open"))?;
    let (uid, gid) = (old.uid(), old.gid());
    if (new.uid(), new.gid()) == (uid, gid) {
        return Ok(());
    }
    let uid_changes = (new.uid() != uid).then(|| Uid::from_raw(uid));
    let gid_changes = (new.gid() != gid).then(|| Gid::from_raw(gid));
    fchown(file, uid_changes, gid_changes).map_err(|error| {
        format!("cannot keep its owner, user {uid} and group {gid}: {}", io::Error::from(error))
    })
}

/// The file that a path leads to through symbolic links, whether it exists or not.
fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&path) {
            Ok(target) => path = folder(&path).join(target),
            // Not a link. Other errors are found when a file is made.
            Err(_) => return Ok(path),
        }
    }
    Err(rustix::io::Errno::LOOP.into())
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
