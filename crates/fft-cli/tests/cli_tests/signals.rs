//! Signals that end the program while it writes a file.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::common::{Folder, threads};

/// Sends a signal by its name, at once: a program that sends it might come too late.
pub(crate) fn send(signal: &str, process: u32) {
    let signal = match signal {
        "HUP" => Signal::HUP,
        "INT" => Signal::INT,
        "TERM" => Signal::TERM,
        "KILL" => Signal::KILL,
        other => panic!("a test sends {other}"),
    };
    let process = Pid::from_raw(process.try_into().unwrap()).unwrap();
    // It may have ended.
    let _ = kill_process(process, signal);
}

/// A folder with an input that takes a while, and an output that exists.
pub(crate) fn folder() -> (Folder, String, String) {
    let folder = Folder::new();
    let here = folder.at("");
    threads(2, &["sample", "taylor-green", "--n", "128", "--out", &here]).ok();
    for name in ["v.npy", "w.npy"] {
        fs::remove_file(folder.at(name)).unwrap();
    }
    let (input, out) = (folder.at("u.npy"), folder.at("out.npy"));
    fs::write(&out, "before").unwrap();
    (folder, input, out)
}

/// Whether a process has a file of this folder open that is new: it has no name or a temporary one.
pub(crate) fn writes(process: u32, folder: &Folder) -> bool {
    let Ok(files) = fs::read_dir(format!("/proc/{process}/fd")) else { return false };
    let paths = files.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
    let here = paths.filter(|path| path.starts_with(folder.path()));
    let new = |path: &str| path.ends_with(" (deleted)") || path.ends_with(".tmp");
    here.map(|path| path.to_string_lossy().into_owned()).any(|path| new(&path))
}

/// Waits for something to become true, or for a program to end.
pub(crate) fn wait_until(child: &mut Child, mut ready: impl FnMut() -> bool) {
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() && !ready() {
        assert!(start.elapsed() < Duration::from_secs(60), "nothing happens");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Starts a transform, and sends a signal while it writes. Tries again where that came too late.
fn interrupted(folder: &Folder, start: impl Fn() -> Command, signal: &str) -> ExitStatus {
    for _ in 0..30 {
        let mut child = start().stdout(Stdio::null()).spawn().unwrap();
        let process = child.id();
        wait_until(&mut child, || writes(process, folder));
        send(signal, process);
        let status = child.wait().unwrap();
        if !status.success() {
            return status;
        }
        fs::write(folder.at("out.npy"), "before").unwrap();
    }
    panic!("every transform was faster than {signal}");
}

#[test]
fn a_signal_leaves_the_files_as_they_were() {
    let (folder, input, out) = folder();
    let before = folder.names();
    for (signal, number) in [("HUP", 1), ("INT", 2), ("TERM", 15), ("KILL", 9)] {
        for ranks in ["1", "3"] {
            let start = || {
                // A shell's `nohup`, under which tests may run, is inherited.
                let mut command = Command::new("env");
                command.args(["--default-signal=HUP,INT,TERM", env!("CARGO_BIN_EXE_fft-cli")]);
                command.args(["transform", "c2c", &input, &out, "--ranks", ranks]);
                command
            };
            let status = interrupted(&folder, start, signal);
            assert_eq!(status.signal(), Some(number), "{signal}: {status}");
            assert_eq!(folder.names(), before, "{signal}");
            assert!(fs::read(&out).unwrap() == b"before", "{signal}");
        }
    }
}

#[test]
fn an_ignored_signal_stays_ignored() {
    let (folder, input, out) = folder();
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_fft-cli")]);
    command.args(["transform", "c2c", &input, &out]).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    let process = child.id();
    wait_until(&mut child, || writes(process, &folder));
    send("HUP", process);
    assert!(child.wait().unwrap().success());
    assert!(fs::metadata(&out).unwrap().len() > 1 << 25);
}
