//! The runs of a brick: stretches of bytes that are contiguous in the file and in memory.

use std::alloc::Layout;

use super::Header;

/// The runs of a brick: all of one length, in the order of the file and of memory.
#[derive(Debug)]
pub(super) struct Runs {
    /// Bytes of each; 1 if there is none.
    pub(super) bytes: usize,
    /// The byte of the file at which the first one starts.
    first: u64,
    /// Number and distance of steps along each outer axis, the fastest first.
    steps: Vec<(usize, u64)>,
}

/// An axis of the file, or several merged into one, and the brick's part `lo..hi` of it.
#[derive(Clone, Copy)]
struct Axis {
    length: usize,
    lo: usize,
    hi: usize,
}

impl Runs {
    /// The runs of `lo..hi` for a buffer of `elements` elements of type `E`.
    ///
    /// # Errors
    ///
    /// If the brick, the elements or their number do not fit the header.
    pub(super) fn new<E>(
        header: &Header,
        lo: &[usize],
        hi: &[usize],
        elements: usize,
    ) -> Result<Self, String> {
        let (shape, dtype) = (&header.shape, header.dtype);
        header.file_length()?;
        let (found, expected) = (Layout::new::<E>(), dtype.layout());
        if found != expected {
            return Err(format!(
                "found elements of {} bytes aligned to {}, expected {} aligned to {} for dtype {dtype}",
                found.size(),
                found.align(),
                expected.size(),
                expected.align()
            ));
        }
        let axes = shape.len();
        let inside = |a: usize| lo[a] <= hi[a] && hi[a] <= shape[a];
        if lo.len() != axes || hi.len() != axes || !(0..axes).all(inside) {
            return Err(format!(
                "found the brick {lo:?}..{hi:?}, expected a box inside the shape {shape:?}"
            ));
        }
        let empty = (0..axes).any(|a| lo[a] == hi[a]);
        let expected = if empty { 0 } else { (0..axes).map(|a| hi[a] - lo[a]).product() };
        if elements != expected {
            return Err(format!(
                "found a buffer of {elements} elements, expected {expected} for the brick"
            ));
        }
        if empty {
            return Ok(Self { bytes: 1, first: header.data_offset, steps: Vec::new() });
        }
        let axis = |a: usize| Axis { length: shape[a], lo: lo[a], hi: hi[a] };
        Ok(if header.fortran_order {
            Self::along((0..axes).map(axis), header.item.bytes(), header.data_offset)
        } else {
            Self::along((0..axes).rev().map(axis), header.item.bytes(), header.data_offset)
        })
    }

    /// The runs along axes in order, the fastest first, none of them empty.
    fn along(axes: impl Iterator<Item = Axis>, item: usize, data_offset: u64) -> Self {
        let mut merged: Vec<Axis> = Vec::new();
        for axis in axes {
            match merged.last_mut() {
                // The brick has all of the faster axis, so its rows are contiguous.
                Some(fast) if fast.hi - fast.lo == fast.length => {
                    let n = fast.length;
                    *fast = Axis { length: axis.length * n, lo: axis.lo * n, hi: axis.hi * n };
                }
                _ => merged.push(axis),
            }
        }
        let mut runs = Self { bytes: item, first: data_offset, steps: Vec::new() };
        let mut stride = item as u64;
        for (a, axis) in merged.into_iter().enumerate() {
            let extent = axis.hi - axis.lo;
            runs.first += axis.lo as u64 * stride;
            if a == 0 {
                runs.bytes *= extent;
            } else {
                runs.steps.push((extent, stride));
            }
            stride *= axis.length as u64;
        }
        runs
    }

    /// The byte of the file at which run `index` starts.
    pub(super) fn offset(&self, mut index: usize) -> u64 {
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
        Runs::new::<f64>(&header, lo, hi, elements).unwrap()
    }

    /// The number of steps along all axes but the first, the bytes of a run, and where the first
    /// starts.
    fn found(runs: &Runs) -> (usize, usize, u64) {
        (runs.steps.iter().map(|step| step.0).product(), runs.bytes, runs.offset(0))
    }

    #[test]
    fn whole_axes_are_one_run() {
        let all = runs(&[4, 5, 6], false, &[0, 0, 0], &[4, 5, 6]);
        assert_eq!(found(&all), (1, 4 * 5 * 6 * 8, 0));
        let slab = runs(&[4, 5, 6], false, &[1, 0, 0], &[3, 5, 6]);
        assert_eq!(found(&slab), (1, 2 * 5 * 6 * 8, 5 * 6 * 8));
        let slab = runs(&[6, 5, 4], true, &[0, 0, 1], &[6, 5, 3]);
        assert_eq!(found(&slab), (1, 2 * 5 * 6 * 8, 5 * 6 * 8));
    }

    #[test]
    fn a_whole_middle_axis_merges_with_its_neighbour() {
        let brick = runs(&[4, 5, 6], false, &[1, 0, 2], &[3, 5, 4]);
        assert_eq!((found(&brick).0, brick.bytes, brick.steps.len()), (10, 16, 1));
        assert_eq!(brick.offset(9), 8 * ((2 * 5 + 4) * 6 + 2));
    }

    #[test]
    fn axes_of_length_one_cost_nothing() {
        let brick = runs(&[1, 4, 1, 6], false, &[0, 1, 0, 0], &[1, 3, 1, 6]);
        assert_eq!(found(&brick), (1, 2 * 6 * 8, 6 * 8));
    }

    #[test]
    fn an_empty_brick_has_no_elements_whatever_the_other_axes() {
        let header = Header::new(&[usize::MAX, usize::MAX, 0], Dtype::F64, false);
        let hi = [usize::MAX, usize::MAX, 0];
        assert!(Runs::new::<f64>(&header, &[0; 3], &hi, 0).is_ok());
    }
}
