//! `cargo xtask test --quick`: the packages and tests that a change may break.

use super::known::{Quick, quick};
use super::workspace::{Package, Test, Workspace};
use crate::tools::{self, Result, command};
use std::collections::BTreeSet;

/// The packages of a change.
#[derive(Debug, PartialEq)]
pub(super) struct Choice {
    /// Packages with files that changed since the last commit.
    changed: BTreeSet<String>,
    /// Those and their dependents; all if nothing changed.
    tested: BTreeSet<String>,
}

impl Choice {
    pub(super) fn now(workspace: &Workspace) -> Result<Self> {
        let git = |words: &str| tools::output(command("git").args(words.split(' ')));
        // A moved file also belongs to its old package.
        let known = git("diff --name-only --no-renames -z HEAD")?;
        let new = git("ls-files --others --exclude-standard -z")?;
        let files = known.split('\0').chain(new.split('\0')).filter(|file| !file.is_empty());
        Ok(Self::of(&files.collect::<Vec<_>>(), workspace))
    }

    pub(super) fn of(files: &[&str], workspace: &Workspace) -> Self {
        let changed = workspace.owners(files.iter().copied());
        let tested = match files {
            [] => workspace.names(),
            _ => workspace.with_dependents(&changed),
        };
        Self { changed, tested }
    }

    /// Whether only files outside of packages changed.
    pub(super) fn is_empty(&self) -> bool {
        self.tested.is_empty()
    }

    /// One line: the tested packages, and why.
    pub(super) fn line(&self) -> String {
        let list = |names: &BTreeSet<String>| {
            names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
        };
        match (self.changed.is_empty(), self.is_empty()) {
            (true, true) => "no package changed since the last commit: none is tested".into(),
            (true, false) => {
                "nothing changed since the last commit: all packages are tested".into()
            }
            _ => format!("changed: {}; tested: {}", list(&self.changed), list(&self.tested)),
        }
    }

    pub(super) fn runs(&self, package: &str, target: &str) -> bool {
        self.tested.contains(package)
            && match quick(package, target) {
                Quick::Always => true,
                Quick::OwnChange => self.changed.contains(package),
                Quick::Never => false,
            }
    }

    /// Cargo's arguments for all unit tests and the integration tests that run.
    pub(super) fn tests(&self, workspace: &Workspace) -> Vec<String> {
        targets(workspace, |package, test| self.runs(&package.name, &test.name))
    }

    /// Clippy's arguments for all unit tests and the integration tests of changed packages; of all
    /// if nothing changed.
    pub(super) fn lints(&self, workspace: &Workspace, mpi: bool) -> Vec<String> {
        targets(workspace, |package, test| {
            let wanted = self.changed.is_empty() || self.changed.contains(&package.name);
            wanted && (mpi || !test.needs_mpi)
        })
    }
}

/// Cargo's arguments for libraries, binaries and wanted integration tests. Naming packages would
/// change the features of dependencies, and build them again.
fn targets(workspace: &Workspace, wanted: impl Fn(&Package, &Test) -> bool) -> Vec<String> {
    let mut names = BTreeSet::new();
    for package in &workspace.packages {
        let tests = package.tests.iter().filter(|test| wanted(package, test));
        names.extend(tests.map(|test| test.name.as_str()));
    }
    let tests = names.into_iter().flat_map(|name| ["--test", name]);
    ["--lib", "--bins"].into_iter().chain(tests).map(String::from).collect()
}

#[cfg(test)]
mod tests {
    use super::super::workspace::tests::small;
    use super::*;

    fn choice(files: &[&str]) -> Choice {
        Choice::of(files, &small())
    }

    #[test]
    fn a_change_of_the_core_is_tested_everywhere_without_jobs() {
        let choice = choice(&["crates/fft-core/src/lib.rs"]);
        assert_eq!(
            choice.line(),
            "changed: fft-core; tested: fft-cli, fft-comm, fft-core, thriffty"
        );
        assert!(choice.runs("fft-core", "lib") && choice.runs("thriffty", "host"));
        assert!(choice.runs("fft-cli", "bin") && !choice.runs("fft-cli", "cli_tests"));
        assert!(!choice.runs("thriffty", "mpi") && !choice.runs("xtask", "bin"));
        let run = ["comm_tests", "core_tests", "host"];
        let words = ["--lib", "--bins"].into_iter();
        let run: Vec<_> = words.chain(run.into_iter().flat_map(|name| ["--test", name])).collect();
        assert_eq!(choice.tests(&small()), run);
        assert_eq!(choice.lints(&small(), true), ["--lib", "--bins", "--test", "core_tests"]);
    }

    #[test]
    fn a_change_of_a_program_runs_its_own_tests() {
        let choice = choice(&["crates/fft-cli/src/main.rs"]);
        assert!(choice.runs("fft-cli", "cli_tests") && !choice.runs("thriffty", "lib"));
        assert_eq!(choice.tests(&small()), ["--lib", "--bins", "--test", "cli_tests"]);
    }

    #[test]
    fn what_needs_mpi_is_linted_where_it_is() {
        let choice = choice(&["tests/mpi/main.rs"]);
        let all = ["--lib", "--bins", "--test", "host", "--test", "mpi"];
        assert_eq!(choice.lints(&small(), true), all);
        assert_eq!(choice.lints(&small(), false), all[..4]);
    }

    #[test]
    fn no_change_is_a_test_of_all() {
        let choice = choice(&[]);
        assert!(choice.line().starts_with("nothing changed"));
        assert!(choice.runs("xtask", "bin") && choice.runs("thriffty", "host"));
        assert!(!choice.runs("thriffty", "mpi") && !choice.runs("fft-cli", "cli_tests"));
        assert!(choice.lints(&small(), true).contains(&"mpi".into()));
    }

    #[test]
    fn a_change_of_text_is_a_test_of_nothing() {
        let choice = choice(&["README.md"]);
        assert!(choice.is_empty() && choice.line().starts_with("no package changed"));
    }
}
