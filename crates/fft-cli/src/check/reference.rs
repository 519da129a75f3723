//! An independent reference: samples of a result by the definition of the transform.
//!
//! Each rank sums the contributions of its input in `f64`, and one allreduce adds the ranks' sums.

use std::cmp::Ordering;
use std::ops::AddAssign;

use bytemuck::cast_slice;
use thriffty::planning::{
    Direction, DynBrick, DynPlan, Element, Layout, PerAxis, Problem, Real, Reduce, Transform,
};
use thriffty::{Complex, Error, Kind, Scale};

use crate::data::bricks::{for_each_row, holds, place};
use crate::data::noise::scramble;

type C = Complex<f64>;

/// Points to compare, at most.
const SAMPLES: usize = 32;

/// The relative l2 error, over the samples, of `output` as the transform of `input`. If all samples
/// are small, the error is relative to the mean of the spectrum. Collective.
pub(crate) fn error<K: Transform>(
    plan: &DynPlan,
    input: &[K::Physical],
    output: &[K::Spectral],
) -> Result<f64, Error> {
    compare(plan, Direction::Forward, input, output)
}

/// The same of `output` as the inverse transform of `input`. Collective.
pub(crate) fn inverse_error<K: Transform>(
    plan: &DynPlan,
    input: &[K::Spectral],
    output: &[K::Physical],
) -> Result<f64, Error> {
    compare(plan, Direction::Inverse, input, output)
}

/// Whether the spectrum has fewer modes than the transform.
fn is_truncated(problem: &Problem) -> bool {
    problem.modes != problem.zero_padded
}

/// Whether the inverse returns the input: with all modes, and scales that divide by the number of
/// points once.
pub(crate) fn gives_back_its_input(problem: &Problem) -> bool {
    use Scale::{Full, None, Symmetric};
    let scales = (problem.forward_scale, problem.inverse_scale);
    let is_inverse = matches!(scales, (None, Full) | (Full, None) | (Symmetric, Symmetric));
    is_inverse && !is_truncated(problem)
}

/// This rank's data before or after a transform.
struct Side<'a, E: Element> {
    layout: &'a Layout,
    brick: DynBrick,
    reals: &'a [E::Real],
}

impl<E: Element> Side<'_, E> {
    /// A point of a batch; 0 if another rank has it.
    fn at(&self, item: usize, index: PerAxis<usize>) -> C {
        let position = |axis| self.layout.position(axis, index[axis]);
        let index = PerAxis::from_fn(index.len(), position);
        if !holds(&self.brick, index) {
            return C::default();
        }
        let place = place(&self.brick, self.layout.order(), index);
        point::<E>(&self.reals[(item * self.brick.points() + place) * E::WIDTH..])
    }

    /// The larger of `least` and the largest number.
    fn largest(&self, least: f64) -> f64 {
        self.reals.iter().fold(least, |largest, x| x.as_f64().abs().max(largest))
    }

    /// The sum of squares, in this unit.
    fn squares(&self, unit: f64) -> f64 {
        // Short sums round less than one long one.
        let row = |row: &[E::Real]| row.iter().map(|x| (x.as_f64() / unit).powi(2)).sum::<f64>();
        self.reals.chunks(1024).map(row).sum()
    }
}

