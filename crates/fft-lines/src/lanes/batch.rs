//! The loop over lines.

use std::ops::Range;

use pulp::Simd;

use super::ahead::Ahead;
use super::kernel::Strides;
use super::stages::Stages;
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
    /// If a slice is too short.
    fn run(&self, lines: Lines<'_, T>, scale: T, scratch: &mut [T]);
}

/// A transform of as many lines as a vector has lanes, in two steps.
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

    /// Vectors of complex numbers of scratch.
    fn work_len(&self) -> usize {
        self.stages().n
    }

    /// Lines transformed together.
    fn group(&self) -> usize {
        lanes::<Self::S, Self::T>()
    }

    /// Reads lines into `work`.
    fn read(
        &self,
        src: &[Self::T],
        at: Strides,
        work: &mut [Pair<Self::S, Self::T>],
        ahead: Option<Ahead>,
    );

    /// Scales and writes the results of what is in `work`.
    fn write(
        &self,
        scale: Self::T,
        work: &mut [Pair<Self::S, Self::T>],
        dst: &mut [Self::T],
        at: Strides,
        ahead: Option<Ahead>,
    );
}

impl<T: Real, G: GroupFft<T = T>> BatchFft<T> for G {
    fn scratch_len(&self) -> usize {
        let [before, after] = self.lens();
        2 * lanes::<G::S, T>() * self.work_len() + self.width() * self.group() * before.max(after)
    }

    fn table_bytes(&self) -> usize {
        self.stages().bytes() + self.more_bytes()
    }

    fn run(&self, lines: Lines<'_, T>, scale: T, scratch: &mut [T]) {
        let Lines { src, from, dst, to, count, uncached } = lines;
        let (group, width) = (self.group(), self.width());
        let (work, tile) =
            scratch[..self.scratch_len()].split_at_mut(2 * self.work_len() * lanes::<G::S, T>());
        let work: &mut [Pair<G::S, T>] = bytemuck::cast_slice_mut(work);
        let head = match to.dist {
            1 => lines_before_boundary(dst, width, to.stride, group).min(count),
            _ => 0,
        };
        let whole = (count - head) / group * group;
        for first in (head..head + whole).step_by(group) {
            let ahead = uncached.then(|| Ahead::of(src, from, dst, to, [first, group, width]));
            self.read(&src.unwrap_or(&*dst)[width * first * from.dist..], from, work, ahead);
            self.write(scale, work, &mut dst[width * first * to.dist..], to, ahead);
        }
        let mut rest = (0..head).chain(head + whole..count).peekable();
        while rest.peek().is_some() {
            let mut few = Few::default();
            for (place, line) in few.lines.iter_mut().zip(rest.by_ref().take(group)) {
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
        fft.read(tile, beside, work, None);
        fft.write(scale, work, tile, after_beside, None);
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
