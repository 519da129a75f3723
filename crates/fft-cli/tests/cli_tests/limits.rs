//! Limits of the system: an error each, and nothing left behind.

use std::process::Command;

use crate::common::{Folder, Run, run, threads};

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

/// Runs it with memory for the stacks of a few hundred threads, as root may have any number of
/// processes. Where a thread that begins finds none left, libc or the standard library may end
/// the program before it can say why: then it runs again.
fn short_of_stacks(args: &[&str]) -> Run {
    let ended_early = |run: &Run| {
        ["Fatal glibc error", "memory allocation of"].iter().any(|it| run.stderr.starts_with(it))
    };
    let runs = std::iter::repeat_with(|| limited("-v 1000000", args));
    runs.take(5).find(|run| !ended_early(run)).expect("memory to say why")
}

#[test]
fn threads_that_cannot_be_started_are_counted() {
    let folder = Folder::new();
    let (input, out) = (folder.array("in.npy", "<f8", false, &[6, 5]), folder.at("out.npy"));
    std::fs::write(&out, "before").unwrap();
    let before = folder.names();
    let transform = ["transform", "c2c", &input, &out, "--ranks"];
    let bench = ["bench", "c2c", "8x8", "--ranks"];
    let study = ["study", "c2c", "8x8", "table", "--ranks-list"];
    let mut counted = 0;
    for args in [&transform[..], &bench, &study] {
        for ranks in ["2000", "100000"] {
            let run = short_of_stacks(&[args, &[ranks]].concat());
            check(&folder, &before, &run);
            let complaint = run.complaint();
            // The complaint of a thread that is started and then lacks memory.
            if complaint.contains("no memory for the stack of one") {
                continue;
            }
            let words = format!(" of {ranks} threads could be started, one for each rank: ");
            let (found, _) = complaint.split_once(&words).unwrap_or_else(|| panic!("{run:?}"));
            let found = found.rsplit_once(' ').unwrap().1.parse::<usize>().unwrap();
            assert!((1..2000).contains(&found), "{run:?}");
            counted += 1;
        }
    }
    assert!(counted > 0, "no run told how many threads could be started");
}

#[test]
fn a_file_beyond_the_limit_is_an_error_and_leaves_nothing() {
    let folder = Folder::new();
    let (input, out) = (folder.array("in.npy", "<f8", false, &[64, 64]), folder.at("out.npy"));
    std::fs::write(&out, "before").unwrap();
    let before = folder.names();
    // A block has 512 or 1024 bytes.
    for ranks in ["1", "3"] {
        let args = ["transform", "c2c", &input, &out, "--ranks", ranks];
        let run = limited("-f 8", &args);
        assert!(run.complaint().ends_with("File too large (os error 27)"), "{run:?}");
        check(&folder, &before, &run);
        let here = folder.at("");
        let run = limited("-f 8", &["sample", "taylor-green", "--n", "16", "--out", &here]);
        assert!(run.complaint().ends_with("File too large (os error 27)"), "{run:?}");
        check(&folder, &before, &run);
    }
    // Texts.
    let ranks: Vec<_> = (1..=64).map(|n: usize| n.to_string()).collect();
    let ranks = ranks.join(",");
    for option in ["--csv", "--svg"] {
        for args in [
            vec!["spectrum", &input, option, &out],
            vec!["study", "c2c", "6", "figure", "--ranks-list", "2", option, &out],
            vec!["scale", "c2c", "64", "--ranks-list", &ranks, option, &out],
        ] {
            let run = limited("-f 1", &args);
            assert!(run.complaint().contains("File too large (os error 27)"), "{run:?}");
            // Standard output is limited, too; the file comes first.
            assert!(run.complaint().contains("out.npy"), "{run:?}");
            check(&folder, &before, &run);
        }
    }
}

#[test]
fn memory_and_files_that_are_not_to_be_had_are_errors() {
    let folder = Folder::new();
    let here = folder.at("");
    threads(2, &["sample", "taylor-green", "--n", "40", "--out", &here]).ok();
    let (input, out) = (folder.at("u.npy"), folder.at("out.npy"));
    std::fs::write(&out, "before").unwrap();
    let before = folder.names();
    let mut failed = 0;
    for ranks in ["1", "3"] {
        for limit in (20_000..60_000).step_by(2500).map(|kilobytes| format!("-v {kilobytes}")) {
            let run = limited(&limit, &["transform", "c2c", &input, &out, "--ranks", ranks]);
            // The loader of the system could not load all libraries, or the kernel the program.
            let is_killed = |run: &Run| run.code.is_none();
            let loads = run.code != Some(127)
                && !(is_killed(&run) && is_killed(&limited(&limit, &["--version"])));
            if loads && run.code != Some(0) {
                failed += 1;
                assert!(!run.stderr.is_empty(), "{run:?}");
                check(&folder, &before, &run);
            }
            std::fs::write(&out, "before").unwrap();
        }
        for limit in (3..12).map(|files| format!("-n {files}")) {
            let run = limited(&limit, &["transform", "c2c", &input, &out, "--ranks", ranks]);
            if run.code != Some(0) && run.code != Some(127) {
                failed += 1;
                assert!(run.complaint().contains("Too many open files"), "{limit} {run:?}");
                check(&folder, &before, &run);
            }
            std::fs::write(&out, "before").unwrap();
        }
    }
    assert!(failed > 4, "{failed} runs failed");
}
