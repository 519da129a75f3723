//! Limits of the system: an error each, and nothing left behind.

use std::process::Command;

use crate::common::{Folder, Run, run};

/// Runs the program after `ulimit` with these words.
fn limited(ulimit: &str, args: &[&str]) -> Run {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit {ulimit}; exec \"$@\""), "sh"]);
    command.arg(env!("CARGO_BIN_EXE_fft-cli")).args(args);
    // Backtraces need memory, too.
    command.env("RUST_BACKTRACE", "0");
    run(command, "")
}

/// One sentence, exit status 1, and the files as they were.
#[track_caller]
fn check(folder: &Folder, before: &[String], run: &Run) {
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(!run.stderr.contains("panicked"), "{run:?}");
    assert_eq!(&folder.names(), before, "{run:?}");
    assert!(std::fs::read(folder.at("out.npy")).unwrap() == b"before", "{run:?}");
}

#[test]
fn threads_that_cannot_be_started_are_counted() {
    let folder = Folder::new();
    let (input, out) = (folder.array("in.npy", "<f8", false, &[6, 5]), folder.at("out.npy"));
    std::fs::write(&out, "before").unwrap();
    let before = folder.names();
    // By memory, as root may have any number of processes: their stacks take 4 GB.
    for ranks in ["2000", "100000"] {
        for args in [&["transform", "c2c", &input, &out][..], &["bench", "c2c", "8x8"]] {
            let run = limited("-v 1000000", &[args, &["--ranks", ranks]].concat());
            let words = format!(" of {ranks} threads could be started, one for each rank: ");
            let (found, _) = run.complaint().split_once(&words).unwrap();
            let found = found.rsplit_once(' ').unwrap().1.parse::<usize>().unwrap();
            assert!((1..2000).contains(&found), "{run:?}");
            check(&folder, &before, &run);
        }
    }
    let study = ["study", "table", "--shape", "8x8", "--ranks-list", "2,2000"];
    let run = limited("-v 1000000", &study);
    assert!(run.complaint().contains(" of 2000 threads could be started"), "{run:?}");
}
