//! The loop over lines.

use std::ops::Range;

use pulp::Simd;

use super::ahead::Ahead;
use super::kernel::Strides;
use super::stages::{Lie, Stages};
use super::vector::{MOST_LANES, Pair, Real, lanes};

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
const GROUPS_LEN: usize = 256;

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

    /// Real numbers of scratch for all groups.
    fn work_reals(&self) -> usize {
        2 * lanes::<Self::S, Self::T>() * self.most_groups() * self.work_len()
    }

    /// Lines of a group.
    fn group(&self) -> usize {
        match self.stages().lie {
            Lie::Pairs => lanes::<Self::S, Self::T>() / 2,
            Lie::Rows | Lie::Columns => lanes::<Self::S, Self::T>(),
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
        self.work_reals() + self.width() * self.group() * before.max(after)
    }

    fn table_bytes(&self) -> usize {
        self.stages().bytes() + self.more_bytes()
    }

    fn run(&self, lines: Lines<'_, T>, scale: T, scratch: &mut [T]) {
        let Lines { src, from, dst, to, count, uncached } = lines;
        let (group, width) = (self.group(), self.width());
        let (work, tile) = scratch[..self.scratch_len()].split_at_mut(self.work_reals());
        let work: &mut [Pair<G::S, T>] = bytemuck::cast_slice_mut(work);
        let head = match to.dist {
            1 => lines_before_boundary(dst, width, to.stride, group).min(count),
            _ => 0,
        };
        let whole = (count - head) / group * group;
        let mut run = |first: usize, groups: usize, dst: &mut [T]| {
            let lines = [first, groups * group, width];
            let ahead = uncached.then(|| Ahead::of(src, from, dst, to, lines));
            let src = &src.unwrap_or(&*dst)[width * first * from.dist..];
            self.read(src, from, work, groups, ahead);
            self.write(scale, work, &mut dst[width * first * to.dist..], to, groups, ahead);
        };
        let most = self.most_groups();
        for first in (head..head + whole).step_by(most * group) {
            run(first, most.min((head + whole - first) / group), dst);
        }
        if src.is_some() && count >= group {
            // Some lines once more: they are not in place.
            if head > 0 {
                run(0, 1, dst);
            }
            if head + whole < count {
                run(count - group, 1, dst);
            }
            return;
        }
        let mut left = (0..head).chain(head + whole..count).peekable();
        while left.peek().is_some() {
            let mut few = Few::default();
            for (place, line) in few.lines.iter_mut().zip(left.by_ref().take(group)) {
                *place = line;
                few.count += 1;
            }
            let lines = Lines { src, from, dst: &mut *dst, to, count, uncached };
            few.run(self, lines, scale, work, tile);
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

/// Some lines, at most as many as a vector has lanes, not adjacent.
#[derive(Default)]
struct Few {
    lines: [usize; MOST_LANES],
    count: usize,
}

impl Few {
    /// Transforms them in a tile, in which other lanes have any numbers.
    fn run<G: GroupFft + ?Sized>(
        &self,
        fft: &G,
        lines: Lines<'_, G::T>,
        scale: G::T,
        work: &mut [Pair<G::S, G::T>],
        tile: &mut [G::T],
    ) {
        let Lines { src, from, dst, to, .. } = lines;
        let ([before, after], width) = (fft.lens(), fft.width());
        let few = &self.lines[..self.count];
        let inside = |at: Strides, len: usize| match at.dist {
            1 => Strides { stride: fft.group(), dist: 1 },
            _ => Strides { stride: 1, dist: len },
        };
        let (beside, after_beside) = (inside(from, before), inside(to, after));
        tile.fill(G::T::rounded(0.0));
        let src = src.unwrap_or(&*dst);
        for i in 0..before {
            for (lane, &line) in few.iter().enumerate() {
                tile[beside.range(i, lane, width)]
                    .copy_from_slice(&src[from.range(i, line, width)]);
            }
        }
        fft.read(tile, beside, work, 1, None);
        fft.write(scale, work, tile, after_beside, 1, None);
        for i in 0..after {
            for (lane, &line) in few.iter().enumerate() {
                dst[to.range(i, line, width)]
                    .copy_from_slice(&tile[after_beside.range(i, lane, width)]);
            }
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
