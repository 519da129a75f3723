//! Python environments in the target folder; the machine's own Python stays as it is.

use crate::tools::{self, Result, command};
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    tools::target_dir().join("venv")
}

fn python() -> PathBuf {
    folder().join("bin/python")
}

/// The packages that tests need; packages and modules have the same names.
const PACKAGES: [&str; 7] = ["numpy", "scipy", "pytest", "hypothesis", "mpi4py", "ruff", "jax"];

/// Whether the environment is complete.
pub(crate) fn ready() -> bool {
    let import = format!("import {}", PACKAGES.join(", "));
    tools::succeeds(command(python()).args(["-c", &import]))
}

/// Makes that environment unless it is complete; the full path of its interpreter.
pub(crate) fn ensure() -> Result<PathBuf> {
    if !ready() {
        println!("making a Python environment in {}", folder().display());
        make(&folder(), &[&["--prefer-binary"], &PACKAGES[..]].concat())?;
    }
    // Not `canonicalize`: the interpreter is a link, which finds the environment by its own path.
    tools::absolute(&python())
}

/// Makes an environment anew, with these packages.
pub(crate) fn make(folder: &Path, packages: &[&str]) -> Result {
    tools::run(command("python3").args(["-m", "venv", "--clear"]).arg(folder))?;
    let pip = ["-m", "pip", "install", "--quiet"];
    tools::run(command(folder.join("bin/python")).args(pip).args(packages))
}
