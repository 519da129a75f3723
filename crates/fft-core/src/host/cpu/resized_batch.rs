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
    /// Before and after the transform.
    sides: [Side; 2],
    at_once: usize,
    scratch_len: usize,
}

/// Lines before or after the transform.
struct Side {
    line: LineSide,
    /// Real numbers of an element.
    width: usize,
    /// Where lines are in the data, and where whole lines are in the tile, in elements.
    data: Strides,
    tile: Strides,
    /// Real numbers of the tile; `None` if lines do not go through it.
    tile_len: Option<usize>,
}

impl Side {
    /// Where lines are for the transform, whose elements are complex.
    fn complex(&self, at: Strides) -> Strides {
        Strides { dist: at.dist * self.width / 2, ..at }
    }

    /// Copies lines from the data into whole ones, or back, with zeros for the missing elements.
    fn copy<T: Real>(&self, into_whole: bool, src: &[T], dst: &mut [T], count: usize) {
        let LineSide { len, whole, kept } = &self.line;
        let (from, to, all) =
            if into_whole { (self.data, self.tile, whole) } else { (self.tile, self.data, len) };
        let are_rows = self.data.stride == 1;
        let lines = if are_rows { count } else { 1 };
        let [from_line, to_line] = [from, to].map(|at| self.width * at.dist);
        let [from_step, to_step] = [from, to].map(|at| self.width * at.stride);
        // What is adjacent: some elements of a line, or one element of all lines.
        let runs = |elements: usize| {
            let (many, adjacent) = if are_rows { (1, elements) } else { (elements, count) };
            (many, adjacent * self.width)
        };
        let clear = |dst: &mut [T], gap: Range<usize>| {
            let (many, reals) = runs(gap.len());
            for run in 0..many {
                dst[(gap.start + run) * to_step..][..reals].fill(T::default());
            }
        };
        for line in 0..lines {
            let (src, dst) = (&src[line * from_line..], &mut dst[line * to_line..]);
            let mut end = 0;
            for (part, in_whole) in kept {
                let [first, target] =
                    if into_whole { [part.start, *in_whole] } else { [*in_whole, part.start] };
                clear(dst, end..target);
                let (many, reals) = runs(part.len());
                for run in 0..many {
                    let source = &src[(first + run) * from_step..][..reals];
                    dst[(target + run) * to_step..][..reals].copy_from_slice(source);
                }
                end = target + part.len();
            }
            clear(dst, end..*all);
        }
    }
}

impl<T: Real> ResizedBatch<T> {
    /// Real numbers of a cache line.
    const CACHE_LINE: usize = LINE_BYTES / size_of::<T>();

    pub(crate) fn new(fft: Arc<dyn BatchFft<T>>, pass: &Pass, at_once: usize, far: bool) -> Self {
        let [before, after] = pass.line_sides();
        let (inner, all_tiled) = (pass.inner, is_tiled::<T>(pass, far));
        let side = |line: LineSide, is_complex: bool| {
            let width = if is_complex { 2 } else { 1 };
            let is_tiled = all_tiled || !line.is_whole();
            let (data, tile, tile_len) = if inner == 1 {
                let [data, tile] = [line.len, line.whole].map(|dist| Strides { stride: 1, dist });
                (data, tile, at_once * line.whole * width)
            } else {
                let row = 2 * at_once + Self::CACHE_LINE;
                let [data, tile] = [inner, row / 2].map(|stride| Strides { stride, dist: 1 });
                (data, tile, line.whole * row)
            };
            Side { line, width, data, tile, tile_len: is_tiled.then_some(tile_len) }
        };
        let sides = [side(before, pass.complex_before), side(after, pass.complex_after)];
        let scratch_len = fft.scratch_len().next_multiple_of(Self::CACHE_LINE);
        Self { fft, shape: pass.clone(), sides, at_once, scratch_len }
    }

    /// Bytes of the scratch and of the tiles.
    pub(crate) fn bytes(&self) -> usize {
        let tiles = self.sides.iter().filter_map(|side| side.tile_len);
        (self.scratch_len + tiles.sum::<usize>()) * size_of::<T>()
    }

    /// Transforms a block: `src` into `dst`.
    pub(crate) fn run(&self, src: &[T], dst: &mut [T], workspace: &mut Workspace<'_, T>) {
        workspace.queue.step(src.len().max(dst.len()));
        let [source, result] = &self.sides;
        let (scratch, tiles) = workspace.lines.split_at_mut(self.scratch_len);
        let (before, after) = tiles.split_at_mut(source.tile_len.unwrap_or(0));
        let Pass { outer, inner, factor, .. } = self.shape;
        // Contiguous lines may be those of several blocks.
        let (arrays, lines) = match inner {
            1 => (1, src.len() / (source.line.len * source.width)),
            _ => (outer, inner),
        };
        for array in 0..arrays {
            for first in (0..lines).step_by(self.at_once) {
                let count = self.at_once.min(lines - first);
                let start = |side: &Side| {
                    side.width * (array * side.line.len * inner + first * side.data.dist)
                };
                let (src, dst) = (&src[start(source)..], &mut dst[start(result)..]);
                let (src, from) = if source.tile_len.is_some() {
                    source.copy(true, src, before, count);
                    (&*before, source.tile)
                } else {
                    (src, source.data)
                };
                let (whole, to) = if result.tile_len.is_some() {
                    (&mut *after, result.tile)
                } else {
                    (&mut *dst, result.data)
                };
                let (from, to) = (source.complex(from), result.complex(to));
                let lines = Lines { src: Some(src), from, dst: whole, to, count, uncached: false };
                self.fft.run(lines, T::of(factor), scratch);
                if result.tile_len.is_some() {
                    result.copy(false, after, dst, count);
                }
            }
        }
    }
}
