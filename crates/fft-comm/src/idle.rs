//! Waiting without getting in the way of who is waited for.

use std::time::{Duration, Instant};

/// How often the processor is offered to others before a waiting rank goes to sleep: some tens of microseconds.
const OFFERS: u32 = 100;
/// How long it sleeps then. The system adds about as much again.
const NAP: Duration = Duration::from_micros(50);
/// A look that takes longer has moved a part of a message, if it also takes several times as long as looks that find nothing (0.2 µs in shared
/// memory, 0.6 µs for each host by TCP). An MPI that moves a few parts in each look, and nothing between looks, would be as slow
/// as naps are.
const MOVED: Duration = Duration::from_micros(8);
const SEVERAL: u32 = 4;
/// The first look after a nap takes so much longer, as caches are cold.
const COLD: Duration = Duration::from_micros(8);

/// A rank that waits for others. With more ranks than cores, one that only yields takes a good part of a core
/// from those that still compute; one that sleeps takes none.
pub(crate) struct Idle {
    offers: u32,
    /// How many offers there are before a nap.
    most: u32,
    nap: Duration,
    /// When it began to look.
    looks: Instant,
    /// What that may take more, as it comes after a nap.
    cold: Duration,
    /// What any other look took at least.
    least: Duration,
}

impl Default for Idle {
    fn default() -> Self {
        Self::new(OFFERS, NAP)
    }
}

impl Idle {
    fn new(most: u32, nap: Duration) -> Self {
        Self {
            offers: 0,
            most,
            nap,
            looks: Instant::now(),
            cold: Duration::ZERO,
            least: Duration::MAX,
        }
    }

    /// For waits that may be long: sleeps at once, for so long each time, whatever moves.
    #[cfg(feature = "mpi")]
    pub(crate) fn asleep(nap: Duration) -> Self {
        Self::new(0, nap)
    }

    /// To be called when a look found nothing that is complete; the next look is to follow.
    pub(crate) fn wait(&mut self) {
        let took = self.looks.elapsed();
        if self.cold.is_zero() {
            self.least = self.least.min(took);
        }
        if took > MOVED.max(SEVERAL * self.least) + self.cold {
            self.offers = 0;
        }
        if self.offers < self.most {
            self.offers += 1;
            std::thread::yield_now();
            self.cold = Duration::ZERO;
        } else {
            std::thread::sleep(self.nap);
            self.cold = COLD;
        }
        self.looks = Instant::now();
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

    /// Of looks that all take long none has moved anything.
    #[test]
    fn slow_looks_are_no_movement() {
        let mut idle = Idle::default();
        let mut looked = |spent: Duration| {
            idle.looks =
                Instant::now().checked_sub(spent).expect("a timings that has run for a while");
            idle.wait();
            idle.offers
        };
        let last = (0..10).map(|_| looked(Duration::from_millis(20))).last();
        assert_eq!(last, Some(10));
    }
}
