//! MPI jobs whose processes are started differently, limited, or ended by signals.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::{Folder, has_mpirun, mpirun, run};
use crate::signals::{folder, send, wait_until, writes};

const PROGRAM: &str = env!("CARGO_BIN_EXE_fft-cli");

#[test]
fn processes_with_different_command_lines_end_with_an_error() {
    if !has_mpirun() {
        return;
    }
    let bench = "bench c2c 8x8 --reps 1";
    for (first, second) in [
        (bench, "bench c2c 8x8 --reps 2"),
        ("bench c2c 8x8 --reps 1 --check", bench),
        (bench, "verify --quick"),
        (bench, "plan c2c 8x8 --ranks 2"),
        ("plan c2c 8x8 --ranks 2", "scale c2c 8x8"),
        (bench, "bench c2c 8x8 --reps 1 --ranks 2"),
        ("--help", "bench c2c"),
    ] {
        let mut command = mpirun();
        command.args(["-n", "1", PROGRAM]).args(first.split(' '));
        command.args([":", "-n", "2", PROGRAM]).args(second.split(' '));
        let run = run(command, "");
        let said = format!("rank 0 has {first}, rank 1 has {second}");
        assert!(run.complaint().contains(&said), "{run:?}");
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{run:?}");
    }
}

#[test]
fn processes_with_different_environments_do_what_rank_0_is_told() {
    if !has_mpirun() {
        return;
    }
    let folder = Folder::new();
    let bench = [PROGRAM, "bench", "c2c", "8x8", "--reps", "1"];
    let machine = format!("THRIFFTY_MACHINE={}", folder.at("missing.toml"));
    for (first, second) in [(machine.as_str(), "OTHER=1"), ("OTHER=1", machine.as_str())] {
        let mut command = mpirun();
        command.args(["-n", "1", "env", first]).args(bench);
        command.args([":", "-n", "1", "env", second]).args(bench);
        let run = run(command, "");
        assert_eq!(run.stderr.contains("missing.toml"), first == machine, "{run:?}");
        run.ok();
    }
}

#[test]
fn limits_of_processes_are_errors() {
    if !has_mpirun() {
        return;
    }
    let (folder, input, out) = folder();
    let before = folder.names();
    // Enough for MPI's own files, and for the input.
    for (limit, said) in [("-f 40000", "File too large"), ("-n 20", "Too many open files")] {
        let mut command = mpirun();
        let script = format!("ulimit {limit}; exec \"$@\"");
        command.args(["-n", "2", "sh", "-c", &script, "sh", PROGRAM]);
        command.args(["transform", "c2c", &input, &out]);
        let run = run(command, "");
        assert_ne!(run.code, Some(0), "{limit}: {run:?}");
        // With few files some libraries do not start.
        let own = run.stderr.contains("fft-cli: ");
        assert!(run.stderr.contains(said) || !own, "{limit}: {run:?}");
        assert_eq!(folder.names(), before, "{limit}");
        assert!(fs::read(&out).unwrap() == b"before", "{limit}");
    }
}

/// The process of a rank.
fn process(folder: &Folder, rank: usize) -> Option<u32> {
    fs::read_to_string(folder.at(&format!("{rank}.pid"))).ok()?.trim().parse().ok()
}

/// Sends a signal to mpirun or to rank 0 while a job writes.
fn interrupt(folder: &Folder, [input, out]: [&str; 2], signal: &str) {
    let rank = "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}";
    let script = format!("echo $$ > {}/{rank}.pid; exec \"$@\"", folder.path().display());
    let mut command = mpirun();
    command.args(["-n", "2", "sh", "-c", &script, "sh", PROGRAM, "transform", "c2c", input, out]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // Rank 0 may be killed once rank 1 has learned of the file.
    let writer = usize::from(signal == "KILL");
    wait_until(&mut child, || process(folder, writer).is_some_and(|it| writes(it, folder)));
    let target = if signal == "KILL" { process(folder, 0) } else { Some(child.id()) };
    target.into_iter().for_each(|target| send(signal, target));
    child.wait().unwrap();
    for rank in [0, 1] {
        let _ = fs::remove_file(folder.at(&format!("{rank}.pid")));
    }
}

#[test]
fn a_job_that_a_signal_ends_leaves_no_other_files() {
    if !has_mpirun() {
        return;
    }
    let (folder, input, out) = folder();
    let before = folder.names();
    for signal in ["INT", "TERM", "HUP", "KILL"] {
        fs::write(&out, "before").unwrap();
        interrupt(&folder, [&input, &out], signal);
        // mpirun may end before the processes do.
        let start = Instant::now();
        while folder.names() != before {
            let names = folder.names();
            assert!(start.elapsed() < Duration::from_secs(20), "{signal} leaves {names:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
        // mpirun may hand the signal on when the new file is complete.
        let bytes = fs::metadata(&out).unwrap().len();
        assert!([6, 128 + (16 << 21)].contains(&bytes), "{signal}: {bytes}");
    }
}
