//! The load of the machine by other processes.
//!
//! A rank that loses its core stalls all others in the next exchange. So a round begins when the
//! cores are idle, and the load around it is reported. Rounds are chosen by load alone, never by
//! times.

use std::time::{Duration, Instant};

/// The load that counts as idle: the waiting programs wake up now and then.
pub(crate) const QUIET: f64 = 0.10;
const GLANCE: Duration = Duration::from_millis(200);

/// The share of all cores in use for a moment; 0 if unknown.
pub(crate) fn busy() -> f64 {
    let look = || std::fs::read_to_string("/proc/stat").ok().and_then(|text| ticks(&text));
    let before = look();
    std::thread::sleep(GLANCE);
    match (before, look()) {
        (Some(before), Some(after)) => share(before, after),
        _ => 0.0,
    }
}

/// Waits for idle cores, at most for `patience`.
pub(crate) fn wait(patience: Duration) {
    let start = Instant::now();
    while start.elapsed() < patience && busy() > QUIET {}
}

/// Ticks of all cores since the start: (in use, all).
fn ticks(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    // user nice system idle iowait irq softirq steal; user includes the rest.
    let ticks: Vec<u64> = line.split_whitespace().take(8).map_while(|n| n.parse().ok()).collect();
    let all: u64 = ticks.iter().sum();
    Some((all - ticks.get(3)? - ticks.get(4)?, all))
}

fn share(before: (u64, u64), after: (u64, u64)) -> f64 {
    let all = after.1.saturating_sub(before.1);
    let used = after.0.saturating_sub(before.0);
    if all == 0 { 0.0 } else { used as f64 / all as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_waiting_ticks_are_not_use() {
        let stat = "cpu  10 1 4 80 5 0 0 2 9 9\ncpu0 1 2 3\n";
        assert_eq!(ticks(stat), Some((17, 102)));
        assert_eq!(ticks("cpus 1 2"), None);
    }

    #[test]
    fn the_share_is_of_the_time_between() {
        assert_eq!(share((10, 100), (15, 120)), 0.25);
        assert_eq!(share((10, 100), (10, 100)), 0.0);
    }
}
