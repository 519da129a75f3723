//! The load of a host by other programs.
//!
//! If ranks share cores with other programs, they are slow in every measurement, so measurements
//! agree and are still wrong. The system counts the time for which cores are used, and each rank
//! can read its own time.

use std::time::Instant;

use fft_core::{Comm, Error, Reduce};
use rustix::time::{ClockId, clock_gettime};

/// The share of a host's cores that other programs may use without a warning, because some always
/// do.
pub(super) const QUIET: f64 = 0.1;

/// The times that were read at one moment.
#[derive(Clone, Copy, Debug)]
struct Clocks {
    wall: Instant,
    /// Processor time of this rank, in seconds.
    own: f64,
    /// Times of the host, if the system reports them.
    host: Option<Ticks>,
}

/// The time for which the cores of a host were used, and all their time, in ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ticks {
    used: u64,
    all: u64,
    cores: usize,
}

/// Measures the load since it was made.
pub(super) struct Load(Clocks);

impl Load {
    pub(super) fn begin() -> Self {
        Self(Clocks::now())
    }

    /// The share of cores that other programs than these ranks used, on the host where it is
    /// largest; 0 if unknown. Collective.
    pub(super) fn of_others(&self, comm: &dyn Comm) -> Result<f64, Error> {
        let (before, now) = (self.0, Clocks::now());
        let mut seconds = vec![0.0; comm.size()];
        let own = now.own - before.own;
        comm.allgather(bytemuck::bytes_of(&own), bytemuck::cast_slice_mut(&mut seconds))?;
        let host = comm.host(comm.rank());
        let ranks = (0..comm.size()).filter(|rank| comm.host(*rank) == host);
        let of_ranks: f64 = ranks.map(|rank| seconds[rank]).sum();
        let wall = (now.wall - before.wall).as_secs_f64();
        let mut share = [match (before.host, now.host) {
            (Some(before), Some(now)) => share_of_others(before, now, of_ranks / wall),
            _ => 0.0,
        }];
        comm.allreduce(Reduce::Max, &mut share)?;
        Ok(share[0])
    }
}

impl Clocks {
    fn now() -> Self {
        let own = clock_gettime(ClockId::ThreadCPUTime);
        let host = std::fs::read_to_string("/proc/stat").ok().and_then(|text| Ticks::of(&text));
        Self { wall: Instant::now(), own: own.tv_sec as f64 + 1e-9 * own.tv_nsec as f64, host }
    }
}

impl Ticks {
    /// The host's times from a text in the format of `/proc/stat`.
    fn of(stat: &str) -> Option<Self> {
        let line = stat.lines().next()?.strip_prefix("cpu ")?;
        // user nice system idle iowait irq softirq steal; user includes the rest.
        let ticks: Vec<u64> =
            line.split_whitespace().take(8).map_while(|n| n.parse().ok()).collect();
        let all: u64 = ticks.iter().sum();
        let is_core = |line: &&str| line.starts_with("cpu") && !line.starts_with("cpu ");
        let cores = stat.lines().filter(is_core).count();
        Some(Self { used: all - ticks.get(3)? - ticks.get(4)?, all, cores })
    }
}

/// The share of a host's cores that other programs used between two times, while these ranks used
/// `own_cores`.
fn share_of_others(before: Ticks, now: Ticks, own_cores: f64) -> f64 {
    let all = now.all.saturating_sub(before.all);
    let used = now.used.saturating_sub(before.used);
    if all == 0 || now.cores == 0 {
        return 0.0;
    }
    (used as f64 / all as f64 - own_cores / now.cores as f64).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_waiting_ticks_are_not_use() {
        let stat = "cpu  10 1 4 80 5 0 0 2 9 9\ncpu0 1 2 3\ncpu1 4 5\nintr 7\n";
        assert_eq!(Ticks::of(stat), Some(Ticks { used: 17, all: 102, cores: 2 }));
        assert_eq!(Ticks::of("cpus 1 2"), None);
        assert_eq!(Ticks::of("cpu  1 2 3"), None);
    }

    #[test]
    fn what_these_ranks_used_is_not_of_others() {
        let at = |used, all| Ticks { used, all, cores: 4 };
        assert_eq!(share_of_others(at(10, 100), at(110, 300), 0.0), 0.5);
        assert_eq!(share_of_others(at(10, 100), at(110, 300), 1.0), 0.25);
        // Ticks are coarse.
        assert_eq!(share_of_others(at(10, 100), at(110, 300), 2.1), 0.0);
        assert_eq!(share_of_others(at(10, 100), at(10, 100), 0.0), 0.0);
    }

    #[test]
    fn all_ranks_know_the_same_load() {
        let found = fft_comm::threads(3, |comm| Load::begin().of_others(&comm).unwrap());
        assert!(found.iter().all(|share| *share == found[0]), "{found:?}");
        assert!((0.0..=1.0).contains(&found[0]), "{found:?}");
    }
}
