//! Kernels: one stage of the transforms of a vector's lines.
//!
//! Each is a function of its own, compiled for the processor's vectors.

use pulp::{Simd, WithSimd};

use super::butterfly::butterfly;
use super::vector::{Complexes, MOST_LANES, Pair, Real, lanes};

/// A stage: butterflies of `radix` numbers at distances of `m` in each block of `m radix` numbers,
/// then twiddle factors.
pub(crate) struct Stage<T> {
    pub(crate) radix: usize,
    /// The product of the radices to come.
    pub(crate) m: usize,
    /// For each of the `m` butterflies of a block, factors of all its results but the first.
    pub(crate) twiddles: Vec<[T; 2]>,
    /// Of a last stage: the frequency of the first result of each block. The others follow at
    /// distances of the number of blocks.
    pub(crate) order: Vec<usize>,
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

/// The kernels of a radix.
pub(crate) struct Kernels<S: Simd, T: Real> {
    /// The first stage, from rows of the source: adjacent lines lie side by side.
    pub(crate) from_columns: From<S, T>,
    /// The first stage, from contiguous lines.
    pub(crate) from_rows: From<S, T>,
    pub(crate) middle: Middle<S, T>,
    pub(crate) to_columns: To<S, T>,
    pub(crate) to_rows: To<S, T>,
}

type From<S, T> = fn(S, &Stage<T>, &[T], Strides, &mut [Pair<S, T>]);
type Middle<S, T> = fn(S, &Stage<T>, &mut [Pair<S, T>]);
/// If the last argument is true, results are in reverse order but for the first.
type To<S, T> = fn(S, &Stage<T>, &[Pair<S, T>], &mut [T], Strides, bool);

impl<S: Simd, T: Real> Kernels<S, T> {
    pub(crate) fn of(radix: usize) -> Self {
        match radix {
            // Only as a last stage, which copies the results of a single one.
            1 => Self::new::<1>(),
            2 => Self::new::<2>(),
            3 => Self::new::<3>(),
            4 => Self::new::<4>(),
            5 => Self::new::<5>(),
            7 => Self::new::<7>(),
            8 => Self::new::<8>(),
            9 => Self::new::<9>(),
            11 => Self::new::<11>(),
            13 => Self::new::<13>(),
            16 => Self::new::<16>(),
            _ => unreachable!("{radix} is not a radix"),
        }
    }

    fn new<const R: usize>() -> Self {
        Self {
            from_columns: |simd, stage, src, at, y| {
                simd.vectorize(FromColumns::<R, S, T> { simd, stage, src, at, y });
            },
            from_rows: |simd, stage, src, at, y| {
                simd.vectorize(FromRows::<R, S, T> { simd, stage, src, at, y });
            },
            middle: |simd, stage, x| simd.vectorize(Between::<R, S, T> { simd, stage, x }),
            to_columns: |simd, stage, x, dst, at, reversed| {
                simd.vectorize(ToColumns::<R, S, T> { simd, stage, x, dst, at, reversed });
            },
            to_rows: |simd, stage, x, dst, at, reversed| {
                simd.vectorize(ToRows::<R, S, T> { simd, stage, x, dst, at, reversed });
            },
        }
    }
}

struct FromColumns<'a, const R: usize, S: Simd, T: Real> {
    simd: S,
    stage: &'a Stage<T>,
    src: &'a [T],
    at: Strides,
    y: &'a mut [Pair<S, T>],
}

impl<const R: usize, V: Simd, T: Real> WithSimd for FromColumns<'_, R, V, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { simd, stage, src, at: Strides { stride, .. }, y } = self;
        let (m, vector) = (stage.m, 2 * lanes::<V, T>());
        // Of one length, so that one check of an index is one for all.
        let len = 2 * (m - 1) * stride + vector;
        let rows: [&[T]; R] = std::array::from_fn(|k| &src[2 * k * m * stride..][..len]);
        let mut parts = parts::<R, _>(y, m);
        for (p, factors) in stage.twiddles.chunks_exact(R - 1).enumerate() {
            let first = 2 * p * stride;
            let mut x = [Complexes::<V, T>::zero(simd); R];
            for k in 0..R {
                x[k] = Complexes::load(simd, &rows[k][first..first + vector]);
            }
            butterfly(&mut x);
            store_turned(&x, factors, &mut parts, p);
        }
    }
}

struct FromRows<'a, const R: usize, S: Simd, T: Real> {
    simd: S,
    stage: &'a Stage<T>,
    src: &'a [T],
    at: Strides,
    y: &'a mut [Pair<S, T>],
}

