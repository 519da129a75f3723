//! `fft-cli`: benchmarks, verifies and runs distributed Fourier transforms on NumPy files.
//!
//! One file per command: `bench` (with `serve` and `report`), `transform`, `verify`, `plan` (with `scale`), `calibrate`,
//! `tune`, `sample`, `spectrum`, `study`. Beneath them:
//!
//! - `world` starts the ranks and ends them; every error that only some ranks can see becomes everyone's there;
//! - `family` gets from values to types, so that each command is written once for all transforms;
//! - `engine` runs plans on the host or, with `cuda`, on a GPU;
//! - `choosing` makes drafts of options, and plans the way they are asked to be chosen;
//! - `bricks`, `shape`, `files`, `npy` say who holds what, in memory and in files;
//! - `fields` (of `noise`), `wires`, `reference`, `check` make data and measure errors.
#![forbid(unsafe_code)]

mod bench;
mod bricks;
mod calibrate;
mod check;
mod choosing;
mod cli;
#[cfg(feature = "cuda")]
mod cuda;
mod engine;
mod family;
mod fields;
mod files;
mod noise;
mod npy;
mod plan;
mod plot;
mod reference;
mod report;
mod sample;
mod serve;
mod shape;
mod spectrum;
mod study;
mod transform;
mod tune;
mod verify;
mod wires;
mod world;

use std::process::ExitCode;

use clap::Parser;
use thriffty::Comm;

use cli::{Cli, Command};
use world::Failure;

fn main() -> ExitCode {
    thriffty::warnings::show("fft-cli");
    let cli = Cli::try_parse();
    let ranks = cli.as_ref().map_or(None, |cli| cli.ranks);
    // Ranks that are only thought of.
    match cli.as_ref().map(|cli| &cli.command) {
        Ok(Command::Plan(options)) => return world::alone(|| plan::run(options, ranks)),
        Ok(Command::Scale(options)) => return world::alone(|| plan::run_scale(options, ranks)),
        _ => {}
    }
    // Even a wrong command line, and --help, are for one rank to answer.
    world::run(ranks, |comm| match &cli {
        Ok(cli) => run(comm, cli),
        Err(answer) if !answer.use_stderr() => world::print(comm, &answer.to_string()),
        Err(error) => Err(Failure::Usage(cli::complaint(error))),
    })
}

fn run(comm: &dyn Comm, cli: &Cli) -> Result<(), Failure> {
    match &cli.command {
        Command::Bench(options) => bench::run(comm, options),
        Command::Calibrate(options) => calibrate::run(comm, options),
        Command::Tune(options) => tune::run(comm, options),
        Command::Transform(options) => transform::run(comm, options),
        Command::Verify(options) => verify::run(comm, options),
        Command::Sample(options) => sample::run(comm, options),
        Command::Spectrum(options) => spectrum::run(comm, options),
        Command::Study(options) => study::run(comm, options, cli.ranks.is_some()),
        Command::Plan(_) | Command::Scale(_) => unreachable!("done without ranks"),
    }
}
