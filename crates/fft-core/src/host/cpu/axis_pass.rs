//! One pass over a block: a few lines at a time are gathered in cache, transformed and scattered.

use std::sync::Arc;

use num_complex::Complex;

use crate::base::Real;
use crate::base::cache_sizes::{
    AHEAD_BYTES, BLOCK_BYTES, COLUMNS_BYTES, FAR_BYTES, FAR_COLUMNS_BYTES, FAR_LINES_BYTES,
    LINES_BYTES,
};
use crate::host::cpu::batch_pass::{self, Batch};
use crate::host::cpu::line_twiddles::LineTwiddles;
use crate::host::cpu::point_order::PointOrder;
use crate::host::cpu::prefetch::PrefetchQueue;
use crate::host::cpu::resized_batch::ResizedBatch;
use crate::host::cpu::resized_line::resized;
use crate::host::cpu::transpose::Columns;
use crate::host::cpu::workspace::Workspace;
use crate::host::cpu::{line_fft::LineFft, line_fft::LinePlanner};
use crate::problem::Memory;
use crate::recipe::Pass;

/// The most lines whose numbers fit into a vector.
const MOST_LANES: usize = 16;
/// Fewer lines are transformed one after the other, because most lanes would be idle.
const FEW_LINES: usize = 4;

pub(crate) struct LinePass<T> {
    transform: Transform<T>,
    shape: Pass,
    /// Real numbers of a line: the longer of before and after.
    pitch: usize,
    at_once: usize,
    /// Whether they are read from outside the cache.
    far: bool,
}

/// How lines are transformed.
enum Transform<T> {
    /// One after the other.
    OneByOne(OneByOne<T>),
    /// Several at once.
    Batch(Batch<T>),
    /// Several at once, with fewer points or modes.
    Resized(ResizedBatch<T>),
}

/// The transform of a line, with factors before and after it.
struct OneByOne<T> {
    fft: Arc<dyn LineFft<T>>,
    twiddles: [Option<LineTwiddles>; 2],
    order: PointOrder,
}

/// The number of lines transformed together, and whether they are outside the cache.
fn lines_at_once<T: Real>(
    pitch: usize,
    inner: usize,
    cached: bool,
    memory: Memory,
) -> (usize, bool) {
    let line = pitch * size_of::<T>();
    if inner == 1 {
        return ((LINES_BYTES / line).max(1), !cached);
    }
    let columns = |bytes: usize| bytes / (2 * size_of::<T>());
    let (few, many) = (columns(COLUMNS_BYTES), columns(FAR_COLUMNS_BYTES));
    let large = line * inner > BLOCK_BYTES || !cached && line * inner >= FAR_BYTES;
    let far = memory == Memory::Ample && large;
    let together = if far { (FAR_LINES_BYTES / line).clamp(few, many) } else { few };
    (together.min(inner).max(1), far)
}

/// At most `most` of these lines, so that as few calls as possible transform about as many lines
/// each: a call for one or two that are left over takes as long as one for many.
pub(crate) fn lines_per_call(lines: usize, most: usize) -> usize {
    let lines = lines.max(1);
    let each = lines.div_ceil(lines.div_ceil(most));
    each.next_multiple_of(MOST_LANES).min(most).min(lines)
}

impl<T: Real> LinePass<T> {
    /// Makes its tables. `cached` says whether the block is in cache at the start. A call
    /// transforms lines of up to `blocks` blocks.
    pub(crate) fn new(
        pass: &Pass,
        blocks: usize,
        cached: bool,
        memory: Memory,
        planner: &mut LinePlanner<T>,
    ) -> Self {
        let Pass { kind, direction, n, inner, outer, .. } = *pass;
        let full = Pass { resized: None, ..pass.clone() };
        let pitch = full.line_before().max(full.line_after());
        let (at_once, far) = lines_at_once::<T>(pitch, inner, cached, memory);
        let is_rows = inner == 1;
        let lines = if is_rows { outer * blocks } else { inner };
        let no_more = |at_once: usize| at_once.min(lines.max(1));
        let layout = batch_pass::layout(pass);
        let complex = pass.complex_before && pass.complex_after;
        let batch = match lines {
            ..FEW_LINES => None,
            _ => planner.plan_batch(kind, direction, n, complex, layout),
        };
        let twiddles = LineTwiddles::of(pass, planner);
        let transform = match batch {
            Some(fft) => {
                let at_once = lines_per_call(lines, at_once.next_multiple_of(MOST_LANES));
                match pass.resized {
                    None => Transform::Batch(Batch::new(fft, twiddles, pass, at_once, far)),
                    Some(_) => Transform::Resized(ResizedBatch::new(fft, pass, at_once, far)),
                }
            }
            None => {
                let line = planner.plan(kind, direction, n, complex);
                let none = "a recipe has no step for an axis that is left alone";
                let fft = resized(line.expect(none), pass);
                Transform::OneByOne(OneByOne { fft, twiddles, order: PointOrder::of(pass) })
            }
        };
        let (shape, at_once) = (Pass { twiddles: None, ..pass.clone() }, no_more(at_once));
        Self { transform, shape, pitch, at_once, far }
    }

