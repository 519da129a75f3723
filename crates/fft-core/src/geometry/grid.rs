//! The global index space.

use std::fmt;

use super::brick::{Brick, DynBrick};
use super::per_axis::{PerAxis, check_axes, times};
use crate::base::Error;

/// The global index space of 1 to 4 axes, row-major: the last axis is contiguous as in C and NumPy.
///
/// ```
/// use fft_core::Grid;
/// let grid = Grid::new([4, 6, 8])?;
/// assert_eq!((grid.points(), grid.to_string()), (192, "4x6x8".into()));
/// assert!(Grid::new([4, 0, 8]).is_err());
/// # Ok::<(), fft_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Grid<const D: usize> {
    shape: [usize; D],
}

impl<const D: usize> Grid<D> {
    /// A grid of this shape. Another number of axes than 1 to 4 does not compile.
    ///
    /// ```
    /// assert!(fft_core::Grid::new([4; 4]).is_ok());
    /// ```
    /// ```compile_fail,E0080
    /// assert!(fft_core::Grid::new([4; 5]).is_ok());
    /// ```
    ///
    /// # Errors
    /// [`Error::Geometry`] for an axis of length 0, [`Error::TooLarge`] beyond 2^58 points.
    pub fn new(shape: [usize; D]) -> Result<Self, Error> {
        const { check_axes(D) };
        DynGrid::new(shape)?;
        Ok(Self { shape })
    }

    /// Points along each axis.
    pub fn shape(&self) -> [usize; D] {
        self.shape
    }

    /// Points along an axis. Panics if `axis >= D`.
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
}

impl<const D: usize> fmt::Display for Grid<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        DynGrid::from(*self).fmt(f)
    }
}

/// A [`Grid`] with a number of axes known at run time, as layouts and recipes use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DynGrid {
    shape: PerAxis<usize>,
}

impl<const D: usize> From<Grid<D>> for DynGrid {
    fn from(grid: Grid<D>) -> Self {
        Self { shape: grid.shape.into() }
    }
}

impl<const D: usize> From<&Grid<D>> for DynGrid {
    fn from(grid: &Grid<D>) -> Self {
        Self::from(*grid)
    }
}

impl From<&Self> for DynGrid {
    fn from(grid: &Self) -> Self {
        *grid
    }
}

impl<const D: usize> PartialEq<Grid<D>> for DynGrid {
    fn eq(&self, other: &Grid<D>) -> bool {
        self.shape == other.shape
    }
}

impl DynGrid {
    /// A grid of this shape.
    ///
    /// # Errors
    /// As [`Grid::new`].
    pub fn new(shape: impl Into<PerAxis<usize>>) -> Result<Self, Error> {
        let grid = Self { shape: shape.into() };
        if let Some(axis) = grid.shape.iter().position(|&n| n == 0) {
            let text = "has no points; every axis needs at least 1";
            return Err(Error::Geometry(format!("axis {axis} of grid {grid} {text}")));
        }
        grid.checked_points(1)?;
        Ok(grid)
    }

    /// Points of `batch` grids, if their size in bytes can be counted.
    ///
    /// # Errors
    /// [`Error::TooLarge`] beyond 2^58 points.
    pub fn checked_points(&self, batch: usize) -> Result<usize, Error> {
        self.shape
            .iter()
            .try_fold(batch, |product, &n| product.checked_mul(n))
            .filter(|&points| points <= 1 << 58)
            .ok_or_else(|| Error::TooLarge { grid: self.to_string(), batch })
    }

    /// The number of axes.
    pub fn axes(&self) -> usize {
        self.shape.len()
    }

    /// Points along each axis.
    pub fn shape(&self) -> PerAxis<usize> {
        self.shape
    }

    /// Points along an axis. Panics if there is no such axis.
    pub fn len(&self, axis: usize) -> usize {
        self.shape[axis]
    }

    /// Points in all.
    pub fn points(&self) -> usize {
        self.shape.iter().product()
    }

    /// The whole grid as one brick.
    pub fn whole(&self) -> DynBrick {
        DynBrick { lo: self.shape.map(|_| 0), hi: self.shape }
    }

    pub(crate) fn nothing(&self) -> DynBrick {
        DynBrick::empty(self.axes())
    }

    /// The grid with `D` axes. Panics if it has another number of them.
    pub fn typed<const D: usize>(&self) -> Grid<D> {
        Grid { shape: self.shape.array() }
    }

    /// The grid with another length of one axis, as after a real-to-complex transform.
    pub(crate) fn with_len(mut self, axis: usize, n: usize) -> Self {
        self.shape[axis] = n;
        self
    }
}

impl fmt::Display for DynGrid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&times(&self.shape))
    }
}
