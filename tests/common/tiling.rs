//! Random tilings of a grid, with irregular and empty bricks. Tests of several crates share them.
#![allow(dead_code, reason = "every crate uses its own part of what is shared")]

use fft_core::{Brick, Grid, Layout, ProcGrid};

/// A small deterministic source of random numbers (splitmix64), the same on every rank.
#[derive(Clone, Debug)]
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// A number in `-1.0..1.0`.
    pub(crate) fn signed(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    pub(crate) fn shuffle<E>(&mut self, list: &mut [E]) {
        for last in (1..list.len()).rev() {
            list.swap(last, self.below(last + 1));
        }
    }

    /// A random order of axes.
    pub(crate) fn order<const D: usize>(&mut self) -> [usize; D] {
        let mut order = std::array::from_fn(|axis| axis);
        self.shuffle(&mut order);
        order
    }
}

/// A layout of one of three kinds: an even cut, its bricks dealt out to other ranks, any tiling.
pub(crate) fn layout<const D: usize>(grid: Grid<D>, ranks: usize, rng: &mut Rng) -> Layout {
    let cuts = ProcGrid::all(D, ranks - rng.below(1 + ranks / 4));
    let cut = cuts[rng.below(cuts.len())];
    let mut bricks: Vec<_> = (0..ranks).map(|rank| cut.brick(&grid, rank)).collect();
    match rng.below(4) {
        0 | 1 => {}
        2 => rng.shuffle(&mut bricks),
        _ => bricks = tiling(grid, ranks, rng),
    }
    Layout::new(grid, bricks, ranks).unwrap().ordered(rng.order::<D>()).unwrap()
}

/// A brick per rank: random cuts into at most as many pieces as ranks, given to random ranks. The
/// others hold nothing, in various ways.
pub(crate) fn tiling<const D: usize>(grid: Grid<D>, ranks: usize, rng: &mut Rng) -> Vec<Brick<D>> {
    let pieces = 1 + rng.below(ranks.min(grid.points()));
    let mut bricks = Vec::with_capacity(ranks);
    split(grid.whole(), pieces, rng, &mut bricks);
    while bricks.len() < ranks {
        bricks.push(empty(grid, rng));
    }
    rng.shuffle(&mut bricks);
    bricks
}

/// Bricks that divide an axis alike, in uneven intervals of 2 points or more. None if there are too
/// few points.
pub(crate) fn divided<const D: usize>(
    grid: Grid<D>,
    axis: usize,
    ranks: usize,
    rng: &mut Rng,
) -> Option<Vec<Brick<D>>> {
    let n = grid.whole().len(axis);
    let mut others = grid.whole();
    others.hi[axis] = 1;
    let fits = |parts: &usize| {
        ranks.is_multiple_of(*parts) && 2 * parts <= n && ranks / parts <= others.points()
    };
    let counts: Vec<_> = (2..=ranks).filter(fits).collect();
    let parts = *counts.get(rng.below(counts.len().max(1)))?;
    let mut lens = vec![2; parts];
    (2 * parts..n).for_each(|_| lens[rng.below(parts)] += 1);
    let mut pieces = Vec::new();
    split(others, ranks / parts, rng, &mut pieces);
    let (mut bricks, mut first) = (Vec::new(), 0);
    for len in lens {
        for mut brick in pieces.clone() {
            (brick.lo[axis], brick.hi[axis]) = (first, first + len);
            bricks.push(brick);
        }
        first += len;
    }
    rng.shuffle(&mut bricks);
    Some(bricks)
}

/// Cuts a brick into `pieces` pieces, each of at least one point.
fn split<const D: usize>(brick: Brick<D>, pieces: usize, rng: &mut Rng, found: &mut Vec<Brick<D>>) {
    if pieces == 1 {
        return found.push(brick);
    }
    let axes: Vec<usize> = (0..D).filter(|&axis| brick.len(axis) > 1).collect();
    let axis = axes[rng.below(axes.len())];
    let cut = brick.lo[axis] + 1 + rng.below(brick.len(axis) - 1);
    let (mut left, mut right) = (brick, brick);
    (left.hi[axis], right.lo[axis]) = (cut, cut);
    // Neither side may get more pieces than it has points.
    let least = pieces.saturating_sub(right.points()).max(1);
    let most = (pieces - 1).min(left.points());
    let share = least + rng.below(most - least + 1);
    split(left, share, rng, found);
    split(right, pieces - share, rng, found);
}

/// A brick without points somewhere in the grid: flat along at least one axis.
fn empty<const D: usize>(grid: Grid<D>, rng: &mut Rng) -> Brick<D> {
    let flat = rng.below(D);
    let mut brick = Brick::EMPTY;
    for axis in 0..D {
        brick.lo[axis] = rng.below(grid.len(axis) + 1);
        let most = grid.len(axis) - brick.lo[axis];
        brick.hi[axis] = brick.lo[axis] + if axis == flat { 0 } else { rng.below(most + 1) };
    }
    brick
}
