//! `fft-cli plan` and `fft-cli scale`: what a transform would do on ranks and machines that are not here.
//!
//! `ask` makes problems of options, `forecast` finds out about one of them, `show` tells it; `scale` asks for many
//! numbers of ranks, beside what was `published`. Nothing communicates.

mod ask;
mod forecast;
mod published;
mod scale;
mod show;

use std::num::NonZeroUsize;

use crate::args::cli;
use crate::ranks::world::{Failure, say};
use ask::Ask;
pub(crate) use scale::run as run_scale;

/// Runs the command, by one process.
pub(crate) fn run(options: &cli::Plan, ranks: Option<NonZeroUsize>) -> Result<(), Failure> {
    let Some(ranks) = ranks else {
        let what = "how many ranks is to be told: fft-cli plan c2c 1024^3 --ranks 4096";
        return Err(Failure::Usage(what.into()));
    };
    let ask = Ask {
        in_grid: options.grids.in_grid.clone(),
        out_grid: options.grids.out_grid.clone(),
        ..Ask::new(&options.place, ranks.get())?
    };
    let forecast = forecast::whole(&ask)?;
    match options.json {
        true => say(&format!("{}\n", show::json(&ask, &forecast))),
        false => say(&show::text(&ask, &forecast)),
    }
}
