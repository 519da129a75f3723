//! Building test programs, and hearing from cargo of each as soon as it is there.

use super::workspace::Workspace;
use crate::tools::{self, Result};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// When a loop of a developer runs a test program.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Quick {
    /// Whenever something that it is built of changed.
    Always,
    /// When its own package changed: it takes long.
    OwnChange,
    Never,
}

/// What is known of a test program by its package and its name.
struct Known {
    package: &'static str,
    target: &'static str,
    /// It fills the machine by threads or processes of its own.
    alone: bool,
    quick: Quick,
}

/// The programs that are not like most: most share the machine, and run in every loop.
const KNOWN: [Known; 6] = [
    Known { package: "thriffty", target: "host", alone: true, quick: Quick::Always },
    // It starts jobs of processes, one after the other.
    Known { package: "thriffty", target: "mpi", alone: true, quick: Quick::Never },
    Known { package: "fft-cli", target: "all", alone: true, quick: Quick::OwnChange },
    // They need a device, or do little.
    Known { package: "thriffty", target: "device", alone: true, quick: Quick::OwnChange },
    Known { package: "fft-capi", target: "device", alone: true, quick: Quick::OwnChange },
    Known { package: "fft-gpu", target: "gpu", alone: true, quick: Quick::OwnChange },
];

fn known(package: &str, target: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.package == package && known.target == target)
}

/// When a loop runs the integration test of this name.
pub(super) fn quick(package: &str, target: &str) -> Quick {
    known(package, target).map_or(Quick::Always, |known| known.quick)
}

/// A test program.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Program {
    pub(super) package: String,
    /// The name of an integration test, or `lib` or `bin` for unit tests.
    pub(super) target: String,
    pub(super) path: PathBuf,
    /// Where it runs: the folder of its package.
    pub(super) folder: PathBuf,
}

impl Program {
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.package, self.target)
    }

    /// Whether it fills the machine by itself.
    pub(super) fn alone(&self) -> bool {
        known(&self.package, &self.target).is_some_and(|known| known.alone)
    }

    /// The program of a line of cargo's messages, if the line is of one.
    fn of_message(line: &str, workspace: &Workspace) -> Option<Self> {
        let message: Value = serde_json::from_str(line).ok()?;
        if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
            return None;
        }
        let path = PathBuf::from(message["executable"].as_str()?);
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_path_buf();
        let within = folder.strip_prefix(&workspace.root).ok()?;
        let package = workspace.packages.iter().find(|package| package.folder == within)?;
        let target = match message["target"]["kind"][0].as_str()? {
            "test" => message["target"]["name"].as_str()?,
            "bin" => "bin",
            _ => "lib",
        };
        Some(Self { package: package.name.clone(), target: target.to_string(), path, folder })
    }
}

/// Runs a cargo that builds tests to its end, and hands over every test program once it is built.
pub(super) fn build(
    command: &mut Command,
    workspace: &Workspace,
    mut ready: impl FnMut(Program),
) -> Result {
    let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let mut child =
        started.map_err(|e| format!("cannot start `{}`: {e}", tools::shown(command)))?;
    if let Some(messages) = child.stdout.take() {
        for line in BufReader::new(messages).lines().map_while(std::io::Result::ok) {
            if let Some(program) = Program::of_message(&line, workspace) {
                ready(program);
            }
        }
    }
    match child.wait() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{}` failed: {status}", tools::shown(command))),
        Err(e) => Err(format!("cannot wait for `{}`: {e}", tools::shown(command))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::workspace::tests::small;
    use super::*;

    fn message(folder: &str, kind: &str, name: &str, test: bool, executable: &str) -> String {
        format!(
            r#"{{"reason":"compiler-artifact","package_id":"path+file:///w#0.1.0","manifest_path":"{folder}/Cargo.toml",
            "target":{{"kind":["{kind}"],"crate_types":["bin"],"name":"{name}"}},
            "profile":{{"opt_level":"1","test":{test}}},"filenames":[],"executable":{executable},"fresh":false}}"#
        )
    }

    #[test]
    fn programs_are_found_among_the_messages() {
        let found = |folder, kind, name| {
            let line = message(folder, kind, name, true, "\"/w/target/debug/deps/p-0\"");
            let program = Program::of_message(&line, &small()).unwrap();
            assert_eq!(
                (program.path, program.folder.as_path()),
                ("/w/target/debug/deps/p-0".into(), Path::new(folder))
            );
            format!("{} {}", program.package, program.target)
        };
        assert_eq!(found("/w", "test", "mpi"), "thriffty mpi");
        assert_eq!(found("/w/crates/fft-core", "lib", "fft_core"), "fft-core lib");
        assert_eq!(found("/w/crates/fft-core", "cdylib", "fft_core"), "fft-core lib");
        assert_eq!(found("/w/crates/fft-cli", "bin", "fft-cli"), "fft-cli bin");
    }

    #[test]
    fn other_messages_are_left_out() {
        let none = |line: &str| assert_eq!(Program::of_message(line, &small()), None);
        none(&message("/w", "lib", "thriffty", false, "null"));
        none(&message("/w/crates/fft-cli", "bin", "fft-cli", false, "\"/w/target/debug/fft-cli\""));
        none(&message("/elsewhere", "lib", "other", true, "\"/p\""));
        none(r#"{"reason":"build-finished","success":true}"#);
        none("what a build script says");
    }

    #[test]
    fn programs_that_start_jobs_are_in_no_loop_and_run_alone() {
        let mpi = Program {
            package: "thriffty".into(),
            target: "mpi".into(),
            path: "p".into(),
            folder: "".into(),
        };
        assert!(mpi.alone());
        assert_eq!(quick("thriffty", "mpi"), Quick::Never);
        assert_eq!(quick("fft-comm", "mpi"), Quick::Always);
    }
}
