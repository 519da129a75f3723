//! Files are read as they were written, and damaged files are refused.

mod bricks;
mod items;
mod outputs;
mod refusals;

use std::fs;
use std::path::{Path, PathBuf};

use bytemuck::Pod;
use num_complex::Complex;
use tempfile::TempDir;

use super::*;

/// An element type, with the value that a test puts at each index.
pub(super) trait Element: Pod + PartialEq + std::fmt::Debug + Send + Sync {
    const DTYPE: Dtype;
    /// A value that no other index has, up to 2^23.
    fn numbered(index: usize) -> Self;
}

impl Element for f32 {
    const DTYPE: Dtype = Dtype::F32;
    fn numbered(index: usize) -> Self {
        index as f32
    }
}

impl Element for f64 {
    const DTYPE: Dtype = Dtype::F64;
    fn numbered(index: usize) -> Self {
        index as f64
    }
}

impl<T: Element + std::ops::Neg<Output = T>> Element for Complex<T> {
    const DTYPE: Dtype = match T::DTYPE {
        Dtype::F32 => Dtype::C64,
        _ => Dtype::C128,
    };
    fn numbered(index: usize) -> Self {
        Self::new(T::numbered(index), -T::numbered(index))
    }
}

/// A folder for one test, and a path in it.
fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rho.npy");
    (folder, path)
}

/// Every index of the box `lo..hi`, in the order in which a file of that order has them.
fn indices(lo: &[usize], hi: &[usize], fortran_order: bool) -> Vec<Vec<usize>> {
    let mut indices = vec![vec![]];
    for a in 0..lo.len() {
        let a = if fortran_order { lo.len() - 1 - a } else { a };
        let longer = |index: &Vec<usize>| {
            let index = index.clone();
            (lo[a]..hi[a]).map(move |i| [&index[..], &[i]].concat()).collect::<Vec<_>>()
        };
        indices = indices.iter().flat_map(longer).collect();
    }
    if fortran_order {
        indices.iter_mut().for_each(|index| index.reverse());
    }
    indices
}

/// The oracle: what a brick of the test array holds, element by element. Its values count in C
/// order, whatever the order of the file.
fn numbered<E: Element>(header: &Header, lo: &[usize], hi: &[usize]) -> Vec<E> {
    let count =
        |index: Vec<usize>| index.iter().zip(&header.shape).fold(0, |sum, (i, n)| sum * n + i);
    let indices = indices(lo, hi, header.fortran_order);
    indices.into_iter().map(|index| E::numbered(count(index))).collect()
}

/// The file of the test array, written in one brick.
fn write_numbered<E: Element>(path: &Path, shape: &[usize], fortran_order: bool) -> Header {
    let header = Header::new(shape, E::DTYPE, fortran_order);
    let lo = vec![0; shape.len()];
    let output = Output::create(path, &header, false).unwrap();
    let data = numbered::<E>(&header, &lo, shape);
    write_brick(&output.open_by(), &header, &lo, shape, &data).unwrap();
    output.commit().unwrap();
    header
}

/// The names in a folder.
fn entries(folder: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}
