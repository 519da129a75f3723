//! Tests that must end: a scenario that hangs fails instead.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// How long a scenario may take. What is right takes milliseconds; what hangs, forever.
const PATIENCE: Duration = Duration::from_secs(20);

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
    match wait.recv_timeout(PATIENCE) {
        Err(RecvTimeoutError::Timeout) => panic!("{name} did not end within {PATIENCE:?}"),
        Ok(()) | Err(RecvTimeoutError::Disconnected) => match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        },
    }
}
