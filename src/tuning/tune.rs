//! Recipes timed against each other: a race between candidates, and the report on it.

use std::time::Duration;

use fft_core::{Comm, Error, Real, assert_same};

use super::candidates::Candidate;
use super::race::{Progress, Trial, race};
use super::report::Report;

/// Binds a candidate to be timed. Called by all ranks together.
pub(crate) type Make<'m, 't> = &'m mut dyn FnMut(&Candidate) -> Result<Box<dyn Trial + 't>, Error>;

/// Times candidates, bound by `make`, and reports on all of them; the fastest is chosen. The first
/// is tried whatever the budget, and at most four are held at a time. Collective; the same on every
/// rank.
///
/// # Errors
/// On every rank: [`Error::OnRank`] when no candidate works, a rank lacks memory, or the transport
/// fails.
pub(crate) fn tune<'t>(
    comm: &dyn Comm,
    candidates: &[Candidate],
    budget: Duration,
    make: Make<'_, 't>,
    on_progress: &mut dyn FnMut(Progress),
) -> Result<Report, Error> {
    if candidates.is_empty() {
        return Err(Error::argument("candidates", 0, "at least 1"));
    }
    // Ranks with different candidates would hang.
    let recipes: Vec<_> = candidates.iter().map(|it| it.recipe.to_string()).collect();
    assert_same(comm, &[("candidates", recipes.join("\n"))])?;
    let mut make = |number: usize| make(&candidates[number]);
    let outcomes = race(comm, candidates.len(), budget, &mut make, on_progress)?;
    Report::measured(candidates, outcomes)
}

/// A number between -1/2 and 1/2 from a linear congruential generator, whose state may begin as
/// any.
pub(crate) fn noise<T: Real>(state: &mut u64) -> T {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    T::of((*state >> 11) as f64 / (1u64 << 53) as f64 - 0.5)
}
