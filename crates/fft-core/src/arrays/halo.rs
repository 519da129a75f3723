//! Ghost points of bricks, filled from the ranks that hold these points.
//!
//! ```text
//! along each axis, cut the range of a brick with its ghost points where the grid ends
//! each piece has a range in the grid: itself, or wrapped if the grid is periodic
//! for each combination of pieces along all axes but the brick itself: a target
//! ```

use std::ops::Range;

use super::grid_data::GridData;
use super::subarray::Subarray;
use crate::base::Error;
use crate::geometry::{DynBrick, DynGrid, PerAxis};

/// The ghost points around bricks, and the rule for points outside the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ghosts {
    /// Ghost points below each brick, along each axis.
    pub lower: PerAxis<usize>,
    /// Ghost points above each brick, along each axis.
    pub upper: PerAxis<usize>,
    /// Along each axis, whether the grid continues at its other end. Otherwise ghost points beyond
    /// the grid stay as they are.
    pub periodic: PerAxis<bool>,
}

impl Ghosts {
    /// Ghost points below and above each brick, a number for each axis.
    pub fn new(
        lower: impl Into<PerAxis<usize>>,
        upper: impl Into<PerAxis<usize>>,
        periodic: impl Into<PerAxis<bool>>,
    ) -> Self {
        Self { lower: lower.into(), upper: upper.into(), periodic: periodic.into() }
    }
}

/// The most images of a grid in the ghost points of a brick, on either side.
const MOST_IMAGES: usize = 1 << 10;

/// A part of a brick's range with its ghost points, along one axis.
struct Segment {
    /// Its beginning, relative to the brick's first point.
    at: isize,
    /// Its points in the grid.
    range: Range<usize>,
    is_ghost: bool,
}

impl Segment {
    /// The part of an array in this range.
    fn of(&self, array: &Subarray, axis: usize) -> Subarray {
        let brick = array.brick.with_range(axis, self.range.clone());
        let steps = self.at.wrapping_mul(array.strides[axis] as isize);
        Subarray { brick, offset: array.offset.wrapping_add_signed(steps), ..*array }
    }
}

impl Ghosts {
    /// The ghost points of arrays, and each array without points, so that all arrays are targets.
    pub(super) fn targets(
        &self,
        data: GridData,
        arrays: &[Subarray],
    ) -> Result<Vec<Subarray>, Error> {
        self.check(data.grid)?;
        let empty = DynBrick::empty(data.grid.axes());
        let mut targets: Vec<_> =
            arrays.iter().map(|array| Subarray { brick: empty, ..*array }).collect();
        for array in arrays {
            data.least_len(array)?;
            if !array.brick.is_empty() {
                targets.extend(self.of(data, array)?);
            }
        }
        Ok(targets)
    }

    fn check(&self, grid: DynGrid) -> Result<(), Error> {
        let Self { lower, upper, periodic } = self;
        for found in [lower.len(), upper.len(), periodic.len()] {
            if found != grid.axes() {
                return Err(Error::argument("axes of ghost points", found, grid.axes()));
            }
        }
        for axis in 0..grid.axes() {
            let (found, most) = (lower[axis].max(upper[axis]), grid.len(axis) * MOST_IMAGES);
            if found > most {
                let what = format!("ghost points along axis {axis}");
                return Err(Error::argument(what, found, format!("at most {most}")));
            }
        }
        Ok(())
    }

