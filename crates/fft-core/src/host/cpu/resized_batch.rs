//! Lines with fewer points or modes than their transform, several at once.
//!
//! Lines are copied to a tile with all points and modes, and from there; what is missing is 0 in
//! the tile. The order of modes is that of [`super::resized_line`].

use std::sync::Arc;

use fft_lines::{BatchFft, Lines, Strides};

use super::workspace::Workspace;
use crate::base::Real;
use crate::base::cache_sizes::LINE_BYTES;
use crate::problem::Kind;
use crate::recipe::Pass;

pub(crate) struct ResizedBatch<T> {
    fft: Arc<dyn BatchFft<T>>,
    shape: Pass,
    /// Complex numbers of a line in the tile, before and after; real lines are half as many.
    whole: [usize; 2],
    /// Where the numbers of a line of the data are in the tile; none for those that are 0.
    places: [Vec<Option<usize>>; 2],
    at_once: usize,
    scratch_len: usize,
}

/// Where each number of a line is among all: those of a source, or of a result.
fn places(pass: &Pass, spectral: bool) -> Vec<Option<usize>> {
    let Some([points, modes]) = pass.resized else { return Vec::new() };
    let n = pass.n;
    if !spectral {
        return (0..points).map(Some).collect();
    }
    let place = |mode: usize| match (modes < n && 2 * mode == modes, mode >= modes.div_ceil(2)) {
        (true, _) => None,
        (false, true) if pass.kind == Kind::C2C => Some(mode + n - modes),
        _ => Some(mode),
    };
    (0..pass.kind.spectral_len(modes)).map(place).collect()
}

impl<T: Real> ResizedBatch<T> {
    /// Real numbers of a cache line.
    const CACHE_LINE: usize = LINE_BYTES / size_of::<T>();

    /// Of a complex pass, or of contiguous real lines of an even length.
    pub(crate) fn new(fft: Arc<dyn BatchFft<T>>, pass: &Pass, at_once: usize) -> Self {
        let full = Pass { resized: None, ..pass.clone() };
        let whole = [full.line_before(), full.line_after()].map(|reals| reals / 2);
        let sides = pass.direction.choose([false, true], [true, false]);
        let places = sides.map(|spectral| places(pass, spectral));
        let scratch_len = fft.scratch_len().next_multiple_of(Self::CACHE_LINE);
        Self { fft, shape: pass.clone(), whole, places, at_once, scratch_len }
    }

    /// Real numbers between the rows of a tile of columns.
    fn row(&self) -> usize {
        2 * self.at_once + Self::CACHE_LINE
    }

    /// Bytes of the scratch and of the tile.
    pub(crate) fn bytes(&self) -> usize {
        let tile = match self.shape.inner {
            1 => 2 * self.at_once * (self.whole[0] + self.whole[1]),
            _ => self.shape.n * self.row(),
        };
        (self.scratch_len + tile) * size_of::<T>()
    }

    /// Transforms a block: `src` into `dst`.
    pub(crate) fn run(&self, src: &[T], dst: &mut [T], workspace: &mut Workspace<'_, T>) {
        workspace.queue.step(src.len().max(dst.len()));
        if self.shape.inner == 1 {
            self.rows(src, dst, workspace);
        } else {
            self.columns(src, dst, workspace);
        }
    }

    fn call(&self, lines: Lines<'_, T>, scratch: &mut [T]) {
        self.fft.run(lines, T::of(self.shape.factor), scratch);
    }

    /// Contiguous lines. Numbers are real or complex on either side.
    fn rows(&self, src: &[T], dst: &mut [T], workspace: &mut Workspace<'_, T>) {
        let (before, after) = (self.shape.line_before(), self.shape.line_after());
        let [from, to] = self.whole.map(|dist| Strides { stride: 1, dist });
        let (scratch, tile) = workspace.lines.split_at_mut(self.scratch_len);
        let (source, result) = tile.split_at_mut(2 * self.at_once * self.whole[0]);
        let wide = [self.shape.complex_before, self.shape.complex_after];
        let [width, width_after] = wide.map(|complex| if complex { 2 } else { 1 });
        for (lines, places) in
            src.chunks(self.at_once * before).zip(dst.chunks_mut(self.at_once * after))
        {
            let count = lines.len() / before;
            let source = &mut source[..2 * count * self.whole[0]];
            source.fill(T::default());
            for (line, tile) in lines.chunks(before).zip(source.chunks_mut(2 * self.whole[0])) {
                copy_by(&self.places[0], width, line, tile, true);
            }
            let result = &mut result[..2 * count * self.whole[1]];
            let call = Lines { src: Some(source), from, dst: result, to, count, uncached: false };
            self.call(call, scratch);
            for (line, tile) in places.chunks_mut(after).zip(result.chunks(2 * self.whole[1])) {
                copy_by(&self.places[1], width_after, tile, line, false);
            }
        }
    }

    /// Complex lines that lie side by side.
    fn columns(&self, src: &[T], dst: &mut [T], workspace: &mut Workspace<'_, T>) {
        let Pass { outer, inner, .. } = self.shape;
        let (before, after) = (self.shape.len_before(), self.shape.len_after());
        let (scratch, tile) = workspace.lines.split_at_mut(self.scratch_len);
        let inside = Strides { stride: self.row() / 2, dist: 1 };
        for array in 0..outer {
            for first in (0..inner).step_by(self.at_once) {
                let count = self.at_once.min(inner - first);
                let tile = &mut tile[..self.shape.n * self.row()];
                tile.fill(T::default());
                let at = |len: usize, i: usize| {
                    let first = 2 * ((array * len + i) * inner + first);
                    first..first + 2 * count
                };
                let row = |place: usize| place * self.row()..place * self.row() + 2 * count;
                for (i, place) in self.places[0].iter().enumerate() {
                    if let Some(place) = place {
                        tile[row(*place)].copy_from_slice(&src[at(before, i)]);
                    }
                }
                let (from, to) = (inside, inside);
                let call = Lines { src: None, from, dst: tile, to, count, uncached: false };
                self.call(call, scratch);
                for (i, place) in self.places[1].iter().enumerate() {
                    let to = &mut dst[at(after, i)];
                    match place {
                        Some(place) => to.copy_from_slice(&tile[row(*place)]),
                        None => to.fill(T::default()),
                    }
                }
            }
        }
    }
}

/// Copies the numbers of a line to their places, or from there; those without one are 0.
fn copy_by<T: Real>(
    places: &[Option<usize>],
    width: usize,
    from: &[T],
    to: &mut [T],
    scatters: bool,
) {
    let range = |at: usize| at * width..(at + 1) * width;
    for (i, place) in places.iter().enumerate() {
        match (place, scatters) {
            (Some(place), true) => to[range(*place)].copy_from_slice(&from[range(i)]),
            (Some(place), false) => to[range(i)].copy_from_slice(&from[range(*place)]),
            (None, true) => {}
            (None, false) => to[range(i)].fill(T::default()),
        }
    }
}
