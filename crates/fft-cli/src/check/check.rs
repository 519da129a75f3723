//! Errors of a transform and their bounds.

use thriffty::Error;
use thriffty::planning::{DynPlan, Element, Precision, Problem, Real, Reduce};

use super::reference::ratio;
use super::wires::Lost;
use crate::data::fields::{Distance, Source};

/// Relative errors; NaN if the data is NaN.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Errors {
    /// The error after forward and inverse; `None` if they leave modes out.
    pub(crate) round_trip: Option<RoundTrip>,
    /// `‖x - x'‖ / ‖x‖` over the samples of `reference`, for the inverse, if modes are left out.
    pub(crate) inverse: Option<f64>,
    /// `‖X - X'‖ / ‖X‖` over the samples of `reference`, without a wire, if requested.
    pub(crate) forward: Option<f64>,
    /// Errors by encoded messages, if requested.
    pub(crate) lost: Option<Lost>,
    /// The value of [`grain`]: rounding of the smallest results.
    pub(crate) grain: f64,
}

/// The error of a field after forward and inverse.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoundTrip {
    /// `‖x - x'‖ / ‖x‖`.
    pub(crate) l2: f64,
    /// `max |x - x'| / max |x|` over real numbers.
    pub(crate) largest: f64,
}

impl RoundTrip {
    /// The error of this field. Collective.
    pub(crate) fn after<E: Element>(
        plan: &DynPlan,
        source: &Source,
        back: &[E],
    ) -> Result<Self, Error> {
        Self::of(plan, source.distance(back))
    }

    /// The error of a field with these distances from itself on this rank. Collective.
    pub(crate) fn of(plan: &DynPlan, mut distance: Distance) -> Result<Self, Error> {
        plan.comm().allreduce(Reduce::Sum, &mut distance.squares)?;
        plan.comm().allreduce(Reduce::Max, &mut distance.largest)?;
        let largest = distance.largest.map(|x| x * x);
        Ok(Self { l2: ratio(distance.squares), largest: ratio(largest) })
    }
}

/// The points of the whole transform, with padding.
pub(crate) fn points(problem: &Problem) -> f64 {
    problem.zero_padded.iter().map(|n| *n as f64).product()
}

/// The smallest positive number over [`Source::unit`].
pub(crate) fn grain<T: Real>(source: &Source) -> f64 {
    let smallest = match T::PRECISION {
        Precision::F32 => f64::from(f32::from_bits(1)),
        _ => f64::from_bits(1),
    };
    smallest / source.unit()
}

/// The bound of l2 errors of `N` points: `2ε·max(4, log₂ N)`. Errors grow as `ε·√log₂ N`.
pub(crate) fn bound<T: Real>(points: f64) -> f64 {
    2.0 * T::EPSILON * points.log2().max(4.0)
}

pub(crate) fn bound_max<T: Real>(points: f64) -> f64 {
    8.0 * bound::<T>(points)
}

impl Errors {
    /// Names the error that is too large, if any. Encoded messages may add to rounding errors:
    /// - forward, at most the tolerance and the reported bound;
    /// - forward and inverse, at most both bounds, which one number may have alone.
    ///
    /// Without a bound, because the data's norm is out of range, only the tolerance is checked.
    pub(crate) fn judge<E: Element>(&self, problem: &Problem) -> Result<(), String> {
        let points = points(problem);
        // One rounding at each point adds up to this, with a factor for intermediate results.
        let grain = 4.0 * self.grain * points.sqrt();
        let bound = bound::<E::Real>(points) + grain;
        let bound_max = bound_max::<E::Real>(points) + grain;
        let wire = self.lost.map_or(0.0, |lost| lost.there_and_back(&problem.kinds));
        let there = self.lost.map_or(0.0, |lost| lost.forward.bound);
        let mut all = Vec::new();
        if let Some(RoundTrip { l2, largest }) = self.round_trip {
            let reals = points * E::WIDTH as f64;
            let most = bound_max + wire * reals.sqrt();
            all.extend([
                ("round-trip error", l2, bound + wire),
                ("largest round-trip error", largest, most),
            ]);
        }
        all.extend([
            ("forward error", self.forward.unwrap_or(0.0), bound),
            ("inverse error", self.inverse.unwrap_or(0.0), bound),
        ]);
        if let Some(lost) = self.lost {
            all.push(("error by the wire, beyond its bound", lost.error, there + grain));
            if let Some(tolerance) = lost.tolerance {
                let what = if tolerance.is_strict() {
                    "error by the wire, beyond the strict tolerance"
                } else {
                    "error by the wire, beyond the tolerance (a strict one holds for any data)"
                };
                all.push((what, lost.error, tolerance.value() + grain));
            }
        }
        // A NaN exceeds every bound; a bound of NaN is no bound.
        match all.into_iter().find(|(_, error, bound)| error.is_nan() || error > bound) {
            None => Ok(()),
            Some((what, error, bound)) => {
                Err(format!("{what}: found {error:.2e}, expected at most {bound:.2e}"))
            }
        }
    }
}
