//! Writing an array: one rank makes a temporary file beside the final one, every rank writes its brick into it, and
//! the one rank renames it.
//!
//! Short runs are written one by one. Reading the gaps between them and writing them back in one block, as reading
//! does, would undo what another rank wrote there in the meantime. Whoever can choose writes bricks that are whole
//! along the contiguous axis.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use tempfile::NamedTempFile;

use super::runs::Runs;
use super::{Header, NpyError};

/// A file being written, under a temporary name until [`Output::commit`]. Dropped before, it leaves nothing behind,
/// and what had the final name keeps it. (A process that is killed does leave its temporary file.)
#[derive(Debug)]
pub(crate) struct Output {
    path: PathBuf,
    temporary: NamedTempFile,
}

impl Output {
    /// Makes `.NAME.XXXXXX.tmp` beside `path`: the header, and as many bytes as the data will take. To be called by
    /// one rank. Its disk space is reserved where the file system can do that, so that a full disk shows up here
    /// rather than after the computation. If `path` is a symbolic link to a file, that file will be replaced.
    ///
    /// # Errors
    ///
    /// If the header describes no file that could exist, `path` is no place for a file, or it does not fit the disk.
    pub(crate) fn create(path: &Path, header: &Header) -> Result<Self, NpyError> {
        let length = header.file_length(path)?;
        let bytes = header.encode(path)?;

        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        let regular = fs::metadata(&path).map_or(true, |found| found.is_file());
        let Some(name) = path.file_name().filter(|_| regular) else {
            return Err(NpyError::NotAFile { path });
        };
        let prefix: OsString = [".".as_ref(), name, ".".as_ref()].into_iter().collect();
        let temporary = tempfile::Builder::new()
            .prefix(&prefix)
            .suffix(".tmp")
            .permissions(Permissions::from_mode(0o666)) // less the umask, as any other file
            .tempfile_in(folder(&path))
            .map_err(NpyError::io(&path, "create a temporary file beside it"))?;

        let file = temporary.as_file();
        reserve(file, length).map_err(NpyError::transfer(&path, "reserve", length, 0))?;
        file.write_all_at(&bytes, 0).map_err(NpyError::transfer(
            &path,
            "write",
            bytes.len() as u64,
            0,
        ))?;
        // Ranks on other machines are to find the file at its full length.
        file.sync_all().map_err(NpyError::io(&path, "sync"))?;
        Ok(Self { path, temporary })
    }

    /// The name under which the ranks write their bricks.
    pub(crate) fn temporary_path(&self) -> &Path {
        self.temporary.path()
    }

    /// Gives the file its final name, in the place of what had it. To be called by the rank that made the output,
    /// once [`write_brick`] has returned on every rank.
    ///
    /// # Errors
    ///
    /// If the file cannot be synced or renamed; then it is removed. If the folder cannot be synced, the file is in its
    /// place, but a power failure may undo that.
    pub(crate) fn commit(self) -> Result<(), NpyError> {
        let Self { path, temporary } = self;
        temporary.as_file().sync_all().map_err(NpyError::io(&path, "sync"))?;
        temporary.persist(&path).map_err(|failure| {
            NpyError::io(&path, "rename the temporary file to it")(failure.error)
        })?;
        let folder = folder(&path);
        File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(NpyError::io(folder, "sync"))
    }
}

/// Writes the brick `lo..hi` (half-open, in the array's axes) into the file that an [`Output`] made, from `data` in
/// the file's own memory order, and waits until the disk has it. Bricks that do not overlap may be written at once.
///
/// `E` must have the memory layout of the file's dtype, and `data` one element for each of the brick.
/// Cost: one pass over the brick; one system call per run of contiguous elements.
///
/// # Errors
///
/// If the brick is not inside the array, `E` or `data` do not fit it, the file is not the one of this header, or it
/// cannot be written.
pub(crate) fn write_brick<E: bytemuck::Pod>(
    temporary_path: &Path,
    header: &Header,
    lo: &[usize],
    hi: &[usize],
    data: &[E],
) -> Result<(), NpyError> {
    let path = temporary_path;
    let runs = Runs::new::<E>(path, header, lo, hi, data.len())?;
    let file = OpenOptions::new().write(true).open(path).map_err(NpyError::io(path, "open"))?;
    let found = file.metadata().map_err(NpyError::io(path, "open"))?.len();
    let expected = header.file_length(path)?;
    if found != expected {
        return Err(NpyError::Length { path: path.to_path_buf(), found, expected });
    }
    if runs.count == 0 {
        return Ok(());
    }
    let data: &[u8] = bytemuck::cast_slice(data);
    for (run, bytes) in data.chunks_exact(runs.bytes).enumerate() {
        let offset = runs.offset(run);
        file.write_all_at(bytes, offset).map_err(NpyError::transfer(
            path,
            "write",
            bytes.len() as u64,
            offset,
        ))?;
    }
    file.sync_data().map_err(NpyError::io(path, "sync"))
}

/// Sets the length of a new file, with disk space for all of it where the file system supports that.
fn reserve(file: &File, length: u64) -> io::Result<()> {
    let reserved = rustix::io::retry_on_intr(|| {
        rustix::fs::fallocate(file, FallocateFlags::empty(), 0, length)
    });
    match reserved {
        Ok(()) => Ok(()),
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => file.set_len(length),
        Err(error) => Err(error.into()),
    }
}

/// Where the entry of a file is.
fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