fn compare<A: Element, B: Element>(
    plan: &DynPlan,
    direction: Direction,
    input: &[A],
    output: &[B],
) -> Result<f64, Error> {
    let problem = plan.problem();
    let physical = (&problem.input, plan.input_brick());
    let spectral = (&problem.output, plan.output_brick());
    let (from, to) = match direction {
        Direction::Forward => (physical, spectral),
        Direction::Inverse => (spectral, physical),
    };
    let from = Side::<A> { layout: from.0, brick: from.1, reals: cast_slice(input) };
    let to = Side::<B> { layout: to.0, brick: to.1, reals: cast_slice(output) };
    let samples = samples(to.layout, problem.batch);
    let mut sums = Vec::with_capacity(4 * SAMPLES);
    for &(item, index) in &samples {
        let expected = direct(problem, direction, &from, item, index);
        let found = to.at(item, index);
        // For real data, both halves of the spectrum contribute equally.
        let im = if B::WIDTH == 2 { expected.im } else { 0.0 };
        sums.extend([expected.re, im, found.re, found.im]);
    }
    plan.comm().allreduce(Reduce::Sum, &mut sums)?;
    let (factor, truncated) = (problem.factor(direction), is_truncated(problem));
    // Squares of numbers far from 1 may be out of range.
    let input = if truncated { from.largest(0.0) * factor } else { 0.0 };
    let mut unit = [to.largest(input)];
    plan.comm().allreduce(Reduce::Max, &mut unit)?;
    let unit = match sums.iter().fold(unit[0], |largest, x| x.abs().max(largest)) {
        0.0 => 1.0,
        unit => unit,
    };
    let points = (to.reals.len() / B::WIDTH) as f64;
    let mut all = [to.squares(unit), points, from.squares(unit / factor)];
    plan.comm().allreduce(Reduce::Sum, &mut all)?;
    let mut mean = all[0] / all[1];
    if truncated {
        // Points that are left out count as well, because they take part in rounding.
        let kept = problem.kinds.iter().enumerate().filter(|(_, kind)| !kind.is_transform());
        let kept: f64 = kept.map(|(axis, _)| problem.zero_padded[axis] as f64).product();
        mean = mean.max(all[2] / kept);
    }
    let mut squares = [0.0; 2];
    for s in sums.chunks_exact(4) {
        let s: [f64; 4] = std::array::from_fn(|i| s[i] / unit);
        squares[0] += (s[0] - s[2]).powi(2) + (s[1] - s[3]).powi(2);
        squares[1] += s[0].powi(2) + s[1].powi(2);
    }
    squares[1] = squares[1].max(mean * samples.len() as f64);
    Ok(ratio(squares))
}

/// `√(a/b)`: a relative error from two sums of squares; 0 when nothing differs.
pub(crate) fn ratio([difference, whole]: [f64; 2]) -> f64 {
    if difference == 0.0 { 0.0 } else { (difference / whole).sqrt() }
}

fn samples(layout: &Layout, batch: usize) -> Vec<(usize, PerAxis<usize>)> {
    let shape = layout.grid().shape();
    let all = layout.grid().points() * batch;
    let nth = |n: usize| {
        let (mut rest, mut index) = (n, shape);
        for axis in (0..shape.len()).rev() {
            index[axis] = rest % shape[axis];
            rest /= shape[axis];
        }
        (rest, index)
    };
    if all <= SAMPLES {
        (0..all).map(nth).collect()
    } else {
        (0..SAMPLES as u64).map(|i| nth((scramble(i) % all as u64) as usize)).collect()
    }
}

/// The contribution of this rank's input to one point of the result.
fn direct<E: Element>(
    problem: &Problem,
    direction: Direction,
    input: &Side<'_, E>,
    item: usize,
    index: PerAxis<usize>,
) -> C {
    let (brick, order) = (&input.brick, input.layout.order());
    let weight_of = |axis: usize| -> Vec<C> {
        let weight = |position| {
            let point = input.layout.index(axis, position);
            along(problem, direction, axis, [point, index[axis]])
        };
        brick.range(axis).map(weight).collect()
    };
    let weights: Vec<_> = (0..order.len()).map(weight_of).collect();
    let (&fast, slow) = order.split_last().expect("at least one axis");
    let reals = &input.reals[item * brick.points() * E::WIDTH..][..brick.points() * E::WIDTH];
    let mut sum = Sum::default();
    for_each_row(brick, order, |first, at| {
        let row = &reals[at * E::WIDTH..][..brick.len(fast) * E::WIDTH];
        let outer = |w: C, &axis: &usize| w * weights[axis][first[axis] - brick.lo[axis]];
        sum += slow.iter().fold(dot::<E>(row, &weights[fast]), outer);
    });
    sum.value() * problem.factor(direction)
}

