//! The stages of a complex transform.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::ahead::Ahead;
use super::kernel::{Kernels, Stage, Strides};
use super::radices::radices;
use super::vector::{Pair, Real};
use crate::roots::root;

/// The stages of transforms of `n` numbers, with their kernels.
pub(crate) struct Stages<S: Simd, T: Real> {
    pub(crate) simd: S,
    pub(crate) n: usize,
    all: Vec<(Stage<T>, Kernels<S, T>)>,
    /// The frequency of each number after all stages.
    pub(crate) order: Vec<usize>,
}

/// The frequency of each number after stages that leave the results of a butterfly where its
/// numbers were: the digits of an index in reverse order.
fn frequencies(radices: &[usize]) -> Vec<usize> {
    let mut order = vec![0];
    for radix in radices.iter().rev() {
        order = (0..*radix).flat_map(|j| order.iter().map(move |q| j + radix * q)).collect();
    }
    order.shrink_to_fit();
    order
}

impl<S: Simd, T: Real> Stages<S, T> {
    /// `None` if radices with these costs do not make `n`, or if `n` is 0 or 1.
    pub(crate) fn new(simd: S, n: usize, costs: &[(usize, f64)]) -> Option<Self> {
        let mut radices = if n < 2 { None } else { radices(n, costs) }?;
        if radices.len() == 1 {
            // There is a first stage and a last one.
            radices.push(1);
        }
        Some(Self::of(simd, &radices))
    }

    /// Stages of two or more radices.
    pub(crate) fn of(simd: S, radices: &[usize]) -> Self {
        let n = radices.iter().product();
        let mut left = n;
        let mut all: Vec<_> = radices
            .iter()
            .map(|&radix| {
                let block = left;
                left /= radix;
                let factor = |p, j| root(p * j, block).map(T::rounded);
                let factors = |p| (1..radix).map(move |j| factor(p, j));
                let mut twiddles = Vec::with_capacity(left * (radix - 1));
                twiddles.extend((0..left).flat_map(factors));
                let stage = Stage { radix, m: left, twiddles, order: Vec::new() };
                (stage, Kernels::of(radix))
            })
            .collect();
        let (last, order) = (all.len() - 1, frequencies(radices));
        all[last].0.order = order.iter().copied().step_by(radices[last]).collect();
        Self { simd, n, all, order }
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Bytes of tables.
    pub(crate) fn bytes(&self) -> usize {
        let tables = |stage: &Stage<T>| size_of_val(&*stage.twiddles) + size_of_val(&*stage.order);
        let tables: usize = self.all.iter().map(|(stage, _)| tables(stage)).sum();
        tables + size_of_val(&*self.all) + size_of_val(&*self.order)
    }

    fn prefetch(&self, stage: usize, ahead: Option<Ahead>) {
        if let Some(ahead) = ahead {
            ahead.prefetch(stage, self.len());
        }
    }

    /// Reads lines and runs the first stage.
    pub(crate) fn first(&self, src: &[T], at: Strides, y: &mut [Pair<S, T>], ahead: Option<Ahead>) {
        self.prefetch(0, ahead);
        let (stage, kernels) = &self.all[0];
        let kernel = if at.dist == 1 { kernels.from_columns } else { kernels.from_rows };
        kernel(self.simd, stage, src, at, y);
    }

    /// Runs stages in place.
    pub(crate) fn between(&self, stages: Range<usize>, x: &mut [Pair<S, T>], ahead: Option<Ahead>) {
        for number in stages {
            self.prefetch(number, ahead);
            let (stage, kernels) = &self.all[number];
            if stage.radix > 1 {
                (kernels.middle)(self.simd, stage, x);
            }
        }
    }

    /// Runs the last stage and writes lines, in reverse order but for the first number if
    /// `reversed`.
    pub(crate) fn last(
        &self,
        x: &[Pair<S, T>],
        dst: &mut [T],
        at: Strides,
        reversed: bool,
        ahead: Option<Ahead>,
    ) {
        self.prefetch(self.len() - 1, ahead);
        let (stage, kernels) = &self.all[self.len() - 1];
        let kernel = if at.dist == 1 { kernels.to_columns } else { kernels.to_rows };
        kernel(self.simd, stage, x, dst, at, reversed);
    }

    /// Multiplies every number.
    pub(crate) fn multiply(&self, x: &mut [Pair<S, T>], factor: T) {
        if factor != T::rounded(1.0) {
            self.simd.vectorize(Multiply::<S, T> { simd: self.simd, x, factor });
        }
    }
}

struct Multiply<'a, S: Simd, T: Real> {
    simd: S,
    x: &'a mut [Pair<S, T>],
    factor: T,
}

impl<V: Simd, T: Real> WithSimd for Multiply<'_, V, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { simd, x, factor } = self;
        let factor = T::splat(simd, factor);
        for part in x.as_flattened_mut() {
            *part = T::mul(simd, *part, factor);
        }
    }
}
