//! Runs test programs, several at once, as soon as cargo has built them.
//!
//! `cargo test` runs one at a time, after the whole build; most leave cores idle at their end.

use super::build::{self, Program};
use super::known::{Share, known};
use super::queue::{Load, Queue, Times};
use super::report::{self, Report};
use super::workspace::Workspace;
use crate::tools::{self, Result, command};
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// The test programs to build and to run.
pub(super) struct Batch<'b> {
    pub(super) build: &'b mut Command,
    /// By package and target.
    pub(super) chosen: &'b dyn Fn(&str, &str) -> bool,
    /// Whether these are all programs.
    pub(super) all: bool,
    pub(super) workspace: &'b Workspace,
    pub(super) python: Option<&'b Path>,
}

/// An event of the build or of a program.
enum Event {
    Ready(Program),
    Built(Result, Duration),
    Ended(Ended),
}

/// A test program that ran.
struct Ended {
    name: String,
    threads: usize,
    share: Share,
    time: Duration,
    output: String,
    /// Whether it succeeded; an error if it did not start.
    success: Result<bool>,
}

/// Builds and runs the programs, prints the output of each at its end, and adds all to the report.
///
/// # Errors
///
/// If something was not built, or a program failed; the others ran.
pub(super) fn run(batch: Batch<'_>, report: &mut Report) -> Result {
    let folder = tools::target_dir().join("test-output");
    tools::make_folder(&folder)?;
    let file = folder.join("seconds");
    let former = Times::read(&file);
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let line = tools::shown(batch.build);
    let start = Instant::now();
    let times = if batch.all { Times::default() } else { former.clone() };
    let mut state = State::new(Queue::new(cores, former), times);
    let (python, all) = (batch.python, batch.all);
    thread::scope(|scope| {
        let (sender, events) = mpsc::channel();
        let (build, workspace) = (batch.build, batch.workspace);
        let compiler = sender.clone();
        scope.spawn(move || {
            // The receiver outlives this thread.
            let ready = |program| drop(compiler.send(Event::Ready(program)));
            let built = caught(|| build::build(build, workspace, ready));
            let _ = compiler.send(Event::Built(built, start.elapsed()));
        });
        while state.is_at_work() {
            while let Some((program, threads)) = state.next() {
                let (sender, folder) = (sender.clone(), &folder);
                scope.spawn(move || {
                    let ended = end(&program, threads, folder, python, all);
                    let _ = sender.send(Event::Ended(ended));
                });
            }
            // This thread keeps a sender: threads send an event even if they panic.
            let Ok(event) = events.recv() else { break };
            state.on(event, batch.chosen, report);
        }
    });
    state.times.write(&file);

    let (built, building) = state.built;
    report.stage(built.is_ok(), building, line);
    let well = built.is_ok() && state.failed == 0;
    report.stage(well, start.elapsed() - building, "test programs, after the last was built");
    built?;
    match state.failed {
        0 => Ok(()),
        failed => Err(format!("test programs that failed: {failed}")),
    }
}

/// The programs that wait, run and ended.
struct State {
    queue: Queue,
    times: Times,
    load: Load,
    /// The end of the build, and when it came.
    built: (Result, Duration),
    failed: usize,
}

impl State {
    fn new(queue: Queue, times: Times) -> Self {
        let load = Load { programs: 0, alone: false, building: true };
        Self { queue, times, load, built: (Ok(()), Duration::ZERO), failed: 0 }
    }

    fn is_at_work(&self) -> bool {
        self.load.building || self.load.programs > 0 || !self.queue.is_empty()
    }

    /// The program to start now, and its threads.
    fn next(&mut self) -> Option<(Program, usize)> {
        let (program, threads) = self.queue.next(self.load)?;
        self.load.programs += 1;
        self.load.alone = program.share() == Share::All;
        Some((program, threads))
    }

    fn on(&mut self, event: Event, chosen: &dyn Fn(&str, &str) -> bool, report: &mut Report) {
        match event {
            Event::Ready(program) if chosen(&program.package, &program.target) => {
                self.queue.push(program);
            }
            Event::Ready(_) => {}
            Event::Built(result, time) => {
                self.load.building = false;
                if result.is_err() {
                    self.queue.clear();
                }
                self.built = (result, time);
            }
            Event::Ended(ended) => {
                self.load.programs -= 1;
                self.load.alone = false;
                self.times.set(&ended.name, ended.time.as_secs_f64());
                self.failed += usize::from(!ended.tell(report));
            }
        }
    }
}

/// Work whose panic is an error, so that the main thread hears of its end.
fn caught<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err("a thread of xtask panicked".into()))
}

