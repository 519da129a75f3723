//! The loop over lines.

use std::ops::Range;

use pulp::Simd;

use super::ahead::Ahead;
use super::kernel::Strides;
use super::stages::{LaneLayout, Stages};
use super::vector::{Pair, Real, lanes};

/// Lines to be transformed. Elements are complex numbers, and real ones of cosine and sine
/// transforms of real data. Other real lines are half as many complex numbers.
pub struct Lines<'a, T> {
    /// `None` to transform in place.
    pub src: Option<&'a [T]>,
    /// Where the lines are in the source.
    pub from: Strides,
    /// The results.
    pub dst: &'a mut [T],
    /// Where the lines are in the destination.
    pub to: Strides,
    /// The number of lines.
    pub count: usize,
    /// Whether lines, which must be contiguous, are outside the caches.
    pub uncached: bool,
}

/// A transform of many lines, several at once.
pub trait BatchFft<T>: Send + Sync {
    /// Real numbers of scratch. Transforms are fastest if scratch begins in a cache line.
    fn scratch_len(&self) -> usize;

    /// Bytes of tables.
    fn table_bytes(&self) -> usize;

    /// Transforms the lines and scales the results.
    ///
    /// # Panics
    /// If a slice is too short, or if lines do not lie as planned.
    fn run(&self, lines: Lines<'_, T>, scale: T, scratch: &mut [T]);
}

/// Vectors of complex numbers that several groups need at most: a part of the first-level cache.
const GROUPS_LEN: usize = 128;

/// A transform of groups of lines, in two steps.
pub(crate) trait GroupFft: Send + Sync {
    type S: Simd;
    type T: Real;

    fn stages(&self) -> &Stages<Self::S, Self::T>;

    /// Bytes of tables besides those of the stages.
    fn more_bytes(&self) -> usize {
        0
    }

    /// Elements of a line before and after.
    fn lens(&self) -> [usize; 2];

    /// Real numbers of an element.
    fn width(&self) -> usize {
        2
    }

    /// Vectors of complex numbers of scratch for a group of lines.
    fn work_len(&self) -> usize {
        self.stages().work_len()
    }

    /// Groups of lines that are read and written at once: of short lines several, as their
    /// transforms take little longer than a call of their kernels.
    fn most_groups(&self) -> usize {
        (GROUPS_LEN / self.work_len()).max(1)
    }

    /// Real numbers of scratch for a group of lines.
    fn group_reals(&self) -> usize {
        2 * lanes::<Self::S, Self::T>() * self.work_len()
    }

    /// Real numbers of scratch for the groups that are read at once, and for one at the start.
    fn work_reals(&self) -> usize {
        (self.most_groups() + 1) * self.group_reals()
    }

    /// Lines of a group.
    fn group(&self) -> usize {
        match self.stages().layout {
            LaneLayout::Pairs => lanes::<Self::S, Self::T>() / 2,
            LaneLayout::Rows | LaneLayout::Columns => lanes::<Self::S, Self::T>(),
        }
    }

    /// Reads some groups of lines into `work`.
    fn read(
        &self,
        src: &[Self::T],
        at: Strides,
        work: &mut [Pair<Self::S, Self::T>],
        groups: usize,
        ahead: Option<Ahead>,
    );

    /// Scales and writes the results of what is in `work`.
    fn write(
        &self,
        scale: Self::T,
        work: &mut [Pair<Self::S, Self::T>],
        dst: &mut [Self::T],
        at: Strides,
        groups: usize,
        ahead: Option<Ahead>,
    );
}

impl<T: Real, G: GroupFft<T = T>> BatchFft<T> for G {
    fn scratch_len(&self) -> usize {
        let [before, after] = self.lens();
        let tile = self.width() * self.group() * before.max(after);
        self.work_reals() + tile.max(self.group_reals())
    }

    fn table_bytes(&self) -> usize {
        self.stages().bytes() + self.more_bytes()
    }

