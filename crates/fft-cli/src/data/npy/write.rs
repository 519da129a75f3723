//! Writing an array: one rank makes a temporary file next to the final one, every rank writes its
//! brick into it, and the first rank renames it.
//!
//! Each run is written by itself, because a block with the gaps between runs would overwrite other
//! ranks' data.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use super::Header;
use super::runs::Runs;
use crate::data::replace::{Replacement, cannot};

/// A file without its final name until [`Output::commit`]; removed when dropped before.
#[derive(Debug)]
pub(crate) struct Output(Replacement);

impl Output {
    /// Makes the file next to `path`, with the header and room for the data. Called by one rank;
    /// `has_name` if ranks of other processes open it. Disk space is reserved if the file system
    /// supports it, so that a full disk is found before the computation.
    ///
    /// # Errors
    ///
    /// If no file can have this header, or `path` is no place for a file of this length.
    pub(crate) fn create(path: &Path, header: &Header, has_name: bool) -> Result<Self, String> {
        let length = header.file_length()?;
        let new = Replacement::create(path, has_name)?;
        let file = new.file();
        reserve(file, length).map_err(cannot(&format!("reserve {length} bytes at byte 0")))?;
        file.write_all_at(&header.encode(), 0).map_err(cannot("write the header"))?;
        // Ranks on other hosts must find the file at its full length.
        file.sync_all().map_err(cannot("sync"))?;
        Ok(Self(new))
    }

    /// The path by which the ranks write their bricks.
    pub(crate) fn open_by(&self) -> PathBuf {
        self.0.open_by()
    }

    /// Gives the file its final name, once all ranks have written. Called by one rank.
    ///
    /// # Errors
    ///
    /// If the file cannot be synced or renamed; then it is removed.
    pub(crate) fn commit(self) -> Result<(), String> {
        self.0.commit()
    }
}

/// Writes the brick `lo..hi` (half-open, in the array's axes) into the file of an [`Output`], and
/// waits for the disk. `data` is in the file's order of memory. Disjoint bricks may be written at
/// the same time. `E` must have the size and alignment of the file's dtype.
///
/// # Errors
///
/// If the brick is not inside the array, `E` or `data` do not fit it, or the file cannot be
/// written.
pub(crate) fn write_brick<E: bytemuck::Pod>(
    open_by: &Path,
    header: &Header,
    lo: &[usize],
    hi: &[usize],
    data: &[E],
) -> Result<(), String> {
    let runs = Runs::new::<E>(header, lo, hi, data.len())?;
    let file = OpenOptions::new().write(true).open(open_by).map_err(cannot("open"))?;
    header.check_length(file.metadata().map_err(cannot("open"))?.len())?;
    if data.is_empty() {
        return Ok(());
    }
    let data: &[u8] = bytemuck::cast_slice(data);
    for (run, bytes) in data.chunks_exact(runs.bytes).enumerate() {
        let (length, offset) = (bytes.len(), runs.offset(run));
        file.write_all_at(bytes, offset)
            .map_err(|error| format!("cannot write {length} bytes at byte {offset}: {error}"))?;
    }
    file.sync_data().map_err(cannot("sync"))
}

/// Sets the length of a new file, and reserves disk space if the file system supports that.
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
