//! Tridiagonal systems of all modes, by elimination in lanes: vectors hold the same row of
//! neighbouring modes.
//!
//! The row of a system is
//!
//! ```text
//! (shift + excess[j]) x[j] + lower[j] (x[j] − x[j−1]) + upper[j] (x[j] − x[j+1])
//! ```
//!
//! where the shift is the square of the wave vector, and more. Written like this, elimination adds
//! and divides numbers of one sign, so that no digits cancel, and a pivot is 0 only if the system
//! is singular:
//!
//! ```text
//! f[j] = shift + excess[j] + lower[j] f[j−1]/p[j−1]        p[j] = f[j] + upper[j]
//! ```
//!
//! In a periodic system the last point is a second right-hand side of the others. Its solution is
//! 1 − q, where q solves them with `shift + excess` on the right.

use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError};

use super::apply::Arrays;
use super::modes::AxisModes;
use super::operator::Operator;
use super::tridiagonal::Tridiagonal;
use crate::base::Real;

/// Systems that are solved side by side.
const LANES: usize = 8;

type Lane = [f64; LANES];

/// What an operator does along the axis of tridiagonal systems.
#[derive(Clone, Copy, Debug)]
pub enum SystemTask {
    /// The second derivative along all axes.
    Laplacian,
    /// Minus the second derivative and a shift, inverted.
    Solve(f64),
}

impl SystemTask {
    /// The task of an operator, if it has to do with second derivatives.
    pub fn of(operator: Operator) -> Option<Self> {
        match operator {
            Operator::Laplacian => Some(Self::Laplacian),
            Operator::Poisson => Some(Self::Solve(0.0)),
            Operator::Helmholtz(shift) => Some(Self::Solve(shift)),
            _ => None,
        }
    }
}

/// The tridiagonal systems of a rank's modes: one for each mode of the other axes.
pub struct Systems {
    scheme: Tridiagonal,
    outer: Vec<f64>,
    inner: Vec<f64>,
    /// Reserved once, because operators allocate nothing.
    room: Mutex<Vec<Lane>>,
}

impl Systems {
    /// The systems along the axis at this place in memory.
    pub(super) fn new(scheme: Tridiagonal, axes: &[AxisModes], place: usize) -> Self {
        let (outer, inner) = (squares(&axes[..place]), squares(&axes[place + 1..]));
        let room = Mutex::new(vec![[0.0; LANES]; 4 * scheme.len()]);
        Self { scheme, outer, inner, room }
    }

    pub(super) fn into_scheme(self) -> Tridiagonal {
        self.scheme
    }

    /// The coefficients along the axis.
    pub fn scheme(&self) -> &Tridiagonal {
        &self.scheme
    }

    /// Squares of wave vectors along the axes that are slower in memory than the tridiagonal axis.
    pub fn outer(&self) -> &[f64] {
        &self.outer
    }

    /// Squares of wave vectors along the axes that are faster in memory.
    pub fn inner(&self) -> &[f64] {
        &self.inner
    }

    /// Whether the first of several points follows the last.
    pub fn are_periodic(&self) -> bool {
        self.scheme.is_periodic() && self.scheme.len() > 1
    }

    /// Works on each mode of one component of `width` numbers a point.
    pub(super) fn run<T: Real>(&self, task: SystemTask, width: usize, arrays: &mut impl Arrays<T>) {
        let mut room = self.room.lock().unwrap_or_else(PoisonError::into_inner);
        let arch = pulp::Arch::new();
        let (systems, room, reals) = (self, &mut room[..], PhantomData);
        match width {
            1 => arch.dispatch(Run::<_, _, 1> { systems, task, arrays, room, reals }),
            _ => arch.dispatch(Run::<_, _, 2> { systems, task, arrays, room, reals }),
        }
    }
}

/// The sums of squares of wavenumbers along some axes, in the order of memory.
fn squares(axes: &[AxisModes]) -> Vec<f64> {
    axes.iter().fold(vec![0.0], |sums, axis| {
        let with = |sum: &f64| axis.k.iter().map(move |k| sum + k * k).collect::<Vec<_>>();
        sums.iter().flat_map(with).collect()
    })
}

/// One call, compiled for the vectors of the processor. Points have `W` numbers.
struct Run<'a, T, A, const W: usize> {
    systems: &'a Systems,
    task: SystemTask,
    arrays: &'a mut A,
    room: &'a mut [Lane],
    reals: PhantomData<T>,
}

impl<T: Real, A: Arrays<T>, const W: usize> pulp::NullaryFnOnce for Run<'_, T, A, W> {
    type Output = ();

    #[inline(always)]
    fn call(mut self) {
        self.all();
    }
}

