//! The global index space and the boxes cut out of it.

use std::fmt;
use std::ops::Range;

use crate::{Error, ProcGrid};

/// The global index space: `D` axes (1 to 4), row-major, the last axis contiguous as in C and NumPy.
///
/// ```
/// use fft_core::Grid;
/// let grid = Grid::new([4, 6, 8])?;
/// assert_eq!(grid.points(), 192);
/// assert_eq!(grid.to_string(), "4x6x8");
/// assert!(Grid::new([4, 0, 8]).is_err());
/// # Ok::<(), fft_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Grid<const D: usize> {
    shape: [usize; D],
}

impl<const D: usize> Grid<D> {
    /// A grid of this shape.
    ///
    /// # Errors
    /// [`Error::EmptyAxis`] for an axis of length 0, [`Error::TooLarge`] beyond 2^58 points. A number of
    /// axes outside 1..=4 does not compile.
    pub fn new(shape: [usize; D]) -> Result<Self, Error> {
        const { assert!(D >= 1 && D <= 4, "a grid has 1 to 4 axes") };
        let grid = Self { shape };
        if let Some(axis) = shape.iter().position(|&n| n == 0) {
            return Err(Error::EmptyAxis { axis, grid: grid.to_string() });
        }
        grid.checked_points(1)?;
        Ok(grid)
    }

    /// Points in `howmany` such grids, if they can be counted with room for their size in bytes.
    pub(crate) fn checked_points(&self, howmany: usize) -> Result<usize, Error> {
        self.shape
            .iter()
            .try_fold(howmany, |product, &n| product.checked_mul(n))
            .filter(|&points| points <= 1 << 58)
            .ok_or_else(|| Error::TooLarge { grid: self.to_string(), howmany })
    }

    /// Points along each axis.
    pub fn shape(&self) -> [usize; D] {
        self.shape
    }

    /// Points along one axis.
    ///
    /// # Panics
    /// If `axis >= D`.
    pub fn len(&self, axis: usize) -> usize {
        self.shape[axis]
    }

    /// Points in all.
    pub fn points(&self) -> usize {
        self.shape.iter().product()
    }

    /// The whole grid as one brick.
    pub fn whole(&self) -> Brick<D> {
        Brick { lo: [0; D], hi: self.shape }
    }

    /// The brick of `rank` when the grid is cut into `ranks` bricks as close to cubes as it goes: the
    /// library's default layout. See [`ProcGrid::cubic`].
    ///
    /// # Panics
    /// If `rank >= ranks`.
    pub fn brick(&self, rank: usize, ranks: usize) -> Brick<D> {
        ProcGrid::cubic(self, ranks).brick(self, rank)
    }

    /// The grid with another length along one axis, as after a real-to-complex transform.
    pub(crate) fn with_len(mut self, axis: usize, n: usize) -> Self {
        self.shape[axis] = n;
        self
    }
}

impl<const D: usize> fmt::Display for Grid<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&times(&self.shape))
    }
}

/// `4x6x8`
pub(crate) fn times(numbers: &[usize]) -> String {
    numbers.iter().map(usize::to_string).collect::<Vec<_>>().join("x")
}

/// A half-open box `lo..hi` of the grid: what one rank holds. Empty when `hi <= lo` along any axis.
///
/// ```
/// use fft_core::Brick;
/// let a = Brick { lo: [0, 0], hi: [4, 4] };
/// let b = Brick { lo: [2, 3], hi: [9, 9] };
/// assert_eq!(a.intersect(&b), Brick { lo: [2, 3], hi: [4, 4] });
/// assert_eq!(a.intersect(&b).points(), 2);
/// assert_eq!(a.to_string(), "[0..4, 0..4]");
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

    /// Points along one axis; 0 when reversed.
    ///
    /// # Panics
    /// If `axis >= D`.
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

    /// Whether both hold the same points: wherever they would be, those without any are the same.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self == other || self.is_empty() && other.is_empty()
    }

    /// The indices along one axis.
    ///
    /// # Panics
    /// If `axis >= D`.
    pub fn range(&self, axis: usize) -> Range<usize> {
        self.lo[axis]..self.hi[axis]
    }

    /// The points in both; [`Brick::EMPTY`] when there are none.
    pub fn intersect(&self, other: &Self) -> Self {
        let common = Self {
            lo: std::array::from_fn(|axis| self.lo[axis].max(other.lo[axis])),
            hi: std::array::from_fn(|axis| self.hi[axis].min(other.hi[axis])),
        };
        if common.is_empty() { Self::EMPTY } else { common }
    }

    /// The smallest brick around both.
    pub(crate) fn hull(&self, other: &Self) -> Self {
        Self {
            lo: std::array::from_fn(|axis| self.lo[axis].min(other.lo[axis])),
            hi: std::array::from_fn(|axis| self.hi[axis].max(other.hi[axis])),
        }
    }

    /// The points that are not in `other`, a part of this brick, as boxes that do not overlap, at most two for each axis. It is cut along
    /// the axes in this order, slowest in memory first, so that boxes are as long as can be.
    pub(crate) fn without(&self, other: &Self, order: [usize; D]) -> Vec<Self> {
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

    /// The brick with other bounds along one axis.
    pub(crate) fn with_range(mut self, axis: usize, range: Range<usize>) -> Self {
        (self.lo[axis], self.hi[axis]) = (range.start, range.end);
        self
    }
}

impl<const D: usize> fmt::Display for Brick<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranges: Vec<_> =
            (0..D).map(|axis| format!("{}..{}", self.lo[axis], self.hi[axis])).collect();
        write!(f, "[{}]", ranges.join(", "))
    }
}
