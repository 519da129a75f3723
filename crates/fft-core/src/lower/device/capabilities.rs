//! The capabilities of ranks' devices.

use super::engine_copy::{LEAST_ROW, MOST_CALLS};
use crate::codec::Wire;
use crate::lower::ops::ExchangePass;
use crate::problem::{Link, Problem};

/// How a rank reaches the memory of another rank's device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeviceLink {
    /// Not at all.
    Apart,
    /// By addresses, but slowly.
    Reached,
    /// By links such as NVLink, which are joined to it.
    Joined,
    /// It is on the same device.
    SameDevice,
}

impl DeviceLink {
    /// The links between the ranks, row by row, if each has a device and the devices of a host are
    /// joined. `hosts` is the host of each rank.
    pub fn on_hosts(hosts: &[usize]) -> Vec<Self> {
        let ranks = hosts.len();
        let link = |pair: usize| {
            let (rank, peer) = (pair / ranks, pair % ranks);
            if rank == peer {
                Self::SameDevice
            } else if hosts[rank] == hosts[peer] {
                Self::Joined
            } else {
                Self::Apart
            }
        };
        (0..ranks * ranks).map(link).collect()
    }
}

/// The capabilities of all ranks' devices, the same on every rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceCapabilities {
    /// The link between each pair of ranks, row by row.
    links: Vec<DeviceLink>,
    ranks: usize,
    /// Whether transforms can load their input from several ranks' memory.
    pub loads: bool,
    /// Whether transforms can store their output to several ranks' memory.
    pub stores: bool,
    /// Whether ranks synchronize, so that they can access each other's memory.
    pub synchronizes: bool,
    /// Whether ranks access any memory of each other, not only the plan's and shared arrays.
    pub exposes_all: bool,
}

impl DeviceCapabilities {
    /// Devices with these links between each pair of ranks, row by row, which can neither load nor
    /// store.
    ///
    /// # Panics
    /// If there is not one link for each pair.
    pub fn new(ranks: usize, links: Vec<DeviceLink>) -> Self {
        assert_eq!(links.len(), ranks * ranks, "one link for each pair of ranks");
        let (synchronizes, exposes_all) = (false, true);
        Self { links, ranks, loads: false, stores: false, synchronizes, exposes_all }
    }

    /// Devices of ranks that do not reach each other, which can neither load nor store.
    pub fn apart(ranks: usize) -> Self {
        let hosts: Vec<_> = (0..ranks).collect();
        Self::new(ranks, DeviceLink::on_hosts(&hosts))
    }

    /// A device for each process, joined to the others of its host, with a library that can load
    /// and store. `hosts` is the host of each rank.
    pub fn on_hosts(hosts: &[usize]) -> Self {
        let mut devices = Self::new(hosts.len(), DeviceLink::on_hosts(hosts));
        let are_joined = devices.links.contains(&DeviceLink::Joined);
        (devices.loads, devices.stores) = (true, true);
        (devices.synchronizes, devices.exposes_all) = (are_joined, !are_joined);
        devices
    }

    /// A device for each rank of a problem, as [`DeviceCapabilities::on_hosts`].
    pub fn of_ranks(problem: &Problem) -> Self {
        if problem.hosts.is_empty() {
            Self::on_hosts(&(0..problem.input.ranks()).collect::<Vec<_>>())
        } else {
            Self::on_hosts(&problem.hosts)
        }
    }

    /// The link from one rank to another.
    pub fn link(&self, rank: usize, peer: usize) -> DeviceLink {
        self.links[rank * self.ranks + peer]
    }

    /// Whether every rank reaches every other.
    pub fn reach_all(&self) -> bool {
        !self.links.contains(&DeviceLink::Apart)
    }

    /// How data of an exchange gets from one rank to another: read in place, or by messages.
    pub fn path(
        &self,
        problem: &Problem,
        pass: &ExchangePass<'_>,
        [rank, peer]: [usize; 2],
    ) -> Link {
        let by_link = problem.fetches() || has_long_rows(problem, pass, [rank, peer]);
        let least = if by_link { DeviceLink::Joined } else { DeviceLink::SameDevice };
        if rank == peer {
            Link::Own
        } else if self.link(rank, peer) < least {
            Link::Remote
        } else if pass.wire == Wire::Raw || problem.is_raw_link(rank, peer) {
            Link::Shared
        } else {
            Link::Remote
        }
    }
}

/// Whether everything that two ranks send each other has rows long enough for copy engines. Both
/// ranks find the same.
fn has_long_rows(problem: &Problem, pass: &ExchangePass<'_>, ranks: [usize; 2]) -> bool {
    let [from, to] = [pass.from, pass.to].map(|node| &node.layout);
    let element = pass.from.width() * problem.precision.bytes();
    let [a, b] = ranks;
    let is_long = |[sender, receiver]: [usize; 2]| {
        let common = from.brick(sender).intersect(&to.brick(receiver));
        let along = to.order().last().map_or(0, |axis| common.len(*axis));
        // Three axes take one call.
        let outer = if common.axes() > 3 { common.len(to.order()[0]) } else { 1 };
        let calls = problem.batch * outer;
        common.is_empty() || along * element >= LEAST_ROW && calls <= MOST_CALLS
    };
    from.order() == to.order() && [[a, b], [b, a]].into_iter().all(is_long)
}
