//! Data on a grid, and the lengths of arrays with parts of it.

use super::subarray::Subarray;
use crate::base::Error;
use crate::geometry::DynGrid;

/// Data on a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GridData {
    /// The grid.
    pub grid: DynGrid,
    /// Bytes of an element: 4, 8 or 16.
    pub bytes: usize,
    /// Arrays in a batch.
    pub batch: usize,
}

impl GridData {
    /// One array of these elements.
    pub fn of<E>(grid: impl Into<DynGrid>) -> Self {
        Self { grid: grid.into(), bytes: size_of::<E>(), batch: 1 }
    }

    /// The same for a batch of `batch` arrays.
    pub fn batch(self, batch: usize) -> Self {
        Self { batch, ..self }
    }

    /// Checks that copies can move it.
    pub(super) fn check(&self) -> Result<(), Error> {
        if ![4, 8, 16].contains(&self.bytes) {
            return Err(Error::argument("bytes of an element", self.bytes, "4, 8 or 16"));
        }
        if self.batch == 0 {
            return Err(Error::argument("batch", self.batch, "at least 1"));
        }
        Ok(())
    }

    /// The elements that an array with this brick of the grid must have.
    pub(super) fn least_len(&self, subarray: &Subarray) -> Result<usize, Error> {
        let (grid, brick) = (&self.grid, &subarray.brick);
        if brick.axes() != grid.axes() {
            return Err(Error::argument("axes of a brick", brick.axes(), grid.axes()));
        }
        if brick.intersect(&grid.whole()).points() != brick.points() {
            let expected = format!("one inside the grid {grid}");
            return Err(Error::argument("brick of a subarray", brick, expected));
        }
        subarray.least_len(self.batch)
    }

    /// The elements that each array must have. There are at most as many arrays as bricks.
    pub(super) fn least_lens(&self, subarrays: &[Subarray]) -> Result<Vec<usize>, Error> {
        let mut lens = Vec::new();
        for subarray in subarrays {
            let (array, least) = (subarray.array, self.least_len(subarray)?);
            if array >= subarrays.len() {
                let expected = format!("below {}, the number of bricks", subarrays.len());
                return Err(Error::argument("array of a subarray", array, expected));
            }
            if array >= lens.len() {
                lens.resize(array + 1, 0);
            }
            lens[array] = lens[array].max(least);
        }
        Ok(lens)
    }
}
