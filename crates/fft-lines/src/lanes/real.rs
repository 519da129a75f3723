//! Real transforms of even length, by complex ones of half the length.
//!
//! Numbers 2j and 2j+1 of a line are the parts of a complex number. With h = n/2,
//! w = exp(-2πi/n), Z the transform of these numbers, and X the transform of the line:
//!
//! ```text
//! E = (Z[k] + conj Z[h-k]) / 2,  D = (Z[k] - conj Z[h-k]) / 2
//! X[k] = E - i w^k D,  X[h-k] = conj(E + i w^k D)
//! ```

use pulp::{Simd, WithSimd};

use super::ahead::Ahead;
use super::batch::GroupFft;
use super::kernel::Strides;
use super::rows::{lines, lines_mut};
use super::stages::Stages;
use super::vector::{Complexes, MOST_LANES, Pair, Real, lanes};
use crate::roots::root;

pub(crate) struct RealToComplex<S: Simd, T: Real> {
    stages: Stages<S, T>,
    /// `-i w^k / 2` for `k` to `h/2`.
    factors: Vec<[T; 2]>,
    /// The place of each frequency after all stages.
    places: Vec<usize>,
}

impl<S: Simd, T: Real> RealToComplex<S, T> {
    pub(crate) fn new(stages: Stages<S, T>) -> Self {
        let factors =
            factors(stages.n).map(|[re, im]| [0.5 * re, 0.5 * im].map(T::rounded)).collect();
        let mut places = vec![0; stages.n];
        stages.frequencies().into_iter().enumerate().for_each(|(place, k)| places[k] = place);
        Self { stages, factors, places }
    }
}

pub(crate) struct ComplexToReal<S: Simd, T: Real> {
    stages: Stages<S, T>,
    /// `i w^-k` for `k` to `h/2`.
    factors: Vec<[T; 2]>,
}

impl<S: Simd, T: Real> ComplexToReal<S, T> {
    pub(crate) fn new(stages: Stages<S, T>) -> Self {
        let factors = factors(stages.n).map(|[re, im]| [re, -im].map(T::rounded)).collect();
        Self { stages, factors }
    }
}

/// `-i w^k` for `k` to `h/2`.
fn factors(h: usize) -> impl Iterator<Item = [f64; 2]> {
    (0..=h / 2).map(move |k| {
        let [c, s] = root(k, 2 * h);
        [s, -c]
    })
}

impl<S: Simd, T: Real> GroupFft for RealToComplex<S, T> {
    type S = S;
    type T = T;

    fn stages(&self) -> &Stages<S, T> {
        &self.stages
    }

    fn more_bytes(&self) -> usize {
        size_of_val(&*self.factors) + size_of_val(&*self.places)
    }

    fn lens(&self) -> [usize; 2] {
        [self.stages.n, self.stages.n + 1]
    }

    fn read(
        &self,
        src: &[T],
        at: Strides,
        work: &mut [Pair<S, T>],
        groups: usize,
        ahead: Option<Ahead>,
    ) {
        self.stages.first(src, self.stages.distance(at), work, false, groups, ahead);
    }

    fn write(
        &self,
        scale: T,
        work: &mut [Pair<S, T>],
        dst: &mut [T],
        at: Strides,
        groups: usize,
        ahead: Option<Ahead>,
    ) {
        let Self { stages, factors, places } = self;
        let (simd, dist) = (stages.simd, stages.distance(at));
        let work = &mut work[..groups * stages.work_len()];
        stages.between(1..stages.len(), work, ahead);
        stages.multiply(work, scale);
        for (group, x) in work.chunks_exact(stages.n).enumerate() {
            let first = 2 * group * lanes::<S, T>() * dist;
            let lines = lines_mut::<S, T>(&mut dst[first..], dist, stages.n + 1);
            simd.vectorize(Split { simd, factors, places, x, lines });
        }
    }
}

struct Split<'a, S: Simd, T: Real> {
    simd: S,
    factors: &'a [[T; 2]],
    places: &'a [usize],
    x: &'a [Pair<S, T>],
    lines: [&'a mut [[T; 2]]; MOST_LANES],
}

impl<V: Simd, T: Real> WithSimd for Split<'_, V, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { simd, factors, places, x, mut lines } = self;
        let h = x.len();
        for (k, factor) in factors.iter().enumerate() {
            let a = Complexes::<V, T>::of(simd, x[places[k]]);
            let b = Complexes::of(simd, x[places[if k == 0 { 0 } else { h - k }]]).conj();
            let (even, odd) = ((a + b).scaled(T::rounded(0.5)), (a - b).times(*factor));
            (even + odd).store_each(&mut lines, k);
            (even - odd).conj().store_each(&mut lines, h - k);
        }
    }
}

impl<S: Simd, T: Real> GroupFft for ComplexToReal<S, T> {
    type S = S;
    type T = T;

    fn stages(&self) -> &Stages<S, T> {
        &self.stages
    }

    fn more_bytes(&self) -> usize {
        size_of_val(&*self.factors)
    }

    fn lens(&self) -> [usize; 2] {
        [self.stages.n + 1, self.stages.n]
    }

    fn read(
        &self,
        src: &[T],
        at: Strides,
        work: &mut [Pair<S, T>],
        groups: usize,
        _: Option<Ahead>,
    ) {
        let Self { stages, factors } = self;
        let (simd, dist) = (stages.simd, stages.distance(at));
        for (group, y) in work.chunks_exact_mut(stages.n).take(groups).enumerate() {
            let first = 2 * group * lanes::<S, T>() * dist;
            let lines = lines::<S, T>(&src[first..], dist, stages.n + 1);
            simd.vectorize(Merge { simd, factors, lines, y });
        }
    }

    fn write(
        &self,
        scale: T,
        work: &mut [Pair<S, T>],
        dst: &mut [T],
        at: Strides,
        groups: usize,
        ahead: Option<Ahead>,
    ) {
        let work = &mut work[..groups * self.stages.work_len()];
        self.stages.between(0..self.stages.len() - 1, work, ahead);
        self.stages.multiply(work, scale);
        self.stages.last(work, dst, self.stages.distance(at), true, groups, ahead);
    }
}

struct Merge<'a, S: Simd, T: Real> {
    simd: S,
    factors: &'a [[T; 2]],
    lines: [&'a [[T; 2]]; MOST_LANES],
    y: &'a mut [Pair<S, T>],
}

impl<V: Simd, T: Real> WithSimd for Merge<'_, V, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { simd, factors, lines, y } = self;
        let h = y.len();
        for (k, factor) in factors.iter().enumerate() {
            let mut a = Complexes::<V, T>::load_each(simd, &lines, k);
            let mut b = Complexes::<V, T>::load_each(simd, &lines, h - k);
            if k == 0 {
                // As NumPy's irfft: imaginary parts of the mean and the highest frequency are
                // ignored.
                let zero = Complexes::<V, T>::zero(simd).im;
                (a.im, b.im) = (zero, zero);
            }
            let b = b.conj();
            let (even, odd) = (a + b, (a - b).times(*factor));
            // The inverse is the forward transform with real and imaginary parts exchanged.
            y[k] = (even + odd).swapped().parts();
            y[if k == 0 { 0 } else { h - k }] = (even - odd).conj().swapped().parts();
        }
    }
}
