//! `cargo xtask setup`: what the other tasks stand on.

use crate::packages::{self, COMPILERS, MPI, Need, PYTHON};
use crate::tools::{self, Result, cargo};
use crate::venv;
use std::path::PathBuf;

/// What this machine offers after set-up. The other tasks do less where something is missing; they do not fail.
pub(crate) struct Ready {
    /// MPI can be built against and run.
    pub(crate) mpi: bool,
    /// What programs in C, C++ and Fortran are built and checked with.
    pub(crate) compilers: bool,
    /// A Python with NumPy and SciPy.
    pub(crate) python: Option<PathBuf>,
    pub(crate) rustfmt: bool,
    pub(crate) clippy: bool,
}

/// Installs what is missing, where it may.
pub(crate) fn prepare(further: &[&Need]) -> Ready {
    let mut needs: Vec<&Need> = MPI.iter().chain(further.iter().copied()).collect();
    if !venv::ready() {
        needs.push(&PYTHON);
    }
    packages::ensure(&needs);

    let python = match venv::ready() || (PYTHON.present)() {
        true => {
            venv::ensure().inspect_err(|why| println!("not available: NumPy, SciPy: {why}")).ok()
        }
        false => None,
    };
    let component = |name: &str| {
        let there = tools::succeeds(cargo().args([name, "--version"]));
        if !there {
            println!("not available: cargo {name}; with rustup: rustup component add {name}");
        }
        there
    };
    Ready {
        mpi: MPI.iter().all(|need| (need.present)()),
        compilers: COMPILERS.iter().all(|need| (need.present)()),
        python,
        rustfmt: component("fmt"),
        clippy: component("clippy"),
    }
}

/// Sets up, and says what there is.
pub(crate) fn run() -> Result {
    let ready = prepare(&COMPILERS.iter().collect::<Vec<_>>());
    println!("MPI     {}", if ready.mpi { "ready" } else { "missing: ranks are threads" });
    let others =
        if ready.compilers { "ready" } else { "missing: no programs in C, C++ and Fortran" };
    println!("C etc.  {others}");
    match ready.python {
        Some(python) => println!("Python  {}", python.display()),
        None => println!("Python  missing: no comparison with NumPy and SciPy"),
    }
    Ok(())
}
