//! Kernels: one pass of the transforms of a vector's lines.
//!
//! Each is a function of its own, compiled for the processor's vectors.

use fft_stream::StridedMut;
use pulp::{Simd, WithSimd};

use super::butterfly::{Ends, butterfly};
use super::columns::{FromColumns, ToColumns};
use super::pairs::{FromPairs, ToPairs};
use super::rows::{FromRows, ToRows};
use super::vector::{Complexes, Pair, Real};

/// A pass: butterflies of `radix` numbers at distances of `m` in each block of `m radix` numbers,
/// then twiddle factors.
pub(crate) struct Stage<S: Simd, T: Real> {
    pub(crate) radix: usize,
    /// The product of the radices to come.
    pub(crate) m: usize,
    /// For each of the `m` butterflies of a block, factors of all its results but the first.
    pub(crate) twiddles: Vec<[T; 2]>,
    /// Of the first pass of neighbours: the factors of both in their lanes, in place of `twiddles`.
    pub(crate) pair_twiddles: Vec<Pair<S, T>>,
    /// Of a last pass: the frequency of the first result of each block. The others follow at
    /// distances of `n / radix`.
    pub(crate) order: Vec<usize>,
    /// Vectors of each place between the passes: of neighbours, half the first radix.
    pub(crate) inner: usize,
}

/// Adjacent lines, or the elements that make them: element `i` of line `l` is at
/// `i stride + l dist`. One of both is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strides {
    /// Elements between two of a line.
    pub stride: usize,
    /// Elements between the starts of two lines.
    pub dist: usize,
}

/// The kernels of a radix. Of two, the second exchanges real and imaginary parts of what it reads
/// or writes: a forward transform between both is an inverse one.
pub(crate) struct Kernels<S: Simd, T: Real> {
    /// The first pass, from rows of the source: adjacent lines lie side by side.
    pub(crate) from_columns: [From<S, T>; 2],
    /// The first pass, from contiguous lines.
    pub(crate) from_rows: [From<S, T>; 2],
    /// The first pass, from neighbours of contiguous lines, for even radices.
    pub(crate) from_pairs: [From<S, T>; 2],
    /// A pass in place.
    pub(crate) middle: Middle<S, T>,
    /// The last pass, in place.
    pub(crate) last: Middle<S, T>,
    pub(crate) to_columns: [To<S, T>; 2],
    pub(crate) to_rows: [To<S, T>; 2],
    pub(crate) to_pairs: [To<S, T>; 2],
}

type From<S, T> = fn(First<'_, S, T>);
type Middle<S, T> = fn(S, &Stage<S, T>, &mut [Pair<S, T>]);
type To<S, T> = fn(Last<'_, S, T>);

/// A first pass, which reads lines.
pub(crate) struct First<'a, S: Simd, T: Real> {
    pub(crate) simd: S,
    pub(crate) stage: &'a Stage<S, T>,
    pub(crate) src: &'a [T],
    /// Elements between two of a line for lines side by side, and otherwise between two lines.
    pub(crate) distance: usize,
    pub(crate) y: &'a mut [Pair<S, T>],
    /// Groups of lines, each as many as vectors hold together.
    pub(crate) groups: usize,
}

/// A last pass, which writes lines.
pub(crate) struct Last<'a, S: Simd, T: Real> {
    pub(crate) simd: S,
    pub(crate) stage: &'a Stage<S, T>,
    pub(crate) x: &'a [Pair<S, T>],
    pub(crate) dst: &'a mut [T],
    /// As in [`First`].
    pub(crate) distance: usize,
    pub(crate) groups: usize,
}

impl<S: Simd, T: Real> Kernels<S, T> {
    pub(crate) fn of(radix: usize) -> Self {
        match radix {
            // Only as a last pass, which copies the results of a single one.
            1 => Self::new::<1>(),
            2 => Self::even::<2>(),
            3 => Self::new::<3>(),
            4 => Self::even::<4>(),
            5 => Self::new::<5>(),
            6 => Self::even::<6>(),
            7 => Self::new::<7>(),
            8 => Self::even::<8>(),
            9 => Self::new::<9>(),
            10 => Self::even::<10>(),
            11 => Self::new::<11>(),
            12 => Self::even::<12>(),
            13 => Self::new::<13>(),
            15 => Self::new::<15>(),
            16 => Self::even::<16>(),
            20 => Self::even::<20>(),
            _ => unreachable!("{radix} is not a radix"),
        }
    }

