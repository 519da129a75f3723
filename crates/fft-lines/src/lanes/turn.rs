//! Contiguous lines of real numbers, turned to columns and back.

use bytemuck::Zeroable;
use pulp::{Simd, WithSimd};

use super::vector::{Complexes, MOST_LANES, Pair, Real, lanes};

/// Lines to columns. Those of two numbers in an element are columns of both.
pub(crate) struct FromRows<'a, S: Simd, T: Real> {
    pub(crate) simd: S,
    pub(crate) src: &'a [T],
    /// Elements between the starts of two lines.
    pub(crate) dist: usize,
    /// Elements of a line.
    pub(crate) n: usize,
    pub(crate) width: usize,
    pub(crate) tile: &'a mut [T],
}

/// Undoes [`FromRows`].
pub(crate) struct ToRows<'a, S: Simd, T: Real> {
    pub(crate) simd: S,
    pub(crate) tile: &'a [T],
    pub(crate) dst: &'a mut [T],
    pub(crate) dist: usize,
    pub(crate) n: usize,
    pub(crate) width: usize,
}

impl<V: Simd, T: Real> WithSimd for FromRows<'_, V, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { simd, src, dist, n, width, tile } = self;
        let group = lanes::<V, T>() / width;
        let mut lines: [&[[T; 2]]; MOST_LANES] = [&[]; MOST_LANES];
        for line in 0..group {
            (lines[line], _) = src[line * dist * width..][..n * width].as_chunks();
        }
        if width == 2 {
            let (tile, _) = tile.as_chunks_mut::<2>();
            for (i, row) in tile.chunks_exact_mut(group).take(n).enumerate() {
                for line in 0..group {
                    row[line] = lines[line][i];
                }
            }
            return;
        }
        let pairs: &mut [Pair<V, T>] = bytemuck::cast_slice_mut(tile);
        for i in 0..n / 2 {
            pairs[i] = Complexes::<V, T>::load_each(simd, &lines, i).parts();
        }
        if !n.is_multiple_of(2) {
            let mut last: Pair<V, T> = Zeroable::zeroed();
            let numbers: &mut [[T; 2]] = bytemuck::cast_slice_mut(&mut last);
            for line in 0..group {
                numbers[line][0] = src[line * dist + n - 1];
            }
            pairs[n / 2] = T::deinterleave(simd, last);
        }
    }
}

impl<V: Simd, T: Real> WithSimd for ToRows<'_, V, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { simd, tile, dst, dist, n, width } = self;
        let group = lanes::<V, T>() / width;
        if width == 1 && !n.is_multiple_of(2) {
            let pairs: &[Pair<V, T>] = bytemuck::cast_slice(tile);
            let last = T::interleave(simd, pairs[n / 2]);
            let numbers: &[[T; 2]] = bytemuck::cast_slice(&last);
            for line in 0..group {
                dst[line * dist + n - 1] = numbers[line][0];
            }
        }
        let mut rest = dst.chunks_mut(dist * width);
        let mut lines: [&mut [[T; 2]]; MOST_LANES] = Default::default();
        for line in &mut lines[..group] {
            let numbers = &mut rest.next().expect("as many as a group")[..n * width];
            (*line, _) = numbers.as_chunks_mut();
        }
        if width == 2 {
            let (tile, _) = tile.as_chunks::<2>();
            for (i, row) in tile.chunks_exact(group).take(n).enumerate() {
                for line in 0..group {
                    lines[line][i] = row[line];
                }
            }
            return;
        }
        let pairs: &[Pair<V, T>] = bytemuck::cast_slice(tile);
        for i in 0..n / 2 {
            Complexes::<V, T>::of(simd, pairs[i]).store_each(&mut lines, i);
        }
    }
}
