//! Builds test programs, and reports each as soon as cargo has built it and what it runs.

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

    /// Whether it runs the binary of its package, if that has one.
    fn runs_binary(&self) -> bool {
        !matches!(self.target.as_str(), "lib" | "bin")
    }
}

/// The package whose binary a line of cargo's messages reports, if any.
fn binary_of_message<'w>(line: &str, workspace: &'w Workspace) -> Option<&'w str> {
    let message: Value = serde_json::from_str(line).ok()?;
    let is_binary = message["reason"] == "compiler-artifact"
        && message["profile"]["test"] == false
        && message["target"]["kind"][0] == "bin";
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
    let within = folder.strip_prefix(&workspace.root).ok().filter(|_| is_binary)?;
    let package = workspace.packages.iter().find(|package| package.folder == within)?;
    Some(&package.name)
}

/// Programs that wait for the binary of their package.
struct Held<'w> {
    workspace: &'w Workspace,
    without: Vec<&'w str>,
    programs: Vec<Program>,
}

impl<'w> Held<'w> {
    fn new(workspace: &'w Workspace) -> Self {
        let with_binary = workspace.packages.iter().filter(|package| package.has_binary);
        let without = with_binary.map(|package| package.name.as_str()).collect();
        Self { workspace, without, programs: Vec::new() }
    }

    /// The programs that can run from this line of cargo's messages on.
    fn on(&mut self, line: &str) -> Vec<Program> {
        if let Some(built) = binary_of_message(line, self.workspace) {
            self.without.retain(|package| *package != built);
        }
        self.programs.extend(Program::of_message(line, self.workspace));
        let waits = |program: &mut Program| {
            program.runs_binary() && self.without.contains(&program.package.as_str())
        };
        self.programs.extract_if(.., |program| !waits(program)).collect()
    }
}

/// Runs a cargo that builds tests, and calls `ready` with each test program.
pub(super) fn build(
    command: &mut Command,
    workspace: &Workspace,
    mut ready: impl FnMut(Program),
) -> Result {
    let mut held = Held::new(workspace);
    tools::run_by_line(command.stdin(Stdio::null()), |line| {
        held.on(line).into_iter().for_each(&mut ready);
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
    fn a_program_waits_for_the_binary_that_it_runs() {
        let workspace = small();
        let mut held = Held::new(&workspace);
        let mut names = |folder, kind, name, test| {
            let line = message(folder, kind, name, test, "\"/w/target/debug/p\"");
            held.on(&line).iter().map(Program::name).collect::<Vec<_>>()
        };
        let (cli, none) = ("/w/crates/fft-cli", Vec::<String>::new());
        assert_eq!(names(cli, "test", "cli_tests", true), none);
        assert_eq!(names(cli, "bin", "fft-cli", true), ["fft-cli bin"]);
        assert_eq!(names("/w", "test", "host", true), ["thriffty host"]);
        assert_eq!(names(cli, "bin", "fft-cli", false), ["fft-cli cli_tests"]);
        assert_eq!(names(cli, "bin", "fft-cli", false), none);
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
