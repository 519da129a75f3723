//! Tests that start their own program again as several processes.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use fft_core::locked;

use crate::common::again;
use crate::sockets::SocketGroup;

/// The time between looks at the processes, and how many looks they may take: 100 seconds. Looks
/// are counted instead of time, because time goes on while everything is stopped.
const POLL: Duration = Duration::from_millis(20);
const PATIENCE: usize = 5000;

/// Processes share the cores of one machine, so that tests run one after the other.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

const RANK: &str = "THRIFFTY_TEST_RANK";
const RANKS: &str = "THRIFFTY_TEST_RANKS";
const FOLDER: &str = "THRIFFTY_TEST_FOLDER";
const TOLD: &str = "THRIFFTY_TEST_TOLD";

/// Runs the ignored test of this name as `ranks` processes, which must end with success.
pub(crate) fn must_succeed(ranks: usize, test: &str, told: &str) {
    for (rank, status) in run(ranks, test, told).into_iter().enumerate() {
        assert!(status.success(), "{test} {told}: rank {rank} of {ranks}: {status}");
    }
}

/// Runs the ignored test of this name as `ranks` processes, which must end.
pub(crate) fn run(ranks: usize, test: &str, told: &str) -> Vec<ExitStatus> {
    let _alone = locked(&ONE_AT_A_TIME);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let start = |rank: usize| started(rank, ranks, test, told, folder.path());
    let mut children: Vec<Child> = (0..ranks).map(start).collect();
    for _ in 0..PATIENCE {
        let ended = children.iter_mut().map(|child| child.try_wait().expect("the child is ours"));
        if let Some(all) = ended.collect() {
            return all;
        }
        std::thread::sleep(POLL);
    }
    for child in &mut children {
        // It may have ended by now.
        let _ = child.kill();
        let _ = child.wait();
    }
    panic!("{test} {told}: {ranks} processes did not end");
}

fn started(rank: usize, ranks: usize, test: &str, told: &str, folder: &Path) -> Child {
    let mut command: Command = again::only(test);
    command.env(RANK, rank.to_string()).env(RANKS, ranks.to_string());
    command.env(FOLDER, folder).env(TOLD, told).stdin(Stdio::null());
    command.spawn().expect("the test's own program")
}

fn variable(name: &str) -> String {
    std::env::var(name).expect("started by another test")
}

/// In a process: its rank, and how many there are.
pub(crate) fn place() -> [usize; 2] {
    [RANK, RANKS].map(|name| variable(name).parse().expect("a number"))
}

/// In a process: the text for the test.
pub(crate) fn told() -> String {
    variable(TOLD)
}

/// In a process: a folder that all have in common.
pub(crate) fn folder() -> PathBuf {
    variable(FOLDER).into()
}

/// In a process: all processes.
pub(crate) fn world() -> SocketGroup {
    let [rank, ranks] = place();
    SocketGroup::connect(&folder(), "world", &(0..ranks).collect::<Vec<_>>(), rank)
}
