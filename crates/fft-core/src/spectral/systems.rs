//! Tridiagonal systems of all modes: vectors hold the same row of neighbouring modes.
//!
//! To the excess of a row of the scheme each mode adds its shift, which is the square of the wave
//! vector, and more. Ranks that divide the axis reduce their rows first, to two for each mode.

mod divided;
mod elimination;

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use super::apply::Arrays;
use super::modes::AxisModes;
use super::operator::Operator;
use super::tridiagonal::Tridiagonal;
use crate::base::{Error, Real, locked};

pub use divided::{BindCopy, DividedAxis};
use elimination::{EndRows, LANES, Lane, Room, Row, Rows};

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

    fn shift(self) -> f64 {
        if let Self::Solve(shift) = self { shift } else { 0.0 }
    }
}

/// The tridiagonal systems of a rank's modes: one for each mode of the other axes.
pub struct Systems {
    scheme: Tridiagonal,
    /// The rows of this rank.
    range: Range<usize>,
    outer: Vec<f64>,
    inner: Vec<f64>,
    /// Reserved once, because operators allocate nothing.
    room: Mutex<Vec<Lane>>,
    divided: Option<Arc<Mutex<DividedAxis>>>,
}

impl Systems {
    /// The systems along the axis at this place in memory, which other ranks may have parts of.
    pub(super) fn new(
        scheme: Tridiagonal,
        axes: &[AxisModes],
        place: usize,
        divided: Option<&Arc<Mutex<DividedAxis>>>,
    ) -> Self {
        let (outer, inner) = (squares(&axes[..place]), squares(&axes[place + 1..]));
        let (mut range, mut most) = (0..scheme.len(), scheme.len());
        if let Some(divided) = divided {
            let divided = locked(divided);
            range = divided.range();
            most = range.len().max(divided.reduced_rows());
        }
        let room = Mutex::new(vec![[0.0; LANES]; Room::<2>::lanes(most)]);
        Self { scheme, range, outer, inner, room, divided: divided.cloned() }
    }

    pub(super) fn into_scheme(self) -> Tridiagonal {
        self.scheme
    }

