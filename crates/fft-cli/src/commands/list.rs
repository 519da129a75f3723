//! `list`: the names of values that options take.

use clap::Args;
use thriffty::planning::Exchange;
use thriffty::{Ends, Kind, Wire};

use crate::args::parse::choice;
use crate::ranks::world::{Failure, say};

/// Prints the names of exchanges, wires, kinds, or the boundary conditions that stand for kinds,
/// one per line.
///
/// Names with a number are one line with the range, as in `kway2 to kway255`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    #[arg(value_parser = choice([
        ("exchanges", lines(&Exchange::patterns())),
        ("wires", lines(&Wire::patterns())),
        ("kinds", lines(&Kind::patterns())),
        ("ends", lines(&Ends::patterns())),
    ]))]
    what: String,
}

fn lines(names: &[String]) -> String {
    names.join("\n") + "\n"
}

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    say(&options.what)
}
