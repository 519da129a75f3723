//! The packages of the workspace, by `cargo metadata`.

use crate::tools::{self, Result, cargo};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Folders that belong to another package than that of their parent.
const LENT: [(&str, &str); 3] =
    [("include", "fft-capi"), ("kernels", "fft-gpu"), ("tests/golden", "fft-core")];
/// Files of every package.
const OF_ALL: [&str; 4] = ["Cargo.toml", "Cargo.lock", "rust-toolchain.toml", ".cargo"];
/// Files of the root's package. Others in the root are text.
const OF_ROOT: [&str; 6] = ["src", "tests", "benches", "examples", "machines", "build.rs"];

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Package {
    pub(super) name: String,
    /// Its folder from the workspace's root; empty for the root's package.
    pub(super) folder: PathBuf,
    pub(super) uses: Vec<String>,
    pub(super) tests: Vec<Test>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Test {
    pub(super) name: String,
    /// Cargo does not build it without MPI.
    pub(super) needs_mpi: bool,
}

pub(super) struct Workspace {
    pub(super) root: PathBuf,
    pub(super) packages: Vec<Package>,
}

impl Workspace {
    pub(super) fn read() -> Result<Self> {
        let words = ["metadata", "--no-deps", "--format-version", "1"];
        let text = tools::output(cargo().args(words))?;
        Self::parse(&text).ok_or("`cargo metadata` says something that is not understood".into())
    }

    fn parse(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let root = PathBuf::from(value["workspace_root"].as_str()?);
        let packages = value["packages"].as_array()?.iter();
        let packages =
            packages.map(|package| Package::parse(package, &root)).collect::<Option<_>>();
        Some(Self { packages: packages?, root })
    }

    pub(super) fn names(&self) -> BTreeSet<String> {
        self.packages.iter().map(|package| package.name.clone()).collect()
    }

    /// The packages of these files, which are relative to the root.
    pub(super) fn owners<'f>(&self, files: impl IntoIterator<Item = &'f str>) -> BTreeSet<String> {
        let mut owners = BTreeSet::new();
        for file in files.into_iter().map(Path::new) {
            if OF_ALL.iter().any(|shared| file.starts_with(shared)) {
                return self.names();
            }
            let lent = LENT.iter().find(|(folder, _)| file.starts_with(folder));
            let owner = lent.map(|(_, owner)| *owner).or_else(|| self.owner(file));
            owners.extend(owner.map(String::from));
        }
        owners
    }

    fn owner(&self, file: &Path) -> Option<&str> {
        let (root, inner): (Vec<_>, Vec<_>) =
            self.packages.iter().partition(|package| package.folder.as_os_str().is_empty());
        let inner = inner.into_iter().find(|package| file.starts_with(&package.folder));
        let of_root = || OF_ROOT.iter().any(|part| file.starts_with(part));
        let owner = inner.or_else(|| root.into_iter().find(|_| of_root()));
        owner.map(|package| package.name.as_str())
    }

    /// These packages and all that depend on them, directly or not.
    pub(super) fn with_dependents(&self, packages: &BTreeSet<String>) -> BTreeSet<String> {
        let mut all = packages.clone();
        loop {
            let before = all.len();
            for package in &self.packages {
                if package.uses.iter().any(|used| all.contains(used)) {
                    all.insert(package.name.clone());
                }
            }
            if all.len() == before {
                return all;
            }
        }
    }
}