    fn run(&self, lines: Lines<'_, T>, scale: T, scratch: &mut [T]) {
        let Lines { src, from, dst, to, count, uncached } = lines;
        let (group, width) = (self.group(), self.width());
        let (work, tile) = scratch[..self.scratch_len()].split_at_mut(self.work_reals());
        let work: &mut [Pair<G::S, T>] = bytemuck::cast_slice_mut(work);
        if count < group {
            let few = Lines { src, from, dst, to, count, uncached };
            return run_few(self, few, scale, work, tile);
        }
        let head = match to.dist {
            1 => lines_before_boundary(dst, width, to.stride, group).min(count),
            _ => 0,
        };
        let whole = (count - head) / group * group;
        let ahead = |dst: &[T], first: usize, groups: usize| {
            uncached.then(|| Ahead::of(src, from, dst, to, [first, groups * group, width]))
        };
        // Lines before and after the others go with their neighbours. In place they are read before
        // those are written, and both write the same.
        let (before, work) = work.split_at_mut(self.work_len());
        let after: &mut [Pair<G::S, T>] = bytemuck::cast_slice_mut(&mut tile[..self.group_reals()]);
        let mut edges = [(head > 0, 0, before), (head + whole < count, count - group, after)];
        for (is_there, first, work) in &mut edges {
            if *is_there {
                let src = &src.unwrap_or(&*dst)[width * *first * from.dist..];
                self.read(src, from, work, 1, None);
            }
        }
        // Hardware prefetches few lines at once, so those outside the caches are read by one group.
        let most = if uncached { 1 } else { self.most_groups() };
        for first in (head..head + whole).step_by(most * group) {
            let groups = most.min((head + whole - first) / group);
            let ahead = ahead(dst, first, groups);
            self.read(
                &src.unwrap_or(&*dst)[width * first * from.dist..],
                from,
                work,
                groups,
                ahead,
            );
            self.write(scale, work, &mut dst[width * first * to.dist..], to, groups, ahead);
        }
        for (is_there, first, work) in edges {
            if is_there {
                self.write(scale, work, &mut dst[width * first * to.dist..], to, 1, None);
            }
        }
    }
}

/// The number of columns before those of which each vector is in one cache line.
fn lines_before_boundary<T>(columns: &[T], width: usize, stride: usize, group: usize) -> usize {
    let element = width * size_of::<T>();
    let bytes = group * element;
    let past = columns.as_ptr().addr() % bytes;
    if (stride * element).is_multiple_of(bytes) && past.is_multiple_of(element) && past > 0 {
        (bytes - past) / element
    } else {
        0
    }
}

/// Transforms fewer lines than a group has, in a tile in which the others are zeros.
fn run_few<G: GroupFft + ?Sized>(
    fft: &G,
    lines: Lines<'_, G::T>,
    scale: G::T,
    work: &mut [Pair<G::S, G::T>],
    tile: &mut [G::T],
) {
    let Lines { src, from, dst, to, count, .. } = lines;
    let ([before, after], width) = (fft.lens(), fft.width());
    let inside = |at: Strides, len: usize| match at.dist {
        1 => Strides { stride: fft.group(), dist: 1 },
        _ => Strides { stride: 1, dist: len },
    };
    let (tile_from, tile_to) = (inside(from, before), inside(to, after));
    tile.fill(G::T::rounded(0.0));
    let src = src.unwrap_or(&*dst);
    for line in 0..count {
        for i in 0..before {
            tile[tile_from.range(i, line, width)].copy_from_slice(&src[from.range(i, line, width)]);
        }
    }
    fft.read(tile, tile_from, work, 1, None);
    fft.write(scale, work, tile, tile_to, 1, None);
    for line in 0..count {
        for i in 0..after {
            dst[to.range(i, line, width)].copy_from_slice(&tile[tile_to.range(i, line, width)]);
        }
    }
}

impl Strides {
    /// The real numbers of element `i` of a line.
    fn range(self, i: usize, line: usize, width: usize) -> Range<usize> {
        let first = width * (i * self.stride + line * self.dist);
        first..first + width
    }
}
