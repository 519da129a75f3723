//! What ranks can reach of each other's memory.

use crate::problem::{Access, Algorithm, Problem};

/// What ranks can reach of each other's memory, where all of them are on one host. The same on all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Whether all ranks read and write each other's memory.
    pub shares_memory: bool,
    /// Whether they reach the caller's arrays as well, and not only the plan's memory.
    pub exposes_all: bool,
}

impl Capabilities {
    /// Those of ranks that are bound together: whether they reach all of each other's memory, if they reach any.
    pub fn of(problem: &Problem, exposes_all: Option<bool>) -> Self {
        let all_near = problem.all_near();
        Self {
            shares_memory: all_near && exposes_all.is_some(),
            exposes_all: !all_near || problem.options.shared_arrays || exposes_all.unwrap_or(true),
        }
    }

    /// Those of threads, for a problem that is not bound yet.
    pub fn of_threads(problem: &Problem) -> Self {
        let shared = problem.options.exchange == Algorithm::Shared
            && problem.options.access == Access::Cached;
        let shares_memory = shared && problem.all_near() && problem.input.ranks() > 1;
        Self { shares_memory, exposes_all: true }
    }
}
