//! Errors by encoded messages.

use thriffty::planning::{DynPlan, Element, Real, Reduce, WireError};
use thriffty::{Error, Kind, Tolerance};

use super::reference::ratio;
use crate::data::bricks::for_each_row;

/// The error of encoded messages, and the reported ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lost {
    /// `‖X - X'‖ / ‖X‖`; X is the forward transform by the same plan without a wire.
    pub(crate) error: f64,
    /// Reported of the forward transform.
    pub(crate) forward: WireError,
    /// Reported of the inverse.
    pub(crate) inverse: WireError,
    pub(crate) tolerance: Option<Tolerance>,
}

impl Lost {
    /// The bound of the error that forward and inverse add to a round trip. Cosine and sine
    /// transforms stretch some vectors more than others, at most by 2 along each axis.
    pub(crate) fn there_and_back(&self, kinds: &[Kind]) -> f64 {
        let stretch: f64 =
            kinds.iter().map(|kind| if kind.is_real() { 2.0 } else { 1.0 }).product();
        let there = stretch * self.forward.bound;
        there + self.inverse.bound * (1.0 + there)
    }
}

/// The l2 distance of two spectra divided by the norm of the second; for half spectra, over the
/// full spectrum. Collective.
pub(crate) fn relative<A: Element, B: Element>(
    plan: &DynPlan,
    found: &[A],
    exact: &[B],
) -> Result<f64, Error> {
    let problem = plan.problem();
    let (brick, order) = (plan.output_brick(), problem.output.order());
    let halved = problem.kinds.iter().position(|kind| *kind == Kind::R2C);
    let (found, exact): (&[A::Real], &[B::Real]) =
        (bytemuck::cast_slice(found), bytemuck::cast_slice(exact));
    // Squares of numbers far from 1 may be out of range.
    let mut unit = [exact.iter().map(|x| x.as_f64().abs()).fold(0.0, f64::max)];
    plan.comm().allreduce(Reduce::Max, &mut unit)?;
    let unit = if unit[0] > 0.0 { unit[0] } else { 1.0 };
    let mut squares = [0.0; 2];
    let fast = order[order.len() - 1];
    for item in 0..problem.batch {
        for_each_row(&brick, order, |mut index, at| {
            for i in 0..brick.len(fast) {
                let alone = |axis: usize| [0, problem.modes[axis]].contains(&(2 * index[axis]));
                let weight = if halved.is_none_or(alone) { 1.0 } else { 2.0 };
                let place = (item * brick.points() + at + i) * A::WIDTH;
                for place in place..place + A::WIDTH {
                    let (found, exact) =
                        (found[place].as_f64() / unit, exact[place].as_f64() / unit);
                    squares[0] += weight * (found - exact).powi(2);
                    squares[1] += weight * exact.powi(2);
                }
                index[fast] += 1;
            }
        });
    }
    plan.comm().allreduce(Reduce::Sum, &mut squares)?;
    Ok(ratio(squares))
}
