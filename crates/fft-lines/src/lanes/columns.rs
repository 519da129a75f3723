//! First and last passes of lines that lie side by side: a lane is a line.

use fft_stream::{Strided, StridedMut};
use pulp::{Simd, WithSimd};

use super::butterfly::{Ends, butterfly};
use super::kernel::{First, Last};
use super::vector::{Complexes, Pair, Real, lanes};

/// The first pass.
pub(crate) struct FromColumns<'a, const R: usize, const SWAPPED: bool, S: Simd, T: Real>(
    pub(crate) First<'a, S, T>,
);

/// The last pass.
pub(crate) struct ToColumns<'a, const R: usize, const SWAPPED: bool, S: Simd, T: Real>(
    pub(crate) Last<'a, S, T>,
);

impl<const R: usize, const SWAPPED: bool, V: Simd, T: Real> WithSimd
    for FromColumns<'_, R, SWAPPED, V, T>
{
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let First { simd, stage, src, distance, y, groups } = self.0;
        let (m, vector) = (stage.m, 2 * lanes::<V, T>());
        let row = 2 * (m - 1) * distance + groups * vector;
        let from = Strided::new(src, [1, R], [0, 2 * m * distance], row);
        let to_row = (groups - 1) * R * m + m;
        let mut to = StridedMut::new(y, [1, R], [0, m], to_row);
        for group in 0..groups {
            for (p, factors) in stage.twiddles.chunks_exact(R - 1).enumerate() {
                butterfly::<R, V, T>(&mut FirstPass::<SWAPPED, V, T> {
                    simd,
                    from: &from,
                    first: 2 * p * distance + group * vector,
                    factors,
                    to: &mut to,
                    place: group * R * m + p,
                });
            }
        }
    }
}

struct FirstPass<'a, 'b, const SWAPPED: bool, S: Simd, T: Real> {
    simd: S,
    from: &'a Strided<'b, T>,
    first: usize,
    factors: &'a [[T; 2]],
    to: &'a mut StridedMut<'b, Pair<S, T>>,
    place: usize,
}

impl<const SWAPPED: bool, S: Simd, T: Real> Ends<S, T> for FirstPass<'_, '_, SWAPPED, S, T> {
    #[inline(always)]
    fn simd(&self) -> S {
        self.simd
    }

    #[inline(always)]
    fn load(&self, k: usize) -> Complexes<S, T> {
        let x = Complexes::deinterleaved(self.simd, self.from.load([0, k], self.first));
        if SWAPPED { x.swapped() } else { x }
    }

    #[inline(always)]
    fn store(&mut self, k: usize, x: Complexes<S, T>) {
        let x = if k == 0 { x } else { x.times(self.factors[k - 1]) };
        self.to.store([0, k], self.place, x.pinned().parts());
    }
}

impl<const R: usize, const SWAPPED: bool, V: Simd, T: Real> WithSimd
    for ToColumns<'_, R, SWAPPED, V, T>
{
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Last { simd, stage, x, dst, distance, groups } = self.0;
        let (blocks, vector) = (stage.order.len(), 2 * lanes::<V, T>());
        let numbers = Strided::new(x, [1, R], [0, 1], (groups * blocks - 1) * R + 1);
        let row = 2 * (blocks - 1) * distance + groups * vector;
        let mut to = StridedMut::new(dst, [1, R], [0, 2 * blocks * distance], row);
        for group in 0..groups {
            for (block, &q) in stage.order.iter().enumerate() {
                butterfly::<R, V, T>(&mut LastPass::<SWAPPED, V, T> {
                    simd,
                    numbers: &numbers,
                    place: (group * blocks + block) * R,
                    to: &mut to,
                    first: 2 * q * distance + group * vector,
                });
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
        self.to.store([0, k], self.first, x.interleaved());
    }
}
