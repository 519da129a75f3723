//! Lines with fewer points or modes than their transform, several at once.
//!
//! ```text
//! for a few lines:
//!     if numbers are missing before: copy them to a tile, with zeros in place of those
//!     transform, from the tile or from the source
//!     if numbers are dropped after: into a tile, from which the kept ones are copied to the result
//! ```

use std::ops::Range;
use std::sync::Arc;

use fft_lines::{BatchFft, Lines, Strides};

use super::batch_pass::is_tiled;
use super::workspace::Workspace;
use crate::base::Real;
use crate::base::cache_sizes::LINE_BYTES;
use crate::recipe::{LineSide, Pass};

pub(crate) struct ResizedBatch<T> {
    fft: Arc<dyn BatchFft<T>>,
    shape: Pass,
    sides: [Side; 2],
    at_once: usize,
    scratch_len: usize,
}

/// Lines before or after the transform.
struct Side {
    /// Numbers of the data and of the transform.
    len: usize,
    whole: usize,
    /// Real numbers of each.
    width: usize,
    /// Ranges of the data, and their places in the transform. The rest of both is 0.
    kept: Vec<(Range<usize>, usize)>,
    /// Whether lines go through a tile.
    is_tiled: bool,
}

impl Side {
    /// `copied`: whether whole lines go through a tile, too.
    fn new(line: LineSide, is_complex: bool, copied: bool) -> Self {
        let is_tiled = copied || !line.is_whole();
        let LineSide { len, whole, kept } = line;
        Self { len, whole, width: if is_complex { 2 } else { 1 }, kept, is_tiled }
    }

    /// Calls `copy(from, to, count)` for each kept range, from the data into whole lines or back,
    /// and `clear` with the other ranges of the destination.
    fn visit(
        &self,
        into_whole: bool,
        mut copy: impl FnMut(usize, usize, usize),
        mut clear: impl FnMut(Range<usize>),
    ) {
        let mut end = 0;
        for (part, place) in &self.kept {
            let (from, to) = if into_whole { (part.start, *place) } else { (*place, part.start) };
            clear(end..to);
            copy(from, to, part.len());
            end = to + part.len();
        }
        clear(end..if into_whole { self.whole } else { self.len });
    }
}

impl<T: Real> ResizedBatch<T> {
    /// Real numbers of a cache line.
    const CACHE_LINE: usize = LINE_BYTES / size_of::<T>();

    pub(crate) fn new(fft: Arc<dyn BatchFft<T>>, pass: &Pass, at_once: usize, far: bool) -> Self {
        let [before, after] = pass.line_sides();
        let is_tiled = is_tiled::<T>(pass, far);
        let sides = [
            Side::new(before, pass.complex_before, is_tiled),
            Side::new(after, pass.complex_after, is_tiled),
        ];
        let scratch_len = fft.scratch_len().next_multiple_of(Self::CACHE_LINE);
        Self { fft, shape: pass.clone(), sides, at_once, scratch_len }
    }

    /// Real numbers between the rows of a tile of columns.
    fn row(&self) -> usize {
        2 * self.at_once + Self::CACHE_LINE
    }

    /// Real numbers of the tiles before and after.
    fn tiles(&self) -> [usize; 2] {
        [0, 1].map(|side| match (&self.sides[side], self.shape.inner) {
            (side, _) if !side.is_tiled => 0,
            (side, 1) => self.at_once * side.whole * side.width,
            (side, _) => side.whole * self.row(),
        })
    }

    /// Bytes of the scratch and of the tiles.
    pub(crate) fn bytes(&self) -> usize {
        (self.scratch_len + self.tiles().iter().sum::<usize>()) * size_of::<T>()
    }

    /// Transforms a block: `src` into `dst`.
    pub(crate) fn run(&self, src: &[T], dst: &mut [T], workspace: &mut Workspace<'_, T>) {
        workspace.queue.step(src.len().max(dst.len()));
        let (scratch, tiles) = workspace.lines.split_at_mut(self.scratch_len);
        let (before, after) = tiles.split_at_mut(self.tiles()[0]);
        match self.shape.inner {
            1 => self.rows(src, dst, scratch, [before, after]),
            _ => self.columns(src, dst, scratch, [before, after]),
        }
    }

