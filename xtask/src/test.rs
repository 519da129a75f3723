//! `cargo xtask test`: all that must hold before a change goes in.

use crate::packages::COMPILERS;
use crate::setup::{self, Ready};
use crate::tools::{self, Result, cargo};
use std::process::Command;
use std::time::Instant;

/// Features that need nothing on the machine.
const PORTABLE: &str = "thriffty/ndarray,thriffty/cuda,fft-cli/cuda,fft-capi/cuda";
/// The crates that speak MPI.
const WITH_MPI: &str = "thriffty/ndarray,thriffty/cuda,thriffty/mpi,fft-comm/mpi,fft-cli/mpi,\
                        fft-cli/cuda,fft-capi/mpi,fft-capi/cuda,fft-heffte/mpi";

/// The stages in order: the quick ones first, so that a mistake shows early.
fn stages(ready: &Ready) -> Vec<Command> {
    let features = if ready.mpi { WITH_MPI } else { PORTABLE };
    let stage = |words: &str, features: Option<&str>, last: &[&str]| {
        let mut command = cargo();
        command.args(words.split(' '));
        if let Some(features) = features {
            command.args(["--features", features]);
        }
        command.args(last);
        if let Some(python) = &ready.python {
            command.env("THRIFFTY_PYTHON", python);
        }
        command
    };

    let mut stages = Vec::new();
    if ready.rustfmt {
        stages.push(stage("fmt --all --check", None, &[]));
    }
    for features in [None, Some(features)] {
        if ready.clippy {
            let deny = ["--", "-D", "warnings"];
            stages.push(stage("clippy --workspace --all-targets", features, &deny));
        }
        stages.push(stage("test --workspace", features, &[]));
    }
    if ready.mpi && ready.compilers {
        stages.push(stage("xtask programs", None, &[]));
    }
    let mut doc = stage("doc --workspace --no-deps", Some(features), &[]);
    doc.env("RUSTDOCFLAGS", "-D warnings");
    stages.push(doc);
    stages
}

/// Runs the stages to the first that fails.
pub(crate) fn run() -> Result {
    let ready = setup::prepare(&COMPILERS.iter().collect::<Vec<_>>());
    let mut lines = Vec::new();
    let mut outcome = Ok(());
    for mut stage in stages(&ready) {
        let line = tools::shown(&stage);
        println!("\n==> {line}");
        let start = Instant::now();
        outcome = tools::run(&mut stage);
        let verdict = if outcome.is_ok() { "ok" } else { "FAILED" };
        lines.push(format!("{verdict:6} {:7.1} s  {line}", start.elapsed().as_secs_f64()));
        if outcome.is_err() {
            break;
        }
    }
    println!("\n{}", lines.join("\n"));
    if !ready.mpi {
        println!("not run: everything over MPI");
    }
    if !(ready.mpi && ready.compilers) {
        println!("not run: programs in C, C++ and Fortran");
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(mpi: bool, tools: bool) -> Vec<String> {
        let ready = Ready { mpi, compilers: tools, python: None, rustfmt: tools, clippy: tools };
        stages(&ready).iter().map(tools::shown).collect()
    }

    #[test]
    fn everything_runs_twice_with_and_without_the_features() {
        let lines = lines(true, true);
        assert_eq!(lines.len(), 7);
        assert_eq!(lines[1], "cargo clippy --workspace --all-targets -- -D warnings");
        assert_eq!(
            lines[3],
            format!("cargo clippy --workspace --all-targets --features {WITH_MPI} -- -D warnings")
        );
        assert_eq!(lines[5], "cargo xtask programs");
    }

    #[test]
    fn a_machine_without_the_tools_still_tests() {
        let lines = lines(false, false);
        assert_eq!(lines[0], "cargo test --workspace");
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| !line.contains("mpi")), "{lines:?}");
    }
}