    /// The ghost points of an array.
    fn of(
        &self,
        data: GridData,
        array: &Subarray,
    ) -> Result<impl Iterator<Item = Subarray>, Error> {
        let along = |axis: usize| {
            let (around, len) = ([self.lower[axis], self.upper[axis]], data.grid.len(axis));
            segments(array.brick.range(axis), around, len, self.periodic[axis])
        };
        let along: Vec<_> = (0..data.grid.axes()).map(along).collect();
        with_ghosts(array, &along)?.least_len(data.batch)?;
        let mut parts = vec![(*array, false)];
        for (axis, segments) in along.iter().enumerate() {
            let cut = |(part, is_ghost): (Subarray, bool)| {
                segments.iter().map(move |it| (it.of(&part, axis), is_ghost || it.is_ghost))
            };
            parts = parts.into_iter().flat_map(cut).collect();
        }
        Ok(parts.into_iter().filter(|(_, is_ghost)| *is_ghost).map(|(part, _)| part))
    }
}

/// The subarray of a brick together with its ghost points.
fn with_ghosts(subarray: &Subarray, along: &[Vec<Segment>]) -> Result<Subarray, Error> {
    let axes = along.len();
    let lower = |axis: usize| along[axis][0].at.unsigned_abs();
    let len = |axis: usize| along[axis].iter().map(|it| it.range.len()).sum();
    let before = (0..axes).try_fold(0usize, |before, axis| {
        before.checked_add(lower(axis).checked_mul(subarray.strides[axis])?)
    });
    let offset =
        before.and_then(|before| subarray.offset.checked_sub(before)).ok_or_else(|| {
            let expected = "an offset with room for ghost points";
            Error::argument("subarray", format!("{subarray:?}"), expected)
        })?;
    let brick = DynBrick::new(PerAxis::splat(axes, 0), PerAxis::from_fn(axes, len));
    Ok(Subarray { brick, offset, ..*subarray })
}

/// The brick's range along an axis and the ghost points around it, cut where the grid ends.
fn segments(
    brick: Range<usize>,
    [lower, upper]: [usize; 2],
    len: usize,
    periodic: bool,
) -> Vec<Segment> {
    let (n, start, end) = (len as isize, brick.start as isize, brick.end as isize);
    let mut found = Vec::new();
    let mut add = |range: Range<isize>, is_ghost: bool| {
        let mut at = range.start;
        while at < range.end {
            let image = at.div_euclid(n) * n;
            let until = range.end.min(image + n);
            if periodic || image == 0 {
                let range = (at - image) as usize..(until - image) as usize;
                found.push(Segment { at: at - start, range, is_ghost });
            }
            at = until;
        }
    };
    add(start - lower as isize..start, true);
    add(start..end, false);
    add(end..end + upper as isize, true);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ghost_points_wrap_as_often_as_the_grid_is_short() {
        let cut = |brick, around, n, periodic| -> Vec<_> {
            let all = segments(brick, around, n, periodic).into_iter();
            all.filter(|it| it.is_ghost).map(|it| (it.at, it.range)).collect()
        };
        assert_eq!(cut(2..4, [1, 2], 8, true), [(-1, 1..2), (2, 4..6)]);
        assert_eq!(cut(0..4, [2, 1], 4, true), [(-2, 2..4), (4, 0..1)]);
        assert_eq!(cut(0..4, [2, 1], 4, false), []);
        let twice = [(-5, 1..2), (-4, 0..2), (-2, 0..2), (2, 0..1)];
        assert_eq!(cut(0..2, [5, 1], 2, true), twice);
    }

    #[test]
    fn every_array_is_a_target() {
        let (empty, whole) = (DynBrick::empty(1), DynBrick::new([0], [4]));
        let here = Subarray::with_ghosts(whole, [1], [0]);
        let arrays = [Subarray::dense(empty), here.in_array(1)];
        let data = GridData::of::<f64>(DynGrid::new([4]).unwrap());
        let targets = Ghosts::new([1], [0], [true]).targets(data, &arrays).unwrap();
        let found: Vec<_> = targets.iter().map(|it| (it.array, it.offset, it.brick)).collect();
        assert_eq!(found, [(0, 0, empty), (1, 1, empty), (1, 0, DynBrick::new([3], [4]))]);
        assert_eq!(data.least_lens(&targets).unwrap(), [0, 1]);
    }
}
