//! `cargo xtask demo`: a vortex some seconds old, its transforms with MPI and with threads, its
//! spectrum and its vorticity.

use crate::setup;
use crate::tools::{self, Result, cargo, command, run_shown};
use std::path::{Path, PathBuf};
use std::process::Command;

const RANKS: &str = "4";
/// Points along each axis, the age of the vortex and the time between rows of its table. Steps are
/// as long as is stable for so few points.
const FLOW: &str = "--size 96 --reynolds 400 --time 9 --step 0.03125 --every 1";
/// The row of the table with which the velocity is written, and its file.
const LAST_ROW: &str = "9";
const VELOCITY: &str = "velocity-9.npy";

pub(crate) fn build_cli(mpi: bool) -> Result<PathBuf> {
    let features: &[&str] = if mpi { &["--features", "fft-cli/mpi"] } else { &[] };
    run_shown(cargo().args(["build", "--release", "--package", "fft-cli"]).args(features))?;
    Ok(tools::target_dir().join("release/fft-cli"))
}

/// The program that simulates the vortex.
fn build_flow(mpi: bool) -> Result<PathBuf> {
    let features: &[&str] = if mpi { &["--features", "mpi"] } else { &[] };
    let build = ["build", "--release", "--package", "thriffty", "--example", "taylor_green"];
    run_shown(cargo().args(build).args(features))?;
    Ok(tools::target_dir().join("release/examples/taylor_green"))
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
    let (cli, flow) = (build_cli(mpi)?, build_flow(mpi)?);
    let folder = tools::target_dir().join("demo");
    tools::make_folder(&folder)?;
    let threads = ["--ranks", RANKS];

    println!("\nThe Taylor-Green vortex: a simple flow that becomes turbulent");
    let mut flow = command(&flow);
    flow.args(FLOW.split(' ')).args(["--checkpoint-every", LAST_ROW, "--out"]).arg(&folder);
    run_shown(flow.args(threads))?;
    let velocity = folder.join(VELOCITY);

    println!("\nIts velocity, transformed");
    let [by_mpi, by_threads] = ["u_hat.npy", "u_hat_threads.npy"].map(|name| folder.join(name));
    let transform = ["transform", "r2c", "--kinds", "none,c2c,c2c,r2c"];
    if mpi {
        run_shown(mpirun(RANKS, &cli).args(transform).args([&velocity, &by_mpi]))?;
    }
    run_shown(command(&cli).args(transform).args([&velocity, &by_threads]).args(threads))?;
    if mpi {
        let names = format!("{} and {}", by_mpi.display(), by_threads.display());
        if tools::read(&by_mpi)? != tools::read(&by_threads)? {
            return Err(format!("{names} differ"));
        }
        println!("{names} are identical, byte by byte");
    }

    println!("\nThe time of a transform");
    let bench = ["bench", "r2c", "128x128x128"];
    if mpi {
        run_shown(mpirun(RANKS, &cli).args(bench))?;
    }
    run_shown(command(&cli).args(bench).args(threads))?;

    println!("\nThe energy of the vortex by wavenumber");
    let mut spectrum = if mpi { mpirun(RANKS, &cli) } else { command(&cli) };
    spectrum.args(["spectrum", "--vector"]).arg(&velocity).arg("--svg");
    spectrum.arg(folder.join("spectrum.svg"));
    if !mpi {
        spectrum.args(threads);
    }
    run_shown(&mut spectrum)?;
    println!("\nPictures in {}:", folder.display());
    for (name, what) in [
        ("vorticity.png", "the vorticity in the plane z = 3π/8"),
        ("spectrum.svg", "energy over wavenumber"),
        ("dissipation.svg", "dissipation over time"),
    ] {
        println!("  {name:<16} {what}");
    }
    Ok(())
}
