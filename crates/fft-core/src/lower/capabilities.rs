//! What a device can do, the same on all ranks.

use crate::problem::{Access, Problem};

/// What a device can do, the same on all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Whether all ranks are on one host, and operations read and write each other's memory.
    pub shares_memory: bool,
    /// Whether this includes the caller's arrays, not only the plan's memory.
    pub exposes_all: bool,
    /// Whether operations transform what fits into cache while they pack and unpack it.
    pub fuses_in_cache: bool,
}

impl Capabilities {
    /// The capabilities of bound ranks. `exposes_all` is `None` if they reach no other memory.
    pub fn of(problem: &Problem, exposes_all: Option<bool>) -> Self {
        let all_near = problem.all_near();
        Self {
            shares_memory: all_near && exposes_all.is_some(),
            exposes_all: !all_near || problem.options.shared_arrays || exposes_all.unwrap_or(true),
            fuses_in_cache: true,
        }
    }

    /// The capabilities of threads, for a problem that is not bound yet.
    pub fn of_threads(problem: &Problem) -> Self {
        let shared =
            problem.options.exchange.reads_peers() && problem.options.access == Access::Cached;
        let shares_memory = shared && problem.all_near() && problem.input.ranks() > 1;
        Self { shares_memory, exposes_all: true, fuses_in_cache: true }
    }

    /// The capabilities of a device whose library transforms, and fuses what it can itself.
    pub fn of_library() -> Self {
        Self { shares_memory: false, exposes_all: true, fuses_in_cache: false }
    }
}
