//! The options of `fft-cli plan` and `fft-cli scale`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

use crate::args::choices::Offer;
use crate::args::options::{Grids, TransformArgs};
use crate::args::parse::{count, positive, seconds};

/// Show the plan of a transform on any number of ranks of any machine, and its predicted time.
///
/// Prints the recipe; the bytes and messages of each reshape; the time of the forward transform;
/// the times of other layouts; and shares of two limits. Times are predicted step by step for the
/// busiest rank, and simulated message by message, also with half and twice the machine's numbers.
///
/// Network: 5 log2(N) B P/(α r) per point, for P hosts that send B bytes per second, r reshapes,
/// and α bytes per point; and without data that stays on its host. Memory: the data read and
/// written once before the first reshape and after each.
///
/// Simulations of ranks that wait for each other at each step are marked: they are no better than
/// ±4×.
#[derive(Args, Debug)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(super) place: Where,
    #[command(flatten)]
    pub(super) grids: Grids,
    /// Print one JSON object and nothing else.
    #[arg(long)]
    pub(super) json: bool,
}

/// Show the scaling of a transform on a machine: tables and a figure of rates by number of ranks.
///
/// Strong scaling is for a fixed problem, weak scaling for one that grows with the ranks. The
/// output has raw and encoded messages (--wire, --tolerance; bits:16 by default, lossless with
/// --zero-padded or --modes), pencils as in a classic library, the limit Ψ of the network, and
/// published rates. Rates are simulated up to some million messages, and predicted beyond.
#[derive(Args, Debug)]
pub(crate) struct Scaling {
    #[command(flatten)]
    pub(super) place: Where,
    /// Numbers of ranks; the problem is for the first one.
    #[arg(
        long,
        value_name = "P,...",
        default_value = "12,24,48,96,192,384,768,1536",
        value_delimiter = ',',
        value_parser = count
    )]
    pub(super) ranks_list: Vec<NonZeroUsize>,
    /// Write all results into this file.
    #[arg(long, value_name = "FILE")]
    pub(super) csv: Option<PathBuf>,
    /// Draw the figure of strong scaling into this file.
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<PathBuf>,
}

/// The options for recipes on ranks that are not here.
#[derive(Clone, Debug)]
pub(crate) struct Forecast;

impl Offer for Forecast {
    fn takes(name: &str) -> bool {
        !["tuning", "threads", "transport"].contains(&name)
    }
}

/// A transform, and the machine that it would run on.
#[derive(Args, Debug)]
pub(super) struct Where {
    #[command(flatten)]
    pub(super) transform: TransformArgs<Forecast>,
    /// Bytes per second and direction between a host and others, instead of the machine's. One rank
    /// of the host can use all of it.
    #[arg(long, value_name = "BYTES", value_parser = positive)]
    pub(super) bandwidth: Option<f64>,
    /// The time until an empty message arrives at another host, in place of the machine's: 2us.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub(super) latency: Option<f64>,
    /// Ranks of a host; by default the machine's number of cores.
    #[arg(long, value_name = "P", value_parser = count)]
    pub(super) per_host: Option<NonZeroUsize>,
    /// Bytes of a chunk, for messages in chunks: 512 KiB by default; for scale at least a 16th of a
    /// rank's data.
    #[arg(long, value_name = "BYTES", value_parser = count)]
    pub(super) chunk: Option<NonZeroUsize>,
}