    /// Bytes of room for lines transformed together, and of the scratch of batches.
    pub(crate) fn bytes_at_once(&self) -> usize {
        match &self.transform {
            // They are transformed in the destination.
            Transform::OneByOne(one) if self.is_rows() && self.pitch == one.fft.len_out() => 0,
            Transform::OneByOne(_) => self.at_once * self.pitch * size_of::<T>(),
            Transform::Batch(batch) => batch.bytes(),
            Transform::Resized(batch) => batch.bytes(),
        }
    }

    pub(crate) fn scratch_len(&self) -> usize {
        match &self.transform {
            Transform::OneByOne(one) => one.fft.scratch_len() + one.order.scratch_len(),
            Transform::Batch(_) | Transform::Resized(_) => 0,
        }
    }

    #[cfg(test)]
    pub(crate) fn is_one_by_one(&self) -> bool {
        matches!(self.transform, Transform::OneByOne(_))
    }

    pub(crate) fn is_rows(&self) -> bool {
        self.shape.inner == 1
    }

    /// Real numbers of a block's lines.
    pub(crate) fn reals(&self) -> usize {
        self.shape.outer * self.shape.inner * self.pitch
    }

    /// Transforms blocks from number `first` on: `src` into `dst`, or `dst` in place.
    pub(crate) fn run(
        &self,
        first: usize,
        src: Option<&[T]>,
        dst: &mut [T],
        workspace: &mut Workspace<'_, T>,
    ) {
        let first = first * self.shape.outer;
        match &self.transform {
            Transform::OneByOne(one) if self.is_rows() => {
                self.rows(one, first, src, dst, workspace);
            }
            Transform::OneByOne(one) => self.columns(one, first, src, dst, workspace),
            Transform::Batch(batch) => batch.run(first, src, dst, workspace),
            Transform::Resized(batch) => {
                let src = src.expect("a pass that changes the length of lines has a source");
                batch.run(src, dst, workspace);
            }
        }
    }

    /// Contiguous lines, transformed in `dst` if they fit there.
    fn rows(
        &self,
        one: &OneByOne<T>,
        first: usize,
        src: Option<&[T]>,
        dst: &mut [T],
        workspace: &mut Workspace<'_, T>,
    ) {
        let Workspace { lines: tile, scratch, queue } = workspace;
        let (before, after, pitch) = (one.fft.len_in(), one.fft.len_out(), self.pitch);
        let lines = self.at_once;
        for (chunk, out) in dst.chunks_mut(lines * after).enumerate() {
            let lines_here = out.len() / after;
            let lines_in = src.map(|src| &src[chunk * lines * before..][..lines_here * before]);
            if self.far
                && let Some(next) = src.and_then(|src| src.chunks(lines * before).nth(chunk + 1))
            {
                queue.add(bytemuck::cast_slice(next));
                queue.begin(lines_here * pitch);
            }
            if pitch == after {
                if let Some(lines_in) = lines_in {
                    spread(lines_in, before, out, pitch);
                }
                self.transform(one, first + chunk * lines, out, scratch, queue);
            } else {
                let lines_in = lines_in.expect("a pass that shortens lines has a source");
                let tile = &mut tile[..lines_here * pitch];
                spread(lines_in, before, tile, pitch);
                self.transform(one, first + chunk * lines, tile, scratch, queue);
                spread(tile, pitch, out, after);
            }
        }
    }

