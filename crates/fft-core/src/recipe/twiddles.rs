//! The factors between transforms along the factors of one axis.

use std::iter::once;

use crate::geometry::{DynBrick, DynGrid, PerAxis};

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
    /// The lines of a brick: indices outside a line, as loops from the slowest in memory.
    pub(crate) outside: Vec<Indices>,
    /// The same for the indices of adjacent lines.
    pub(crate) inside: Vec<Indices>,
}

/// Indices along one axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Indices {
    pub(crate) first: usize,
    pub(crate) len: usize,
    /// How much `K` grows by each.
    pub(crate) weight: usize,
}

impl Twiddles {
    /// Before the transform along `axis` of a grid of factors; `None` for the first axis.
    pub(crate) fn before(axis: usize, factors: &DynGrid) -> Option<Self> {
        let product = |axes: usize| (0..axes).map(|axis| factors.len(axis)).product();
        let weight = |other: usize| if other < axis { product(other) } else { 0 };
        let weights = PerAxis::from_fn(factors.axes(), weight);
        let [outside, inside] = [Vec::new(), Vec::new()];
        (axis > 0).then(|| Self { order: product(axis + 1), weights, outside, inside })
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
            let (first, weight) = (brick.lo[axis], self.weights[axis]);
            Indices { first, len: brick.len(axis), weight }
        };
        let batches = Indices { first: 0, len: batch, weight: 0 };
        let mut axes = order.split(|other| *other == axis);
        let [before, after] = [axes.next(), axes.next()].map(Option::unwrap_or_default);
        let outside = once(batches).chain(before.iter().map(along)).collect();
        let inside = after.iter().map(along).collect();
        Self { outside, inside, ..self }
    }
}
