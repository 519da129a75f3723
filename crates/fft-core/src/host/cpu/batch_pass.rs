//! A pass whose lines are transformed several at once ([`fft_lines::BatchFft`]).

use std::ops::Range;
use std::sync::Arc;

use fft_lines::{BatchFft, Layout, Lines, Strides};

use crate::base::Real;
use crate::base::cache_sizes::{CONFLICT_BYTES, LINE_BYTES};
use crate::host::cpu::axis_pass::lines_per_call;
use crate::host::cpu::line_twiddles::LineTwiddles;
use crate::host::cpu::point_order::PointOrder;
use crate::host::cpu::workspace::Workspace;
use crate::recipe::Pass;

/// Columns of so few numbers are read and written in place: processors fetch this number of rows
/// ahead at once, and keep them all in the first-level cache.
const FEW_ROWS: usize = 32;

/// The place of a pass's lines in memory.
pub(crate) fn layout(pass: &Pass) -> Layout {
    if pass.inner == 1 { Layout::Rows } else { Layout::Columns }
}

/// Whether columns are copied to a tile, transformed there and copied back: if they are far, so
/// that memory is read and written in long runs, and if their rows conflict. Far columns that are
/// replaced are in cache by then, and are written by the transform.
pub(crate) fn is_tiled<T>(pass: &Pass, far: bool) -> bool {
    let is_long = pass.inner > 1 && pass.n > FEW_ROWS;
    is_long && (far || rows_conflict::<T>(width(pass) * pass.inner))
}

/// Whether rows of `len` real numbers evict each other from the first-level cache.
fn rows_conflict<T>(len: usize) -> bool {
    (len * size_of::<T>()).is_multiple_of(CONFLICT_BYTES)
}

/// Real numbers of an element: 1 if a cosine or sine transform is of real data.
fn width(pass: &Pass) -> usize {
    if pass.complex_before || pass.complex_after { 2 } else { 1 }
}

/// Columns that one call transforms in place: many, because columns at the ends of cache lines take
/// longer, but few enough for the prefetches between calls.
const NEAR_COLUMNS: usize = 128;

pub(crate) struct Batch<T> {
    fft: Arc<dyn BatchFft<T>>,
    /// The factors before the transform, and after it.
    twiddles: [Option<LineTwiddles>; 2],
    order: PointOrder,
    shape: Pass,
    width: usize,
    /// Whether columns are copied to a tile, and back.
    is_tiled: bool,
    /// Lines transformed in a call.
    at_once: usize,
    /// Whether they are read from outside the cache.
    far: bool,
    /// Real numbers of scratch, before the tile.
    scratch_len: usize,
}

impl<T: Real> Batch<T> {
    pub(crate) fn new(
        fft: Arc<dyn BatchFft<T>>,
        twiddles: [Option<LineTwiddles>; 2],
        pass: &Pass,
        at_once: usize,
        far: bool,
    ) -> Self {
        let scratch_len = fft.scratch_len().next_multiple_of(Self::CACHE_LINE);
        let order = PointOrder::of(pass);
        let needs_tile = twiddles.iter().any(Option::is_some) || !order.is_plain();
        let is_tiled = is_tiled::<T>(pass, far) || needs_tile && pass.inner > 1;
        let (shape, width) = (Pass { twiddles: None, ..pass.clone() }, width(pass));
        Self { fft, twiddles, order, shape, width, is_tiled, at_once, far, scratch_len }
    }

    /// Real numbers of a cache line.
    const CACHE_LINE: usize = LINE_BYTES / size_of::<T>();

    /// Bytes of the scratch and of the tile.
    pub(crate) fn bytes(&self) -> usize {
        let tile = if self.is_tiled {
            self.shape.n * self.tile_row() + Self::CACHE_LINE
        } else {
            self.order.scratch_len()
        };
        (self.scratch_len + tile) * size_of::<T>()
    }

    /// Real numbers of a row of the tile, with one cache line more, because rows at distances of a
    /// power of two evict each other.
    fn tile_row(&self) -> usize {
        self.width * self.at_once + Self::CACHE_LINE
    }

    /// Transforms a block: `src` into `dst`, or `dst` in place. Its first array of lines has this
    /// number.
    pub(crate) fn run(
        &self,
        first: usize,
        src: Option<&[T]>,
        dst: &mut [T],
        workspace: &mut Workspace<'_, T>,
    ) {
        if self.shape.inner == 1 {
            self.rows(first, src, dst, workspace);
        } else {
            self.columns(first, src, dst, workspace);
        }
    }

