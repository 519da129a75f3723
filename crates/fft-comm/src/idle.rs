//! Waiting for other ranks.

use std::time::{Duration, Instant};

/// Yields before a waiting rank sleeps.
const OFFERS: u32 = 100;
/// The length of a sleep; the system adds about as much.
const NAP: Duration = Duration::from_micros(50);
/// A test that takes this long, and several times as long as tests that find nothing, has moved
/// part of a message. An MPI that moves a few parts per test, and nothing in between, would be as
/// slow as the sleeps.
const MOVED: Duration = Duration::from_micros(8);
const SEVERAL: u32 = 4;
/// The first test after a sleep takes this much longer, because caches are cold.
const COLD: Duration = Duration::from_micros(8);

/// A rank that waits for others. With more ranks than cores, a rank that only yields takes
/// processor time from the ranks that compute; a rank that sleeps does not.
pub(crate) struct Idle {
    offers: u32,
    /// The beginning of the present test.
    looks: Instant,
    /// The time it may take longer because it follows a sleep.
    cold: Duration,
    /// The shortest time of any other test.
    least: Duration,
}

impl Default for Idle {
    fn default() -> Self {
        let (cold, least) = (Duration::ZERO, Duration::MAX);
        Self { offers: 0, looks: Instant::now(), cold, least }
    }
}

impl Idle {
    /// Called after a test that found nothing complete, and before the next one.
    pub(crate) fn wait(&mut self) {
        self.wait_with(std::thread::sleep);
    }

    /// As [`Idle::wait`], with another function that sleeps for as long, or less.
    pub(crate) fn wait_with(&mut self, sleep: impl FnOnce(Duration)) {
        let took = self.looks.elapsed();
        if self.cold.is_zero() {
            self.least = self.least.min(took);
        }
        if took > MOVED.max(SEVERAL * self.least) + self.cold {
            self.offers = 0;
        }
        if self.offers < OFFERS {
            self.offers += 1;
            std::thread::yield_now();
            self.cold = Duration::ZERO;
        } else {
            sleep(NAP);
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

    /// If every look takes long, none counts as movement.
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
