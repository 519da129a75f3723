//! `fft-cli tune`: the fastest recipe by measurement, stored as wisdom.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use thriffty::{Comm, Tune};

use crate::args::options::Problem;
use crate::args::parse::duration;
use crate::engine::draft;
use crate::ranks::world::{Failure, print};

/// Find the fastest way to do a transform here, and store it.
///
/// Measures the best few recipes, exchanges and chunk sizes of the model in rotation, on noise, and
/// prints them with the model's times. Later runs use the result with `fft-cli bench --wisdom
/// FILE`, programs with Tune::Wisdom.
#[derive(Args, Debug)]
pub(crate) struct Options {
    #[command(flatten)]
    problem: Problem,
    /// The time limit: 10s, 500ms.
    #[arg(long, default_value = "10s", value_parser = duration, value_name = "TIME")]
    budget: Duration,
    /// Store the fastest in this file, beside the results of other transforms.
    #[arg(long, value_name = "FILE")]
    wisdom: Option<PathBuf>,
}

pub(super) fn run(comm: &dyn Comm, options: &Options) -> Result<(), Failure> {
    let plan = draft::plan(comm, &options.problem, Tune::Measure { budget: options.budget })?;
    // The measurements survive a failure to write either of the two.
    let printed = print(comm, &plan.report().to_string());
    options.wisdom.as_ref().map_or(Ok(()), |path| plan.save_wisdom(path))?;
    printed
}
