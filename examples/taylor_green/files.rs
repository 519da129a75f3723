//! Files that appear as a whole: readers find the old one or the new one.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use thriffty::planning::agree;
use thriffty::{Comm, Error, ErrorKind};

/// The name of a file until it is whole.
pub(crate) fn partial(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    path.with_file_name(name)
}

/// Gives a file that was written under its partial name the final one.
pub(crate) fn finish(path: &Path) -> std::io::Result<()> {
    File::open(partial(path))?.sync_all()?;
    fs::rename(partial(path), path)
}

/// Writes a text as a whole file.
pub(crate) fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    File::create(partial(path))?.write_all(text.as_bytes())?;
    finish(path)
}

/// An error of a file as one of this rank.
pub(crate) fn failed(rank: usize, path: &Path) -> impl Fn(std::io::Error) -> Error {
    let path = path.display().to_string();
    let kind = ErrorKind::Argument;
    move |why| Error::OnRank { rank, kind, message: format!("{path}: {why}") }
}

/// Does something with a file on rank 0 alone; all ranks return its error. Collective.
pub(crate) fn on_first(
    world: &dyn Comm,
    path: &Path,
    action: impl FnOnce() -> std::io::Result<()>,
) -> Result<(), Error> {
    let done = if world.rank() == 0 { action() } else { Ok(()) };
    agree(world, done.map_err(failed(world.rank(), path)))
}
