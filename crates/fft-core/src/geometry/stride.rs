//! The order of points that lie apart.

use super::layout::Layout;
use super::per_axis::PerAxis;
use crate::base::Error;

/// The order of an axis's points with a stride: 0, s, 2s, ..., then 1, s + 1, and so on. A position
/// is a place in this order, an index a place on the axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stride {
    stride: usize,
    /// Points that follow each other.
    each: usize,
}

impl Stride {
    /// Points of an axis whose number the stride divides.
    pub(crate) fn new(points: usize, stride: usize) -> Self {
        Self { stride, each: points / stride }
    }

    #[inline]
    pub(crate) fn index(self, position: usize) -> usize {
        position / self.each + self.stride * (position % self.each)
    }

    #[inline]
    pub(crate) fn position(self, index: usize) -> usize {
        index / self.stride + self.each * (index % self.stride)
    }
}

impl Layout {
    /// The same bricks of positions whose points lie these strides apart: the points of an axis of
    /// n points with stride s have the indices 0, s, 2s, ..., then 1, s + 1, ..., and so on. If
    /// each of s ranks has n/s positions, the layout is cyclic.
    ///
    /// ```
    /// use fft_core::*;
    /// let cyclic = Layout::even(DynGrid::new([12])?, ProcGrid::new([3]), 3).strided([3])?;
    /// let of_rank_1 = cyclic.brick(1).range(0).map(|position| cyclic.index(0, position));
    /// assert!(of_rank_1.eq([1, 4, 7, 10]));
    /// assert_eq!(cyclic.position(0, 7), 6);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Argument`] unless each stride divides the length of its axis.
    pub fn strided(mut self, strides: impl Into<PerAxis<usize>>) -> Result<Self, Error> {
        let (strides, grid) = (strides.into(), self.grid);
        if strides.len() != grid.axes() {
            return Err(Error::argument("axes of strides", strides.len(), grid.axes()));
        }
        for (axis, stride) in strides.iter().enumerate() {
            if *stride == 0 || !grid.len(axis).is_multiple_of(*stride) {
                let what = format!("stride of points along axis {axis}");
                let expected = format!("a divisor of {}", grid.len(axis));
                return Err(Error::argument(what, stride, expected));
            }
        }
        self.strides = strides;
        Ok(self)
    }

    /// The distance between the indices of adjacent positions along each axis.
    pub fn strides(&self) -> PerAxis<usize> {
        self.strides
    }

    /// Whether positions differ from indices.
    pub fn is_strided(&self) -> bool {
        self.strides.iter().any(|stride| *stride != 1)
    }

    /// The index of the point at a position along an axis. Panics if there is no such axis.
    #[inline]
    pub fn index(&self, axis: usize, position: usize) -> usize {
        Stride::new(self.grid.len(axis), self.strides[axis]).index(position)
    }

    /// The position of the point with an index along an axis. Panics if there is no such axis.
    #[inline]
    pub fn position(&self, axis: usize, index: usize) -> usize {
        Stride::new(self.grid.len(axis), self.strides[axis]).position(index)
    }
}
