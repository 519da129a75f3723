//! Ranks arranged as a grid of their own, and the even cut of the index space that follows from it.

use std::cmp::Reverse;
use std::fmt;
use std::ops::Range;

use crate::grid::times;
use crate::{Brick, Grid};

/// Ranks as a `D`-dimensional array in C order: the last axis of the process grid varies fastest with the
/// rank. Axis `a` of the index space is cut into `shape[a]` nearly equal parts.
///
/// ```
/// use fft_core::{Grid, ProcGrid};
/// let grid = Grid::new([10, 10])?;
/// let ranks = ProcGrid::new([2, 3]);
/// assert_eq!(ranks.brick(&grid, 5).to_string(), "[5..10, 6..10]");
/// # Ok::<(), fft_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProcGrid<const D: usize> {
    shape: [usize; D],
}

impl<const D: usize> ProcGrid<D> {
    /// A process grid of this shape.
    pub fn new(shape: [usize; D]) -> Self {
        Self { shape }
    }

    /// Ranks along each axis.
    pub fn shape(&self) -> [usize; D] {
        self.shape
    }

    /// Ranks in all.
    pub fn ranks(&self) -> usize {
        self.shape.iter().product()
    }

    /// The process grid for `ranks` ranks with the smallest largest brick, and among those the smallest
    /// surface (which is what neighbours exchange), and among those the one that cuts the first axes most.
    ///
    /// # Panics
    /// If `ranks` is 0.
    pub fn cubic(grid: &Grid<D>, ranks: usize) -> Self {
        assert!(ranks > 0, "a process grid needs at least one rank");
        let n = grid.shape();
        Self::all(ranks)
            .into_iter()
            .min_by_key(|candidate| {
                let side: [usize; D] = std::array::from_fn(|a| n[a].div_ceil(candidate.shape[a]));
                let volume: usize = side.iter().product();
                let surface: usize = side.iter().map(|s| volume / s).sum();
                (volume, surface, Reverse(candidate.shape))
            })
            .expect("every positive number has a factorisation")
    }

    /// Every way to write `ranks` as an ordered product of `D` factors, in lexicographic order.
    pub fn all(ranks: usize) -> Vec<Self> {
        let mut found = Vec::new();
        factorise(ranks, 0, [1; D], &mut found);
        found
    }

    /// The brick of `rank`, part `i` of `p` of an axis of `n` points being `n·i/p .. n·(i+1)/p`. Ranks
    /// beyond the process grid, and parts of an axis shorter than its number of parts, may be empty.
    pub fn brick(&self, grid: &Grid<D>, rank: usize) -> Brick<D> {
        if rank >= self.ranks() {
            return Brick::EMPTY;
        }
        let mut rest = rank;
        let mut brick = grid.whole();
        for axis in (0..D).rev() {
            let parts = self.shape[axis];
            brick = brick.with_range(axis, part(grid.len(axis), parts, rest % parts));
            rest /= parts;
        }
        brick
    }
}

/// Part `i` of `parts` nearly equal parts of `0..n`.
fn part(n: usize, parts: usize, i: usize) -> Range<usize> {
    let cut = |i: usize| (n as u128 * i as u128 / parts as u128) as usize;
    cut(i)..cut(i + 1)
}

fn factorise<const D: usize>(
    rest: usize,
    axis: usize,
    shape: [usize; D],
    found: &mut Vec<ProcGrid<D>>,
) {
    let with = |factor| {
        let mut shape = shape;
        shape[axis] = factor;
        shape
    };
    if axis + 1 == D {
        found.push(ProcGrid { shape: with(rest) });
        return;
    }
    for factor in (1..=rest).filter(|factor| rest.is_multiple_of(*factor)) {
        factorise(rest / factor, axis + 1, with(factor), found);
    }
}

impl<const D: usize> fmt::Display for ProcGrid<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&times(&self.shape))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_ordered_factorisations() {
        assert_eq!(ProcGrid::<3>::all(12).len(), 18);
        assert_eq!(ProcGrid::<1>::all(7), [ProcGrid::new([7])]);
    }

    #[test]
    fn cubic_prefers_equal_bricks_then_small_surface_then_first_axes() {
        let cube = Grid::new([256, 256, 256]).unwrap();
        assert_eq!(ProcGrid::cubic(&cube, 2).shape(), [2, 1, 1]);
        assert_eq!(ProcGrid::cubic(&cube, 4).shape(), [2, 2, 1]);
        assert_eq!(ProcGrid::cubic(&cube, 8).shape(), [2, 2, 2]);
        let flat = Grid::new([2, 600, 3]).unwrap();
        assert_eq!(ProcGrid::cubic(&flat, 6).shape(), [1, 6, 1]);
    }

    #[test]
    fn parts_differ_by_at_most_one_point() {
        for n in 1..40 {
            for parts in 1..10 {
                let sizes: Vec<_> = (0..parts).map(|i| part(n, parts, i).len()).collect();
                assert_eq!(sizes.iter().sum::<usize>(), n);
                assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
            }
        }
    }
}