impl<const R: usize, V: Simd, T: Real> WithSimd for FromRows<'_, R, V, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { simd, stage, src, at, y } = self;
        let m = stage.m;
        let lines = lines::<V, T>(src, at.dist, R * m);
        let mut parts = parts::<R, _>(y, m);
        for (p, factors) in stage.twiddles.chunks_exact(R - 1).enumerate() {
            let mut x = [Complexes::<V, T>::zero(simd); R];
            for k in 0..R {
                x[k] = Complexes::load_each(simd, &lines, p + m * k);
            }
            butterfly(&mut x);
            store_turned(&x, factors, &mut parts, p);
        }
    }
}

/// The parts of a block, of one length, so that one check of an index is one for all.
#[inline(always)]
fn parts<const R: usize, E>(block: &mut [E], m: usize) -> [&mut [E]; R] {
    let mut parts = block.chunks_exact_mut(m);
    std::array::from_fn(|_| &mut parts.next().expect("a block has R parts")[..m])
}

#[inline(always)]
fn store_turned<const R: usize, S: Simd, T: Real>(
    x: &[Complexes<S, T>; R],
    factors: &[[T; 2]],
    parts: &mut [&mut [Pair<S, T>]; R],
    p: usize,
) {
    parts[0][p] = x[0].parts();
    for j in 1..R {
        parts[j][p] = x[j].times(factors[j - 1]).parts();
    }
}

struct Between<'a, const R: usize, S: Simd, T: Real> {
    simd: S,
    stage: &'a Stage<T>,
    x: &'a mut [Pair<S, T>],
}

impl<const R: usize, V: Simd, T: Real> WithSimd for Between<'_, R, V, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { simd, stage: Stage { m, twiddles, .. }, x } = self;
        for block in x.chunks_exact_mut(R * m) {
            let mut parts = parts::<R, _>(block, *m);
            for (p, factors) in twiddles.chunks_exact(R - 1).enumerate().take(*m) {
                let mut x = [Complexes::<V, T>::zero(simd); R];
                for k in 0..R {
                    x[k] = Complexes::of(simd, parts[k][p]);
                }
                butterfly(&mut x);
                store_turned(&x, factors, &mut parts, p);
            }
        }
    }
}

struct ToColumns<'a, const R: usize, S: Simd, T: Real> {
    simd: S,
    stage: &'a Stage<T>,
    x: &'a [Pair<S, T>],
    dst: &'a mut [T],
    at: Strides,
    reversed: bool,
}

impl<const R: usize, V: Simd, T: Real> WithSimd for ToColumns<'_, R, V, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { simd, stage, x, dst, at: Strides { stride, .. }, reversed } = self;
        let (s, vector) = (stage.order.len(), 2 * lanes::<V, T>());
        let len = 2 * (s - 1) * stride + vector;
        let mut rest = dst.chunks_mut(2 * s * stride);
        let mut to: [&mut [T]; R] =
            std::array::from_fn(|_| &mut rest.next().expect("as many as numbers")[..len]);
        // Frequency q + s j goes to n - q - s j, which is s - q in the part R - 1 - j unless q = 0.
        if reversed {
            to[1..].reverse();
        }
        for (block, (&q, numbers)) in stage.order.iter().zip(x.chunks_exact(R)).enumerate() {
            if reversed && block == 1 {
                to.rotate_left(1);
            }
            let mut x = [Complexes::<V, T>::zero(simd); R];
            for k in 0..R {
                x[k] = Complexes::of(simd, numbers[k]);
            }
            butterfly(&mut x);
            let first = 2 * stride * if reversed && q > 0 { s - q } else { q };
            for j in 0..R {
                x[j].store(&mut to[j][first..first + vector]);
            }
        }
    }
}

struct ToRows<'a, const R: usize, S: Simd, T: Real> {
    simd: S,
    stage: &'a Stage<T>,
    x: &'a [Pair<S, T>],
    dst: &'a mut [T],
    at: Strides,
    reversed: bool,
}

impl<const R: usize, V: Simd, T: Real> WithSimd for ToRows<'_, R, V, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { simd, stage, x, dst, at, reversed } = self;
        let s = stage.order.len();
        let n = R * s;
        let mut lines = lines_mut::<V, T>(dst, at.dist, n);
        for (&q, numbers) in stage.order.iter().zip(x.chunks_exact(R)) {
            let mut x = [Complexes::<V, T>::zero(simd); R];
            for k in 0..R {
                x[k] = Complexes::of(simd, numbers[k]);
            }
            butterfly(&mut x);
            for j in 0..R {
                let i = q + s * j;
                x[j].store_each(&mut lines, if reversed && i > 0 { n - i } else { i });
            }
        }
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
