//! `.npy` files as all ranks together see them: every function is collective, and all ranks get the same error.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use bytemuck::cast_slice_mut;
use thriffty::planning::{DynBrick, Element, Precision, Real, Reduce};
use thriffty::{Comm, Error};

use super::npy::{Dtype, Header, Output, read_brick, write_brick};
use crate::ranks::world::{Failure, agree, on_first};

/// The bytes that rank 0 has. Collective.
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

/// The path that rank 0 has. Collective.
pub(crate) fn share_path(comm: &dyn Comm, mine: Option<&Path>) -> Result<PathBuf, Error> {
    let mine = mine.map(|path| path.as_os_str().as_bytes()).unwrap_or_default();
    Ok(OsString::from_vec(share(comm, mine)?).into())
}

/// The header of a file. Collective; an error where the ranks find different files.
pub(crate) fn open(comm: &dyn Comm, path: &Path) -> Result<Header, Failure> {
    let header = agree(comm, Header::open(path))?;
    let mine = format!("{header:?}");
    let first = share(comm, mine.as_bytes())?;
    let same = match first == mine.as_bytes() {
        true => Ok(header),
        false => Err(format!(
            "{}: found {mine}, but rank 0 found {}",
            path.display(),
            String::from_utf8_lossy(&first)
        )),
    };
    agree(comm, same)
}

/// Reads each rank's brick, in the file's order of memory. Real numbers are read into complex ones too. Collective.
pub(crate) fn read<E: Element>(
    comm: &dyn Comm,
    path: &Path,
    header: &Header,
    brick: &DynBrick,
    data: &mut [E],
) -> Result<(), Failure> {
    let DynBrick { lo, hi } = brick;
    if E::WIDTH == 1 || header.dtype.is_complex() {
        return agree(comm, read_brick(path, header, lo, hi, data));
    }
    // They come to the second half, and are moved apart from the front: none is overwritten before it has moved.
    let points = data.len();
    let reals: &mut [E::Real] = cast_slice_mut(data);
    agree(comm, read_brick(path, header, lo, hi, &mut reals[points..]))?;
    for point in 0..points {
        reals[2 * point] = reals[points + point];
        reals[2 * point + 1] = E::Real::default();
    }
    Ok(())
}

/// What a file of such elements says it holds.
pub(crate) fn dtype<E: Element>() -> Dtype {
    match (E::Real::PRECISION, E::WIDTH) {
        (Precision::F32, 1) => Dtype::F32,
        (Precision::F64, 1) => Dtype::F64,
        (Precision::F32, _) => Dtype::C64,
        (Precision::F64, _) => Dtype::C128,
    }
}

/// A file that all ranks write: under a temporary name until [`Sink::commit`]; gone if it is dropped before.
pub(crate) struct Sink<'a> {
    comm: &'a dyn Comm,
    header: Header,
    /// On rank 0.
    output: Option<Output>,
    temporary: PathBuf,
}

impl<'a> Sink<'a> {
    /// Makes the file, with room for everything. Collective.
    pub(crate) fn create(comm: &'a dyn Comm, path: &Path, header: Header) -> Result<Self, Failure> {
        let output = on_first(comm, || Output::create(path, &header))?;
        let temporary = share_path(comm, output.as_ref().map(Output::temporary_path))?;
        Ok(Self { comm, header, output, temporary })
    }

    /// Writes each rank's brick, from the file's order of memory. Collective.
    pub(crate) fn write<E: Element>(
        &self,
        DynBrick { lo, hi }: &DynBrick,
        data: &[E],
    ) -> Result<(), Failure> {
        agree(self.comm, write_brick(&self.temporary, &self.header, lo, hi, data))
    }

    /// Gives the file its name. Collective.
    pub(crate) fn commit(self) -> Result<(), Failure> {
        agree(self.comm, self.output.map_or(Ok(()), Output::commit))
    }
}
