//! The factors between transforms along the factors of one axis.

use std::iter::once;

use crate::geometry::{DynBrick, PerAxis, Stride};
use crate::problem::Problem;

/// The factors by which lines are multiplied before a transform along an axis, or after it in the
/// inverse, if the axes of the grid are the factors of one axis ([`Problem::one_axis`]).
///
/// With axes of `f0, f1, ...` points, and frequencies `k0, k1, ...` along the axes that are already
/// transformed, element `i` of a line along axis `a` has the factor
/// `exp(-2πi i K / (f0 f1 ... fa))`, where `K = k0 + f0 k1 + f0 f1 k2 + ...` is of the axes before
/// `a`.
///
/// [`Problem::one_axis`]: crate::Problem::one_axis
#[derive(Clone, Debug, PartialEq)]
pub struct Twiddles {
    /// The order of the roots of unity: `f0 f1 ... fa`.
    pub order: usize,
    /// How much `K` grows by each index along an axis; 0 for `a` and the axes after it.
    weights: PerAxis<usize>,
    /// The order of the points of transformed axes.
    strides: PerAxis<Stride>,
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
    stride: Stride,
}

impl Indices {
    /// The part of `K` at a position from the first.
    pub(crate) fn weighed(&self, position: usize) -> usize {
        self.weight * self.stride.index(self.first + position)
    }
}

impl Twiddles {
    /// Before the transform along an axis; `None` if that is the first factor, or if axes are no
    /// factors.
    pub(crate) fn before(axis: usize, problem: &Problem) -> Option<Self> {
        let one_axis = problem.one_axis.as_ref().filter(|_| axis > 0)?;
        let points = problem.grid().shape();
        let product = |axes: usize| points[..axes].iter().product();
        let weight = |other: usize| if other < axis { product(other) } else { 0 };
        let stride =
            |other: usize| Stride::new(points[other], one_axis.strides(other, points.len())[1]);
        Some(Self {
            order: product(axis + 1),
            weights: PerAxis::from_fn(points.len(), weight),
            strides: PerAxis::from_fn(points.len(), stride),
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
            let (first, len, weight) = (brick.lo[axis], brick.len(axis), self.weights[axis]);
            Indices { first, len, weight, stride: self.strides[axis] }
        };
        let batches = Indices { first: 0, len: batch, weight: 0, stride: Stride::new(batch, 1) };
        let mut axes = order.split(|other| *other == axis);
        let [before, after] = [axes.next(), axes.next()].map(Option::unwrap_or_default);
        let outside = once(batches).chain(before.iter().map(along)).collect();
        let inside = after.iter().map(along).collect();
        Self { outside, inside, ..self }
    }
}