fn end(
    program: &Program,
    threads: usize,
    folder: &Path,
    python: Option<&Path>,
    all: bool,
) -> Ended {
    let start = Instant::now();
    let log = folder.join(format!("{}.txt", program.name().replace(' ', "-")));
    let success = caught(|| {
        let mut run = command_of(program, threads, python);
        let slow = known(&program.package, &program.target).map_or(&[][..], |known| known.slow);
        for name in slow.iter().filter(|_| !all) {
            run.args(["--skip", name]);
        }
        spoken_into(&log, run)
    });
    let bytes = std::fs::read(&log).unwrap_or_default();
    Ended {
        name: program.name(),
        threads,
        share: program.share(),
        time: start.elapsed(),
        output: String::from_utf8_lossy(&bytes).into_owned(),
        success,
    }
}

/// A program with the folder and the environment of `cargo test`. The paths of libraries are those
/// of the cargo that runs this task.
fn command_of(program: &Program, threads: usize, python: Option<&Path>) -> Command {
    let mut run = command(&program.path);
    run.arg(format!("--test-threads={threads}"));
    run.current_dir(&program.folder).stdin(Stdio::null());
    run.env("CARGO_MANIFEST_DIR", &program.folder).env("CARGO_PKG_NAME", &program.package);
    if let Some(python) = python {
        run.env("THRIFFTY_PYTHON", python);
    }
    run
}

/// Runs a command with its output in a file; whether it succeeds. A pipe would stay open with any
/// process that the program left behind.
fn spoken_into(log: &PathBuf, mut run: Command) -> Result<bool> {
    let not_written = |e| format!("cannot write {}: {e}", log.display());
    let out = File::create(log).map_err(not_written)?;
    let both = out.try_clone().map_err(not_written)?;
    let status = run.stdout(out).stderr(both).status();
    let status = status.map_err(|e| format!("cannot start `{}`: {e}", tools::shown(&run)))?;
    if !status.success() {
        use std::io::Write;
        let mut log = File::options().append(true).open(log).map_err(not_written)?;
        writeln!(log, "the program ended with {status}").map_err(not_written)?;
    }
    Ok(status.success())
}

impl Ended {
    /// Prints the output and adds it to the report; whether the program succeeded.
    fn tell(self, report: &mut Report) -> bool {
        let success = *self.success.as_ref().unwrap_or(&false);
        let verdict = if success { "ok" } else { "FAILED" };
        let threads = if self.threads == 1 { "1 thread" } else { "all threads" };
        let alone = if self.share == Share::All { ", alone" } else { "" };
        let line = format!("{} ({threads}{alone})", self.name);
        println!(
            "\n--> {verdict} in {:.1} s: {line}\n{}",
            self.time.as_secs_f64(),
            self.output.trim()
        );
        if let Err(why) = &self.success {
            println!("{why}");
        }
        report.program(self.time, line);
        report.add(report::own(&self.output, success, &self.name));
        success
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]);
        shell
    }

    fn log(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("thriffty-xtask-{}-{name}", std::process::id()))
    }

    #[test]
    fn all_that_a_program_says_is_kept_in_order() {
        let log = log("order");
        assert_eq!(spoken_into(&log, shell("echo one; echo two >&2; echo three")), Ok(true));
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "one\ntwo\nthree\n");
        assert_eq!(spoken_into(&log, shell("echo one; exit 3")), Ok(false));
        let said = std::fs::read_to_string(&log).unwrap();
        assert!(said.starts_with("one\n") && said.contains("exit status: 3"), "{said}");
        std::fs::remove_file(&log).unwrap();
    }

    #[test]
    fn a_program_that_does_not_start_is_named() {
        let log = log("absent");
        let why = spoken_into(&log, Command::new("no-such-program-here")).unwrap_err();
        assert!(why.contains("no-such-program-here"), "{why}");
        std::fs::remove_file(&log).unwrap();
    }

    #[test]
    fn a_panic_is_an_error() {
        assert!(caught::<()>(|| panic!("for this test")).is_err());
        assert_eq!(caught(|| Ok(1)), Ok(1));
    }

    #[test]
    fn programs_run_as_under_cargo() {
        let program = Program {
            package: "fft-core".into(),
            target: "core_tests".into(),
            path: "/w/target/debug/deps/core_tests-0".into(),
            folder: "/w/crates/fft-core".into(),
        };
        let run = command_of(&program, 1, Some(Path::new("/w/target/venv/bin/python")));
        assert_eq!(tools::shown(&run), "/w/target/debug/deps/core_tests-0 --test-threads=1");
        assert_eq!(run.get_current_dir(), Some(Path::new("/w/crates/fft-core")));
        let set = |name: &str| run.get_envs().any(|(key, value)| key == name && value.is_some());
        assert!(set("CARGO_MANIFEST_DIR") && set("THRIFFTY_PYTHON"));
    }
}
