//! Ranks as a grid, and the even cut of the index space over it.

use std::cmp::Reverse;
use std::fmt;
use std::ops::Range;

use super::brick::{Brick, DynBrick};
use super::grid::{DynGrid, Grid};
use super::per_axis::{PerAxis, times};

/// Ranks as a grid in C order: the last axis varies fastest with the rank.
///
/// Axis `a` of the index space is cut into `shape[a]` nearly equal parts.
///
/// ```
/// use fft_core::{Grid, ProcGrid};
/// let grid = Grid::new([10, 10])?;
/// let ranks = ProcGrid::new([2, 3]);
/// assert_eq!(ranks.brick(&grid, 5).to_string(), "[5..10, 6..10]");
/// # Ok::<(), fft_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProcGrid {
    shape: PerAxis<usize>,
}

impl ProcGrid {
    /// A process grid of this shape.
    pub fn new(shape: impl Into<PerAxis<usize>>) -> Self {
        Self { shape: shape.into() }
    }

    /// Ranks along each axis.
    pub fn shape(&self) -> PerAxis<usize> {
        self.shape
    }

    /// Ranks in all.
    pub fn ranks(&self) -> usize {
        self.shape.iter().product()
    }

    /// The process grid with the fewest empty bricks. Ties go to the smallest largest brick, then
    /// to the smallest surface, which is what peers exchange, then to the most parts of the first
    /// axes.
    ///
    /// A process grid cuts each axis in the same way for all ranks. If the number of ranks has a
    /// prime factor above all lengths, some bricks are empty although there are enough points.
    /// Transforms would not gain from other bricks, because they need whole lines, and these are
    /// cut over process grids, too.
    ///
    /// ```
    /// use fft_core::{DynGrid, ProcGrid};
    /// let grid = DynGrid::new([4, 5, 3])?;
    /// assert_eq!(ProcGrid::cubic(grid, 6).shape(), [2, 1, 3]);
    /// // Seven ranks can only be cut along one axis, and none has seven points.
    /// assert_eq!(ProcGrid::cubic(grid, 7).shape(), [1, 7, 1]);
    /// # Ok::<(), fft_core::Error>(())
    /// ```
    ///
    /// # Panics
    /// If `ranks` is 0.
    pub fn cubic(grid: impl Into<DynGrid>, ranks: usize) -> Self {
        assert!(ranks > 0, "a process grid needs at least one rank");
        let n = grid.into().shape();
        Self::all(n.len(), ranks)
            .into_iter()
            .min_by_key(|candidate| {
                let side = PerAxis::from_fn(n.len(), |a| n[a].div_ceil(candidate.shape[a]));
                let held: usize = (0..n.len()).map(|a| n[a].min(candidate.shape[a])).product();
                let volume: usize = side.iter().product();
                let surface: usize = side.iter().map(|s| volume / s).sum();
                (Reverse(held), volume, surface, Reverse(candidate.shape))
            })
            .expect("every positive number has a factorisation")
    }

    /// All factorisations of `ranks` into a factor per axis, in lexicographic order.
    pub fn all(axes: usize, ranks: usize) -> Vec<Self> {
        let mut found = Vec::new();
        factorise(ranks, 0, PerAxis::splat(axes, 1), &mut found);
        found
    }

    /// The brick of a rank: part `i` of `p` of an axis of `n` points is `n·i/p .. n·(i+1)/p`.
    ///
    /// It may be empty: beyond the process grid, or of an axis with more parts than points.
    pub fn brick<const D: usize>(&self, grid: &Grid<D>, rank: usize) -> Brick<D> {
        self.part(&grid.into(), rank).typed()
    }

    /// As [`ProcGrid::brick`].
    ///
    /// # Panics
    /// If the numbers of axes differ.
    pub fn part(&self, grid: &DynGrid, rank: usize) -> DynBrick {
        assert_eq!(self.shape.len(), grid.axes(), "axes of a process grid and of a grid");
        if rank >= self.ranks() {
            return grid.nothing();
        }
        let mut rest = rank;
        let mut brick = grid.whole();
        for axis in (0..grid.axes()).rev() {
            let parts = self.shape[axis];
            // Most axes of a search are whole, and division is slow.
            if parts > 1 {
                brick = brick.with_range(axis, share(grid.len(axis), parts, rest % parts));
                rest /= parts;
            }
        }
        brick
    }
}

