//! `cargo xtask test`: all checks of a change; with `--quick`, the checks that fail most often.
//!
//! Test programs run one after another, as `cargo test` has them, because many of them start
//! processes on all cores or measure how long they wait.

use crate::packages::COMPILERS;
use crate::setup::{self, Ready};
use crate::tools::{self, Result, cargo};
use std::process::Command;
use std::time::Instant;

/// Features that need nothing on the machine.
const PORTABLE: &str = "thriffty/ndarray,thriffty/cuda,fft-cli/cuda,fft-capi/cuda";
/// The same with MPI. All builds have these features, so that nothing is built twice.
pub(crate) const WITH_MPI: &str = "thriffty/ndarray,thriffty/cuda,thriffty/mpi,fft-comm/mpi,fft-cli/mpi,\
                                   fft-cli/cuda,fft-capi/mpi,fft-capi/cuda,fft-heffte/mpi,thriffty/nvtx";

/// The targets of `--quick`: unit tests, and test programs that start no jobs.
const QUICK: &str = "--lib --bins --test batches --test tables --test core_tests --test comm_tests --test host \
                     --test fuzz --test header --test options --test texts --test workspace --test sources";
/// Tests of these targets that it leaves out, because they take longest: of memory, of large
/// arrays, of random problems, on several hosts, and of kernels compiled for a CPU.
const SLOW: &str = "--skip least_memory:: --skip large:: --skip properties:: \
                    --skip oracle::several_hosts --skip on_cpu::";

/// Runs all checks, or the quick ones. A check that fails does not keep later ones from running.
pub(crate) fn run(quick: bool) -> Result {
    let ready = if quick {
        setup::prepare(&[])
    } else {
        setup::prepare(&COMPILERS.iter().collect::<Vec<_>>())
    };
    let (start, mut results) = (Instant::now(), Results::default());
    let (mut times, mut failed) = (Vec::new(), 0);
    for mut stage in stages(quick, &ready) {
        println!("\n==> {}", tools::shown(&stage));
        let start = Instant::now();
        let outcome = tools::run_by_line(&mut stage, |line| {
            println!("{line}");
            results.read(line);
        });
        if let Err(why) = &outcome {
            println!("{why}");
        }
        let verdict = if outcome.is_ok() { "ok" } else { "FAILED" };
        let seconds = start.elapsed().as_secs_f64();
        times.push(format!("{verdict:6} {seconds:7.1} s  {}", tools::shown(&stage)));
        failed += usize::from(outcome.is_err());
    }
    println!("\n{}\n{:.0} s in all", times.join("\n"), start.elapsed().as_secs_f64());
    if !ready.mpi {
        println!("not run: everything over MPI");
    }
    println!("{}", results.text());
    match failed {
        0 => Ok(()),
        failed => Err(format!("{failed} of {} checks failed", times.len())),
    }
}

/// The commands that this machine can run, the quick ones first.
fn stages(quick: bool, ready: &Ready) -> Vec<Command> {
    let features = format!("--features {}", if ready.mpi { WITH_MPI } else { PORTABLE });
    let mut stages = Vec::new();
    let mut add = |runs: bool, words: &str| {
        let mut command = cargo();
        command.args(words.split_whitespace());
        command.envs(ready.python.iter().map(|python| ("THRIFFTY_PYTHON", python)));
        stages.extend(runs.then_some(command));
    };
    add(ready.rustfmt, "fmt --all --check");
    let lint = "clippy --workspace --all-targets";
    add(ready.clippy, &format!("{lint} {features} -- -D warnings"));
    let test = format!("test --workspace --no-fail-fast {features}");
    if quick {
        add(true, &format!("{test} {QUICK} -- {SLOW}"));
        return stages;
    }
    add(ready.clippy, &format!("{lint} -- -D warnings"));
    add(true, &test);
    add(ready.mpi && ready.compilers, "xtask programs");
    add(ready.mpi && ready.python.is_some(), "xtask python");
    add(true, &format!("doc --workspace --no-deps {features}"));
    if let Some(doc) = stages.last_mut() {
        doc.env("RUSTDOCFLAGS", "-D warnings");
    }
    stages
}

