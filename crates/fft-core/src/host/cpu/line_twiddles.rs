//! Twiddle factors, multiplied while lines are in cache.
//!
//! The exponents along a run of adjacent elements grow by equal steps, so that the factors of a few
//! elements are those of the first one times powers that are the same along the run. Tables have
//! about the square root of the number of points; a table of all factors would be as long as the
//! data.

use std::sync::Arc;

use fft_lines::ManyRoots;
use num_complex::Complex;

use crate::base::Real;
use crate::host::cpu::line_fft::LinePlanner;
use crate::problem::Direction;
use crate::recipe::{Pass, twiddles::Indices};

/// Elements whose factors are computed from that of the first one.
const TOGETHER: usize = 16;

/// The factors of a pass's lines.
pub(crate) struct LineTwiddles {
    roots: Arc<ManyRoots>,
    order: usize,
    direction: Direction,
    /// Adjacent lines.
    columns: usize,
    outside: Vec<Indices>,
    inside: Vec<Indices>,
}

/// The exponents of a run of adjacent elements.
struct Exponents {
    first: usize,
    step: usize,
}

impl LineTwiddles {
    pub(crate) fn of<T: Real>(pass: &Pass, planner: &mut LinePlanner<T>) -> Option<Self> {
        let twiddles = pass.twiddles.as_ref()?;
        Some(Self {
            roots: planner.roots(twiddles.order),
            order: twiddles.order,
            direction: pass.direction,
            columns: pass.inner.max(1),
            outside: twiddles.outside.clone(),
            inside: twiddles.inside.clone(),
        })
    }

    /// Whether lines are multiplied before they are transformed.
    pub(crate) fn come_first(&self) -> bool {
        self.direction == Direction::Forward
    }

    /// Multiplies contiguous lines of `n` points, the first of which has this number.
    pub(crate) fn multiply_lines<T: Real>(&self, first: usize, n: usize, lines: &mut [T]) {
        let lines: &mut [Complex<T>] = bytemuck::cast_slice_mut(lines);
        for (number, line) in lines.chunks_exact_mut(n).enumerate() {
            let line_number = first + number;
            let (outside, column) = (line_number / self.columns, line_number % self.columns);
            let step = weighed(&self.outside, outside) + weighed(&self.inside, column);
            self.multiply_run(line, Exponents { first: 0, step });
        }
    }

    /// Multiplies the points of this number in adjacent lines, from a column on.
    pub(crate) fn multiply_row<T: Real>(
        &self,
        outside: usize,
        column: usize,
        point: usize,
        row: &mut [T],
    ) {
        let mut rest: &mut [Complex<T>] = bytemuck::cast_slice_mut(row);
        let Some(last) = self.inside.last() else { return };
        let outside = weighed(&self.outside, outside);
        let mut column = column;
        // Exponents grow by equal steps along the last axis.
        while !rest.is_empty() {
            let len = rest.len().min(last.len - column % last.len);
            let (run, others) = rest.split_at_mut(len);
            let first = outside + weighed(&self.inside, column);
            let times = |of: usize| self.reduced(point as u128 * of as u128);
            self.multiply_run(run, Exponents { first: times(first), step: times(last.weight) });
            (rest, column) = (others, column + len);
        }
    }

    fn reduced(&self, exponent: u128) -> usize {
        (exponent % self.order as u128) as usize
    }

    fn root<T: Real>(&self, exponent: usize) -> Complex<T> {
        let [re, im] = self.roots.get(exponent);
        Complex::new(T::of(re), T::of(self.direction.choose(im, -im)))
    }

    fn multiply_run<T: Real>(&self, run: &mut [Complex<T>], exponents: Exponents) {
        let Exponents { mut first, step } = exponents;
        if first == 0 && step == 0 {
            return;
        }
        let mut powers = [Complex::new(T::of(1.0), T::of(0.0)); TOGETHER];
        for bit in [1, 2, 4, 8] {
            powers[bit] = self.root(self.reduced(step as u128 * bit as u128));
            for below in 1..bit {
                powers[bit + below] = powers[bit] * powers[below];
            }
        }
        let stride = self.reduced(step as u128 * TOGETHER as u128);
        for elements in run.chunks_mut(TOGETHER) {
            let base = self.root::<T>(first);
            for (element, power) in elements.iter_mut().zip(&powers) {
                *element = *element * (base * power);
            }
            first += stride;
            if first >= self.order {
                first -= self.order;
            }
        }
    }
}

/// The sum of the weighted indices of an element of nested loops.
fn weighed(loops: &[Indices], mut number: usize) -> usize {
    let mut sum = 0;
    for along in loops.iter().rev() {
        sum += (along.first + number % along.len) * along.weight;
        number /= along.len;
    }
    sum
}
