//! `cargo xtask test`: all checks of a change; with `--quick`, those that fail most often.

mod build;
mod known;
mod queue;
mod quick;
mod report;
mod run;
mod workspace;

use crate::packages::COMPILERS;
use crate::setup::{self, Ready};
use crate::tools::{self, Result, cargo};
use quick::Choice;
use report::Report;
use run::Batch;
use std::process::Command;
use std::time::Instant;
use workspace::Workspace;

/// Features that need nothing on the machine.
const PORTABLE: &str = "thriffty/ndarray,thriffty/cuda,fft-cli/cuda,fft-capi/cuda";
/// The same with MPI. All test builds have these features, so that nothing is built twice.
pub(crate) const WITH_MPI: &str = "thriffty/ndarray,thriffty/cuda,thriffty/mpi,fft-comm/mpi,fft-cli/mpi,\
                                   fft-cli/cuda,fft-capi/mpi,fft-capi/cuda,fft-heffte/mpi";
/// What compiles without features; no test is of that alone.
const WITHOUT_FEATURES: &str = "check --workspace --all-targets";
/// Messages as JSON on standard output, and warnings as text on standard error.
const BUILD_TESTS: &str = "test --workspace --no-run --message-format json-render-diagnostics";

struct Stage {
    command: Command,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Check,
    /// A cargo that runs tests, whose results are counted.
    Tests,
    /// A cargo that builds test programs, which then run.
    Programs,
}

/// The stages that this machine can run.
struct Stages<'r> {
    ready: &'r Ready,
    stages: Vec<Stage>,
}

impl<'r> Stages<'r> {
    fn new(ready: &'r Ready) -> Self {
        Self { ready, stages: Vec::new() }
    }

    fn add(&mut self, kind: Kind, words: &str) -> &mut Command {
        let mut command = cargo();
        command.args(words.split(' '));
        if let Some(python) = &self.ready.python {
            command.env("THRIFFTY_PYTHON", python);
        }
        self.stages.push(Stage { command, kind });
        let last = self.stages.len() - 1;
        &mut self.stages[last].command
    }

    fn featured(&mut self, kind: Kind, words: &str) -> &mut Command {
        let features = if self.ready.mpi { WITH_MPI } else { PORTABLE };
        self.add(kind, words).args(["--features", features])
    }

    fn format(&mut self) {
        if self.ready.rustfmt {
            self.add(Kind::Check, "fmt --all --check");
        }
    }
}

/// All stages, the quick ones first.
fn full(ready: &Ready) -> Vec<Stage> {
    let deny = ["--", "-D", "warnings"];
    let mut stages = Stages::new(ready);
    stages.format();
    if ready.clippy {
        let words = "clippy --workspace --all-targets";
        stages.featured(Kind::Check, words).args(deny);
        // `cargo check` would compile the same crates and let warnings pass.
        stages.add(Kind::Check, words).args(deny);
    } else {
        stages.add(Kind::Check, WITHOUT_FEATURES);
    }
    stages.featured(Kind::Programs, BUILD_TESTS);
    stages.featured(Kind::Tests, "test --workspace --doc --no-fail-fast");
    if ready.mpi && ready.compilers {
        stages.add(Kind::Check, "xtask programs");
    }
    if ready.mpi && ready.python.is_some() {
        stages.add(Kind::Check, "xtask python");
    }
    let doc = stages.featured(Kind::Check, "doc --workspace --no-deps");
    doc.env("RUSTDOCFLAGS", "-D warnings");
    stages.stages
}

/// The stages of `--quick`, built as in [`full`], so that nothing is built twice.
fn loop_of(choice: &Choice, workspace: &Workspace, ready: &Ready) -> Vec<Stage> {
    let mut stages = Stages::new(ready);
    stages.format();
    if choice.is_empty() {
        return stages.stages;
    }
    if ready.clippy {
        // This profile includes unit tests.
        let clippy = stages.featured(Kind::Check, "clippy --workspace --profile test");
        clippy.args(choice.lints(workspace, ready.mpi)).args(["--", "-D", "warnings"]);
    }
    stages.featured(Kind::Programs, BUILD_TESTS).args(choice.tests(workspace));
    stages.stages
}

