//! `fft-cli tune`: the fastest recipe by measurement, stored as wisdom.

use std::path::PathBuf;

use clap::Args;
use thriffty::{Comm, Tuning};

use crate::args::choices::Offer;
use crate::args::options::Problem;
use crate::engine::draft;
use crate::ranks::world::{Failure, print, refused};

/// Find the fastest way to do a transform here, and store it.
///
/// Measures the best few recipes, exchanges and chunk sizes of the model in rotation, on noise, and
/// prints them with the model's times. It takes 10 s, or the time of --tuning measure:TIME. Later
/// runs and programs use the result by the option tuning, as wisdom:FILE.
#[derive(Args, Debug)]
pub(crate) struct Options {
    #[command(flatten)]
    problem: Problem<OnHost>,
    /// Store the fastest in this file, with the results of other transforms.
    #[arg(long, value_name = "FILE")]
    wisdom: Option<PathBuf>,
}

/// The options of plans on the host, where it measures.
#[derive(Clone, Debug)]
struct OnHost;

impl Offer for OnHost {
    fn takes(name: &str) -> bool {
        !["threads", "device", "transport"].contains(&name)
    }
}

pub(super) fn run(comm: &dyn Comm, options: &Options) -> Result<(), Failure> {
    let mut problem = options.problem.clone();
    let is_chosen = problem.transform.choices.are_given(&["tuning"]);
    let tuning = &mut problem.transform.choices.options.tuning;
    match tuning {
        Tuning::Measure { .. } => {}
        Tuning::Model if !is_chosen => *tuning = Tuning::MEASURE,
        other => return refused(format!("tune measures: found --tuning {other}")),
    }
    let plan = draft::plan(comm, &problem, 1)?;
    // The measurements survive a failure to write either of the two.
    let printed = print(comm, &plan.report().to_string());
    options.wisdom.as_ref().map_or(Ok(()), |path| plan.save_wisdom(path))?;
    printed
}
