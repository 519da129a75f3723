//! Running other programs: with the environment that MPI needs, and with errors that name the command.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Errors here are for a person at a terminal, so they are text.
pub(crate) type Result<T = ()> = std::result::Result<T, String>;

/// The root of the workspace.
pub(crate) fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// Makes the workspace's root the current directory, so that every path below is relative to it and short to read.
pub(crate) fn enter_workspace() -> Result {
    let root = workspace();
    std::env::set_current_dir(root).map_err(|e| format!("cannot enter {}: {e}", root.display()))
}

/// Where cargo builds, relative to the workspace's root where it is below it.
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

/// Makes a folder and those above it, where they are missing.
pub(crate) fn make_folder(folder: &Path) -> Result {
    std::fs::create_dir_all(folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))
}

/// A command with what Open MPI needs to run as root in a container, and with more ranks than cores.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env("OMPI_MCA_mpi_yield_when_idle", "1");
    command
}

/// The cargo that runs this task.
pub(crate) fn cargo() -> Command {
    command(std::env::var_os("CARGO").unwrap_or("cargo".into()))
}

/// The command line, as a person would type it.
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

/// Runs a command to its end, its output going where ours goes.
pub(crate) fn run(command: &mut Command) -> Result {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{}` failed: {status}", shown(command))),
        Err(e) => Err(format!("cannot start `{}`: {e}", shown(command))),
    }
}

/// Runs a command to its end, its output going where ours goes, and kept.
pub(crate) fn run_and_keep(command: &mut Command) -> (String, Result) {
    let mut kept = String::new();
    let mut child = match command.stdout(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(e) => return (kept, Err(format!("cannot start `{}`: {e}", shown(command)))),
    };
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).split(b'\n').map_while(std::io::Result::ok) {
            let line = String::from_utf8_lossy(&line);
            println!("{line}");
            kept.extend([&line, "\n"]);
        }
    }
    let outcome = match child.wait() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{}` failed: {status}", shown(command))),
        Err(e) => Err(format!("cannot wait for `{}`: {e}", shown(command))),
    };
    (kept, outcome)
}

/// Prints the command line, then runs it.
pub(crate) fn run_shown(command: &mut Command) -> Result {
    println!("\n$ {}", shown(command));
    run(command)
}

/// What a command prints, without the last newline.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("cannot start `{}`: {e}", shown(command)))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        return Err(format!("`{}` failed: {}\n{complaint}", shown(command), output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_string())
}

/// Whether a command runs and succeeds; nothing is shown.
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
    fn failures_name_the_command() {
        let failed = run(&mut Command::new("false")).unwrap_err();
        assert!(failed.contains("`false`") && failed.contains("status"), "{failed}");
        let absent = run(&mut Command::new("no-such-program-here")).unwrap_err();
        assert!(absent.contains("cannot start `no-such-program-here`"), "{absent}");
    }

    #[test]
    fn what_is_said_is_kept() {
        let (said, outcome) =
            run_and_keep(Command::new("sh").args(["-c", "echo a; echo b; exit 1"]));
        assert_eq!(said, "a\nb\n");
        assert!(outcome.unwrap_err().contains("status"));
    }
}
