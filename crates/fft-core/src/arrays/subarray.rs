//! A brick in a local array.

use std::cmp::Reverse;

use crate::base::Error;
use crate::geometry::{DIMS, DynBrick, PerAxis, View};

/// The dimensions of a view in memory, slowest first: batches are the one before the axes.
pub(super) type Order = [usize; DIMS];

/// A brick in a local array of any strides, like MPI's subarrays: with ghost points or padded rows
/// around it, in any order of axes, with the components of a vector next to each other.
///
/// ```
/// use fft_core::{DynBrick, Subarray};
/// let brick = DynBrick::new([4, 0], [8, 10]);
/// // Rows of 12 elements: one ghost point on each side, along both axes.
/// let array = Subarray::with_ghosts(brick, [1, 1], [1, 1]);
/// assert_eq!((array.offset, array.strides.array()), (13, [12, 1]));
/// assert_eq!(array.least_len(1).unwrap(), 13 + 3 * 12 + 10);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subarray {
    /// The number of the array among those that a copy is given; several bricks may share one.
    pub array: usize,
    /// The brick of the grid.
    pub brick: DynBrick,
    /// The index in the array of the brick's first point.
    pub offset: usize,
    /// Elements from a point to its neighbour along each axis.
    pub strides: PerAxis<usize>,
    /// Elements from an array of a batch to the next.
    pub distance: usize,
}

impl Subarray {
    /// An array of the brick alone, row-major.
    pub fn dense(brick: impl Into<DynBrick>) -> Self {
        let brick = brick.into();
        let none = PerAxis::splat(brick.axes(), 0);
        Self::with_ghosts(brick, none, none)
    }

    /// A row-major array with `lower` points below the brick and `upper` above it, along each axis.
    /// It has `distance` elements.
    ///
    /// # Panics
    /// If there are not as many numbers as axes.
    pub fn with_ghosts(
        brick: impl Into<DynBrick>,
        lower: impl Into<PerAxis<usize>>,
        upper: impl Into<PerAxis<usize>>,
    ) -> Self {
        let (brick, lower, upper) = (brick.into(), lower.into(), upper.into());
        let shape = PerAxis::from_fn(brick.axes(), |axis| {
            lower[axis].saturating_add(brick.len(axis)).saturating_add(upper[axis])
        });
        Self::placed(brick, lower, shape, PerAxis::row_major(brick.axes()))
    }

    /// A brick that begins at `start` of an array of this shape, whose axes are in this order in
    /// memory, slowest first.
    ///
    /// # Panics
    /// If `order` is not a permutation of the axes, or there are not as many numbers as axes.
    pub fn placed(
        brick: impl Into<DynBrick>,
        start: impl Into<PerAxis<usize>>,
        shape: impl Into<PerAxis<usize>>,
        order: impl Into<PerAxis<usize>>,
    ) -> Self {
        let (brick, start, shape, order) = (brick.into(), start.into(), shape.into(), order.into());
        let mut strides = PerAxis::splat(brick.axes(), 0);
        let mut distance = 1usize;
        for &axis in order.iter().rev() {
            strides[axis] = distance;
            // Impossible arrays are refused by `least_len`.
            distance = distance.saturating_mul(shape[axis]);
        }
        let offset = (0..brick.axes()).fold(0usize, |offset, axis| {
            offset.saturating_add(start[axis].saturating_mul(strides[axis]))
        });
        Self { array: 0, brick, offset, strides, distance }
    }

    /// The same place in the array of this number.
    pub fn in_array(self, array: usize) -> Self {
        Self { array, ..self }
    }

    /// The same array with `batch` components, which are next to each other at each point.
    pub fn interleaved(self, batch: usize) -> Self {
        Self {
            offset: self.offset.saturating_mul(batch),
            strides: self.strides.map(|stride| stride.saturating_mul(batch)),
            distance: 1,
            ..self
        }
    }

    /// The elements that a batch of `batch` arrays must have.
    ///
    /// # Errors
    /// [`Error::Argument`] for strides of other axes than the brick's, for points that share an
    /// element, and for more elements than can be counted.
    pub fn least_len(&self, batch: usize) -> Result<usize, Error> {
        let axes = self.brick.axes();
        if self.strides.len() != axes {
            return Err(Error::argument("strides of a subarray", self.strides.len(), axes));
        }
        if self.brick.is_empty() || batch == 0 {
            return Ok(0);
        }
        let mut dims: Vec<_> = (0..axes)
            .map(|axis| (self.strides[axis], self.brick.len(axis)))
            .chain([(self.distance, batch)])
            .filter(|(_, len)| *len > 1)
            .collect();
        dims.sort_unstable();
        // The distance of the first and the last point along all shorter strides.
        let mut reach = 0usize;
        for (stride, len) in dims {
            if stride <= reach {
                let (found, expected) = (format!("{self:?}"), "no two points in one element");
                return Err(Error::argument("strides of a subarray", found, expected));
            }
            let further = stride.checked_mul(len - 1).and_then(|far| reach.checked_add(far));
            reach = further.ok_or_else(|| self.too_long())?;
        }
        self.offset.checked_add(reach + 1).ok_or_else(|| self.too_long())
    }

    fn too_long(&self) -> Error {
        Error::argument("subarray", format!("{self:?}"), "no more elements than can be counted")
    }

    /// The place of a part of its brick: batches first, then axes.
    pub(super) fn view(&self, part: &DynBrick) -> View {
        let first = DIMS - self.brick.axes();
        let mut view = View { offset: self.offset, stride: [0; DIMS] };
        view.stride[first - 1] = self.distance;
        for axis in 0..self.brick.axes() {
            view.stride[first + axis] = self.strides[axis];
            view.offset += (part.lo[axis] - self.brick.lo[axis]) * self.strides[axis];
        }
        view
    }

    /// The order of its memory.
    pub(super) fn order(&self) -> Order {
        let mut order: Order = std::array::from_fn(|dim| dim);
        let stride = self.view(&self.brick).stride;
        order.sort_by_key(|dim| Reverse(stride[*dim]));
        order
    }
}