    fn new<const R: usize>() -> Self {
        Self {
            from_columns: [from_columns::<R, false, S, T>, from_columns::<R, true, S, T>],
            from_rows: [from_rows::<R, false, S, T>, from_rows::<R, true, S, T>],
            middle: |simd, stage, x| {
                simd.vectorize(InPlace::<R, false, S, T> { simd, stage, x });
            },
            last: |simd, stage, x| simd.vectorize(InPlace::<R, true, S, T> { simd, stage, x }),
            to_columns: [to_columns::<R, false, S, T>, to_columns::<R, true, S, T>],
            from_pairs: [|_| unreachable!("neighbours of odd radices"); 2],
            to_rows: [to_rows::<R, false, S, T>, to_rows::<R, true, S, T>],
            to_pairs: [to_pairs::<R, false, S, T>, to_pairs::<R, true, S, T>],
        }
    }

    fn even<const R: usize>() -> Self {
        Self {
            from_pairs: [from_pairs::<R, false, S, T>, from_pairs::<R, true, S, T>],
            ..Self::new::<R>()
        }
    }
}

fn from_columns<const R: usize, const SWAPPED: bool, S: Simd, T: Real>(first: First<'_, S, T>) {
    first.simd.vectorize(FromColumns::<R, SWAPPED, S, T>(first));
}

fn from_rows<const R: usize, const SWAPPED: bool, S: Simd, T: Real>(first: First<'_, S, T>) {
    first.simd.vectorize(FromRows::<R, SWAPPED, S, T>(first));
}

fn from_pairs<const R: usize, const SWAPPED: bool, S: Simd, T: Real>(first: First<'_, S, T>) {
    first.simd.vectorize(FromPairs::<R, SWAPPED, S, T>(first));
}

fn to_columns<const R: usize, const SWAPPED: bool, S: Simd, T: Real>(last: Last<'_, S, T>) {
    last.simd.vectorize(ToColumns::<R, SWAPPED, S, T>(last));
}

fn to_rows<const R: usize, const SWAPPED: bool, S: Simd, T: Real>(last: Last<'_, S, T>) {
    last.simd.vectorize(ToRows::<R, SWAPPED, S, T>(last));
}

fn to_pairs<const R: usize, const SWAPPED: bool, S: Simd, T: Real>(last: Last<'_, S, T>) {
    last.simd.vectorize(ToPairs::<R, SWAPPED, S, T>(last));
}

/// A pass in place. The last one has no twiddle factors.
struct InPlace<'a, const R: usize, const LAST: bool, S: Simd, T: Real> {
    simd: S,
    stage: &'a Stage<S, T>,
    x: &'a mut [Pair<S, T>],
}

impl<const R: usize, const LAST: bool, V: Simd, T: Real> WithSimd for InPlace<'_, R, LAST, V, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { simd, stage, x } = self;
        let Stage { m, inner, ref twiddles, .. } = *stage;
        if LAST {
            let len = x.len() - (R - 1) * inner;
            let mut numbers = StridedMut::new(x, [1, R], [0, inner], len);
            for block in (0..len).step_by(R * inner) {
                for place in block..block + inner {
                    let (factors, numbers) = (&[][..], &mut numbers);
                    butterfly::<R, V, T>(&mut Places::<LAST, V, T> {
                        simd,
                        factors,
                        numbers,
                        place,
                    });
                }
            }
            return;
        }
        for block in x.chunks_exact_mut(R * m * inner) {
            let mut numbers = StridedMut::new(block, [1, R], [0, m * inner], m * inner);
            for (p, factors) in twiddles.chunks_exact(R - 1).enumerate().take(m) {
                for place in p * inner..(p + 1) * inner {
                    let numbers = &mut numbers;
                    butterfly::<R, V, T>(&mut Places::<LAST, V, T> {
                        simd,
                        factors,
                        numbers,
                        place,
                    });
                }
            }
        }
    }
}

struct Places<'a, 'b, const LAST: bool, S: Simd, T: Real> {
    simd: S,
    factors: &'a [[T; 2]],
    numbers: &'a mut StridedMut<'b, Pair<S, T>>,
    place: usize,
}

impl<const LAST: bool, S: Simd, T: Real> Ends<S, T> for Places<'_, '_, LAST, S, T> {
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
        let x = if LAST || k == 0 { x } else { x.times(self.factors[k - 1]) };
        self.numbers.store([0, k], self.place, x.pinned().parts());
    }
}
