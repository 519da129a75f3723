//! A brick in a file is a list of **runs**: stretches of bytes that are contiguous in the file and in memory.

use std::alloc::Layout;
use std::path::Path;

use super::{Header, NpyError};

/// The runs of a brick: all of one length, in the order of the file, which is also their order in memory.
#[derive(Debug)]
pub(super) struct Runs {
    /// How many there are.
    pub(super) count: usize,
    /// Bytes in each.
    pub(super) bytes: usize,
    /// Where the first one starts in the file.
    first: u64,
    /// Number and distance of steps along each outer axis, the fastest first.
    steps: Vec<(usize, u64)>,
}

/// An axis of the file, or several merged into one: its length and the part `lo..hi` that the brick has of it.
#[derive(Clone, Copy)]
struct Axis {
    length: usize,
    lo: usize,
    hi: usize,
}

impl Runs {
    /// The runs of `lo..hi` for a buffer of `elements` elements of type `E`, once all of these fit the header.
    pub(super) fn new<E>(
        path: &Path,
        header: &Header,
        lo: &[usize],
        hi: &[usize],
        elements: usize,
    ) -> Result<Self, NpyError> {
        let (shape, dtype) = (&header.shape, header.dtype);
        header.file_length(path)?;
        if Layout::new::<E>() != dtype.layout() {
            let (path, found) = (path.to_path_buf(), Layout::new::<E>());
            return Err(NpyError::Element { path, found, dtype });
        }
        let axes = shape.len();
        let inside = |a: usize| lo[a] <= hi[a] && hi[a] <= shape[a];
        if lo.len() != axes || hi.len() != axes || !(0..axes).all(inside) {
            let (lo, hi, shape) = (lo.to_vec(), hi.to_vec(), shape.clone());
            return Err(NpyError::Brick { path: path.to_path_buf(), lo, hi, shape });
        }
        let empty = (0..axes).any(|a| lo[a] == hi[a]);
        let expected = if empty { 0 } else { (0..axes).map(|a| hi[a] - lo[a]).product() };
        if elements != expected {
            return Err(NpyError::Buffer { path: path.to_path_buf(), found: elements, expected });
        }
        if empty {
            return Ok(Self { count: 0, bytes: 0, first: header.data_offset, steps: Vec::new() });
        }
        let axis = |a: usize| Axis { length: shape[a], lo: lo[a], hi: hi[a] };
        Ok(if header.fortran_order {
            Self::along((0..axes).map(axis), dtype.item_size(), header.data_offset)
        } else {
            Self::along((0..axes).rev().map(axis), dtype.item_size(), header.data_offset)
        })
    }

    /// The runs along axes that come the fastest first, none of them empty.
    fn along(axes: impl Iterator<Item = Axis>, item: usize, data_offset: u64) -> Self {
        let mut merged: Vec<Axis> = Vec::new();
        for axis in axes {
            match merged.last_mut() {
                // All of a faster axis: its steps follow one another without a gap, so the two axes are one.
                Some(fast) if fast.hi - fast.lo == fast.length => {
                    let n = fast.length;
                    *fast = Axis { length: axis.length * n, lo: axis.lo * n, hi: axis.hi * n };
                }
                _ => merged.push(axis),
            }
        }
        let mut runs = Self { count: 1, bytes: item, first: data_offset, steps: Vec::new() };
        let mut stride = item as u64;
        for (a, axis) in merged.into_iter().enumerate() {
            let extent = axis.hi - axis.lo;
            runs.first += axis.lo as u64 * stride;
            if a == 0 {
                runs.bytes *= extent;
            } else {
                runs.count *= extent;
                runs.steps.push((extent, stride));
            }
            stride *= axis.length as u64;
        }
        runs
    }

    /// Where run `index` starts in the file.
    pub(super) fn offset(&self, index: usize) -> u64 {
        let mut index = index;
        self.steps.iter().fold(self.first, |offset, &(extent, stride)| {
            let step = index % extent;
            index /= extent;
            offset + step as u64 * stride
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::npy::Dtype;

    fn runs(shape: &[usize], fortran_order: bool, lo: &[usize], hi: &[usize]) -> Runs {
        let header = Header { data_offset: 0, ..Header::new(shape, Dtype::F64, fortran_order) };
        let elements = lo.iter().zip(hi).map(|(lo, hi)| hi - lo).product();
        Runs::new::<f64>(Path::new("x.npy"), &header, lo, hi, elements).unwrap()
    }

    #[test]
    fn whole_axes_are_one_run() {
        let all = runs(&[4, 5, 6], false, &[0, 0, 0], &[4, 5, 6]);
        assert_eq!((all.count, all.bytes, all.offset(0)), (1, 4 * 5 * 6 * 8, 0));
        let slab = runs(&[4, 5, 6], false, &[1, 0, 0], &[3, 5, 6]);
        assert_eq!((slab.count, slab.bytes, slab.offset(0)), (1, 2 * 5 * 6 * 8, 5 * 6 * 8));
        let slab = runs(&[6, 5, 4], true, &[0, 0, 1], &[6, 5, 3]);
        assert_eq!((slab.count, slab.bytes, slab.offset(0)), (1, 2 * 5 * 6 * 8, 5 * 6 * 8));
    }

    #[test]
    fn a_whole_middle_axis_merges_with_its_neighbour() {
        let brick = runs(&[4, 5, 6], false, &[1, 0, 2], &[3, 5, 4]);
        assert_eq!((brick.count, brick.bytes, brick.steps.len()), (10, 16, 1));
        assert_eq!(brick.offset(9), 8 * ((2 * 5 + 4) * 6 + 2));
    }

    #[test]
    fn axes_of_length_one_cost_nothing() {
        let brick = runs(&[1, 4, 1, 6, 1], false, &[0, 1, 0, 0, 0], &[1, 3, 1, 6, 1]);
        assert_eq!((brick.count, brick.bytes, brick.offset(0)), (1, 2 * 6 * 8, 6 * 8));
    }

    #[test]
    fn an_empty_brick_has_no_runs_whatever_the_other_axes() {
        let header = Header::new(&[usize::MAX, usize::MAX, 0], Dtype::F64, false);
        let hi = [usize::MAX, usize::MAX, 0];
        let empty = Runs::new::<f64>(Path::new("x.npy"), &header, &[0; 3], &hi, 0).unwrap();
        assert_eq!(empty.count, 0);
    }
}
