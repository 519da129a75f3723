//! How large the error of a transform is, and how large it may be.

use thriffty::{Element, Error, Plan, Real, Reduce, Transform};

use crate::noise;
use crate::reference::ratio;

/// Relative errors; a NaN where the data are not numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Errors {
    /// `‖x - x'‖ / ‖x‖` after forward and inverse.
    pub(crate) roundtrip: f64,
    /// `max |x - x'| / max |x|` after forward and inverse, over real numbers.
    pub(crate) roundtrip_max: f64,
    /// `‖X - X'‖ / ‖X‖` over the samples of [`crate::reference`], when that was asked for.
    pub(crate) forward: Option<f64>,
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
    /// The errors of what came back from forward and inverse of [`noise::fill`]. Collective.
    pub(crate) fn after<K: Transform, const D: usize>(
        plan: &Plan<K, D>,
        back: &[K::Physical],
        forward: Option<f64>,
    ) -> Result<Self, Error> {
        let problem = plan.recipe().problem();
        let (grid, order) = (problem.grid(), problem.input.order());
        let brick = plan.input_brick();
        let mut distance = noise::distance(&grid, &brick, order, problem.howmany, back);
        plan.comm().allreduce(Reduce::Sum, &mut distance.squares)?;
        plan.comm().allreduce(Reduce::Max, &mut distance.largest)?;
        let largest = distance.largest.map(|x| x * x);
        Ok(Self { roundtrip: ratio(distance.squares), roundtrip_max: ratio(largest), forward })
    }

    /// Says which of them is too large, if any.
    pub(crate) fn judge<E: Element>(&self, points: usize) -> Result<(), String> {
        let (bound, bound_max) = (bound::<E::Real>(points), bound_max::<E::Real>(points));
        let all = [
            ("round trip", self.roundtrip, bound),
            ("largest round-trip", self.roundtrip_max, bound_max),
            ("forward", self.forward.unwrap_or(0.0), bound),
        ];
        // A NaN is within no bound.
        match all.into_iter().find(|(_, error, bound)| error.is_nan() || error > bound) {
            None => Ok(()),
            Some((what, error, bound)) => {
                Err(format!("{what} error: found {error:.2e}, expected at most {bound:.2e}"))
            }
        }
    }
}