    /// Strided lines: gathered into the tile, transformed and scattered, a few at a time.
    fn columns(
        &self,
        one: &OneByOne<T>,
        first_array: usize,
        src: Option<&[T]>,
        dst: &mut [T],
        workspace: &mut Workspace<'_, T>,
    ) {
        let Workspace { lines: tile, scratch, queue } = workspace;
        let Pass { outer, inner, .. } = self.shape;
        let (n_before, n_after) = (self.shape.len_before(), self.shape.len_after());
        let (wide_before, wide_after) = (self.shape.complex_before, self.shape.complex_after);
        let (at_once, pitch) = (self.at_once, self.pitch);
        for array in 0..outer {
            for first in (0..inner).step_by(at_once) {
                let columns = at_once.min(inner - first);
                let tile = &mut tile[..columns * pitch];
                let start = array * n_before * inner + first;
                let at = Columns { start, inner, columns, far: self.far };
                let from = src.unwrap_or(&*dst);
                if wide_before {
                    at.gather(n_before, complex(from), complex_mut(tile), pitch / 2)
                } else {
                    at.gather(n_before, from, tile, pitch)
                }
                let number = (first_array + array) * inner + first;
                self.transform(one, number, tile, scratch, queue);
                let at = Columns { start: array * n_after * inner + first, ..at };
                if wide_after {
                    at.scatter(n_after, complex_mut(tile), pitch / 2, complex_mut(dst))
                } else {
                    at.scatter(n_after, tile, pitch, dst)
                }
            }
        }
    }

    /// Transforms contiguous lines, the first of which has this number.
    fn transform(
        &self,
        one: &OneByOne<T>,
        first: usize,
        tile: &mut [T],
        scratch: &mut [T],
        queue: &mut PrefetchQueue,
    ) {
        let OneByOne { fft, twiddles, order } = one;
        let (scratch, points) = scratch[..self.scratch_len()].split_at_mut(fft.scratch_len());
        let factor = T::of(self.shape.factor);
        order.sort_lines(tile, points);
        let [before, after] = twiddles;
        if let Some(twiddles) = before {
            twiddles.multiply_lines(first, self.shape.n, tile);
        }
        if queue.is_empty() {
            fft.run(tile, scratch, factor);
        } else {
            let few = (AHEAD_BYTES / (self.pitch * size_of::<T>())).max(1) * self.pitch;
            for lines in tile.chunks_mut(few) {
                queue.step(lines.len());
                fft.run(lines, scratch, factor);
            }
        }
        if let Some(twiddles) = after {
            twiddles.multiply_lines(first, self.shape.n, tile);
        }
        order.stride_lines(tile, points);
    }
}

/// Copies lines of `len` numbers to lines of length `pitch`, truncated to the shorter.
fn spread<T: Copy>(lines: &[T], len: usize, places: &mut [T], pitch: usize) {
    if len == pitch {
        return places.copy_from_slice(lines);
    }
    let n = len.min(pitch);
    for (line, place) in lines.chunks_exact(len).zip(places.chunks_exact_mut(pitch)) {
        place[..n].copy_from_slice(&line[..n]);
    }
}

fn complex<T: Real>(numbers: &[T]) -> &[Complex<T>] {
    bytemuck::cast_slice(numbers)
}

fn complex_mut<T: Real>(numbers: &mut [T]) -> &mut [Complex<T>] {
    bytemuck::cast_slice_mut(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_lines_go_together_where_rows_lie_far_apart() {
        let line = 2 * 512;
        let lines = |pitch, inner, memory| lines_at_once::<f64>(pitch, inner, true, memory);
        assert_eq!(lines(line, 1, Memory::Ample), (4, false));
        assert_eq!(lines_at_once::<f64>(line, 1, false, Memory::Ample), (4, true), "not in cache");
        assert_eq!(lines(line, 64, Memory::Ample), (8, false));
        assert_eq!(lines(line, 512 * 512, Memory::Ample), (64, true));
        assert_eq!(lines(line, 512 * 512, Memory::Least), (8, false));
        assert_eq!(lines(line, 3, Memory::Ample), (3, false));
        assert_eq!(lines(2 << 16, 512, Memory::Ample), (8, true));
        assert_eq!(lines(line, 0, Memory::Ample), (1, false));
        assert_eq!(lines_at_once::<f64>(line, 64, false, Memory::Ample), (64, true));
        assert_eq!(lines_at_once::<f64>(line, 31, false, Memory::Ample), (8, false));
    }
}
