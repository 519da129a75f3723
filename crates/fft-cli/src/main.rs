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

mod args;
mod check;
mod commands;
mod data;
mod engine;
mod output;
mod ranks;

use std::process::ExitCode;

use clap::Parser;
use thriffty::Comm;

use args::cli::{Cli, Command};
use ranks::world::Failure;

fn main() -> ExitCode {
    thriffty::warnings::show("fft-cli");
    let cli = Cli::try_parse();
    let ranks = cli.as_ref().map_or(None, |cli| cli.ranks);
    // Ranks that are only thought of.
    match cli.as_ref().map(|cli| &cli.command) {
        Ok(Command::Plan(options)) => {
            return ranks::world::alone(|| commands::plan::run(options, ranks));
        }
        Ok(Command::Scale(options)) => {
            return ranks::world::alone(|| commands::plan::run_scale(options, ranks));
        }
        _ => {}
    }
    // Even a wrong command line, and --help, are for one rank to answer.
    ranks::world::run(ranks, |comm| match &cli {
        Ok(cli) => run(comm, cli),
        Err(answer) if !answer.use_stderr() => ranks::world::print(comm, &answer.to_string()),
        Err(error) => Err(Failure::Usage(args::cli::complaint(error))),
    })
}

fn run(comm: &dyn Comm, cli: &Cli) -> Result<(), Failure> {
    match &cli.command {
        Command::Bench(options) => commands::bench::run(comm, options),
        Command::Calibrate(options) => commands::calibrate::run(comm, options),
        Command::Tune(options) => commands::tune::run(comm, options),
        Command::Transform(options) => commands::transform::run(comm, options),
        Command::Verify(options) => commands::verify::run(comm, options),
        Command::Sample(options) => commands::sample::run(comm, options),
        Command::Spectrum(options) => commands::spectrum::run(comm, options),
        Command::Study(options) => commands::study::run(comm, options, cli.ranks.is_some()),
        Command::Plan(_) | Command::Scale(_) => unreachable!("done without ranks"),
    }
}
