//! First and last passes of contiguous lines, one per lane: numbers of a place are gathered from
//! all lines.

use fft_stream::StridedMut;
use pulp::{Simd, WithSimd};

use super::butterfly::{Ends, butterfly};
use super::kernel::{First, Last};
use super::vector::{Complexes, MOST_LANES, Pair, Real, lanes};

/// The first pass.
pub(crate) struct FromRows<'a, const R: usize, const SWAPPED: bool, S: Simd, T: Real>(
    pub(crate) First<'a, S, T>,
);

/// The last pass.
pub(crate) struct ToRows<'a, const R: usize, const SWAPPED: bool, S: Simd, T: Real>(
    pub(crate) Last<'a, S, T>,
);

impl<const R: usize, const SWAPPED: bool, V: Simd, T: Real> WithSimd
    for FromRows<'_, R, SWAPPED, V, T>
{
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let First { simd, stage, src, distance, y, groups } = self.0;
        let (m, step) = (stage.m, 2 * distance * lanes::<V, T>());
        for group in 0..groups {
            let lines = lines::<V, T>(&src[group * step..], distance, R * m);
            let mut to = StridedMut::new(&mut y[group * R * m..], [1, R], [0, m], m);
            for (p, factors) in stage.twiddles.chunks_exact(R - 1).enumerate() {
                butterfly::<R, V, T>(&mut FirstPass::<SWAPPED, V, T> {
                    simd,
                    lines: &lines,
                    m,
                    p,
                    factors,
                    to: &mut to,
                });
            }
        }
    }
}

struct FirstPass<'a, 'b, const SWAPPED: bool, S: Simd, T: Real> {
    simd: S,
    lines: &'a [&'b [[T; 2]]; MOST_LANES],
    m: usize,
    p: usize,
    factors: &'a [[T; 2]],
    to: &'a mut StridedMut<'b, Pair<S, T>>,
}

impl<const SWAPPED: bool, S: Simd, T: Real> Ends<S, T> for FirstPass<'_, '_, SWAPPED, S, T> {
    #[inline(always)]
    fn simd(&self) -> S {
        self.simd
    }

    #[inline(always)]
    fn load(&self, k: usize) -> Complexes<S, T> {
        let x = Complexes::load_each(self.simd, self.lines, self.p + self.m * k);
        if SWAPPED { x.swapped() } else { x }
    }

    #[inline(always)]
    fn store(&mut self, k: usize, x: Complexes<S, T>) {
        let x = if k == 0 { x } else { x.times(self.factors[k - 1]) };
        self.to.store([0, k], self.p, x.pinned().parts());
    }
}

impl<const R: usize, const SWAPPED: bool, V: Simd, T: Real> WithSimd
    for ToRows<'_, R, SWAPPED, V, T>
{
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Last { simd, stage, x, dst, distance, groups } = self.0;
        let (blocks, step) = (stage.order.len(), 2 * distance * lanes::<V, T>());
        for group in 0..groups {
            let mut lines = lines_mut::<V, T>(&mut dst[group * step..], distance, R * blocks);
            let x = &x[group * R * blocks..];
            for (&q, numbers) in stage.order.iter().zip(x.chunks_exact(R)) {
                let lines = &mut lines;
                butterfly::<R, V, T>(&mut LastPass::<SWAPPED, V, T> {
                    simd,
                    numbers,
                    lines,
                    q,
                    blocks,
                });
            }
        }
    }
}

struct LastPass<'a, 'b, const SWAPPED: bool, S: Simd, T: Real> {
    simd: S,
    numbers: &'a [Pair<S, T>],
    lines: &'a mut [&'b mut [[T; 2]]; MOST_LANES],
    q: usize,
    blocks: usize,
}

impl<const SWAPPED: bool, S: Simd, T: Real> Ends<S, T> for LastPass<'_, '_, SWAPPED, S, T> {
    #[inline(always)]
    fn simd(&self) -> S {
        self.simd
    }

    #[inline(always)]
    fn load(&self, k: usize) -> Complexes<S, T> {
        Complexes::of(self.simd, self.numbers[k])
    }

    #[inline(always)]
    fn store(&mut self, k: usize, x: Complexes<S, T>) {
        let x = if SWAPPED { x.swapped() } else { x };
        x.store_each(self.lines, self.q + self.blocks * k);
    }
}

/// One line per lane, each of `n` complex numbers.
#[inline(always)]
pub(crate) fn lines<S: Simd, T: Real>(
    numbers: &[T],
    dist: usize,
    n: usize,
) -> [&[[T; 2]]; MOST_LANES] {
    let (numbers, _) = numbers.as_chunks::<2>();
    let mut lines: [&[[T; 2]]; MOST_LANES] = [&[]; MOST_LANES];
    for lane in 0..lanes::<S, T>() {
        lines[lane] = &numbers[lane * dist..][..n];
    }
    lines
}

/// As [`lines`], to be written.
#[inline(always)]
pub(crate) fn lines_mut<S: Simd, T: Real>(
    numbers: &mut [T],
    dist: usize,
    n: usize,
) -> [&mut [[T; 2]]; MOST_LANES] {
    let (numbers, _) = numbers.as_chunks_mut::<2>();
    let mut rest = numbers.chunks_mut(dist);
    let mut lines: [&mut [[T; 2]]; MOST_LANES] = Default::default();
    for line in &mut lines[..lanes::<S, T>()] {
        *line = &mut rest.next().expect("as many as lanes")[..n];
    }
    lines
}
