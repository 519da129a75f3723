//! Twiddle factors, multiplied while lines are in cache.
//!
//! Exponents grow by equal steps along a line. The line is therefore multiplied in groups: the
//! first factor of a group is looked up, and the others are its products with powers that all
//! groups share. Two tables of about √n roots suffice; one of all factors would be as long as the
//! data.

use std::sync::Arc;

use fft_lines::ManyRoots;
use num_complex::Complex;

use crate::base::Real;
use crate::host::cpu::line_fft::LinePlanner;
use crate::problem::Direction;
use crate::recipe::{Pass, twiddles::Indices};

/// Elements of a group, which need one lookup.
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

impl LineTwiddles {
    /// The factors before a pass's transforms, and after them.
    pub(crate) fn of<T: Real>(pass: &Pass, planner: &mut LinePlanner<T>) -> [Option<Self>; 2] {
        let twiddles = pass.twiddles.as_ref().map(|twiddles| Self {
            roots: planner.roots(twiddles.order),
            order: twiddles.order,
            direction: pass.direction,
            columns: pass.inner.max(1),
            outside: twiddles.outside.clone(),
            inside: twiddles.inside.clone(),
        });
        match pass.direction {
            Direction::Forward => [twiddles, None],
            Direction::Inverse => [None, twiddles],
        }
    }

    /// Multiplies contiguous lines of `n` points, the first of which has this number.
    pub(crate) fn multiply_lines<T: Real>(&self, first: usize, n: usize, lines: &mut [T]) {
        let lines: &mut [Complex<T>] = bytemuck::cast_slice_mut(lines);
        for (number, line) in lines.chunks_exact_mut(n).enumerate() {
            let line_number = first + number;
            let (outside, column) = (line_number / self.columns, line_number % self.columns);
            let step = weighed(&self.outside, outside) + weighed(&self.inside, column);
            self.multiply_line(line, step);
        }
    }

    /// Multiplies adjacent lines in a tile with rows of `pitch` real numbers: `count` lines of this
    /// array from a column on.
    pub(crate) fn multiply_columns<T: Real>(
        &self,
        [array, column]: [usize; 2],
        count: usize,
        tile: &mut [T],
        pitch: usize,
    ) {
        let outside = weighed(&self.outside, array);
        for first in (0..count).step_by(TOGETHER) {
            let steps: [usize; TOGETHER] = std::array::from_fn(|c| {
                let column = column + first + c;
                if first + c < count { outside + weighed(&self.inside, column) } else { 0 }
            });
            let mut powers = [[Complex::new(T::of(1.0), T::of(0.0)); TOGETHER]; TOGETHER];
            for (c, step) in steps.iter().enumerate() {
                let of_column: [Complex<T>; TOGETHER] = self.powers(*step);
                for (row, power) in powers.iter_mut().zip(of_column) {
                    row[c] = power;
                }
            }
            let strides = steps.map(|step| self.reduced(step as u128 * TOGETHER as u128));
            let mut exponents = [0; TOGETHER];
            for rows in tile.chunks_mut(TOGETHER * pitch) {
                let bases = exponents.map(|exponent| self.root::<T>(exponent));
                for (row, powers) in rows.chunks_mut(pitch).zip(&powers) {
                    let row: &mut [Complex<T>] = bytemuck::cast_slice_mut(row);
                    let end = row.len().min(count);
                    let factors = bases.iter().zip(powers);
                    for (element, (base, power)) in row[first.min(end)..end].iter_mut().zip(factors)
                    {
                        *element = *element * (base * power);
                    }
                }
                for (exponent, stride) in exponents.iter_mut().zip(strides) {
                    *exponent = self.sum(*exponent, stride);
                }
            }
        }
    }

    fn reduced(&self, exponent: u128) -> usize {
        match usize::try_from(exponent) {
            Ok(exponent) => exponent % self.order,
            Err(_) => (exponent % self.order as u128) as usize,
        }
    }

    /// The sum of two exponents below the order.
    fn sum(&self, a: usize, b: usize) -> usize {
        let sum = a + b;
        if sum >= self.order { sum - self.order } else { sum }
    }

    /// The first powers of the root with an exponent. Each is a product of few roots.
    fn powers<T: Real>(&self, step: usize) -> [Complex<T>; TOGETHER] {
        let mut powers = [Complex::new(T::of(1.0), T::of(0.0)); TOGETHER];
        let mut exponent = self.reduced(step as u128);
        for bit in [1, 2, 4, 8] {
            powers[bit] = self.root(exponent);
            for below in 1..bit {
                powers[bit + below] = powers[bit] * powers[below];
            }
            exponent = self.sum(exponent, exponent);
        }
        powers
    }

    fn root<T: Real>(&self, exponent: usize) -> Complex<T> {
        let [re, im] = self.roots.get(exponent);
        Complex::new(T::of(re), T::of(self.direction.choose(im, -im)))
    }

    /// Multiplies a line whose exponents grow by equal steps from 0.
    fn multiply_line<T: Real>(&self, line: &mut [Complex<T>], step: usize) {
        if step == 0 {
            return;
        }
        let (powers, mut exponent) = (self.powers::<T>(step), 0);
        let stride = self.reduced(step as u128 * TOGETHER as u128);
        for elements in line.chunks_mut(TOGETHER) {
            let base = self.root::<T>(exponent);
            for (element, power) in elements.iter_mut().zip(&powers) {
                *element = *element * (base * power);
            }
            exponent = self.sum(exponent, stride);
        }
    }
}

/// The sum of the weighted indices of an element of nested loops.
fn weighed(loops: &[Indices], mut number: usize) -> usize {
    let mut sum = 0;
    for along in loops.iter().rev() {
        sum += along.weighed(number % along.len);
        number /= along.len;
    }
    sum
}
