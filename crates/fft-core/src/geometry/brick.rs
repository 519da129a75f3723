//! Boxes of the global index space.

use std::fmt;
use std::ops::Range;

use super::per_axis::PerAxis;

/// A half-open box `lo..hi` of the grid. It is empty if `hi <= lo` along any axis.
///
/// ```
/// use fft_core::Brick;
/// let a = Brick { lo: [0, 0], hi: [4, 4] };
/// let common = a.intersect(&Brick { lo: [2, 3], hi: [9, 9] });
/// assert_eq!((common.points(), common.to_string()), (2, "[2..4, 3..4]".into()));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Brick<const D: usize> {
    /// First index along each axis.
    pub lo: [usize; D],
    /// One past the last index along each axis.
    pub hi: [usize; D],
}

impl<const D: usize> Brick<D> {
    /// The brick without points.
    pub const EMPTY: Self = Self { lo: [0; D], hi: [0; D] };

    /// Points along an axis; 0 when reversed. Panics if `axis >= D`.
    pub fn len(&self, axis: usize) -> usize {
        self.hi[axis].saturating_sub(self.lo[axis])
    }

    /// Points along each axis.
    pub fn shape(&self) -> [usize; D] {
        std::array::from_fn(|axis| self.len(axis))
    }

    /// Points in all.
    pub fn points(&self) -> usize {
        self.shape().iter().product()
    }

    /// Whether it holds no point.
    pub fn is_empty(&self) -> bool {
        (0..D).any(|axis| self.len(axis) == 0)
    }

    /// The indices along an axis. Panics if `axis >= D`.
    pub fn range(&self, axis: usize) -> Range<usize> {
        self.lo[axis]..self.hi[axis]
    }

    /// The points in both; [`Brick::EMPTY`] when there are none.
    pub fn intersect(&self, other: &Self) -> Self {
        DynBrick::from(*self).intersect(&DynBrick::from(*other)).typed()
    }
}

impl<const D: usize> fmt::Display for Brick<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        DynBrick::from(*self).fmt(f)
    }
}

/// A [`Brick`] with a number of axes known at run time, as layouts use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DynBrick {
    /// First index along each axis.
    pub lo: PerAxis<usize>,
    /// One past the last index along each axis.
    pub hi: PerAxis<usize>,
}

impl<const D: usize> From<Brick<D>> for DynBrick {
    fn from(brick: Brick<D>) -> Self {
        Self { lo: brick.lo.into(), hi: brick.hi.into() }
    }
}

impl<const D: usize> PartialEq<Brick<D>> for DynBrick {
    fn eq(&self, other: &Brick<D>) -> bool {
        self.lo == other.lo && self.hi == other.hi
    }
}

impl DynBrick {
    /// The brick `lo..hi`.
    ///
    /// # Panics
    /// If both have different numbers of axes.
    pub fn new(lo: impl Into<PerAxis<usize>>, hi: impl Into<PerAxis<usize>>) -> Self {
        let (lo, hi) = (lo.into(), hi.into());
        assert_eq!(lo.len(), hi.len(), "axes of both ends of a brick");
        Self { lo, hi }
    }

    /// The brick without points. Panics if there are not 1 to 4 axes.
    #[inline]
    pub fn empty(axes: usize) -> Self {
        let zero = PerAxis::splat(axes, 0);
        Self { lo: zero, hi: zero }
    }

    /// The number of axes.
    #[inline]
    pub fn axes(&self) -> usize {
        self.lo.len()
    }

    /// The brick with `D` axes. Panics if it has another number of them.
    pub fn typed<const D: usize>(&self) -> Brick<D> {
        Brick { lo: self.lo.array(), hi: self.hi.array() }
    }

    /// Points along an axis; 0 when reversed. Panics if there is no such axis.
    #[inline]
    pub fn len(&self, axis: usize) -> usize {
        self.hi[axis].saturating_sub(self.lo[axis])
    }

    /// Points along each axis.
    #[inline]
    pub fn shape(&self) -> PerAxis<usize> {
        self.hi.zip_with(&self.lo, usize::saturating_sub)
    }

    /// Points in all.
    #[inline]
    pub fn points(&self) -> usize {
        self.shape().product()
    }

    /// Whether it holds no point.
    #[inline]
    pub fn is_empty(&self) -> bool {
        !self.shape().all(|len| len > 0)
    }

    /// Whether both hold the same points. Bricks without points are the same.
    #[inline]
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self == other || self.is_empty() && other.is_empty()
    }

    /// The indices along an axis. Panics if there is no such axis.
    #[inline]
    pub fn range(&self, axis: usize) -> Range<usize> {
        self.lo[axis]..self.hi[axis]
    }

    /// The points in both; without any, the empty brick at the origin.
    #[inline]
    pub fn intersect(&self, other: &Self) -> Self {
        let axes = self.axes();
        debug_assert_eq!(axes, other.axes(), "axes of two bricks");
        let common = Self {
            lo: self.lo.zip_with(&other.lo, usize::max),
            hi: self.hi.zip_with(&other.hi, usize::min),
        };
        if common.is_empty() { Self::empty(axes) } else { common }
    }

    /// The smallest brick around both.
    #[inline]
    pub(crate) fn hull(&self, other: &Self) -> Self {
        Self {
            lo: self.lo.zip_with(&other.lo, usize::min),
            hi: self.hi.zip_with(&other.hi, usize::max),
        }
    }

    /// The points outside `other`, a part of this brick, as disjoint boxes: at most two per axis.
    ///
    /// The brick is cut along the axes in `order`, slowest first, which makes the longest runs.
    pub(crate) fn without(&self, other: &Self, order: PerAxis<usize>) -> Vec<Self> {
        if other.is_empty() {
            return if self.is_empty() { Vec::new() } else { vec![*self] };
        }
        let (mut rest, mut boxes) = (*self, Vec::new());
        for axis in order {
            let (all, inner) = (rest.range(axis), other.range(axis));
            boxes.push(rest.with_range(axis, all.start..inner.start));
            boxes.push(rest.with_range(axis, inner.end..all.end));
            rest = rest.with_range(axis, inner);
        }
        boxes.retain(|part| !part.is_empty());
        boxes
    }

    /// The brick with other bounds along an axis.
    #[inline]
    pub(crate) fn with_range(mut self, axis: usize, range: Range<usize>) -> Self {
        (self.lo[axis], self.hi[axis]) = (range.start, range.end);
        self
    }
}

impl fmt::Display for DynBrick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranges: Vec<_> =
            (0..self.axes()).map(|axis| format!("{}..{}", self.lo[axis], self.hi[axis])).collect();
        write!(f, "[{}]", ranges.join(", "))
    }
}
