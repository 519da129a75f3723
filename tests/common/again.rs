//! Tests that start their own program again, alone or under `mpirun`.

use std::process::{Command, Stdio};

/// The arguments with which this program runs only the ignored test of this name. An unknown name
/// would pass.
fn words(test: &str) -> Vec<&str> {
    let words = vec!["--ignored", "--exact", test, "--nocapture", "--test-threads=1"];
    let list = program().args(&words).arg("--list").stderr(Stdio::inherit()).output();
    let list = list.expect("the test's own program").stdout;
    let is_there =
        String::from_utf8_lossy(&list).lines().any(|line| line == format!("{test}: test"));
    assert!(is_there, "there is no test {test}");
    words
}

fn program() -> Command {
    Command::new(std::env::current_exe().expect("the test's own program"))
}

/// This program, with arguments to run only the ignored test of this name. It prints to standard
/// error, because its result would otherwise be counted twice on standard output.
pub(crate) fn only(test: &str) -> Command {
    let mut command = program();
    command.args(words(test)).stdout(std::io::stderr());
    command
}

/// The same on every rank of a job under `mpirun`.
pub(crate) fn under_mpirun(ranks: usize, test: &str) -> Command {
    let only = only(test);
    let mut command = Command::new("mpirun");
    command.args(["-n", &ranks.to_string()]).arg(only.get_program()).args(only.get_args());
    command.stdout(std::io::stderr()).envs([
        ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
        ("OMPI_MCA_mpi_yield_when_idle", "1"),
    ]);
    command
}
