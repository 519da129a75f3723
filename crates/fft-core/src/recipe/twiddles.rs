//! The factors between transforms along the factors of one axis.

use std::iter::once;

use crate::geometry::{DynBrick, PerAxis};
use crate::problem::Problem;

/// The factors by which lines are multiplied before a transform along an axis, or after it in the
/// inverse, if the axes of the grid are the factors of one axis ([`Problem::line`]).
///
/// With axes of `f0, f1, ...` points, and frequencies `k0, k1, ...` along the axes that are already
/// transformed, element `i` of a line along axis `a` has the factor
/// `exp(-2πi i K / (f0 f1 ... fa))`, where `K = k0 + f0 k1 + f0 f1 k2 + ...` is of the axes before
/// `a`.
///
/// [`Problem::line`]: crate::Problem::line
#[derive(Clone, Debug, PartialEq)]
pub struct Twiddles {
    /// The order of the roots of unity: `f0 f1 ... fa`.
    pub order: usize,
    /// How much `K` grows by each index along an axis; 0 for `a` and the axes after it.
    weights: PerAxis<usize>,
    /// Lengths of the axes, and strides between adjacent points along those that are transformed.
    points: PerAxis<usize>,
    strides: PerAxis<usize>,
    /// The lines of a brick: indices outside a line, as loops from the slowest in memory.
    pub(crate) outside: Vec<Indices>,
    /// The same for the indices of adjacent lines.
    pub(crate) inside: Vec<Indices>,
}

/// Positions along one axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Indices {
    pub(crate) first: usize,
    pub(crate) len: usize,
    /// How much `K` grows by each index.
    weight: usize,
    /// The stride between adjacent points, and the number of points that follow each other.
    stride: usize,
    each: usize,
}

impl Indices {
    /// The part of `K` at a position from the first.
    pub(crate) fn weighed(&self, position: usize) -> usize {
        let position = self.first + position;
        self.weight * (position / self.each + self.stride * (position % self.each))
    }
}

impl Twiddles {
    /// Before the transform along an axis; `None` if that is the first factor, or if axes are no
    /// factors.
    pub(crate) fn before(axis: usize, problem: &Problem) -> Option<Self> {
        let line = problem.line.as_ref().filter(|_| axis > 0)?;
        let points = problem.grid().shape();
        let product = |axes: usize| points[..axes].iter().product();
        let weight = |other: usize| if other < axis { product(other) } else { 0 };
        Some(Self {
            order: product(axis + 1),
            weights: PerAxis::from_fn(points.len(), weight),
            strides: PerAxis::from_fn(points.len(), |other| line.strides(other, points.len())[1]),
            points,
            outside: Vec::new(),
            inside: Vec::new(),
        })
    }

    /// The same for the lines along `axis` of `batch` bricks with this order of axes in memory.
    pub(crate) fn of_lines(
        self,
        axis: usize,
        brick: &DynBrick,
        order: PerAxis<usize>,
        batch: usize,
    ) -> Self {
        let along = |&axis: &usize| {
            let (stride, each) = (self.strides[axis], self.points[axis] / self.strides[axis]);
            let (first, len, weight) = (brick.lo[axis], brick.len(axis), self.weights[axis]);
            Indices { first, len, weight, stride, each }
        };
        let batches = Indices { first: 0, len: batch, weight: 0, stride: 1, each: batch };
        let mut axes = order.split(|other| *other == axis);
        let [before, after] = [axes.next(), axes.next()].map(Option::unwrap_or_default);
        let outside = once(batches).chain(before.iter().map(along)).collect();
        let inside = after.iter().map(along).collect();
        Self { outside, inside, ..self }
    }
}
