//! Waiting without getting in the way of who is waited for.

use std::time::{Duration, Instant};

/// How often the processor is offered to others before a waiting rank goes to sleep: some tens of microseconds.
const OFFERS: u32 = 100;
/// How long it sleeps then. The system adds about as much again.
const NAP: Duration = Duration::from_micros(50);
/// To look whether anything has come, and find nothing, takes less: what takes longer has moved a part of a message. An MPI that moves
/// a few parts in each look, and nothing between looks, would be as slow as naps are.
const MOVED: Duration = Duration::from_micros(2);
/// The first look after a nap takes so much longer, as caches are cold.
const COLD: Duration = Duration::from_micros(4);

/// A rank that waits for others. With more ranks than cores, one that only yields takes a good part of a core
/// from those that still compute; one that sleeps takes none.
pub(crate) struct Idle {
    offers: u32,
    nap: Duration,
    /// When it began to look, or, after a nap, a little later.
    looks: Instant,
}

impl Default for Idle {
    fn default() -> Self {
        Self { offers: 0, nap: NAP, looks: Instant::now() }
    }
}

impl Idle {
    /// For waits that may be long: sleeps at once, for so long each time.
    #[cfg(feature = "mpi")]
    pub(crate) fn asleep(nap: Duration) -> Self {
        Self { offers: OFFERS, nap, looks: Instant::now() }
    }

    /// To be called when a look found nothing that is complete; the next look is to follow.
    pub(crate) fn wait(&mut self) {
        if self.looks.elapsed() > MOVED {
            self.offers = 0;
        }
        if self.offers < OFFERS {
            self.offers += 1;
            std::thread::yield_now();
            self.looks = Instant::now();
        } else {
            std::thread::sleep(self.nap);
            self.looks = Instant::now() + COLD;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_sees_something_move_does_not_sleep() {
        let mut idle = Idle::default();
        let mut looked = |spent: Duration| {
            idle.looks = Instant::now();
            while idle.looks.elapsed() < spent {}
            idle.wait();
            idle.offers
        };
        let still = (0..OFFERS).map(|_| looked(Duration::ZERO)).max();
        assert!(still > Some(1), "{still:?}");
        assert_eq!(looked(2 * MOVED), 1);
    }
}
