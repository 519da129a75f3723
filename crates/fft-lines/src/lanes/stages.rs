//! The passes of a complex transform.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::ahead::Ahead;
use super::kernel::{First, Kernels, Last, Stage, Strides};
use super::radices::radices;
use super::vector::{Complexes, Pair, Real};
use crate::roots::root;

/// What the lanes of vectors hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LaneLayout {
    /// Each line is contiguous, and a lane is a line.
    Rows,
    /// Each line is contiguous, and two lanes are neighbours of a line.
    Pairs,
    /// Side by side: a lane is a line.
    Columns,
}

/// The passes of transforms of `n` numbers, with their kernels.
pub(crate) struct Stages<S: Simd, T: Real> {
    pub(crate) simd: S,
    pub(crate) n: usize,
    pub(crate) layout: LaneLayout,
    all: Vec<(Stage<S, T>, Kernels<S, T>)>,
}

/// The frequency of each number after passes that leave the results of a butterfly where its
/// numbers were: the digits of an index in reverse order.
fn frequencies(radices: &[usize]) -> Vec<usize> {
    let mut order = vec![0];
    for radix in radices.iter().rev() {
        order = (0..*radix).flat_map(|j| order.iter().map(move |q| j + radix * q)).collect();
    }
    order
}

impl<S: Simd, T: Real> Stages<S, T> {
    /// `None` if radices with these costs do not make `n`, or if `n` is 0 or 1. Of complex rows
    /// neighbours are transformed together if that leaves none alone.
    pub(crate) fn new(
        simd: S,
        n: usize,
        layout: LaneLayout,
        costs: &[(usize, f64)],
    ) -> Option<Self> {
        let mut radices = if n < 2 { None } else { radices(n, costs) }?;
        if radices.len() == 1 {
            // There is a first pass and a last one.
            radices.push(1);
        }
        let has_pairs = [radices[0], n / radices[0]].iter().all(|len| len.is_multiple_of(2));
        let layout =
            if layout == LaneLayout::Pairs && !has_pairs { LaneLayout::Rows } else { layout };
        Some(Self::of(simd, layout, &radices))
    }

    /// Passes of two or more radices.
    pub(crate) fn of(simd: S, layout: LaneLayout, radices: &[usize]) -> Self {
        let n = radices.iter().product();
        let inner = if layout == LaneLayout::Pairs { radices[0] / 2 } else { 1 };
        let mut left = n;
        let mut all: Vec<_> = radices
            .iter()
            .enumerate()
            .map(|(pass, &radix)| {
                let block = left;
                left /= radix;
                let factor = |p, j| root(p * j, block).map(T::rounded);
                let (mut twiddles, mut pair_twiddles) = (Vec::new(), Vec::new());
                if pass == 0 && layout == LaneLayout::Pairs {
                    pair_twiddles.reserve_exact(left / 2 * (radix - 1));
                    for p in (0..left).step_by(2) {
                        pair_twiddles.extend((1..radix).map(|j| {
                            Complexes::neighbours(simd, [factor(p, j), factor(p + 1, j)]).parts()
                        }));
                    }
                } else {
                    twiddles.reserve_exact(left * (radix - 1));
                    let factors = |p| (1..radix).map(move |j| factor(p, j));
                    twiddles.extend((0..left).flat_map(factors));
                }
                let order = Vec::new();
                let stage = Stage { radix, m: left, twiddles, pair_twiddles, order, inner };
                (stage, Kernels::of(radix))
            })
            .collect();
        let (last, frequencies) = (all.len() - 1, frequencies(radices));
        let firsts = frequencies.into_iter().step_by(radices[last]);
        all[last].0.order = match layout {
            LaneLayout::Columns | LaneLayout::Rows => firsts.collect(),
            // The results of the first pass are together.
            LaneLayout::Pairs => firsts.take(n / radices[0] / radices[last]).collect(),
        };
        all[last].0.order.shrink_to_fit();
        Self { simd, n, layout, all }
    }

    /// The frequency of each number after all passes, except of neighbours.
    pub(crate) fn frequencies(&self) -> Vec<usize> {
        frequencies(&self.all.iter().map(|(stage, _)| stage.radix).collect::<Vec<_>>())
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Elements between the rows of columns, or between the starts of lines.
    ///
    /// # Panics
    /// If lines do not lie as planned.
    pub(crate) fn distance(&self, at: Strides) -> usize {
        let (one, distance) = match self.layout {
            LaneLayout::Columns => (at.dist, at.stride),
            LaneLayout::Rows | LaneLayout::Pairs => (at.stride, at.dist),
        };
        assert_eq!(one, 1, "lines lie otherwise than {:?}", self.layout);
        distance
    }

    /// Bytes of tables.
    pub(crate) fn bytes(&self) -> usize {
        let tables = |stage: &Stage<S, T>| {
            size_of_val(&*stage.twiddles)
                + size_of_val(&*stage.pair_twiddles)
                + size_of_val(&*stage.order)
        };
        let tables: usize = self.all.iter().map(|(stage, _)| tables(stage)).sum();
        tables + size_of_val(&*self.all)
    }

    /// Vectors of complex numbers between the passes.
    pub(crate) fn work_len(&self) -> usize {
        if self.layout == LaneLayout::Pairs { self.n / 2 } else { self.n }
    }

    fn prefetch(&self, stage: usize, ahead: Option<Ahead>) {
        if let Some(ahead) = ahead {
            ahead.prefetch(stage, self.len());
        }
    }

    /// Reads lines, with `distance` complex numbers between those of a line or between lines, and
    /// runs the first pass. If `swapped`, real and imaginary parts are exchanged before.
    pub(crate) fn first(
        &self,
        src: &[T],
        distance: usize,
        y: &mut [Pair<S, T>],
        swapped: bool,
        groups: usize,
        ahead: Option<Ahead>,
    ) {
        self.prefetch(0, ahead);
        let (stage, kernels) = &self.all[0];
        let kernel = match self.layout {
            LaneLayout::Columns => kernels.from_columns,
            LaneLayout::Rows => kernels.from_rows,
            LaneLayout::Pairs => kernels.from_pairs,
        };
        kernel[usize::from(swapped)](First { simd: self.simd, stage, src, distance, y, groups });
    }

    /// Runs passes in place, of as many groups of lines as there are numbers of.
    pub(crate) fn between(&self, stages: Range<usize>, x: &mut [Pair<S, T>], ahead: Option<Ahead>) {
        for number in stages {
            self.prefetch(number, ahead);
            let (stage, kernels) = &self.all[number];
            if stage.radix > 1 {
                let kernel = if stage.m == 1 { kernels.last } else { kernels.middle };
                kernel(self.simd, stage, x);
            }
        }
    }

    /// Runs the last pass and writes lines. If `swapped`, real and imaginary parts are exchanged
    /// after.
    pub(crate) fn last(
        &self,
        x: &[Pair<S, T>],
        dst: &mut [T],
        distance: usize,
        swapped: bool,
        groups: usize,
        ahead: Option<Ahead>,
    ) {
        self.prefetch(self.len() - 1, ahead);
        let (stage, kernels) = &self.all[self.len() - 1];
        let kernel = match self.layout {
            LaneLayout::Columns => kernels.to_columns,
            LaneLayout::Rows => kernels.to_rows,
            LaneLayout::Pairs => kernels.to_pairs,
        };
        kernel[usize::from(swapped)](Last { simd: self.simd, stage, x, dst, distance, groups });
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
