//! What is asked of the wire, and what it took from a result.

use thriffty::planning::{DynDraft, Element, Real, Reduce, WireError};
use thriffty::{Error, Kind, Tolerance, Wire};

use super::reference::ratio;
use crate::args::cli;
use crate::data::bricks::for_each_row;
use thriffty::planning::DynPlan;

/// How messages are encoded, if at all.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Encoding {
    pub(crate) wire: Option<Wire>,
    pub(crate) tolerance: Option<Tolerance>,
}

impl Encoding {
    pub(crate) fn of(options: &cli::Wires) -> Self {
        let strict = |it: Tolerance| if options.strict { it.strict() } else { it };
        Self { wire: options.wire, tolerance: options.tolerance.map(strict) }
    }

    /// Whether anything was asked for.
    pub(crate) fn is_asked_for(&self) -> bool {
        self.wire.is_some() || self.tolerance.is_some()
    }

    pub(crate) fn draft<'a>(&self, mut draft: DynDraft<'a>) -> DynDraft<'a> {
        (draft.options.wire, draft.options.tolerance) = (self.wire, self.tolerance);
        draft
    }
}

/// `bits:16`, `1e-6`, `1e-6 strict`, `f32, 1e-6`.
impl std::fmt::Display for Encoding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words = [self.wire.map(|it| it.to_string()), self.tolerance.map(|it| it.to_string())];
        f.pad(&words.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

/// What encoded messages did to the result of a forward transform, and may have done there and back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lost {
    /// `‖X - X'‖ / ‖X‖`, X being the result of the same plan without a wire.
    pub(crate) error: f64,
    /// What was reported of the forward transform.
    pub(crate) forward: WireError,
    /// What was reported of the transform back.
    pub(crate) inverse: WireError,
    pub(crate) tolerance: Option<Tolerance>,
}

impl Lost {
    /// What forward and inverse may have added to a round trip. Where transforms stretch some vectors more than others, as
    /// cosine and sine transforms do, by no more than twice along each axis.
    pub(crate) fn there_and_back(&self, kinds: &[Kind]) -> f64 {
        let stretch: f64 =
            kinds.iter().map(|kind| if kind.is_real() { 2.0 } else { 1.0 }).product();
        let there = stretch * self.forward.bound;
        there + self.inverse.bound * (1.0 + there)
    }
}

/// The l2 distance of two spectra over the norm of the second; half a spectrum stands for all of it. Collective.
pub(crate) fn relative<A: Element, B: Element>(
    plan: &DynPlan,
    found: &[A],
    exact: &[B],
) -> Result<f64, Error> {
    let problem = plan.recipe().problem();
    let (brick, order) = (plan.output_brick(), problem.output.order());
    let halved = problem.kinds.iter().position(|kind| *kind == Kind::R2C);
    let (found, exact): (&[A::Real], &[B::Real]) =
        (bytemuck::cast_slice(found), bytemuck::cast_slice(exact));
    // Squares of what is far from 1 may be out of range.
    let mut unit = [exact.iter().map(|x| x.as_f64().abs()).fold(0.0, f64::max)];
    plan.comm().allreduce(Reduce::Max, &mut unit)?;
    let unit = if unit[0] > 0.0 { unit[0] } else { 1.0 };
    let mut squares = [0.0; 2];
    let fast = order[order.len() - 1];
    for batch in 0..problem.howmany {
        for_each_row(&brick, order, |mut index, at| {
            for i in 0..brick.len(fast) {
                let alone =
                    |axis: usize| [0, problem.grid().len(axis)].contains(&(2 * index[axis]));
                let weight = if halved.is_none_or(alone) { 1.0 } else { 2.0 };
                let place = (batch * brick.points() + at + i) * A::WIDTH;
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
