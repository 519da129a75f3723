//! Data on a grid, and the lengths of arrays with parts of it.

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

    /// The same for a batch of so many arrays.
    pub fn batch(self, batch: usize) -> Self {
        Self { batch, ..self }
    }
}

/// Makes an array of at least so many elements. There are at most as many arrays as bricks.
pub(super) fn grow(
    lens: &mut Vec<usize>,
    array: usize,
    least: usize,
    bricks: usize,
) -> Result<(), Error> {
    if array >= bricks {
        let expected = format!("below {bricks}, the number of bricks");
        return Err(Error::argument("array of a subarray", array, expected));
    }
    if array >= lens.len() {
        lens.resize(array + 1, 0);
    }
    lens[array] = lens[array].max(least);
    Ok(())
}
