//! Tests that must end: a scenario that hangs fails instead.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// How often a scenario is looked after.
const POLL: Duration = Duration::from_millis(100);
/// How many looks it may take: 20 seconds. A correct call takes milliseconds; one that hangs,
/// forever. Looks are counted instead of time, because time goes on while the whole program is
/// stopped.
const PATIENCE: usize = 200;

/// Runs a scenario on a thread of its own and returns what it returns.
///
/// # Panics
/// When it panics, or does not end in time.
pub(crate) fn within_patience<R: Send + 'static>(
    name: &str,
    scenario: impl FnOnce() -> R + Send + 'static,
) -> R {
    let (done, wait) = channel();
    let thread = std::thread::spawn(move || {
        let result = scenario();
        done.send(()).expect("the watchdog listens until then");
        result
    });
    let ended = (0..PATIENCE).any(|_| wait.recv_timeout(POLL) != Err(RecvTimeoutError::Timeout));
    assert!(ended, "{name} did not end");
    match thread.join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
