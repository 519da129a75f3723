//! `cargo xtask demo`: transforms and the spectrum of a known flow, with MPI and with threads.

use crate::setup;
use crate::tools::{self, Result, cargo, command, run_shown};
use std::path::{Path, PathBuf};
use std::process::Command;

const RANKS: &str = "4";

pub(crate) fn build_cli(mpi: bool) -> Result<PathBuf> {
    let features: &[&str] = if mpi { &["--features", "fft-cli/mpi"] } else { &[] };
    run_shown(cargo().args(["build", "--release", "--package", "fft-cli"]).args(features))?;
    Ok(tools::target_dir().join("release/fft-cli"))
}

/// `mpirun -n RANKS program`, to be completed.
pub(crate) fn mpirun(ranks: &str, program: &Path) -> Command {
    let mut mpirun = command("mpirun");
    mpirun.args(["-n", ranks]).arg(program);
    mpirun
}

/// Runs the demo; without MPI its ranks are threads.
pub(crate) fn run() -> Result {
    let mpi = setup::prepare(&[]).mpi;
    if !mpi {
        println!("no MPI here: every rank is a thread");
    }
    let cli = build_cli(mpi)?;
    let folder = tools::target_dir().join("demo");
    tools::make_folder(&folder)?;
    let [u, v, w] = ["u.npy", "v.npy", "w.npy"].map(|name| folder.join(name));

    let sample = ["sample", "taylor-green", "--n", "128", "--out"];
    run_shown(command(&cli).args(sample).arg(&folder))?;

    let [by_mpi, by_threads] = ["u_hat.npy", "u_hat_threads.npy"].map(|name| folder.join(name));
    let threads = ["--ranks", RANKS];
    let transform = ["transform", "r2c"];
    if mpi {
        run_shown(mpirun(RANKS, &cli).args(transform).args([&u, &by_mpi]))?;
    }
    run_shown(command(&cli).args(transform).args([&u, &by_threads]).args(threads))?;
    if mpi {
        let names = format!("{} and {}", by_mpi.display(), by_threads.display());
        if tools::read(&by_mpi)? != tools::read(&by_threads)? {
            return Err(format!("{names} differ"));
        }
        println!("{names} are identical, byte by byte");
    }

    let bench = ["bench", "r2c", "128x128x128"];
    if mpi {
        run_shown(mpirun(RANKS, &cli).args(bench))?;
    }
    run_shown(command(&cli).args(bench).args(threads))?;

    let mut spectrum = if mpi { mpirun(RANKS, &cli) } else { command(&cli) };
    spectrum.arg("spectrum").args([&u, &v, &w]).arg("--svg").arg(folder.join("spectrum.svg"));
    if !mpi {
        spectrum.args(threads);
    }
    run_shown(&mut spectrum)
}