impl Package {
    fn parse(value: &Value, root: &Path) -> Option<Self> {
        let folder = Path::new(value["manifest_path"].as_str()?).parent()?;
        let name = |entry: &Value| Some(entry["name"].as_str()?.to_string());
        let uses = value["dependencies"].as_array()?.iter().filter(|used| used["path"].is_string());
        let tests = value["targets"].as_array()?.iter().filter(|made| made["kind"][0] == "test");
        let test = |target: &Value| {
            let needs = target["required-features"].as_array();
            let needs_mpi = needs.is_some_and(|needs| needs.iter().any(|need| need == "mpi"));
            Some(Test { name: name(target)?, needs_mpi })
        };
        Some(Self {
            name: name(value)?,
            folder: folder.strip_prefix(root).ok()?.to_path_buf(),
            uses: uses.map(name).collect::<Option<_>>()?,
            tests: tests.map(test).collect::<Option<_>>()?,
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn test(name: &str, needs_mpi: bool) -> Test {
        Test { name: name.into(), needs_mpi }
    }

    /// A core, what stands on it, the whole in the root, and a package beside them.
    pub(crate) fn small() -> Workspace {
        let package = |name: &str, folder: &str, uses: &[&str], tests: &[&str]| Package {
            name: name.into(),
            folder: folder.into(),
            uses: uses.iter().map(|used| used.to_string()).collect(),
            tests: tests.iter().map(|test| self::test(test, *test == "mpi")).collect(),
        };
        let packages = vec![
            package("fft-core", "crates/fft-core", &[], &["core_tests"]),
            package("fft-comm", "crates/fft-comm", &["fft-core"], &["comm_tests"]),
            package("thriffty", "", &["fft-comm"], &["host", "mpi"]),
            package("fft-cli", "crates/fft-cli", &["thriffty"], &["cli_tests"]),
            package("xtask", "xtask", &[], &[]),
        ];
        Workspace { root: "/w".into(), packages }
    }

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| name.to_string()).collect()
    }

    #[test]
    fn metadata_is_read() {
        let text = r#"{"workspace_root": "/w", "packages": [
            {"name": "whole", "manifest_path": "/w/Cargo.toml",
             "dependencies": [{"name": "core", "path": "/w/core"}, {"name": "log", "path": null}],
             "targets": [{"name": "whole", "kind": ["lib"]}, {"name": "host", "kind": ["test"]},
                         {"name": "mpi", "kind": ["test"], "required-features": ["mpi"]}]},
            {"name": "core", "manifest_path": "/w/core/Cargo.toml", "dependencies": [{"name": "log"}],
             "targets": []}]}"#;
        let [whole, core] =
            <[Package; 2]>::try_from(Workspace::parse(text).unwrap().packages).unwrap();
        assert_eq!((whole.folder, core.folder), ("".into(), "core".into()));
        assert_eq!(whole.uses, ["core"]);
        assert_eq!(whole.tests, [test("host", false), test("mpi", true)]);
        assert!(core.uses.is_empty() && core.tests.is_empty());
        assert!(Workspace::parse("{}").is_none());
    }

    #[test]
    fn files_belong_to_packages() {
        let owners = |files: &[&str]| small().owners(files.iter().copied());
        assert_eq!(
            owners(&["crates/fft-core/src/lib.rs", "src/plan.rs"]),
            set(&["fft-core", "thriffty"])
        );
        assert_eq!(owners(&["tests/golden/f32.bin"]), set(&["fft-core"]));
        assert_eq!(owners(&["README.md", "docs/gpu.md", ".ci/run"]), set(&[]));
        assert_eq!(owners(&["xtask/src/main.rs", "README.md"]), set(&["xtask"]));
        assert_eq!(owners(&["src/lib.rs", "Cargo.lock"]), small().names());
    }

    #[test]
    fn a_change_reaches_all_that_stands_on_it() {
        let reached = |names: &[&str]| small().with_dependents(&set(names));
        assert_eq!(reached(&["fft-core"]), set(&["fft-core", "fft-comm", "thriffty", "fft-cli"]));
        assert_eq!(reached(&["thriffty", "xtask"]), set(&["thriffty", "fft-cli", "xtask"]));
    }

    #[test]
    fn this_workspace_is_understood() {
        let workspace = Workspace::read().unwrap();
        for (folder, owner) in LENT {
            assert!(workspace.names().contains(owner), "{owner} has {folder}");
        }
        assert_eq!(workspace.owners(["xtask/src/main.rs"]), set(&["xtask"]));
        let mut apart = workspace.names();
        apart.retain(|name| !workspace.with_dependents(&set(&["fft-core"])).contains(name));
        assert_eq!(apart, set(&["fft-lines", "fft-stream", "xtask"]));
    }
}
