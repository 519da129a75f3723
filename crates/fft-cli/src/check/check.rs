//! Errors of a transform and their bounds.

use thriffty::planning::{DynPlan, Element, Precision, Real, Reduce};
use thriffty::{Error, Kind};

use super::reference::ratio;
use super::wires::Lost;
use crate::data::fields::{Distance, Source};

/// Relative errors; NaN where the data is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Errors {
    /// `‖x - x'‖ / ‖x‖` after forward and inverse.
    pub(crate) roundtrip: f64,
    /// `max |x - x'| / max |x|` after forward and inverse, over real numbers.
    pub(crate) roundtrip_max: f64,
    /// `‖X - X'‖ / ‖X‖` over the samples of `reference`, without a wire, if asked for.
    pub(crate) forward: Option<f64>,
    /// Errors by encoded messages, if asked for.
    pub(crate) lost: Option<Lost>,
    /// The smallest positive number over [`Source::unit`]: rounding of the smallest results.
    pub(crate) grain: f64,
}

/// The bound of l2 errors of `N` points: `2ε·max(4, log₂ N)`. Errors grow as `ε·√log₂ N`.
pub(crate) fn bound<T: Real>(points: usize) -> f64 {
    2.0 * T::EPSILON * (points as f64).log2().max(4.0)
}

pub(crate) fn bound_max<T: Real>(points: usize) -> f64 {
    8.0 * bound::<T>(points)
}

impl Errors {
    /// The errors of a field after forward and inverse. Collective.
    pub(crate) fn after<E: Element>(
        plan: &DynPlan,
        source: &Source,
        back: &[E],
    ) -> Result<Self, Error> {
        Self::of::<E::Real>(plan, source, source.distance(back))
    }

    /// The errors of a field that is so far from itself on this rank. Collective.
    pub(crate) fn of<T: Real>(
        plan: &DynPlan,
        source: &Source,
        mut distance: Distance,
    ) -> Result<Self, Error> {
        plan.comm().allreduce(Reduce::Sum, &mut distance.squares)?;
        plan.comm().allreduce(Reduce::Max, &mut distance.largest)?;
        let largest = distance.largest.map(|x| x * x);
        let smallest = match T::PRECISION {
            Precision::F32 => f64::from(f32::from_bits(1)),
            _ => f64::from_bits(1),
        };
        Ok(Self {
            roundtrip: ratio(distance.squares),
            roundtrip_max: ratio(largest),
            forward: None,
            lost: None,
            grain: smallest / source.unit(),
        })
    }

    /// Names the error that is too large, if any. Encoded messages may add to rounding errors:
    /// - forward, at most the tolerance and the reported bound;
    /// - forward and inverse, at most both bounds, which one number may have alone.
    ///
    /// Without a bound, as the data's norm is out of range, the tolerance alone is judged.
    pub(crate) fn judge<E: Element>(&self, kinds: &[Kind], reals: usize) -> Result<(), String> {
        let points = reals / E::WIDTH;
        // One rounding at each point adds up to this, with a factor for intermediate results.
        let grain = 4.0 * self.grain * (points as f64).sqrt();
        let bound = bound::<E::Real>(points) + grain;
        let bound_max = bound_max::<E::Real>(points) + grain;
        let wire = self.lost.map_or(0.0, |lost| lost.there_and_back(kinds));
        let there = self.lost.map_or(0.0, |lost| lost.forward.bound);
        let mut all = vec![
            ("round-trip error", self.roundtrip, bound + wire),
            (
                "largest round-trip error",
                self.roundtrip_max,
                bound_max + wire * (reals as f64).sqrt(),
            ),
            ("forward error", self.forward.unwrap_or(0.0), bound),
        ];
        if let Some(lost) = self.lost {
            all.push(("error by the wire, beyond its bound", lost.error, there + grain));
            if let Some(tolerance) = lost.tolerance {
                let what = match tolerance.is_strict() {
                    true => "error by the wire, beyond the strict tolerance",
                    _ => "error by the wire, beyond the tolerance (--strict keeps it for any data)",
                };
                all.push((what, lost.error, tolerance.value() + grain));
            }
        }
        // A NaN exceeds every bound; a bound of NaN is none.
        match all.into_iter().find(|(_, error, bound)| error.is_nan() || error > bound) {
            None => Ok(()),
            Some((what, error, bound)) => {
                Err(format!("{what}: found {error:.2e}, expected at most {bound:.2e}"))
            }
        }
    }
}
