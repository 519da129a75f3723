//! An installation that programs are built against, and run with.

use crate::tools::{self, Result, command, output};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Flags of C and C++: warnings are errors. Open MPI's C++ classes, which have some, are left out.
pub(super) const STRICT: [&str; 5] =
    ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-DOMPI_SKIP_MPICXX"];

/// An installation, and the folder of the built programs.
pub(super) struct Bench {
    pub(super) prefix: PathBuf,
    pub(super) folder: PathBuf,
}

impl Bench {
    /// A command that finds the installation.
    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = command(program);
        let lib = self.prefix.join("lib");
        let path = format!("{0}:{0}/thriffty", lib.display());
        command.env("PKG_CONFIG_PATH", lib.join("pkgconfig")).env("LD_LIBRARY_PATH", path);
        command
    }

    pub(super) fn built(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The flags of pkg-config.
    pub(super) fn flags(&self, words: &[&str]) -> Result<Vec<String>> {
        let text = output(self.command("pkg-config").args(words))?;
        Ok(text.split_whitespace().map(String::from).collect())
    }

    pub(super) fn mpirun(&self, ranks: &str, words: &[&Path]) -> Result {
        tools::run_shown(self.command("mpirun").args(["-n", ranks]).args(words))
    }
}
