//! Tests that start their own program again under `mpirun`.

use std::process::{Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use fft_core::locked;

use thriffty::mpi;

use super::again;

/// How often a job is looked after.
const POLL: Duration = Duration::from_millis(20);
/// How many looks a job may take: 100 seconds, many times more than it needs. Looks are counted
/// instead of time, because time goes on while everything is stopped.
const PATIENCE: usize = 5000;

/// Jobs share the cores of one machine, so that they run one after the other.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// How many ranks there must be, because a job of single processes, started by another MPI's
/// `mpirun`, would pass.
const EXPECTED: &str = "THRIFFTY_TEST_RANKS";

/// The text that the test gets in addition.
const TOLD: &str = "THRIFFTY_TEST_TOLD";

/// Runs the ignored test of this name on every rank of a job, which must end with success.
pub(crate) fn must_succeed(ranks: usize, test: &str) {
    if let Some(status) = run(ranks, test) {
        assert!(status.success(), "mpirun -n {ranks} failed: {status}");
    }
}

/// Runs the ignored test of this name on every rank of a job, which must end; `None` if there is no
/// `mpirun`.
pub(crate) fn run(ranks: usize, test: &str) -> Option<ExitStatus> {
    run_told(ranks, test, "")
}

/// The same, with a text for the test to read by [`told`].
pub(crate) fn run_told(ranks: usize, test: &str, what: &str) -> Option<ExitStatus> {
    let _alone = locked(&ONE_AT_A_TIME);
    let mut command = again::under_mpirun(ranks, test);
    command.env(EXPECTED, ranks.to_string()).env(TOLD, what).stdin(Stdio::null());
    let mut job = match command.spawn() {
        Ok(job) => job,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            println!("skipped: there is no mpirun");
            return None;
        }
        Err(error) => panic!("mpirun -n {ranks}: {error}"),
    };
    let ended = (0..PATIENCE).find_map(|_| {
        std::thread::sleep(POLL);
        job.try_wait().expect("the job is ours")
    });
    if ended.is_none() {
        terminate(&mut job);
        panic!("mpirun -n {ranks} did not end");
    }
    ended
}

/// Asks `mpirun` to end its processes, which it cannot do when it is killed at once.
fn terminate(job: &mut std::process::Child) {
    let pid = job.id().to_string();
    if Command::new("kill").args(["-TERM", &pid]).status().is_ok_and(|status| status.success()) {
        std::thread::sleep(Duration::from_secs(3));
    }
    // It may have ended by now.
    let _ = job.kill();
    let _ = job.wait();
}

/// In a job: there are as many ranks as the test wanted.
pub(crate) fn assert_ranks(found: usize) {
    let expected = std::env::var(EXPECTED).expect("started by another test");
    assert_eq!(found.to_string(), expected, "ranks of the job");
}

/// In a job: the text for the test.
pub(crate) fn told() -> String {
    std::env::var(TOLD).expect("started by another test")
}

/// In a job: a failed check ends all ranks.
pub(crate) fn abort_on_panic() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        usual(panic);
        mpi::abort(1);
    }));
}
