//! A time that is the same on all ranks.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use fft_core::{Comm, Error, median};

/// Readings from which the offset between two hosts is taken.
const ROUNDS: usize = 9;

/// The time of rank 0 in microseconds, on any rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct SharedClock {
    /// When the clock was made, on this rank and in the time of rank 0.
    here: Instant,
    micros: f64,
}

impl SharedClock {
    /// The clock whose time is 0 at `origin`, in microseconds since 1970 on rank 0. Ranks of other
    /// hosts align theirs within the time that a barrier takes to release them. Collective.
    ///
    /// # Errors
    /// When a rank left or the library fails.
    pub(super) fn new(comm: &dyn Comm, origin: f64) -> Result<Self, Error> {
        let mut offsets = [0.0; ROUNDS];
        let mut all = vec![0.0; comm.size()];
        for offset in &mut offsets {
            comm.barrier()?;
            let mine = [now()];
            comm.allgather(bytemuck::cast_slice(&mine), bytemuck::cast_slice_mut(&mut all))?;
            *offset = all[0] - mine[0];
        }
        // Ranks of a host have one clock.
        let is_elsewhere = comm.host(comm.rank()) != comm.host(0);
        let offset = if is_elsewhere { median(&mut offsets) } else { 0.0 };
        Ok(Self { here: Instant::now(), micros: now() + offset - origin })
    }

    /// The time of an instant in microseconds.
    pub(super) fn micros(&self, at: Instant) -> f64 {
        let since = |later: Instant, earlier: Instant| (later - earlier).as_secs_f64() * 1e6;
        if at >= self.here {
            self.micros + since(at, self.here)
        } else {
            self.micros - since(self.here, at)
        }
    }
}

/// Microseconds since 1970.
pub(super) fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64() * 1e6)
}