/// A set of lanes: where their first points are, and what their modes add to the diagonal.
struct Lanes {
    count: usize,
    first: [usize; LANES],
    /// Points from a row to the next.
    stride: usize,
    /// Whether the lanes are adjacent in memory.
    adjacent: bool,
    shift: Lane,
}

impl<T: Real, A: Arrays<T>, const W: usize> Run<'_, T, A, W> {
    #[inline(always)]
    fn all(&mut self) {
        let Systems { outer, inner, .. } = self.systems;
        let total = outer.len() * inner.len();
        let adjacent = inner.len() >= LANES;
        let mut start = 0;
        while start < total {
            let rest = if adjacent { inner.len() - start % inner.len() } else { total - start };
            let count = rest.min(LANES);
            let lanes = self.lanes(start, count, adjacent);
            self.load(&lanes);
            match self.task {
                SystemTask::Laplacian => self.differentiate(&lanes.shift),
                SystemTask::Solve(_) => self.solve(&lanes),
            }
            self.store(&lanes);
            start += count;
        }
    }

    #[inline(always)]
    fn lanes(&self, start: usize, count: usize, adjacent: bool) -> Lanes {
        let Systems { scheme, outer, inner, .. } = self.systems;
        let stride = inner.len();
        let more = if let SystemTask::Solve(shift) = self.task { shift } else { 0.0 };
        // Lanes without a mode have a system that can be solved.
        let (mut first, mut shift) = ([0; LANES], [1.0; LANES]);
        for lane in 0..count {
            let (o, i) = ((start + lane) / stride, (start + lane) % stride);
            first[lane] = o * scheme.len() * stride + i;
            shift[lane] = outer[o] + inner[i] + more;
        }
        Lanes { count, first, stride, adjacent, shift }
    }

    /// Splits the room: values by row and part; then upper elements, and the periodic column.
    #[inline(always)]
    fn room(&mut self) -> (&mut [[Lane; W]], &mut [Lane], &mut [Lane]) {
        let n = self.systems.scheme.len();
        let (values, rest) = self.room.split_at_mut(W * n);
        let (upper, rest) = rest.split_at_mut(n);
        (values.as_chunks_mut().0, upper, &mut rest[..n])
    }

    /// Numbers from the first of a lane to its last.
    fn span(&self, lanes: &Lanes) -> usize {
        ((self.systems.scheme.len() - 1) * lanes.stride + 1) * W
    }

    #[inline(always)]
    fn load(&mut self, lanes: &Lanes) {
        let (n, span) = (self.systems.scheme.len(), self.span(lanes));
        let (values, _) = self.room[..W * n].as_chunks_mut::<W>();
        if lanes.adjacent && lanes.count == LANES {
            for (j, row) in values.iter_mut().enumerate() {
                let found = self.arrays.read((lanes.first[0] + j * lanes.stride) * W, LANES * W);
                for (lane, point) in found.chunks_exact(W).enumerate().take(LANES) {
                    for part in 0..W {
                        row[part][lane] = point[part].as_f64();
                    }
                }
            }
            return;
        }
        for lane in 0..lanes.count {
            let line = self.arrays.read(lanes.first[lane] * W, span);
            for (row, point) in values.iter_mut().zip(line.chunks(lanes.stride * W)) {
                for part in 0..W {
                    row[part][lane] = point[part].as_f64();
                }
            }
        }
    }

    #[inline(always)]
    fn store(&mut self, lanes: &Lanes) {
        let (n, span) = (self.systems.scheme.len(), self.span(lanes));
        let (values, _) = self.room[..W * n].as_chunks::<W>();
        if lanes.adjacent && lanes.count == LANES {
            for (j, row) in values.iter().enumerate() {
                let at = (lanes.first[0] + j * lanes.stride) * W;
                let place = self.arrays.write(at, LANES * W).chunks_exact_mut(W);
                for (lane, point) in place.enumerate().take(LANES) {
                    for part in 0..W {
                        point[part] = T::of(row[part][lane]);
                    }
                }
            }
            return;
        }
        for lane in 0..lanes.count {
            let line = self.arrays.write(lanes.first[lane] * W, span);
            for (row, point) in values.iter().zip(line.chunks_mut(lanes.stride * W)) {
                for part in 0..W {
                    point[part] = T::of(row[part][lane]);
                }
            }
        }
    }

    #[inline(always)]
    fn differentiate(&mut self, shift: &Lane) {
        let scheme = &self.systems.scheme;
        let (values, ..) = self.room();
        let n = values.len();
        let (head, mut before) = (values[0], values[n - 1]);
        for j in 0..n {
            let here = values[j];
            let after = if j + 1 < n { values[j + 1] } else { head };
            for part in 0..W {
                for lane in 0..LANES {
                    let x = here[part][lane];
                    let below = scheme.lower[j] * (before[part][lane] - x);
                    let above = scheme.upper[j] * (after[part][lane] - x);
                    values[j][part][lane] = below + above - (scheme.excess[j] + shift[lane]) * x;
                }
            }
            before = here;
        }
    }

    #[inline(always)]
    fn solve(&mut self, lanes: &Lanes) {
        let singular = self.systems.scheme.is_singular() && lanes.shift.contains(&0.0);
        if singular {
            self.subtract_means(&lanes.shift);
        }
        match self.systems.are_periodic() {
            true => self.solve_periodic(&lanes.shift),
            false => self.eliminate::<false>(&lanes.shift, self.systems.scheme.len()),
        }
        if singular {
            self.subtract_means(&lanes.shift);
        }
    }

    /// Subtracts weighted means in the lanes without a shift.
    #[inline(never)]
    fn subtract_means(&mut self, shift: &Lane) {
        let weights = &self.systems.scheme.weights;
        let (values, ..) = self.room();
        for lane in (0..LANES).filter(|lane| shift[*lane] == 0.0) {
            for part in 0..W {
                let terms =
                    values.iter().zip(weights).map(|(row, weight)| row[part][lane] * weight);
                let mean: f64 = terms.sum();
                values.iter_mut().for_each(|row| row[part][lane] -= mean);
            }
        }
    }

    /// Solves the first `n` rows; `PERIODIC` those of a periodic system but the last, also with the
    /// column q.
    #[inline(always)]
    fn eliminate<const PERIODIC: bool>(&mut self, shift: &Lane, n: usize) {
        let scheme = &self.systems.scheme;
        let (values, upper, column) = self.room();
        let (mut ratio, mut before, mut q) = ([0.0; LANES], [[0.0; LANES]; W], [0.0; LANES]);
        for j in 0..n {
            let mut excess = scheme.excess[j];
            let (mut a, mut c) = (scheme.lower[j], scheme.upper[j]);
            if j == 0 {
                // Out of the rows, to the last point.
                excess += if PERIODIC { a } else { 0.0 };
                a = 0.0;
            }
            if j + 1 == n {
                excess += if PERIODIC { c } else { 0.0 };
                c = 0.0;
            }
            let mut inverse = [0.0; LANES];
            for lane in 0..LANES {
                let f = shift[lane] + excess + a * ratio[lane];
                let pivot = f + c;
                inverse[lane] = if pivot == 0.0 { 0.0 } else { 1.0 / pivot };
                ratio[lane] = f * inverse[lane];
                upper[j][lane] = c * inverse[lane];
            }
            for part in 0..W {
                for lane in 0..LANES {
                    let right = values[j][part][lane] + a * before[part][lane];
                    before[part][lane] = right * inverse[lane];
                }
            }
            values[j] = before;
            if PERIODIC {
                for lane in 0..LANES {
                    let right = shift[lane] + scheme.excess[j] + a * q[lane];
                    q[lane] = right * inverse[lane];
                }
                column[j] = q;
            }
        }
        for j in (0..n.saturating_sub(1)).rev() {
            for part in 0..W {
                for lane in 0..LANES {
                    before[part][lane] =
                        values[j][part][lane] + upper[j][lane] * before[part][lane];
                }
            }
            values[j] = before;
            if PERIODIC {
                for lane in 0..LANES {
                    q[lane] = column[j][lane] + upper[j][lane] * q[lane];
                }
                column[j] = q;
            }
        }
    }

    #[inline(always)]
    fn solve_periodic(&mut self, shift: &Lane) {
        let scheme = &self.systems.scheme;
        let last = scheme.len() - 1;
        self.eliminate::<true>(shift, last);
        let (a, c) = (scheme.lower[last], scheme.upper[last]);
        let (values, _, column) = self.room();
        let mut inverse = [0.0; LANES];
        for lane in 0..LANES {
            let ends = a * column[last - 1][lane] + c * column[0][lane];
            let pivot = shift[lane] + scheme.excess[last] + ends;
            inverse[lane] = if pivot == 0.0 { 0.0 } else { 1.0 / pivot };
        }
        let (first, below) = (values[0], values[last - 1]);
        let mut end = values[last];
        for part in 0..W {
            for lane in 0..LANES {
                let right = end[part][lane] + a * below[part][lane] + c * first[part][lane];
                end[part][lane] = right * inverse[lane];
            }
        }
        values[last] = end;
        for (row, q) in values[..last].iter_mut().zip(column) {
            for part in 0..W {
                for lane in 0..LANES {
                    row[part][lane] += (1.0 - q[lane]) * end[part][lane];
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
