//! Checkpoints: the velocity on the grid as a NumPy file of shape `(3, n, n, n)`.
//!
//! Every rank writes and reads its own box, so that a flow can go on with other ranks. The time is
//! in the name, `velocity-0.5.npy`. `numpy.load` reads the file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bytemuck::{cast_slice, cast_slice_mut};
use thriffty::planning::agree;
use thriffty::{Brick, Comm, Error};

use super::files::{failed, on_first};
use super::flow::Flow;
use super::place::Place;

#[cfg(target_endian = "big")]
compile_error!("numbers go between file and memory as they are, and the files are little-endian");

/// Bytes before the data.
const HEADER: usize = 128;

/// The bytes before the data of a velocity on `n` points along each axis.
fn header(n: usize) -> Vec<u8> {
    let text = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': (3, {n}, {n}, {n}), }}");
    let length = HEADER - 10;
    let mut bytes = [b"\x93NUMPY\x01\x00".as_slice(), &(length as u16).to_le_bytes()].concat();
    bytes.extend(format!("{text:<width$}\n", width = length - 1).bytes());
    bytes
}

/// The rows of a rank's box: for each, the byte where it is in the file.
fn offsets(brick: Brick<3>, n: usize) -> impl Iterator<Item = u64> {
    let [planes, rows] = [0, 1].map(|axis| brick.range(axis));
    let first = brick.lo[2];
    (0..3).flat_map(move |component| {
        let rows = rows.clone();
        planes.clone().flat_map(move |i| {
            rows.clone().map(move |j| {
                let point = ((component * n + i) * n + j) * n + first;
                (HEADER + point * size_of::<f64>()) as u64
            })
        })
    })
}

/// The name of a file until it is complete.
fn partial(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    path.with_file_name(name)
}

/// Gives a file that was written under its partial name the final one.
fn finish(path: &Path) -> std::io::Result<()> {
    File::open(partial(path))?.sync_all()?;
    fs::rename(partial(path), path)
}

/// Writes the velocity at a time. Collective.
///
/// # Errors
/// On every rank, when a file cannot be written.
pub(crate) fn save<P: Place>(
    flow: &mut Flow<P>,
    world: &dyn Comm,
    folder: &Path,
    time: f64,
) -> Result<PathBuf, Error> {
    let (n, path) = (flow.size(), folder.join(format!("velocity-{time}.npy")));
    let new = partial(&path);
    on_first(world, &new, || File::create(&new)?.write_all(&header(n)))?;
    flow.read(|velocity| {
        let brick = velocity.brick();
        let write = || {
            let file = OpenOptions::new().write(true).open(&new)?;
            let mut rows = velocity.as_slice().chunks(brick.len(2).max(1)).zip(offsets(brick, n));
            rows.try_for_each(|(row, at)| file.write_all_at(cast_slice(row), at))?;
            file.sync_all()
        };
        write().map_err(failed(world.rank(), &new))
    })?;
    on_first(world, &path, || finish(&path))?;
    Ok(path)
}

/// Continues with a checkpoint; returns its time. Collective.
///
/// # Errors
/// On every rank, when the file cannot be read, or is of another size.
pub(crate) fn load<P: Place>(
    flow: &mut Flow<P>,
    world: &dyn Comm,
    path: &Path,
) -> Result<f64, Error> {
    let n = flow.size();
    let found = agree(world, check(path, n).map_err(failed(world.rank(), path)))?;
    flow.edit(|velocity| {
        let brick = velocity.brick();
        let rows = velocity.as_mut_slice().chunks_mut(brick.len(2).max(1));
        let mut rows = rows.zip(offsets(brick, n));
        let mut read = || {
            let file = File::open(path)?;
            rows.try_for_each(|(row, at)| file.read_exact_at(cast_slice_mut(row), at))
        };
        read().map_err(failed(world.rank(), path))
    })?;
    Ok(found)
}

/// The time of a checkpoint whose header and length are valid.
fn check(path: &Path, n: usize) -> io::Result<f64> {
    let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let time = name.strip_prefix("velocity-").and_then(|time| time.parse().ok());
    let mut found = vec![0; HEADER];
    File::open(path)?.read_exact_at(&mut found, 0)?;
    let bytes = (HEADER + 3 * n.pow(3) * size_of::<f64>()) as u64;
    if found != header(n) || fs::metadata(path)?.len() != bytes {
        return Err(wrong(format!("not a checkpoint of {n} points along each axis")));
    }
    time.ok_or_else(|| wrong("the name has no time, as in velocity-0.5.npy".into()))
}
