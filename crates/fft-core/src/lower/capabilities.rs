//! What ranks can do, the same on all of them.

use super::device::DeviceCapabilities;
use crate::problem::{Access, Problem};

/// What ranks can do, the same on all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities<'a> {
    /// Whether all ranks are on one host, and operations read and write each other's memory.
    pub shares_memory: bool,
    /// Whether this includes the caller's arrays, not only the plan's memory.
    pub exposes_all: bool,
    /// The capabilities of devices whose library transforms. `None` for hosts, whose operations
    /// transform data that fits into cache while they pack and unpack it.
    pub device: Option<&'a DeviceCapabilities>,
}

impl<'a> Capabilities<'a> {
    /// The capabilities of bound ranks. `exposes_all` is `None` if they reach no other memory.
    pub fn of(problem: &Problem, exposes_all: Option<bool>) -> Self {
        let all_near = problem.all_near();
        Self {
            shares_memory: all_near && exposes_all.is_some(),
            exposes_all: !all_near || problem.options.shared_arrays || exposes_all.unwrap_or(true),
            device: None,
        }
    }

    /// The capabilities of threads, for a problem that is not bound yet.
    pub fn of_threads(problem: &Problem) -> Self {
        let shared =
            problem.options.exchange.reads_peers() && problem.options.access == Access::Cached;
        let shares_memory = shared && problem.all_near() && problem.input.ranks() > 1;
        Self { shares_memory, exposes_all: true, device: None }
    }

    /// The capabilities of devices whose library transforms.
    pub fn of_devices(device: &'a DeviceCapabilities) -> Self {
        Self { shares_memory: false, exposes_all: device.exposes_all, device: Some(device) }
    }

    /// Whether operations transform data that fits into cache while they pack and unpack it.
    pub(crate) fn fuses_in_cache(&self) -> bool {
        self.device.is_none()
    }
}
