//! How large the error of a transform is, and how large it may be.

use thriffty::planning::{Element, Precision, Real, Reduce};
use thriffty::{Error, Kind};

use super::reference::ratio;
use super::wires::Lost;
use crate::data::fields::Source;
use thriffty::planning::DynPlan;

/// Relative errors; a NaN where the data are not numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Errors {
    /// `‖x - x'‖ / ‖x‖` after forward and inverse.
    pub(crate) roundtrip: f64,
    /// `max |x - x'| / max |x|` after forward and inverse, over real numbers.
    pub(crate) roundtrip_max: f64,
    /// `‖X - X'‖ / ‖X‖` over the samples of [`crate::reference`], without a wire, when that was asked for.
    pub(crate) forward: Option<f64>,
    /// What encoded messages did, when they were asked for.
    pub(crate) lost: Option<Lost>,
    /// The distance from one number to the next near 0, over [`Source::unit`]: what even exact messages cannot do better
    /// than.
    pub(crate) grain: f64,
}

/// What the l2 errors must not exceed: `2ε·max(4, log₂ N)`, `N` being the number of points and ε the distance from 1
/// to the next number. Measured errors grow as `ε·√log₂ N` and are below a third of this even for prime lengths. The
/// reference has errors of its own, those of `f64`: about ε for its weights and for its compensated sums.
pub(crate) fn bound<T: Real>(points: usize) -> f64 {
    2.0 * T::EPSILON * (points as f64).log2().max(4.0)
}

/// What the largest error must not exceed, which has further to go than the mean.
pub(crate) fn bound_max<T: Real>(points: usize) -> f64 {
    8.0 * bound::<T>(points)
}

impl Errors {
    /// The errors of what came back from forward and inverse of a field. Collective.
    pub(crate) fn after<E: Element>(
        plan: &DynPlan,
        source: &Source,
        back: &[E],
    ) -> Result<Self, Error> {
        let mut distance = source.distance(back);
        plan.comm().allreduce(Reduce::Sum, &mut distance.squares)?;
        plan.comm().allreduce(Reduce::Max, &mut distance.largest)?;
        let largest = distance.largest.map(|x| x * x);
        let smallest = match E::Real::PRECISION {
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

    /// Says which of them is too large, if any. SpillBuffers rounding errors, what a wire may do is that:
    /// - forward, no more than the tolerance that was given, and than the bound that was reported;
    /// - there and back, no more than both bounds; to a single number, all of it.
    ///
    /// Where there is no bound, as the data's norm is out of range, only the tolerance is judged.
    pub(crate) fn judge<E: Element>(&self, kinds: &[Kind], reals: usize) -> Result<(), String> {
        let points = reals / E::WIDTH;
        // Errors of one spacing at each of so many points add up so far, with room for those on the way.
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
                    false => {
                        "error by the wire, beyond the tolerance (--strict keeps it for any data)"
                    }
                };
                all.push((what, lost.error, tolerance.value() + grain));
            }
        }
        // A NaN is within no bound; where the bound is one, there is nothing to judge by.
        match all.into_iter().find(|(_, error, bound)| error.is_nan() || error > bound) {
            None => Ok(()),
            Some((what, error, bound)) => {
                Err(format!("{what}: found {error:.2e}, expected at most {bound:.2e}"))
            }
        }
    }
}
