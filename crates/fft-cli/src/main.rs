//! `fft-cli`: benchmarks, verifies and runs distributed Fourier transforms on NumPy files.
//!
//! Each folder may use those before it in this list, and no others:
//!
//! - `ranks` starts the ranks and ends them;
//! - `args` has the options that commands share;
//! - `engine` makes plans, on the host or on a GPU;
//! - `data` has fields and files;
//! - `check` measures errors;
//! - `output` has reports and plots;
//! - `commands` has a file or a folder per command.
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

use commands::cli::{Cli, complaint};
use ranks::world::{Failure, Work, print, run};

fn main() -> ExitCode {
    thriffty::warnings::show("fft-cli");
    let cli = Cli::try_parse();
    let words: Vec<_> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let alone = cli.as_ref().ok().and_then(Cli::alone);
    // One rank also answers --help and reports a wrong command line.
    let ranks = cli.as_ref().map_or(None, |cli| cli.ranks);
    let on_ranks = |comm: &dyn Comm| match &cli {
        Ok(cli) => cli.run(comm),
        Err(answer) if !answer.use_stderr() => print(comm, &answer.to_string()),
        Err(error) => Err(Failure::Usage(complaint(error, &words))),
    };
    run(&match &alone {
        Some(command) => Work::Alone(command),
        None => Work::OnRanks(ranks, &on_ranks),
    })
}