/// Results of test programs.
#[derive(Debug, Default, PartialEq)]
struct Results {
    passed: usize,
    failed: usize,
    /// Ignored tests: other tests start them, or they need a large machine.
    skipped: usize,
    failures: Vec<String>,
}

impl Results {
    /// Reads a line of a test program's output.
    fn read(&mut self, line: &str) {
        let failure = line.strip_prefix("---- ").and_then(|line| line.strip_suffix(" stdout ----"));
        self.failures.extend(failure.map(String::from));
        let Some(numbers) = line.strip_prefix("test result: ") else { return };
        // `ok. 3 passed; 0 failed; 1 ignored; ...`
        for part in numbers.split(['.', ';']) {
            match part.trim().split_once(' ') {
                Some((number, "passed")) => self.passed += number.parse().unwrap_or(0),
                Some((number, "failed")) => self.failed += number.parse().unwrap_or(0),
                Some((number, "ignored")) => self.skipped += number.parse().unwrap_or(0),
                _ => {}
            }
        }
    }

    fn text(&self) -> String {
        let failures = self.failures.iter().map(|name| format!("failed: {name}\n"));
        let Self { passed, failed, skipped, .. } = self;
        format!(
            "{}{passed} passed, {failed} failed, {skipped} skipped",
            failures.collect::<String>()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(quick: bool, mpi: bool, tools: bool) -> Vec<String> {
        let python = tools.then(|| "python".into());
        let ready = Ready { mpi, compilers: tools, python, rustfmt: tools, clippy: tools };
        stages(quick, &ready).iter().map(tools::shown).collect()
    }

    #[test]
    fn a_machine_with_all_tools_checks_all() {
        let starts = [
            "cargo fmt",
            "cargo clippy",
            "cargo clippy",
            "cargo test",
            "cargo xtask programs",
            "cargo xtask python",
            "cargo doc",
        ];
        let lines = lines(false, true, true);
        assert_eq!(lines.len(), starts.len());
        for (line, start) in lines.iter().zip(starts) {
            assert!(line.starts_with(start), "{line}");
        }
        assert!(lines[1].contains(WITH_MPI) && !lines[2].contains("features"), "{lines:?}");
    }

    #[test]
    fn a_machine_without_the_tools_still_tests() {
        let lines = lines(false, false, false);
        assert!(lines[0].starts_with("cargo test") && lines.len() == 2, "{lines:?}");
        assert!(lines.iter().all(|line| !line.contains("mpi")), "{lines:?}");
    }

    #[test]
    fn the_quick_checks_name_programs_that_exist() {
        let text = tools::output(cargo().args(["metadata", "--no-deps", "--format-version", "1"]));
        let metadata: serde_json::Value = serde_json::from_str(&text.unwrap()).unwrap();
        let packages = metadata["packages"].as_array().unwrap().iter();
        let targets = packages.flat_map(|package| package["targets"].as_array().unwrap());
        let names: Vec<_> = targets.map(|target| target["name"].as_str().unwrap()).collect();
        for name in QUICK.split_whitespace().filter(|word| !word.starts_with("--")) {
            assert!(names.contains(&name), "{name}");
        }
        assert_eq!(lines(true, true, true).len(), 3);
    }

    #[test]
    fn results_are_counted_and_failures_named() {
        let output = "test a ... FAILED\n---- b::a stdout ----\na line\nfailures:\n    b::a\n\
                      test result: FAILED. 1 passed; 2 failed; 4 ignored; 0 measured; 0 filtered out\n\
                      test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 9 filtered out\n";
        let mut results = Results::default();
        output.lines().for_each(|line| results.read(line));
        assert_eq!(results.text(), "failed: b::a\n4 passed, 2 failed, 4 skipped");
    }
}
