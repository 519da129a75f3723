//! Standard output and standard error that cannot be written.

use std::fs::{self, File};
use std::process::{Command, Stdio};

use crate::common::Folder;

/// Where a stream leads.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Open,
    /// `> /dev/full`
    Full,
    /// `| true`
    Closed,
}

impl End {
    fn stream(self) -> Stdio {
        match self {
            Self::Open => Stdio::piped(),
            Self::Full => File::options().write(true).open("/dev/full").unwrap().into(),
            Self::Closed => std::io::pipe().unwrap().1.into(),
        }
    }
}

/// The exit status and what was said on standard error, if that is open.
fn streams(args: &[&str], out: End, err: End) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fft-cli"));
    command.args(args).stdin(Stdio::null()).stdout(out.stream()).stderr(err.stream());
    let output = command.spawn().unwrap().wait_with_output().unwrap();
    let code = output.status.code();
    let said = String::from_utf8(output.stderr).unwrap();
    (code.unwrap_or_else(|| panic!("{args:?} {out:?} {err:?}: {}", output.status)), said)
}

const NO_ROOM: &str = "standard output: No space left on device (os error 28)\n";

#[test]
fn a_text_that_is_the_result_and_cannot_be_written_is_an_error() {
    let folder = Folder::new();
    let input = folder.array("in.npy", "<f8", false, &[6, 5]);
    for args in [
        &["--help"][..],
        &["--version"],
        &["bench", "--help", "--ranks", "3"],
        &["bench", "c2c", "8x8", "--reps", "1"],
        &["bench", "c2c", "8x8", "--reps", "1", "--json", "--ranks", "3"],
        &["bench", "c2c", "8x8", "--serve", "--ranks", "3"],
        &["list", "wires"],
        &["plan", "c2c", "8x8", "--ranks", "3"],
        &["scale", "c2c", "8x8", "--ranks-list", "2"],
        &["study", "c2c", "8x8", "table", "--ranks-list", "2"],
        &["spectrum", &input],
        &["spectrum", &input, "--ranks", "3"],
        &["tune", "c2c", "8x8", "--tuning", "measure:20ms", "--ranks", "3"],
    ] {
        assert_eq!(streams(args, End::Full, End::Open), (1, format!("fft-cli: {NO_ROOM}")));
        assert_eq!(streams(args, End::Full, End::Full).0, 1, "{args:?}");
        // As if SIGPIPE had ended it, which shells do not report.
        assert_eq!(streams(args, End::Closed, End::Open), (141, String::new()), "{args:?}");
        assert_eq!(streams(args, End::Open, End::Full).0, 0, "{args:?}");
    }
}

#[test]
fn a_result_that_is_a_file_decides_the_exit_status() {
    let folder = Folder::new();
    let input = folder.array("in.npy", "<f8", false, &[6, 5]);
    let (out, here) = (folder.at("out.npy"), folder.at("sample"));
    for args in [
        &["transform", "c2c", &input, &out][..],
        &["transform", "c2c", &input, &out, "--json", "--ranks", "3"],
        &["sample", "taylor-green", "--n", "4", "--out", &here],
    ] {
        let made = if args[0] == "sample" { folder.at("sample/u.npy") } else { out.clone() };
        let warning = format!("fft-cli: warn: {NO_ROOM}");
        for (stdout, stderr, said) in [
            (End::Full, End::Open, &*warning),
            (End::Closed, End::Open, ""),
            (End::Open, End::Full, ""),
            (End::Full, End::Full, ""),
            (End::Closed, End::Closed, ""),
        ] {
            let _ = fs::remove_file(&made);
            assert_eq!(streams(args, stdout, stderr), (0, said.into()), "{args:?}");
            assert!(fs::metadata(&made).unwrap().len() > 128, "{args:?}");
        }
    }
    let wisdom = folder.at("wisdom.toml");
    let args = ["tune", "c2c", "8x8", "--tuning", "measure:20ms", "--wisdom", &wisdom];
    assert_eq!(streams(&args, End::Full, End::Open).0, 1);
    assert!(fs::metadata(&wisdom).unwrap().len() > 0, "measurements are not lost");
}

#[test]
fn errors_and_warnings_that_cannot_be_written_do_no_harm() {
    for (args, code) in [
        (&["bench"][..], 2),
        (&["transform", "c2c", "missing.npy", "out.npy"], 1),
        (&["bench", "c2c", "8x8", "--reps", "1", "--tuning", "wisdom:/missing/wisdom.toml"], 0),
    ] {
        for err in [End::Full, End::Closed] {
            let found = streams(args, End::Open, err).0;
            let open = streams(args, End::Open, End::Open);
            assert_eq!((found, open.0), (open.0, code), "{args:?} {open:?}");
        }
    }
}
