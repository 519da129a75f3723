//! `cargo xtask python`: tests of the Python package, alone and over MPI.

use crate::packages::{self, MPI};
use crate::tools::{self, Result, command, run_shown};
use crate::{programs, venv};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Nothing is left in the folders of sources.
const PYTEST: [&str; 7] =
    ["-m", "pytest", "-q", "--no-header", "--color=no", "-p", "no:cacheprovider"];

const SOURCES: [&str; 3] = ["python", "examples/python", "benches/peers"];

const OVER_MPI: &str = "python/tests/mpi";
/// Modules that pytest does not import: torch is not installed, and the others are programs that
/// tests start.
const NOT_IMPORTED: [&str; 2] = ["python/thriffty/*torch*", "python/tests/*_ranks.py"];
/// Pages with examples.
const PAGES: [&str; 2] = ["docs/arrays.md", "docs/python.md"];

/// Builds the library with the features of other tests, and runs the tests and examples.
pub(crate) fn run() -> Result {
    packages::ensure(&MPI.iter().collect::<Vec<_>>());
    programs::build()?;
    let tests = Environment {
        python: venv::ensure()?,
        library: tools::absolute(&tools::target_dir().join("debug/libfft_capi.so"))?,
    };
    for check in [["check", "--quiet"], ["format", "--check"]] {
        let ruff = tests.python.with_file_name("ruff");
        run_shown(command(ruff).args(check).args(SOURCES).arg("--no-cache"))?;
    }
    let alone = ["python/tests", "--ignore", OVER_MPI];
    let ignored = NOT_IMPORTED.map(|pattern| format!("--ignore-glob={pattern}"));
    let examples = ["--doctest-modules", "python/thriffty", "--doctest-glob", "*.md"];
    let mut pytest = tests.with_library(&tests.python);
    run_shown(pytest.args(PYTEST).args(alone).args(ignored).args(examples).args(PAGES))?;
    run_shown(tests.with_library(&tests.python).arg("examples/python/without_mpi.py"))?;
    for ranks in ["1", "2", "3", "4"] {
        run_shown(tests.mpirun(ranks).args(PYTEST).arg(OVER_MPI))?;
    }
    for (ranks, example) in [("1", "deconvolution.py"), ("2", "poisson.py"), ("2", "spectrum.py")] {
        run_shown(tests.mpirun(ranks).arg(Path::new("examples/python").join(example)))?;
    }
    Ok(())
}

struct Environment {
    python: PathBuf,
    library: PathBuf,
}

impl Environment {
    /// A command that finds the package and the library.
    fn with_library(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = command(program);
        command
            .env("PYTHONPATH", "python")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("THRIFFTY_LIBRARY", &self.library);
        command
    }

    /// Python on this number of ranks.
    fn mpirun(&self, ranks: &str) -> Command {
        let mut command = self.with_library("mpirun");
        command.args(["-n", ranks]).arg(&self.python);
        command
    }
}
