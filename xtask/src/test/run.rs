//! Running test programs: several at once, from the moment that cargo built them.
//!
//! `cargo test` runs them one after the other, each on all cores, and only when all are built.
//! Most of them leave cores
//! idle at their end.

use super::build::{self, Program};
use super::known::known;
use super::queue::{Load, Queue, Times};
use super::report::{self, Report};
use super::workspace::Workspace;
use crate::tools::{self, Result, command};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Which test programs are built, and which of them run.
pub(super) struct Batch<'b> {
    pub(super) build: &'b mut Command,
    /// By package and target.
    pub(super) chosen: &'b dyn Fn(&str, &str) -> bool,
    /// These are all that there are.
    pub(super) all: bool,
    pub(super) workspace: &'b Workspace,
    pub(super) python: Option<&'b Path>,
}

/// What happens while programs are built and run.
enum Event {
    Ready(Program),
    Built(Result),
    Ended(Ended),
}

/// A test program that ran.
struct Ended {
    name: String,
    threads: usize,
    alone: bool,
    time: Duration,
    output: String,
    /// Whether it succeeded; an error if it did not start.
    success: Result<bool>,
}

/// Builds and runs the programs, prints what each says when it ends, and adds all to the report.
///
/// # Errors
///
/// If something was not built, or a program failed; the others ran.
pub(super) fn run(batch: Batch<'_>, report: &mut Report) -> Result {
    let folder = tools::target_dir().join("test-output");
    tools::make_folder(&folder)?;
    let file = folder.join("seconds");
    let former = Times::read(&file);
    let mut times = if batch.all { Times::default() } else { former.clone() };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let mut queue = Queue::new(cores, former);

    let line = tools::shown(batch.build);
    let start = Instant::now();
    let mut built: Option<(Result, Duration)> = None;
    let mut failed = 0;
    thread::scope(|scope| {
        let (sender, events) = mpsc::channel();
        let (build, workspace) = (batch.build, batch.workspace);
        let compiler = sender.clone();
        scope.spawn(move || {
            // The receiver lives as long as this thread, so that nothing is lost.
            let ready = |program| drop(compiler.send(Event::Ready(program)));
            let built = build::build(build, workspace, ready);
            let _ = compiler.send(Event::Built(built));
        });
        let mut load = Load { programs: 0, alone: false, building: true };
        while load.building || load.programs > 0 || !queue.is_empty() {
            while let Some((program, threads)) = queue.next(load) {
                load.programs += 1;
                load.alone = program.alone();
                let (sender, folder) = (sender.clone(), &folder);
                let (python, all) = (batch.python, batch.all);
                scope.spawn(move || {
                    let _ = sender.send(Event::Ended(end(&program, threads, folder, python, all)));
                });
            }
            // A sender is left in this thread, so that there is always another event.
            let Ok(event) = events.recv() else { break };
            match event {
                Event::Ready(program) if (batch.chosen)(&program.package, &program.target) => {
                    queue.push(program);
                }
                Event::Ready(_) => {}
                Event::Built(result) => {
                    load.building = false;
                    if result.is_err() {
                        queue.clear();
                    }
                    built = Some((result, start.elapsed()));
                }
                Event::Ended(ended) => {
                    load.programs -= 1;
                    load.alone = false;
                    times.set(&ended.name, ended.time.as_secs_f64());
                    failed += usize::from(!ended.tell(report));
                }
            }
        }
    });
    times.write(&file);

    let (built, building) = built.unwrap_or((Ok(()), start.elapsed()));
    report.stage(built.is_ok(), building, line);
    let well = built.is_ok() && failed == 0;
    report.stage(well, start.elapsed() - building, "test programs, after the last was built");
    built?;
    if failed > 0 {
        return Err(format!("test programs that failed: {failed}"));
    }
    Ok(())
}

/// Runs a program to its end.
fn end(
    program: &Program,
    threads: usize,
    folder: &Path,
    python: Option<&Path>,
    all: bool,
) -> Ended {
    let start = Instant::now();
    let log = folder.join(format!("{}.txt", program.name().replace(' ', "-")));
    let success = {
        let mut run = command_of(program, threads, python);
        let slow = known(&program.package, &program.target).map_or(&[][..], |known| known.slow);
        for name in slow.iter().filter(|_| !all) {
            run.args(["--skip", name]);
        }
        spoken_into(&log, run)
    };
    let bytes = std::fs::read(&log).unwrap_or_default();
    Ended {
        name: program.name(),
        threads,
        alone: program.alone(),
        time: start.elapsed(),
        output: String::from_utf8_lossy(&bytes).into_owned(),
        success,
    }
}

/// A program with the folder and the environment that it has under `cargo test`. What cargo adds
/// to the paths of libraries came
/// with the cargo that runs this task.
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

/// Runs a command with all that it says going into a file; whether it succeeds.
///
/// A pipe would stay open as long as any process that the program left behind.
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
    /// Prints what the program said and adds it to the report; whether it succeeded.
    fn tell(self, report: &mut Report) -> bool {
        let success = *self.success.as_ref().unwrap_or(&false);
        let verdict = if success { "ok" } else { "FAILED" };
        let threads = if self.threads == 1 { "1 thread" } else { "all threads" };
        let alone = if self.alone { ", alone" } else { "" };
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