/// The factor of a point of the input along an axis in a point of the result.
fn along(problem: &Problem, direction: Direction, axis: usize, [from, to]: [usize; 2]) -> C {
    let (kind, n) = (problem.kinds[axis], problem.zero_padded[axis]);
    let (j, index) = match direction {
        Direction::Forward => (from, to),
        Direction::Inverse => (to, from),
    };
    let Some(k) = frequency(n, problem.modes[axis], index) else { return C::default() };
    match (direction, kind) {
        (Direction::Forward, _) => kind.basis(n, j, k),
        (Direction::Inverse, Kind::C2C) => kind.basis(n, j, k).conj(),
        (Direction::Inverse, Kind::R2C) => {
            let conjugates = if k == 0 || 2 * k == n { 1.0 } else { 2.0 };
            kind.basis(n, j, k).conj() * conjugates
        }
        (Direction::Inverse, _) => kind.undone_by().basis(n, k, j),
    }
}

/// The place in a transform of `n` points of a mode among the lowest `modes`; `None` for the middle
/// one, which is 0.
fn frequency(n: usize, modes: usize, index: usize) -> Option<usize> {
    match (2 * index).cmp(&modes) {
        _ if modes == n => Some(index),
        Ordering::Less => Some(index),
        Ordering::Equal => None,
        Ordering::Greater => Some(n - (modes - index)),
    }
}

/// `Σ row[j]·weights[j]` as eight sums, which are faster and round less.
fn dot<E: Element>(row: &[E::Real], weights: &[C]) -> C {
    const LANES: usize = 8;
    let mut lanes = [C::default(); LANES];
    for (points, weights) in row.chunks(LANES * E::WIDTH).zip(weights.chunks(LANES)) {
        for ((lane, x), w) in lanes.iter_mut().zip(points.chunks_exact(E::WIDTH)).zip(weights) {
            *lane += point::<E>(x) * w;
        }
    }
    lanes.iter().sum()
}

/// The number at the start of a slice.
fn point<E: Element>(reals: &[E::Real]) -> C {
    C::new(reals[0].as_f64(), if E::WIDTH == 2 { reals[1].as_f64() } else { 0.0 })
}

/// A compensated sum (Neumaier's).
#[derive(Default)]
struct Sum {
    /// The sum and the compensation, of the real and of the imaginary part.
    parts: [(f64, f64); 2],
}

impl AddAssign<C> for Sum {
    fn add_assign(&mut self, value: C) {
        for ((sum, lost), x) in self.parts.iter_mut().zip([value.re, value.im]) {
            let next = *sum + x;
            *lost += if sum.abs() >= x.abs() { (*sum - next) + x } else { (x - next) + *sum };
            *sum = next;
        }
    }
}

impl Sum {
    fn value(&self) -> C {
        let [re, im] = self.parts.map(|(sum, lost)| sum + lost);
        C::new(re, im)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_frequencies_are_kept() {
        let all = |n, modes| (0..modes).map(|index| frequency(n, modes, index)).collect::<Vec<_>>();
        assert_eq!(all(4, 4), [0, 1, 2, 3].map(Some));
        assert_eq!(all(9, 5), [0, 1, 2, 7, 8].map(Some));
        assert_eq!(all(9, 4), [Some(0), Some(1), None, Some(8)]);
    }

    #[test]
    fn a_sum_keeps_what_plain_addition_loses() {
        let mut sum = Sum::default();
        for x in [1e100, 1.0, -1e100, 2.0] {
            sum += C::new(x, -x);
        }
        assert_eq!(sum.value(), C::new(3.0, -3.0));
    }
}
