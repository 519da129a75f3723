//! Builds test programs, and reports each as soon as cargo has built it.

use super::known::{Share, known};
use super::workspace::Workspace;
use crate::tools::{self, Result};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Program {
    pub(super) package: String,
    /// The name of an integration test, or `lib` or `bin` for unit tests.
    pub(super) target: String,
    pub(super) path: PathBuf,
    /// The folder of its package, in which it runs.
    pub(super) folder: PathBuf,
}

impl Program {
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.package, self.target)
    }

    pub(super) fn share(&self) -> Share {
        known(&self.package, &self.target).map_or(Share::Core, |known| known.share)
    }

    /// The program of a line of cargo's messages, if any.
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
            "test" | "example" => message["target"]["name"].as_str()?,
            "bin" => "bin",
            _ => "lib",
        };
        Some(Self { package: package.name.clone(), target: target.to_string(), path, folder })
    }
}

/// Runs a cargo that builds tests, and calls `ready` with each test program.
pub(super) fn build(
    command: &mut Command,
    workspace: &Workspace,
    mut ready: impl FnMut(Program),
) -> Result {
    tools::run_by_line(command.stdin(Stdio::null()), |line| {
        if let Some(program) = Program::of_message(line, workspace) {
            ready(program);
        }
    })
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
        assert_eq!(found("/w", "example", "beam"), "thriffty beam");
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
}
