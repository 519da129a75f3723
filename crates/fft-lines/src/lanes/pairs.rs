//! First and last passes of contiguous lines: two lanes are neighbours of a line, so that two
//! complex numbers are loaded and stored at once.
//!
//! ```text
//! first pass:  lanes of places p, p + 1 of each line; results j, j + 1 are turned:
//!              [j of p, j of p + 1], [j + 1 of p, j + 1 of p + 1]
//!              to [j of p, j + 1 of p], [j of p + 1, j + 1 of p + 1]
//! middle pass: as in columns, with all of these vectors of a place
//! last pass:   frequencies q, q + 1 of each line
//! ```
//!
//! The first radix and the number of places are even.

use std::hint::black_box;

use fft_stream::{Strided, StridedMut};
use pulp::{Simd, WithSimd};

use super::butterfly::{Ends, butterfly};
use super::kernel::{First, Last};
use super::vector::{Complexes, Pair, Real, lanes};

/// The first pass.
pub(crate) struct FromPairs<'a, const R: usize, const SWAPPED: bool, S: Simd, T: Real>(
    pub(crate) First<'a, S, T>,
);

/// The last pass.
pub(crate) struct ToPairs<'a, const R: usize, const SWAPPED: bool, S: Simd, T: Real>(
    pub(crate) Last<'a, S, T>,
);

/// Loads two neighbours of each line.
#[inline(always)]
fn load_pairs<S: Simd, T: Real>(
    simd: S,
    lines: &Strided<'_, T>,
    k: usize,
    at: usize,
) -> Complexes<S, T> {
    let mut pair: Pair<S, T> = bytemuck::Zeroable::zeroed();
    let numbers: &mut [[T; 4]] = bytemuck::cast_slice_mut(&mut pair);
    for line in 0..lanes::<S, T>() / 2 {
        numbers[line] = lines.load([line, k], at);
    }
    Complexes::deinterleaved(simd, pair)
}

/// Stores two neighbours of each line.
#[inline(always)]
fn store_pairs<S: Simd, T: Real>(
    x: Complexes<S, T>,
    lines: &mut StridedMut<'_, T>,
    k: usize,
    at: usize,
) {
    let pair = x.interleaved();
    let numbers: &[[T; 4]] = bytemuck::cast_slice(&pair);
    for line in 0..lanes::<S, T>() / 2 {
        lines.store([line, k], at, numbers[line]);
    }
}

impl<const R: usize, const SWAPPED: bool, V: Simd, T: Real> WithSimd
    for FromPairs<'_, R, SWAPPED, V, T>
{
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let First { simd, stage, src, distance, y, groups } = self.0;
        let (m, lines, inner) = (stage.m, lanes::<V, T>() / 2, R / 2);
        let step = 2 * lines * distance;
        let from =
            Strided::new(src, [lines, R], [2 * distance, 2 * m], (groups - 1) * step + 2 * m);
        let to_row = ((groups - 1) * m + m - 1) * inner;
        let mut to = StridedMut::new(y, [1, 2], [0, inner], to_row);
        for group in 0..groups {
            for (pair, factors) in stage.pair_twiddles.chunks_exact(R - 1).enumerate() {
                let p = 2 * pair;
                butterfly::<R, V, T>(&mut FirstPass::<R, SWAPPED, V, T> {
                    simd,
                    from: &from,
                    // Otherwise the compiler keeps an address for each line and number.
                    first: black_box(group * step + 2 * p),
                    factors,
                    to: &mut to,
                    place: (group * m + p) * inner,
                    results: [Complexes::zero(simd); R],
                    is_there: [false; R],
                });
            }
        }
    }
}

struct FirstPass<'a, 'b, const R: usize, const SWAPPED: bool, S: Simd, T: Real> {
    simd: S,
    from: &'a Strided<'b, T>,
    first: usize,
    factors: &'a [Pair<S, T>],
    to: &'a mut StridedMut<'b, Pair<S, T>>,
    /// The vectors of the first of both places.
    place: usize,
    /// Results, to be turned as soon as their neighbours are there.
    results: [Complexes<S, T>; R],
    is_there: [bool; R],
}

impl<const R: usize, const SWAPPED: bool, S: Simd, T: Real> FirstPass<'_, '_, R, SWAPPED, S, T> {
    /// Stores the results `first` and `first + 1`.
    #[inline(always)]
    fn turn(&mut self, first: usize) {
        let [low, high] = self.results[first].turned(self.results[first + 1]);
        let at = first / 2;
        self.to.store([0, 0], self.place + at, low.parts());
        self.to.store([0, 1], self.place + at, high.parts());
    }
}

impl<const R: usize, const SWAPPED: bool, S: Simd, T: Real> Ends<S, T>
    for FirstPass<'_, '_, R, SWAPPED, S, T>
{
    #[inline(always)]
    fn simd(&self) -> S {
        self.simd
    }

    #[inline(always)]
    fn load(&self, k: usize) -> Complexes<S, T> {
        let x = load_pairs(self.simd, self.from, k, self.first);
        if SWAPPED { x.swapped() } else { x }
    }

    #[inline(always)]
    fn store(&mut self, k: usize, x: Complexes<S, T>) {
        let x = if k == 0 { x } else { x.times_each(self.factors[k - 1]) };
        (self.results[k], self.is_there[k]) = (x.pinned(), true);
        if self.is_there[k ^ 1] {
            self.turn(k & !1);
        }
    }
}

impl<const R: usize, const SWAPPED: bool, V: Simd, T: Real> WithSimd
    for ToPairs<'_, R, SWAPPED, V, T>
{
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Last { simd, stage, x, dst, distance, groups } = self.0;
        let (lines, inner) = (lanes::<V, T>() / 2, stage.inner);
        let blocks = stage.order.len();
        let numbers_len = (groups * blocks - 1) * R * inner + inner;
        let numbers = Strided::new(x, [1, R], [0, inner], numbers_len);
        let (part, step) = (4 * blocks * inner, 2 * lines * distance);
        let mut to =
            StridedMut::new(dst, [lines, R], [2 * distance, part], (groups - 1) * step + part);
        for group in 0..groups {
            for (block, &q) in stage.order.iter().enumerate() {
                for at in 0..inner {
                    butterfly::<R, V, T>(&mut LastPass::<SWAPPED, V, T> {
                        simd,
                        numbers: &numbers,
                        place: (group * blocks + block) * R * inner + at,
                        to: &mut to,
                        // As in the first pass.
                        first: black_box(group * step + 2 * (q + 2 * at)),
                    });
                }
            }
        }
    }
}

struct LastPass<'a, 'b, const SWAPPED: bool, S: Simd, T: Real> {
    simd: S,
    numbers: &'a Strided<'b, Pair<S, T>>,
    place: usize,
    to: &'a mut StridedMut<'b, T>,
    first: usize,
}

impl<const SWAPPED: bool, S: Simd, T: Real> Ends<S, T> for LastPass<'_, '_, SWAPPED, S, T> {
    #[inline(always)]
    fn simd(&self) -> S {
        self.simd
    }

    #[inline(always)]
    fn load(&self, k: usize) -> Complexes<S, T> {
        Complexes::of(self.simd, self.numbers.load([0, k], self.place))
    }

    #[inline(always)]
    fn store(&mut self, k: usize, x: Complexes<S, T>) {
        let x = if SWAPPED { x.swapped() } else { x };
        store_pairs(x, self.to, k, self.first);
    }
}
