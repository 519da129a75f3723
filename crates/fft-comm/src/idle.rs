//! Waiting without getting in the way of who is waited for.

use std::time::Duration;

/// How often the processor is offered to others before a waiting rank goes to sleep: some tens of microseconds.
const OFFERS: u32 = 100;
/// How long it sleeps then. The system adds about as much again.
const NAP: Duration = Duration::from_micros(50);

/// A rank that waits for others. With more ranks than cores, one that only yields takes a good part of a core
/// from those that still compute; one that sleeps takes none.
pub(crate) struct Idle {
    offers: u32,
    nap: Duration,
}

impl Default for Idle {
    fn default() -> Self {
        Self { offers: 0, nap: NAP }
    }
}

impl Idle {
    /// For waits that may be long: sleeps at once, for so long each time.
    #[cfg(feature = "mpi")]
    pub(crate) fn asleep(nap: Duration) -> Self {
        Self { offers: OFFERS, nap }
    }

    pub(crate) fn wait(&mut self) {
        if self.offers < OFFERS {
            self.offers += 1;
            std::thread::yield_now();
        } else {
            std::thread::sleep(self.nap);
        }
    }
}