    fn call(&self, lines: Lines<'_, T>, scratch: &mut [T]) {
        self.fft.run(lines, T::of(self.shape.factor), scratch);
    }

    /// Contiguous lines.
    fn rows(
        &self,
        first: usize,
        src: Option<&[T]>,
        dst: &mut [T],
        workspace: &mut Workspace<'_, T>,
    ) {
        let [before, after] = &self.twiddles;
        let (len_before, len_after) = (self.shape.line_before(), self.shape.line_after());
        let [from, to] =
            [len_before, len_after].map(|len| Strides { stride: 1, dist: len / self.width });
        for (chunk, dst) in dst.chunks_mut(self.at_once * len_after).enumerate() {
            let count = dst.len() / len_after;
            let mut src = src.map(|src| &src[chunk * self.at_once * len_before..]);
            let (number, n) = (first + chunk * self.at_once, self.shape.n);
            workspace.queue.step(count * len_before.max(len_after));
            let (scratch, line) = workspace.lines.split_at_mut(self.scratch_len);
            if (before.is_some() || !self.order.is_plain())
                && let Some(src) = src.take()
            {
                dst.copy_from_slice(&src[..dst.len()]);
            }
            self.order.sort_lines(dst, line);
            if let Some(twiddles) = before {
                twiddles.multiply_lines(number, n, dst);
            }
            let lines = Lines { src, from, dst: &mut *dst, to, count, uncached: self.far };
            self.call(lines, scratch);
            if let Some(twiddles) = after {
                twiddles.multiply_lines(number, n, dst);
            }
            self.order.stride_lines(dst, line);
        }
    }

    /// Lines next to each other, in place or in a tile.
    fn columns(
        &self,
        first_array: usize,
        src: Option<&[T]>,
        dst: &mut [T],
        workspace: &mut Workspace<'_, T>,
    ) {
        let Self { shape: Pass { outer, inner, n, .. }, width, .. } = *self;
        let (scratch, tile) = workspace.lines.split_at_mut(self.scratch_len);
        let at = Strides { stride: inner, dist: 1 };
        let pitch = self.tile_row();
        let inside = Strides { stride: pitch / width, dist: 1 };
        let [before, after] = &self.twiddles;
        let at_once =
            if self.is_tiled { self.at_once } else { lines_per_call(inner, NEAR_COLUMNS) };
        for array in 0..outer {
            for first in (0..inner).step_by(at_once) {
                let count = at_once.min(inner - first);
                let start = width * (array * n * inner + first);
                workspace.queue.step(width * n * count);
                let dst = &mut dst[start..];
                if !self.is_tiled {
                    let src = src.map(|src| &src[start..]);
                    let lines = Lines { src, from: at, dst, to: at, count, uncached: false };
                    self.call(lines, scratch);
                    continue;
                }
                // Rows of the tile, and of memory by the index of their points.
                let rows = |place: fn(&PointOrder, usize) -> usize| {
                    (0..n).map(move |i| {
                        let place = place(&self.order, i);
                        [row(inside, i, count, width), row(at, place, count, width)]
                    })
                };
                // Columns in the tile have the same offset from a cache line as in the destination.
                let past = dst.as_ptr().addr() / size_of::<T>() % Self::CACHE_LINE;
                let tile = &mut tile[past..];
                let source = src.map_or(&*dst, |src| &src[start..]);
                for [in_tile, row] in rows(PointOrder::before) {
                    tile[in_tile].copy_from_slice(&source[row]);
                }
                let array = first_array + array;
                if let Some(twiddles) = before {
                    twiddles.multiply_columns([array, first], count, &mut tile[..n * pitch], pitch);
                }
                let stays = after.is_none() && self.order.is_plain();
                if src.is_none() && stays && !rows_conflict::<T>(width * inner) {
                    let (src, from, to) = (Some(&*tile), inside, at);
                    self.call(Lines { src, from, dst, to, count, uncached: false }, scratch);
                    continue;
                }
                let (src, from, to) = (None, inside, inside);
                let lines = Lines { src, from, dst: &mut *tile, to, count, uncached: false };
                self.call(lines, scratch);
                if let Some(twiddles) = after {
                    twiddles.multiply_columns([array, first], count, &mut tile[..n * pitch], pitch);
                }
                for [in_tile, row] in rows(PointOrder::after) {
                    dst[row].copy_from_slice(&tile[in_tile]);
                }
            }
        }
    }
}

/// The elements `i` of `count` adjacent columns, of `width` real numbers.
fn row(at: Strides, i: usize, count: usize, width: usize) -> Range<usize> {
    width * i * at.stride..width * (i * at.stride + count)
}