/// Runs all checks, or the quick ones.
pub(crate) fn run(quick: bool) -> Result {
    let start = Instant::now();
    let workspace = Workspace::read()?;
    let (ready, choice) = match quick {
        true => (setup::prepare(&[]), Some(Choice::now(&workspace)?)),
        false => (setup::prepare(&COMPILERS.iter().collect::<Vec<_>>()), None),
    };
    let stages = match &choice {
        Some(choice) => {
            println!("{}", choice.line());
            loop_of(choice, &workspace, &ready)
        }
        None => full(&ready),
    };

    let mut report = Report::default();
    report.stage(true, start.elapsed(), "what this machine has");
    let outcome = stages.into_iter().try_for_each(|mut stage| {
        println!("\n==> {}", tools::shown(&stage.command));
        stage.run(&workspace, choice.as_ref(), &ready, &mut report)
    });
    println!("{}", report.tables());
    println!("\n{:.0} s in all", start.elapsed().as_secs_f64());
    for (run, what) in [
        (ready.mpi && !quick, "everything over MPI"),
        (ready.mpi && ready.compilers && !quick, "programs in C, C++ and Fortran"),
        (ready.mpi && ready.python.is_some() && !quick, "the Python package"),
        (!quick, "examples in documentation"),
    ] {
        if !run {
            println!("not run: {what}");
        }
    }
    println!("{}", report.close());
    outcome
}

impl Stage {
    fn run(
        &mut self,
        workspace: &Workspace,
        choice: Option<&Choice>,
        ready: &Ready,
        report: &mut Report,
    ) -> Result {
        let (start, line) = (Instant::now(), tools::shown(&self.command));
        let outcome = match self.kind {
            Kind::Check => tools::run(&mut self.command),
            Kind::Tests => {
                let (said, outcome) = tools::run_and_keep(&mut self.command);
                report.add(report::sum(&said));
                outcome
            }
            Kind::Programs => {
                let chosen = |package: &str, target: &str| {
                    choice.is_none_or(|choice| choice.runs(package, target))
                };
                let batch = Batch {
                    build: &mut self.command,
                    chosen: &chosen,
                    all: choice.is_none(),
                    workspace,
                    python: ready.python.as_deref(),
                };
                return run::run(batch, report);
            }
        };
        report.stage(outcome.is_ok(), start.elapsed(), line);
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready(mpi: bool, tools: bool) -> Ready {
        Ready { mpi, compilers: tools, python: None, rustfmt: tools, clippy: tools }
    }

    fn lines(stages: &[Stage]) -> Vec<String> {
        stages.iter().map(|stage| tools::shown(&stage.command)).collect()
    }

    #[test]
    fn all_is_linted_with_and_without_features_and_tested_once() {
        let stages = full(&ready(true, true));
        let lint = "cargo clippy --workspace --all-targets";
        assert_eq!(
            lines(&stages),
            [
                "cargo fmt --all --check".to_string(),
                format!("{lint} --features {WITH_MPI} -- -D warnings"),
                format!("{lint} -- -D warnings"),
                format!("cargo {BUILD_TESTS} --features {WITH_MPI}"),
                format!("cargo test --workspace --doc --no-fail-fast --features {WITH_MPI}"),
                "cargo xtask programs".to_string(),
                format!("cargo doc --workspace --no-deps --features {WITH_MPI}"),
            ]
        );
        let programs = stages.iter().filter(|stage| stage.kind == Kind::Programs);
        assert_eq!(programs.count(), 1);
    }

    #[test]
    fn the_python_package_is_tested_where_python_and_mpi_are() {
        for (mpi, python) in [(true, true), (true, false), (false, true)] {
            let python_at = python.then(|| "python".into());
            let stages = lines(&full(&Ready { python: python_at, ..ready(mpi, true) }));
            assert_eq!(stages.contains(&"cargo xtask python".to_string()), mpi && python);
        }
    }

    #[test]
    fn a_machine_without_the_tools_still_tests() {
        let lines = lines(&full(&ready(false, false)));
        assert_eq!(lines[0], format!("cargo {WITHOUT_FEATURES}"));
        assert_eq!(lines.len(), 4);
        assert!(lines.iter().all(|line| !line.contains("mpi")), "{lines:?}");
    }

    #[test]
    fn a_loop_builds_a_part_of_what_all_of_it_builds() {
        let workspace = Workspace::read().unwrap();
        let choice = Choice::of(&["crates/fft-core/src/lib.rs"], &workspace);
        let lines = lines(&loop_of(&choice, &workspace, &ready(true, true)));
        let [format, lint, build] = lines.as_slice() else { panic!("{lines:?}") };
        assert_eq!(format, "cargo fmt --all --check");
        assert!(lint.starts_with("cargo clippy --workspace") && lint.contains(WITH_MPI), "{lint}");
        let start = format!("cargo {BUILD_TESTS} --features {WITH_MPI} --lib --bins ");
        assert!(build.starts_with(&start), "{build}");
    }

    #[test]
    fn a_loop_over_text_alone_is_short() {
        let workspace = Workspace::read().unwrap();
        let choice = Choice::of(&["README.md"], &workspace);
        let lines = lines(&loop_of(&choice, &workspace, &ready(true, true)));
        assert_eq!(lines, ["cargo fmt --all --check"]);
    }
}
