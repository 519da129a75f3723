//! `cargo xtask setup`: the tools of the other tasks.

use crate::packages::{self, COMPILERS, MPI, Need, PYTHON};
use crate::tools::{self, Result, cargo};
use crate::venv;
use std::path::PathBuf;

/// The tools of this machine. Without some of them the other tasks do less.
pub(crate) struct Ready {
    /// MPI can be built against and run.
    pub(crate) mpi: bool,
    /// Tools for programs in C, C++ and Fortran.
    pub(crate) compilers: bool,
    pub(crate) python: Option<PathBuf>,
    pub(crate) rustfmt: bool,
    pub(crate) clippy: bool,
}

/// Installs what is missing, if permitted.
pub(crate) fn prepare(further: &[&Need]) -> Ready {
    let mut needs: Vec<&Need> = MPI.iter().chain(further.iter().copied()).collect();
    if !venv::ready() {
        needs.push(&PYTHON);
    }
    packages::ensure(&needs);

    let python = if venv::ready() || (PYTHON.present)() {
        venv::ensure().inspect_err(|why| println!("not available: NumPy, SciPy: {why}")).ok()
    } else {
        None
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
