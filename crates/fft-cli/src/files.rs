//! `.npy` files as all ranks together see them.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use thriffty::{Comm, Error, Reduce};

/// The path that rank 0 has. Collective.
pub(crate) fn share_path(comm: &dyn Comm, mine: Option<&Path>) -> Result<PathBuf, Error> {
    let mine = mine.map(|path| path.as_os_str().as_bytes()).unwrap_or_default();
    let mut len = [mine.len() as f64];
    comm.allreduce(Reduce::Max, &mut len)?;
    let len = len[0] as usize;
    let mut padded = mine.to_vec();
    padded.resize(len, 0);
    let mut all = vec![0; len * comm.size()];
    comm.allgather(&padded, &mut all)?;
    all.truncate(len);
    Ok(OsString::from_vec(all).into())
}