    /// A number that differs, in all likelihood, for other coefficients.
    pub(super) fn checksum(&self) -> u32 {
        let Tridiagonal { lower, upper, excess, .. } = &self.scheme;
        let numbers = [lower, upper, excess].into_iter().flatten();
        // FNV-1a, by whole numbers instead of bytes.
        let hash = numbers.fold(0xcbf2_9ce4_8422_2325_u64, |hash, number| {
            (hash ^ number.to_bits()).wrapping_mul(0x0100_0000_01b3)
        });
        (hash ^ (hash >> 32)) as u32
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

    /// Works on each mode of one component of `width` numbers a point. Collective if the axis is
    /// divided.
    pub(super) fn run<T: Real>(
        &self,
        task: SystemTask,
        width: usize,
        arrays: &mut impl Arrays<T>,
    ) -> Result<(), Error> {
        let Some(divided) = &self.divided else {
            self.pass(task, width, arrays, Pass::Whole);
            return Ok(());
        };
        let mut divided = locked(divided);
        let divided = &mut *divided;
        if let SystemTask::Laplacian = task {
            self.pass(task, width, arrays, Pass::Ends(divided));
            divided.send_to_neighbours()?;
            self.pass(task, width, arrays, Pass::Differentiate(divided));
            return Ok(());
        }
        let singular = self.scheme.is_singular() && task.shift() == 0.0 && divided.has_means();
        divided.clear_means();
        if singular {
            self.pass(task, width, arrays, Pass::Sum(divided));
            divided.add_sums()?;
        }
        self.pass(task, width, arrays, Pass::Reduce(divided));
        divided.send_to_owners()?;
        self.solve_reduced(width, divided);
        divided.send_from_owners()?;
        self.pass(task, width, arrays, Pass::Substitute(divided));
        if singular {
            divided.add_sums()?;
            self.pass(task, width, arrays, Pass::SubtractMeans(divided));
        }
        Ok(())
    }

    /// Points from the first of a lane to its last, and one.
    fn span(&self, lanes: &Lanes) -> usize {
        (self.range.len() - 1) * lanes.stride + 1
    }

    fn pass<T: Real>(
        &self,
        task: SystemTask,
        width: usize,
        arrays: &mut impl Arrays<T>,
        pass: Pass<'_>,
    ) {
        let mut room = locked(&self.room);
        let arch = pulp::Arch::new();
        let (systems, room, reals) = (self, &mut room[..], PhantomData);
        match width {
            1 => arch.dispatch(Run::<_, _, 1> { systems, task, arrays, room, pass, reals }),
            _ => arch.dispatch(Run::<_, _, 2> { systems, task, arrays, room, pass, reals }),
        }
    }

    fn solve_reduced(&self, width: usize, divided: &mut DividedAxis) {
        let mut room = locked(&self.room);
        let arch = pulp::Arch::new();
        match width {
            1 => arch.dispatch(|| divided.solve::<1>(&self.scheme, &mut room)),
            _ => arch.dispatch(|| divided.solve::<2>(&self.scheme, &mut room)),
        }
    }
}

/// What is done with the lines of all modes.
enum Pass<'a> {
    /// The task, along whole lines.
    Whole,
    /// Takes the values that neighbours need.
    Ends(&'a mut DividedAxis),
    /// The Laplacian beside the values of neighbours.
    Differentiate(&'a DividedAxis),
    /// Adds up right-hand sides of singular systems.
    Sum(&'a mut DividedAxis),
    /// Makes the rows of reduced systems.
    Reduce(&'a mut DividedAxis),
    /// Solves for what is between the solutions of reduced systems.
    Substitute(&'a mut DividedAxis),
    /// Subtracts means from the solutions of singular systems.
    SubtractMeans(&'a DividedAxis),
}

/// The sums of squares of wavenumbers along some axes, in the order of memory.
fn squares(axes: &[AxisModes]) -> Vec<f64> {
    axes.iter().fold(vec![0.0], |sums, axis| {
        let with = |sum: &f64| axis.k.iter().map(move |k| sum + k * k).collect::<Vec<_>>();
        sums.iter().flat_map(with).collect()
    })
}

/// The rows of this rank, in lanes with these shifts.
struct SchemeRows<'a> {
    scheme: &'a Tridiagonal,
    first: usize,
    shift: Lane,
}

impl Rows for SchemeRows<'_> {
    #[inline(always)]
    fn row(&self, j: usize) -> Row {
        let (scheme, j) = (self.scheme, self.first + j);
        Row {
            excess: self.shift.map(|shift| shift + scheme.excess[j]),
            lower: [scheme.lower[j]; LANES],
            upper: [scheme.upper[j]; LANES],
        }
    }
}

/// One pass, compiled for the vectors of the processor. Points have `W` numbers.
struct Run<'a, 'b, T, A, const W: usize> {
    systems: &'a Systems,
    task: SystemTask,
    arrays: &'a mut A,
    room: &'a mut [Lane],
    pass: Pass<'b>,
    reals: PhantomData<T>,
}

impl<T: Real, A: Arrays<T>, const W: usize> pulp::NullaryFnOnce for Run<'_, '_, T, A, W> {
    type Output = ();

    #[inline(always)]
    fn call(mut self) {
        self.all();
    }
}

/// A set of lanes: where their first points are, and what their modes add to the diagonal.
struct Lanes {
    /// The mode of the first lane.
    start: usize,
    count: usize,
    first: [usize; LANES],
    /// Points from a row to the next.
    stride: usize,
    /// Whether the lanes are adjacent in memory.
    adjacent: bool,
    shift: Lane,
}

impl<T: Real, A: Arrays<T>, const W: usize> Run<'_, '_, T, A, W> {
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
            self.set(&lanes);
            start += count;
        }
    }

    /// Does the pass in a set of lanes.
    #[inline(always)]
    fn set(&mut self, lanes: &Lanes) {
        let Systems { scheme, range, .. } = self.systems;
        let n = range.len();
        let (weights, periodic) = (&scheme.weights[range.clone()], self.systems.are_periodic());
        let rows = SchemeRows { scheme, first: range.start, shift: lanes.shift };
        let is_of_means = matches!(self.pass, Pass::Sum(_) | Pass::SubtractMeans(_));
        if is_of_means && !lanes.shift.contains(&0.0) {
            return;
        }
        if let Pass::SubtractMeans(divided) = &self.pass {
            divided.each_mean(lanes, |lane, means: [f64; W]| {
                let span = self.systems.span(lanes) * W;
                let line = self.arrays.write(lanes.first[lane] * W, span);
                for point in line.chunks_mut(lanes.stride * W) {
                    for component in 0..W {
                        point[component] = T::of(point[component].as_f64() - means[component]);
                    }
                }
            });
            return;
        }
        let step = if let Pass::Ends(_) = self.pass { (n - 1).max(1) } else { 1 };
        self.load(lanes, step);
        let mut room = Room::<W>::new(self.room, n);
        let values = &mut room.values;
        match &mut self.pass {
            Pass::Whole => match self.task {
                SystemTask::Laplacian => {
                    let beyond = [values[n - 1], values[0]];
                    differentiate(&rows, values, beyond);
                }
                SystemTask::Solve(_) => {
                    let singular = scheme.is_singular() && lanes.shift.contains(&0.0);
                    if singular {
                        subtract_means(values, weights, &lanes.shift);
                    }
                    room.solve(&rows, periodic);
                    if singular {
                        subtract_means(room.values, weights, &lanes.shift);
                    }
                }
            },
            Pass::Ends(divided) => return divided.put_ends(lanes, [values[0], values[n - 1]]),
            Pass::Differentiate(divided) => {
                differentiate(&rows, values, divided.beyond(lanes));
            }
            Pass::Sum(divided) => return divided.sum(lanes, values, weights),
            Pass::Reduce(divided) => {
                divided.subtract_means(lanes, values);
                return divided.put_rows(lanes, &EndRows::new(&rows, values));
            }
            Pass::Substitute(divided) => {
                divided.subtract_means(lanes, values);
                [values[0], values[n - 1]] = divided.ends(lanes);
                room.solve_between(&rows);
                divided.sum(lanes, room.values, weights);
            }
            Pass::SubtractMeans(_) => {}
        }
        self.store(lanes);
    }

    #[inline(always)]
    fn lanes(&self, start: usize, count: usize, adjacent: bool) -> Lanes {
        let Systems { range, outer, inner, .. } = self.systems;
        let stride = inner.len();
        let more = self.task.shift();
        // Lanes without a mode have a system that can be solved.
        let (mut first, mut shift) = ([0; LANES], [1.0; LANES]);
        for lane in 0..count {
            let (o, i) = ((start + lane) / stride, (start + lane) % stride);
            first[lane] = o * range.len() * stride + i;
            shift[lane] = outer[o] + inner[i] + more;
        }
        Lanes { start, count, first, stride, adjacent, shift }
    }

    /// Loads the rows at multiples of `step`.
    #[inline(always)]
    fn load(&mut self, lanes: &Lanes, step: usize) {
        let (n, span) = (self.systems.range.len(), self.systems.span(lanes) * W);
        let (values, _) = self.room[..W * n].as_chunks_mut::<W>();
        if lanes.adjacent && lanes.count == LANES {
            for (j, row) in values.iter_mut().enumerate().step_by(step) {
                let found = self.arrays.read((lanes.first[0] + j * lanes.stride) * W, LANES * W);
                for (lane, point) in found.chunks_exact(W).enumerate().take(LANES) {
                    for component in 0..W {
                        row[component][lane] = point[component].as_f64();
                    }
                }
            }
            return;
        }
        for lane in 0..lanes.count {
            let line = self.arrays.read(lanes.first[lane] * W, span);
            let points = line.chunks(lanes.stride * W);
            for (row, point) in values.iter_mut().zip(points).step_by(step) {
                for component in 0..W {
                    row[component][lane] = point[component].as_f64();
                }
            }
        }
    }

    #[inline(always)]
    fn store(&mut self, lanes: &Lanes) {
        let (n, span) = (self.systems.range.len(), self.systems.span(lanes) * W);
        let (values, _) = self.room[..W * n].as_chunks::<W>();
        if lanes.adjacent && lanes.count == LANES {
            for (j, row) in values.iter().enumerate() {
                let at = (lanes.first[0] + j * lanes.stride) * W;
                let place = self.arrays.write(at, LANES * W).chunks_exact_mut(W);
                for (lane, point) in place.enumerate().take(LANES) {
                    for component in 0..W {
                        point[component] = T::of(row[component][lane]);
                    }
                }
            }
            return;
        }
        for lane in 0..lanes.count {
            let line = self.arrays.write(lanes.first[lane] * W, span);
            for (row, point) in values.iter().zip(line.chunks_mut(lanes.stride * W)) {
                for component in 0..W {
                    point[component] = T::of(row[component][lane]);
                }
            }
        }
    }
}

/// Minus the rows times the values, which follow and precede the values `beyond` them.
#[inline(always)]
fn differentiate<const W: usize>(
    rows: &impl Rows,
    values: &mut [[Lane; W]],
    [mut before, last]: [[Lane; W]; 2],
) {
    let n = values.len();
    for j in 0..n {
        let Row { excess, lower, upper } = rows.row(j);
        let here = values[j];
        let after = if j + 1 < n { values[j + 1] } else { last };
        for component in 0..W {
            for lane in 0..LANES {
                let x = here[component][lane];
                let below = lower[lane] * (before[component][lane] - x);
                let above = upper[lane] * (after[component][lane] - x);
                values[j][component][lane] = below + above - excess[lane] * x;
            }
        }
        before = here;
    }
}

/// Subtracts weighted means in the lanes without a shift.
#[inline(never)]
fn subtract_means<const W: usize>(values: &mut [[Lane; W]], weights: &[f64], shift: &Lane) {
    for lane in (0..LANES).filter(|lane| shift[*lane] == 0.0) {
        let means = weighted_sums(values, weights, lane);
        subtract(values, lane, means);
    }
}

/// Weighted sums of a lane's values, by component.
fn weighted_sums<const W: usize>(values: &[[Lane; W]], weights: &[f64], lane: usize) -> [f64; W] {
    std::array::from_fn(|component| {
        values.iter().zip(weights).map(|(row, weight)| row[component][lane] * weight).sum()
    })
}

/// Subtracts numbers from a lane's values, by component.
fn subtract<const W: usize>(values: &mut [[Lane; W]], lane: usize, numbers: [f64; W]) {
    for row in values {
        (0..W).for_each(|component| row[component][lane] -= numbers[component]);
    }
}

#[cfg(test)]
mod tests;