    /// Contiguous lines.
    fn rows(&self, src: &[T], dst: &mut [T], scratch: &mut [T], [before, after]: [&mut [T]; 2]) {
        let [source, result] = &self.sides;
        let [from, to] =
            [source, result].map(|side| Strides { stride: 1, dist: side.whole * side.width / 2 });
        let lens = [source, result].map(|side| side.len * side.width);
        let wholes = [source, result].map(|side| side.whole * side.width);
        let chunks = src.chunks(self.at_once * lens[0]).zip(dst.chunks_mut(self.at_once * lens[1]));
        for (src, dst) in chunks {
            let count = src.len() / lens[0];
            if source.is_tiled {
                for (line, whole) in src.chunks(lens[0]).zip(before.chunks_mut(wholes[0])) {
                    spread(source, line, whole, true);
                }
            }
            let src = if source.is_tiled { &before[..count * wholes[0]] } else { src };
            if !result.is_tiled {
                self.call(Lines { src: Some(src), from, dst, to, count, uncached: false }, scratch);
                continue;
            }
            let tile = &mut after[..count * wholes[1]];
            let lines = Lines { src: Some(src), from, dst: tile, to, count, uncached: false };
            self.call(lines, scratch);
            for (whole, line) in after.chunks(wholes[1]).zip(dst.chunks_mut(lens[1])) {
                spread(result, whole, line, false);
            }
        }
    }

    /// Complex lines that lie side by side.
    fn columns(&self, src: &[T], dst: &mut [T], scratch: &mut [T], [before, after]: [&mut [T]; 2]) {
        let Pass { outer, inner, .. } = self.shape;
        let [source, result] = &self.sides;
        let inside = Strides { stride: self.row() / 2, dist: 1 };
        let beside = Strides { stride: inner, dist: 1 };
        for array in 0..outer {
            for first in (0..inner).step_by(self.at_once) {
                let count = self.at_once.min(inner - first);
                let start = |side: &Side| 2 * (array * side.len * inner + first);
                let (src, dst) = (&src[start(source)..], &mut dst[start(result)..]);
                let row = |stride: usize, i: usize| i * stride..i * stride + 2 * count;
                let (data, tile) = (2 * inner, self.row());
                if source.is_tiled {
                    let copy = |from: usize, to: usize, rows: usize| {
                        for i in 0..rows {
                            before[row(tile, to + i)].copy_from_slice(&src[row(data, from + i)]);
                        }
                    };
                    source.visit(true, copy, |_| {});
                    let clear = |rows: Range<usize>| {
                        rows.for_each(|i| before[row(tile, i)].fill(T::default()));
                    };
                    source.visit(true, |_, _, _| {}, clear);
                }
                let (src, from) = if source.is_tiled { (&*before, inside) } else { (src, beside) };
                if !result.is_tiled {
                    let to = beside;
                    let lines = Lines { src: Some(src), from, dst, to, count, uncached: false };
                    self.call(lines, scratch);
                    continue;
                }
                let (to, src) = (inside, Some(src));
                let lines = Lines { src, from, dst: &mut *after, to, count, uncached: false };
                self.call(lines, scratch);
                result.visit(
                    false,
                    |from, to, rows| {
                        for i in 0..rows {
                            dst[row(data, to + i)].copy_from_slice(&after[row(tile, from + i)]);
                        }
                    },
                    |_| {},
                );
                let clear =
                    |rows: Range<usize>| rows.for_each(|i| dst[row(data, i)].fill(T::default()));
                result.visit(false, |_, _, _| {}, clear);
            }
        }
    }

    fn call(&self, lines: Lines<'_, T>, scratch: &mut [T]) {
        self.fft.run(lines, T::of(self.shape.factor), scratch);
    }
}

/// Copies a contiguous line to a whole one, or back, with zeros for the missing elements.
fn spread<T: Real>(side: &Side, from: &[T], to: &mut [T], into_whole: bool) {
    let reals = |range: Range<usize>| range.start * side.width..range.end * side.width;
    side.visit(
        into_whole,
        |first, place, count| {
            to[reals(place..place + count)].copy_from_slice(&from[reals(first..first + count)]);
        },
        |_| {},
    );
    side.visit(into_whole, |_, _, _| {}, |gap| to[reals(gap)].fill(T::default()));
}
