//! Rates and times: the best of several timings, because disturbances only make them worse, and
//! medians if ranks work together.

use std::time::{Duration, Instant};

/// Timings of one measurement.
pub(super) const REPEATS: usize = 5;

#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) turns: usize,
    pub(super) long: Duration,
}

/// The rate of one rank.
pub(super) const ALONE: Window = Window { turns: 9, long: Duration::from_millis(3) };
/// The rate of all together: long enough for several time slices of each rank if they share cores.
pub(super) const TOGETHER: Window = Window { turns: 1, long: Duration::from_millis(60) };

/// Units of work per second in the best turn, after one warm-up call. `work` returns the units that
/// it has done.
pub(super) fn rate(window: Window, mut work: impl FnMut() -> f64) -> f64 {
    work();
    let mut best: f64 = 0.0;
    for _ in 0..window.turns {
        let (start, mut done) = (Instant::now(), 0.0);
        loop {
            done += work();
            let spent = start.elapsed();
            if spent >= window.long {
                best = best.max(done / spent.as_secs_f64());
                break;
            }
        }
    }
    best
}

pub(super) fn least(seconds: &[f64]) -> f64 {
    seconds.iter().copied().fold(f64::INFINITY, f64::min)
}
