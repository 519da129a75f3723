//! Reshapes between ranks of a host, and between hosts.

use fft_core::{
    Comm, DynBrick, DynGrid, Error, How, Kind, Machine, Messages, Precision, Quantity, Reduce,
    Topology, agree,
};

use super::alone::{LEAST_SECONDS, SHORT, Timed, time, wait};
use crate::bound::DeviceOptions;
use crate::field::DynTransform;
use crate::plan::DynDraft;

/// Points of a line, and lines of a rank: for latencies, and for rates. Larger arrays would move in
/// chunks behind transforms, which would hide a part.
const LINE: usize = 256;
const FEW: usize = 1;
const MANY: usize = 12 << 10;
/// Runs in one timing of many lines.
const LONG: usize = 10;

/// Ranks between which data moves.
pub(super) struct Links<'a> {
    comm: &'a dyn Comm,
    device: &'a DeviceOptions,
    hosts: Topology,
}

impl<'a> Links<'a> {
    pub(super) fn new(comm: &'a dyn Comm, device: &'a DeviceOptions, hosts: Topology) -> Self {
        Self { comm, device, hosts }
    }

    /// Measures the links that exist. Collective.
    pub(super) fn measure(
        &self,
        machine: &mut Machine,
        measured: &dyn Fn(f64) -> Quantity,
    ) -> Result<(), Error> {
        let overhead = |launch: f64| {
            let source = "half a launch: a copy between two ranks is queued as one";
            Quantity::new(launch / 2.0, How::Assumed, source)
        };
        let messages = |[latency, bandwidth]: [f64; 2], launch| Messages {
            latency: measured(latency),
            overhead: overhead(launch),
            bandwidth: measured(bandwidth),
        };
        let launch = machine.launch.value;
        if self.hosts.ranks_per_host() > 1 {
            let found = self.link(&self.within_hosts(), launch)?;
            machine.near = messages(found, launch);
            machine.barrier = measured(found[0]);
        }
        if self.hosts.hosts() > 1 {
            let places = self.least_ranks();
            let found = self.link(&self.between_hosts(1), launch)?;
            let rate = match places {
                1 => found[1],
                _ => places as f64 * self.link(&self.between_hosts(places), launch)?[1],
            };
            machine.far = messages(found, launch);
            machine.host = measured(rate.max(found[1]));
        }
        Ok(())
    }

    /// Ranks of the emptiest host.
    fn least_ranks(&self) -> usize {
        let hosts = 0..self.hosts.hosts();
        hosts.map(|host| self.hosts.ranks_of(host).len()).min().unwrap_or(0)
    }

    /// The owners of the data that each rank gets: the next rank on its host.
    fn within_hosts(&self) -> Vec<usize> {
        self.owners(|host, place| {
            let ranks = self.hosts.ranks_of(host);
            ranks[(place + 1) % ranks.len()]
        })
    }

    /// Like `within_hosts`, but the first `places` ranks of each host get the data of the next
    /// host; the others keep their own.
    fn between_hosts(&self, places: usize) -> Vec<usize> {
        let count = self.hosts.hosts();
        self.owners(|host, place| {
            let other = if place < places { (host + 1) % count } else { host };
            self.hosts.ranks_of(other)[place]
        })
    }

    fn owners(&self, of: impl Fn(usize, usize) -> usize) -> Vec<usize> {
        let mut owners = vec![0; self.comm.size()];
        for host in 0..self.hosts.hosts() {
            for (place, rank) in self.hosts.ranks_of(host).iter().enumerate() {
                owners[*rank] = of(host, place);
            }
        }
        owners
    }

    /// The latency and the bandwidth of reshapes to these owners' data. Collective.
    fn link(&self, owners: &[usize], launch: f64) -> Result<[f64; 2], Error> {
        let few = self.added(owners, FEW, SHORT)?;
        let many = self.added(owners, MANY, LONG)?;
        let bytes = ((MANY - FEW) * LINE * size_of::<[f64; 2]>()) as f64;
        Ok(latency_and_bandwidth([few, many], bytes, launch))
    }

    /// The seconds that moving `lines` lines of each rank adds to their transform. Collective.
    fn added(&self, owners: &[usize], lines: usize, runs: usize) -> Result<f64, Error> {
        let stays: Vec<_> = (0..self.comm.size()).collect();
        let [moves, stays] = [owners, &stays].map(|owners| self.time(owners, lines, runs));
        Ok((moves? - stays?).max(0.0))
    }

    /// The seconds of transforms of `lines` lines of each rank, whose results move to other ranks.
    /// Collective.
    fn time(&self, owners: &[usize], lines: usize, runs: usize) -> Result<f64, Error> {
        let (comm, rank, ranks) = (self.comm, self.comm.rank(), self.comm.size());
        let grid = DynGrid::new([ranks, lines, LINE])?;
        let slab = |owner: usize| DynBrick::new([owner, 0, 0], [owner + 1, lines, LINE]);
        let draft = DynDraft::new(comm, grid, DynTransform::C2c, Precision::F64);
        let draft = draft.with(|options| {
            options.kinds = Some([Kind::None, Kind::None, Kind::C2C].into());
            (options.input, options.output) = (Some(slab(rank)), Some(slab(owners[rank])));
        });
        let made = Timed::new(draft.on(self.device.clone()), &self.device.gpu);
        let mut timed = agree(comm, made)?;
        let stream = timed.stream();
        let wait = || agree(comm, wait(&stream, rank));
        let mut longest = [time(runs, &mut || timed.run(), &wait)?];
        comm.allreduce(Reduce::Max, &mut longest)?;
        Ok(longest[0])
    }
}

/// Latency and bandwidth, from the times of a small and a large reshape and the bytes between them.
/// A small reshape takes a launch and the latency.
fn latency_and_bandwidth([few, many]: [f64; 2], bytes: f64, launch: f64) -> [f64; 2] {
    // If noise hides the difference, only the large one counts.
    let seconds = if many > few { many - few } else { many.max(launch) };
    [(few - launch).max(0.0), bytes / seconds.max(LEAST_SECONDS)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_reshapes_are_latency_and_large_ones_bandwidth() {
        assert_eq!(latency_and_bandwidth([3.0, 8.0], 10.0, 1.0), [2.0, 2.0]);
        let noisy = latency_and_bandwidth([0.5, 0.4], 10.0, 1.0);
        assert_eq!(noisy, [0.0, 10.0]);
        assert!(latency_and_bandwidth([0.0; 2], 10.0, 0.0)[1].is_finite());
    }
}
