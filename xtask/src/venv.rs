//! A Python with NumPy and SciPy in the target folder, for the tests that compare with them. The machine's own Python
//! is left as it is.

use crate::tools::{self, Result, command};
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    tools::target_dir().join("venv")
}

fn python() -> PathBuf {
    folder().join("bin/python")
}

/// Whether the environment is there and complete.
pub(crate) fn ready() -> bool {
    tools::succeeds(command(python()).args(["-c", "import numpy, scipy"]))
}

/// Makes the environment unless it is complete; its interpreter, by its full path since tests run in other folders.
pub(crate) fn ensure() -> Result<PathBuf> {
    if !ready() {
        println!("making a Python environment in {}", folder().display());
        tools::run(command("python3").args(["-m", "venv", "--clear"]).arg(folder()))?;
        let pip = ["-m", "pip", "install", "--quiet", "--prefer-binary", "numpy", "scipy"];
        tools::run(command(python()).args(pip))?;
    }
    absolute(&python())
}

/// Not `canonicalize`: the interpreter is a link, and only by the link's own path does it find the environment.
fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|e| format!("no full path for {}: {e}", path.display()))
}
