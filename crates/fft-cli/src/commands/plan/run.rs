//! `fft-cli plan`: the forecast of one transform.

use std::num::NonZeroUsize;

use super::ask::Ask;
use super::options::Options;
use super::{forecast, show};
use crate::ranks::world::{Failure, say};

pub(crate) fn run(options: &Options, ranks: Option<NonZeroUsize>) -> Result<(), Failure> {
    let Some(ranks) = ranks else {
        let what = "the number of ranks is missing, as in fft-cli plan c2c 1024^3 --ranks 4096 \
                    (see fft-cli plan --help)";
        return Err(Failure::Usage(what.into()));
    };
    let ask = Ask { grids: options.grids.clone(), ..Ask::new(&options.place, ranks.get())? };
    let forecast = forecast::whole(&ask)?;
    if options.json {
        say(&format!("{}\n", show::json(&ask, &forecast)))
    } else {
        say(&show::text(&ask, &forecast))
    }
}
