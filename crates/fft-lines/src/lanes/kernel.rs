//! Kernels: one stage of the transforms of a vector's lines.
//!
//! Each is a function of its own, compiled for the processor's vectors.

use fft_stream::{RowOrder, Rows as StridedRows, RowsMut};
use pulp::{Simd, WithSimd};

use super::butterfly::{Ends, butterfly};
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
            6 => Self::new::<6>(),
            7 => Self::new::<7>(),
            8 => Self::new::<8>(),
            9 => Self::new::<9>(),
            10 => Self::new::<10>(),
            11 => Self::new::<11>(),
            12 => Self::new::<12>(),
            13 => Self::new::<13>(),
            15 => Self::new::<15>(),
            16 => Self::new::<16>(),
            20 => Self::new::<20>(),
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
        let m = stage.m;
        let row = 2 * ((m - 1) * stride + lanes::<V, T>());
        let from = StridedRows::<_, R>::new(src, 2 * m * stride, row);
        let mut to = RowsMut::<_, R>::new(y, m, m);
        for (p, factors) in stage.twiddles.chunks_exact(R - 1).enumerate() {
            let from = Columns { simd, rows: &from, first: 2 * p * stride };
            butterfly::<R, V, T>(&mut Turned { from, factors, to: &mut to, p });
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
        let mut to = RowsMut::<_, R>::new(y, m, m);
        for (p, factors) in stage.twiddles.chunks_exact(R - 1).enumerate() {
            let from = Each { simd, lines: &lines, m, p };
            butterfly::<R, V, T>(&mut Turned { from, factors, to: &mut to, p });
        }
    }
}

trait Source<S: Simd, T: Real> {
    fn simd(&self) -> S;
    fn load(&self, k: usize) -> Complexes<S, T>;
}

struct Columns<'a, 'b, const R: usize, S, T> {
    simd: S,
    rows: &'a StridedRows<'b, T, R>,
    first: usize,
}

impl<const R: usize, S: Simd, T: Real> Source<S, T> for Columns<'_, '_, R, S, T> {
    #[inline(always)]
    fn simd(&self) -> S {
        self.simd
    }
    #[inline(always)]
    fn load(&self, k: usize) -> Complexes<S, T> {
        Complexes::load(self.simd, self.rows.load(k, self.first))
    }
}

struct Each<'a, 'b, S, T> {
    simd: S,
    lines: &'a [&'b [[T; 2]]; MOST_LANES],
    m: usize,
    p: usize,
}

impl<S: Simd, T: Real> Source<S, T> for Each<'_, '_, S, T> {
    #[inline(always)]
    fn simd(&self) -> S {
        self.simd
    }
    #[inline(always)]
    fn load(&self, k: usize) -> Complexes<S, T> {
        Complexes::load_each(self.simd, self.lines, self.p + self.m * k)
    }
}

struct Turned<'a, 'b, const R: usize, F, S: Simd, T: Real> {
    from: F,
    factors: &'a [[T; 2]],
    to: &'a mut RowsMut<'b, Pair<S, T>, R>,
    p: usize,
}

impl<const R: usize, F: Source<S, T>, S: Simd, T: Real> Ends<S, T> for Turned<'_, '_, R, F, S, T> {
    #[inline(always)]
    fn simd(&self) -> S {
        self.from.simd()
    }
    #[inline(always)]
    fn load(&self, k: usize) -> Complexes<S, T> {
        self.from.load(k)
    }
    #[inline(always)]
    fn store(&mut self, k: usize, x: Complexes<S, T>) {
        let x = if k == 0 { x } else { x.times(self.factors[k - 1]) };
        self.to.store(k, self.p, x.pinned().parts());
    }
}

struct InPlace<'a, 'b, const R: usize, S: Simd, T: Real> {
    simd: S,
    factors: &'a [[T; 2]],
    to: &'a mut RowsMut<'b, Pair<S, T>, R>,
    p: usize,
}

impl<const R: usize, S: Simd, T: Real> Ends<S, T> for InPlace<'_, '_, R, S, T> {
    #[inline(always)]
    fn simd(&self) -> S {
        self.simd
    }
    #[inline(always)]
    fn load(&self, k: usize) -> Complexes<S, T> {
        Complexes::of(self.simd, self.to.load(k, self.p))
    }
    #[inline(always)]
    fn store(&mut self, k: usize, x: Complexes<S, T>) {
        let x = if k == 0 { x } else { x.times(self.factors[k - 1]) };
        self.to.store(k, self.p, x.pinned().parts());
    }
}

struct ColumnsTo<'a, 'b, const R: usize, S: Simd, T: Real> {
    simd: S,
    numbers: &'a [Pair<S, T>],
    to: &'a mut RowsMut<'b, T, R>,
    first: usize,
}

impl<const R: usize, S: Simd, T: Real> Ends<S, T> for ColumnsTo<'_, '_, R, S, T> {
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
        self.to.store(k, self.first, x.interleaved());
    }
}

struct RowsTo<'a, 'b, S: Simd, T: Real> {
    simd: S,
    numbers: &'a [Pair<S, T>],
    lines: &'a mut [&'b mut [[T; 2]]; MOST_LANES],
    q: usize,
    s: usize,
    n: usize,
    reversed: bool,
}

impl<S: Simd, T: Real> Ends<S, T> for RowsTo<'_, '_, S, T> {
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
        let i = self.q + self.s * k;
        x.store_each(self.lines, if self.reversed && i > 0 { self.n - i } else { i });
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
            let mut to = RowsMut::<_, R>::new(block, *m, *m);
            for (p, factors) in twiddles.chunks_exact(R - 1).enumerate().take(*m) {
                butterfly::<R, V, T>(&mut InPlace { simd, factors, to: &mut to, p });
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
        let s = stage.order.len();
        let row = 2 * ((s - 1) * stride + lanes::<V, T>());
        let mut to = RowsMut::<_, R>::new(dst, 2 * s * stride, row);
        // Frequency q + s j goes to n - q - s j, which is s - q in the part R - 1 - j unless q = 0.
        if reversed {
            to.set_order(RowOrder::Negative);
        }
        for (block, (&q, numbers)) in stage.order.iter().zip(x.chunks_exact(R)).enumerate() {
            if reversed && block == 1 {
                to.set_order(RowOrder::Backward);
            }
            let first = 2 * stride * if reversed && q > 0 { s - q } else { q };
            butterfly::<R, V, T>(&mut ColumnsTo { simd, numbers, to: &mut to, first });
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
            butterfly::<R, V, T>(&mut RowsTo {
                simd,
                numbers,
                lines: &mut lines,
                q,
                s,
                n,
                reversed,
            });
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