impl<const D: usize> Grid<D> {
    /// The brick of a rank in the default layout: bricks as close to cubes as possible.
    ///
    /// See [`ProcGrid::cubic`], also on ranks without points. It is empty if `rank >= ranks`;
    /// panics if `ranks` is 0.
    pub fn brick(&self, rank: usize, ranks: usize) -> Brick<D> {
        DynGrid::from(*self).brick(rank, ranks).typed()
    }
}

impl DynGrid {
    /// As [`Grid::brick`].
    pub fn brick(&self, rank: usize, ranks: usize) -> DynBrick {
        ProcGrid::cubic(self, ranks).part(self, rank)
    }
}

/// Part `i` of `parts` nearly equal parts of `0..n`.
fn share(n: usize, parts: usize, i: usize) -> Range<usize> {
    if parts == 1 {
        return 0..n;
    }
    // With `n = q·p + r`, `n·i/p` is `q·i + r·i/p`, which hardly ever needs long division.
    let (q, r) = (n / parts, n % parts);
    let long = |i: usize| (r as u128 * i as u128 / parts as u128) as usize;
    let cut = |i: usize| q * i + r.checked_mul(i).map_or_else(|| long(i), |ri| ri / parts);
    cut(i)..cut(i + 1)
}

fn factorise(rest: usize, axis: usize, shape: PerAxis<usize>, found: &mut Vec<ProcGrid>) {
    let with = |factor| {
        let mut shape = shape;
        shape[axis] = factor;
        shape
    };
    if axis + 1 == shape.len() {
        found.push(ProcGrid { shape: with(rest) });
        return;
    }
    for factor in (1..=rest).filter(|factor| rest.is_multiple_of(*factor)) {
        factorise(rest / factor, axis + 1, with(factor), found);
    }
}

impl fmt::Display for ProcGrid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&times(&self.shape))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_ordered_factorisations() {
        assert_eq!(ProcGrid::all(3, 12).len(), 18);
        assert_eq!(ProcGrid::all(1, 7), [ProcGrid::new([7])]);
    }

    #[test]
    fn cubic_prefers_equal_bricks_then_small_surface_then_first_axes() {
        let cube = DynGrid::new([256, 256, 256]).unwrap();
        assert_eq!(ProcGrid::cubic(cube, 2).shape(), [2, 1, 1]);
        assert_eq!(ProcGrid::cubic(cube, 4).shape(), [2, 2, 1]);
        assert_eq!(ProcGrid::cubic(cube, 8).shape(), [2, 2, 2]);
        let flat = DynGrid::new([2, 600, 3]).unwrap();
        assert_eq!(ProcGrid::cubic(flat, 6).shape(), [1, 6, 1]);
    }

    #[test]
    fn ranks_are_empty_only_where_every_process_grid_has_empty_ones() {
        for (shape, ranks) in [
            ([7, 3, 1], 8),
            ([4, 5, 3], 7),
            ([4, 5, 3], 12),
            ([2, 2, 2], 8),
            ([3, 3, 3], 20),
            ([64, 64, 64], 67),
            ([1, 9, 10], 30),
        ] {
            let grid = DynGrid::new(shape).unwrap();
            let empty = |cut: &ProcGrid| {
                (0..ranks).filter(|rank| cut.part(&grid, *rank).is_empty()).count()
            };
            let least = ProcGrid::all(3, ranks).iter().map(empty).min();
            assert_eq!(Some(empty(&ProcGrid::cubic(grid, ranks))), least, "{grid} on {ranks}");
        }
    }

    #[test]
    fn parts_begin_where_their_definition_says() {
        let most = 1usize << 58;
        for n in [1, 2, 7, 1000, most - 1, most] {
            for parts in [1, 2, 3, 10, 4097, most - 3, most] {
                let cut = |i: usize| (n as u128 * i as u128 / parts as u128) as usize;
                let some = [0, 1, parts / 2, parts / 3 * 2, parts - 1];
                for i in some.into_iter().filter(|i| *i < parts) {
                    assert_eq!(share(n, parts, i), cut(i)..cut(i + 1), "{i} of {parts} of {n}");
                }
            }
        }
    }

    #[test]
    fn parts_differ_by_at_most_one_point() {
        for n in 1..40 {
            for parts in 1..10 {
                let sizes: Vec<_> = (0..parts).map(|i| share(n, parts, i).len()).collect();
                assert_eq!(sizes.iter().sum::<usize>(), n);
                assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
            }
        }
    }
}
