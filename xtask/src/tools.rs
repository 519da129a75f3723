//! Commands with the environment that MPI needs and with errors that name them; files.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// Errors are texts for a person at a terminal.
pub(crate) type Result<T = ()> = std::result::Result<T, String>;

pub(crate) fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// Makes the workspace's root the current directory: paths are relative to it.
pub(crate) fn enter_workspace() -> Result {
    let root = workspace();
    std::env::set_current_dir(root).map_err(|e| format!("cannot enter {}: {e}", root.display()))
}

/// Cargo's target folder, relative to the workspace's root if it is below.
pub(crate) fn target_dir() -> PathBuf {
    let Some(target) = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from) else {
        return PathBuf::from("target");
    };
    match std::env::current_dir().ok().and_then(|root| Some(target.strip_prefix(root).ok()?.into()))
    {
        Some(below) => below,
        None => target,
    }
}

/// Makes a folder and its parents, if missing.
pub(crate) fn make_folder(folder: &Path) -> Result {
    std::fs::create_dir_all(folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|e| format!("cannot read {}: {e}", path.display()))
}

pub(crate) fn read_text(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))
}

pub(crate) fn write(path: &Path, text: &str) -> Result {
    std::fs::write(path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))
}

pub(crate) fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|e| format!("no full path for {}: {e}", path.display()))
}

/// The hash before the first byte.
pub(crate) const FNV: u64 = 0xcbf2_9ce4_8422_2325;

/// Continues the FNV-1a hash of 64 bits, which does not change with Rust's releases.
pub(crate) fn fnv1a(hash: u64, bytes: &[u8]) -> u64 {
    let prime = 0x0000_0100_0000_01b3;
    bytes.iter().fold(hash, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(prime))
}

/// A command that lets Open MPI run as root in a container, and with more ranks than cores.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env("OMPI_MCA_mpi_yield_when_idle", "1");
    command
}

pub(crate) fn cargo() -> Command {
    command(std::env::var_os("CARGO").unwrap_or("cargo".into()))
}

/// The command line as typed.
pub(crate) fn shown(command: &Command) -> String {
    let program = match Path::new(command.get_program()) {
        p if p.file_stem() == Some(OsStr::new("cargo")) => "cargo".into(),
        p => p.display().to_string(),
    };
    let quoted = command.get_args().map(|a| match a.to_string_lossy() {
        a if a.contains(' ') => format!("'{a}'"),
        a => a.into_owned(),
    });
    std::iter::once(program).chain(quoted).collect::<Vec<_>>().join(" ")
}

fn not_started(command: &Command, why: &std::io::Error) -> String {
    format!("cannot start `{}`: {why}", shown(command))
}

/// An error that names the command unless it succeeded.
fn judged(command: &Command, status: ExitStatus) -> Result {
    if status.success() { Ok(()) } else { Err(format!("`{}` failed: {status}", shown(command))) }
}

/// Runs a command, with our output.
pub(crate) fn run(command: &mut Command) -> Result {
    let status = command.status().map_err(|e| not_started(command, &e))?;
    judged(command, status)
}

/// Runs a command, and hands on each line of its output as it comes.
pub(crate) fn run_by_line(command: &mut Command, mut each: impl FnMut(&str)) -> Result {
    let started = command.stdout(Stdio::piped()).spawn();
    let mut child = started.map_err(|e| not_started(command, &e))?;
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).split(b'\n').map_while(std::io::Result::ok) {
            each(&String::from_utf8_lossy(&line));
        }
    }
    let status = child.wait().map_err(|e| format!("cannot wait for `{}`: {e}", shown(command)))?;
    judged(command, status)
}

/// Prints the command line, then runs it.
pub(crate) fn run_shown(command: &mut Command) -> Result {
    println!("\n$ {}", shown(command));
    run(command)
}

/// The output of a command, without the last newline.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().map_err(|e| not_started(command, &e))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        return Err(format!("`{}` failed: {}\n{complaint}", shown(command), output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_string())
}

/// Whether a command succeeds; its output is dropped.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    output(command).is_ok()
}

/// Whether a program of this name is on the PATH.
pub(crate) fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_typed() {
        let mut command = Command::new("/somewhere/bin/cargo");
        command.args(["test", "--features", "a b"]);
        assert_eq!(shown(&command), "cargo test --features 'a b'");
    }

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(fnv1a(FNV, b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(FNV, b"a"), 0xaf63_dc4c_8601_ec8c);
    }

    #[test]
    fn failures_name_the_command() {
        let failed = run(&mut Command::new("false")).unwrap_err();
        assert!(failed.contains("`false`") && failed.contains("status"), "{failed}");
        let absent = run(&mut Command::new("no-such-program-here")).unwrap_err();
        assert!(absent.contains("cannot start `no-such-program-here`"), "{absent}");
    }

    #[test]
    fn lines_are_handed_on() {
        let mut lines = Vec::new();
        let script = ["-c", "echo a; echo b; exit 1"];
        let outcome =
            run_by_line(Command::new("sh").args(script), |line| lines.push(line.to_string()));
        assert_eq!(lines, ["a", "b"]);
        assert!(outcome.unwrap_err().contains("status"));
    }
}
