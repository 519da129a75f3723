//! `.npy` files of all ranks together: every function is collective, with one error on all ranks.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use bytemuck::cast_slice_mut;
use thriffty::planning::{DynBrick, Element, Precision, Real, Reduce};
use thriffty::{Comm, Error};

use super::npy::{Dtype, Header, Output, read_brick, write_brick};
use super::replace;
use crate::ranks::signals::guarded;
use crate::ranks::world::{Failure, agree, on_first};

/// An error with its path.
fn at<T>(path: &Path, result: Result<T, String>) -> Result<T, String> {
    result.map_err(|error| format!("{}: {error}", path.display()))
}

/// Rank 0's bytes. Collective.
fn share(comm: &dyn Comm, mine: &[u8]) -> Result<Vec<u8>, Error> {
    let mut len = [if comm.rank() == 0 { mine.len() as f64 } else { 0.0 }];
    comm.allreduce(Reduce::Max, &mut len)?;
    let len = len[0] as usize;
    let mut padded = mine.to_vec();
    padded.resize(len, 0);
    let mut all = vec![0; len * comm.size()];
    comm.allgather(&padded, &mut all)?;
    all.truncate(len);
    Ok(all)
}

/// Rank 0's path. Collective.
fn share_path(comm: &dyn Comm, mine: Option<PathBuf>) -> Result<PathBuf, Error> {
    let mine = mine.unwrap_or_default();
    Ok(OsString::from_vec(share(comm, mine.as_os_str().as_bytes())?).into())
}

/// The header of a file. Collective; an error if ranks find different files.
pub(crate) fn open(comm: &dyn Comm, path: &Path) -> Result<Header, Failure> {
    let header = agree(comm, at(path, Header::open(path)))?;
    let mine = format!("{header:?}");
    let first = share(comm, mine.as_bytes())?;
    let same = if first == mine.as_bytes() {
        Ok(header)
    } else {
        Err(format!(
            "{}: found {mine}, but rank 0 found {}",
            path.display(),
            String::from_utf8_lossy(&first)
        ))
    };
    agree(comm, same)
}

/// Reads each rank's brick, in the file's order of memory; reals also into complex numbers.
/// Collective.
pub(crate) fn read<E: Element>(
    comm: &dyn Comm,
    path: &Path,
    header: &Header,
    brick: &DynBrick,
    data: &mut [E],
) -> Result<(), Failure> {
    let DynBrick { lo, hi } = brick;
    if E::WIDTH == 1 || header.dtype.is_complex() {
        return agree(comm, at(path, read_brick(path, header, lo, hi, data)));
    }
    // The reals are read into the second half and spread from the front, so that none is lost.
    let points = data.len();
    let reals: &mut [E::Real] = cast_slice_mut(data);
    agree(comm, at(path, read_brick(path, header, lo, hi, &mut reals[points..])))?;
    for point in 0..points {
        reals[2 * point] = reals[points + point];
        reals[2 * point + 1] = E::Real::default();
    }
    Ok(())
}

/// Writes a text as a file on rank 0. Collective.
pub(crate) fn save(comm: &dyn Comm, path: &Path, text: &str) -> Result<(), Failure> {
    on_first(comm, || at(path, replace::write(path, text))).map(drop)
}

/// The dtype of a file of these elements.
pub(crate) fn dtype<E: Element>() -> Dtype {
    match (E::Real::PRECISION, E::WIDTH) {
        (Precision::F32, 1) => Dtype::F32,
        (Precision::F64, 1) => Dtype::F64,
        (Precision::F32, _) => Dtype::C64,
        (Precision::F64, _) => Dtype::C128,
    }
}

/// A file that all ranks write, without its final name until [`Sink::commit`].
pub(crate) struct Sink<'a> {
    comm: &'a dyn Comm,
    path: PathBuf,
    header: Header,
    /// On rank 0.
    output: Option<Output>,
    open_by: PathBuf,
}

impl<'a> Sink<'a> {
    /// Makes the file, with room for all data. Collective.
    pub(crate) fn create(comm: &'a dyn Comm, path: &Path, header: Header) -> Result<Self, Failure> {
        let several = comm.name() != "threads";
        let output = on_first(comm, || at(path, Output::create(path, &header, several)))?;
        let mut open_by = share_path(comm, output.as_ref().map(Output::open_by))?;
        if several {
            // If rank 0 is killed, a signal ends the other ranks, too, and they remove its file.
            open_by = agree(comm, guarded(|| Ok(open_by), PathBuf::as_path))?;
        }
        Ok(Self { comm, path: path.to_path_buf(), header, output, open_by })
    }

    /// Writes each rank's brick, from the file's order of memory. Collective.
    pub(crate) fn write<E: Element>(
        &self,
        DynBrick { lo, hi }: &DynBrick,
        data: &[E],
    ) -> Result<(), Failure> {
        let written = write_brick(&self.open_by, &self.header, lo, hi, data);
        agree(self.comm, at(&self.path, written))
    }

    /// Gives the file its final name. Collective.
    pub(crate) fn commit(self) -> Result<(), Failure> {
        agree(self.comm, at(&self.path, self.output.map_or(Ok(()), Output::commit)))
    }
}
