//! Files of rank 0, and errors of files.

use std::path::Path;

use thriffty::planning::agree;
use thriffty::{Comm, Error, ErrorKind};

/// An error of a file as one of this rank.
pub(crate) fn failed(rank: usize, path: &Path) -> impl Fn(std::io::Error) -> Error {
    let path = path.display().to_string();
    let kind = ErrorKind::Argument;
    move |why| Error::OnRank { rank, kind, message: format!("{path}: {why}") }
}

/// Does something with a file on rank 0 only; all ranks return its error. Collective.
pub(crate) fn on_first(
    world: &dyn Comm,
    path: &Path,
    action: impl FnOnce() -> std::io::Result<()>,
) -> Result<(), Error> {
    let done = if world.rank() == 0 { action() } else { Ok(()) };
    agree(world, done.map_err(failed(world.rank(), path)))
}
