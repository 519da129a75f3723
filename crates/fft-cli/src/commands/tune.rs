//! `fft-cli tune`: the fastest recipe by measurement, stored as wisdom.

use std::path::PathBuf;

use clap::Args;
use thriffty::{Comm, Tuning};

use crate::args::options::Problem;
use crate::engine::draft;
use crate::ranks::world::{Failure, print, refused};

/// Find the fastest way to do a transform here, and store it.
///
/// Measures the best few recipes, exchanges and chunk sizes of the model in rotation, on noise, and
/// prints them with the model's times; --tuning measure:TIME limits the time. Later runs and
/// programs use the result with the option tuning of wisdom:FILE.
#[derive(Args, Debug)]
pub(crate) struct Options {
    #[command(flatten)]
    problem: Problem,
    /// Store the fastest in this file, beside the results of other transforms.
    #[arg(long, value_name = "FILE")]
    wisdom: Option<PathBuf>,
}

pub(super) fn run(comm: &dyn Comm, options: &Options) -> Result<(), Failure> {
    let mut problem = options.problem.clone();
    let tuning = &mut problem.transform.choices.options.tuning;
    match tuning {
        Tuning::Measure { .. } => {}
        Tuning::Model => *tuning = Tuning::MEASURE,
        other => return refused(format!("tune measures: found --tuning {other}")),
    }
    let plan = draft::plan(comm, &problem)?;
    // The measurements survive a failure to write either of the two.
    let printed = print(comm, &plan.report().to_string());
    options.wisdom.as_ref().map_or(Ok(()), |path| plan.save_wisdom(path))?;
    printed
}
