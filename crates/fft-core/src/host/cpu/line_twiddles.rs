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
    /// Points of a line, and the distance between them.
    n: usize,
    inner: usize,
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
            n: pass.n,
            inner: pass.inner,
            outside: twiddles.outside.clone(),
            inside: twiddles.inside.clone(),
        })
    }

    /// Whether lines are multiplied before they are transformed.
    pub(crate) fn come_first(&self) -> bool {
        self.direction == Direction::Forward
    }

    /// Multiplies lines with the same indices outside, from number `first` on: those of `src` into
    /// `dst`, or those of `dst` in place.
    pub(crate) fn multiply<T: Real>(&self, first: usize, src: Option<&[T]>, dst: &mut [T]) {
        let src: Option<&[Complex<T>]> = src.map(bytemuck::cast_slice);
        let dst: &mut [Complex<T>] = bytemuck::cast_slice_mut(dst);
        let (last, slower) = match self.inside.split_last() {
            Some((last, slower)) => (*last, slower),
            None => (Indices { first: 0, len: 1, weight: 0 }, &[][..]),
        };
        // A run is a line, or a row of adjacent lines.
        let (run, runs_in_row) = match self.inner {
            1 => (self.n, 1),
            inner => (last.len, inner / last.len.max(1)),
        };
        for (number, to) in dst.chunks_exact_mut(run.max(1)).enumerate() {
            if let Some(src) = src {
                to.copy_from_slice(&src[number * run..][..run]);
            }
            let exponents = if self.inner == 1 {
                Exponents { first: 0, step: self.weighed(&self.outside, first + number) }
            } else {
                let (row, in_row) = (number / runs_in_row, number % runs_in_row);
                let (outside, point) = (first + row / self.n, row % self.n);
                let slow = self.weighed(&self.outside, outside) + self.weighed(slower, in_row);
                let start = slow + last.first * last.weight;
                let times = |of: usize| self.reduced(point as u128 * of as u128);
                Exponents { first: times(start), step: times(last.weight) }
            };
            self.multiply_run(to, exponents);
        }
    }

    /// The sum of the weighted indices of an element of nested loops.
    fn weighed(&self, loops: &[Indices], mut number: usize) -> usize {
        let mut sum = 0;
        for along in loops.iter().rev() {
            sum += (along.first + number % along.len) * along.weight;
            number /= along.len;
        }
        sum
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
        let power = |j: usize| self.root::<T>(self.reduced(step as u128 * j as u128));
        let powers: [Complex<T>; TOGETHER] = std::array::from_fn(power);
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
