//! `list`: the names of what can be chosen.

use std::fmt::Display;

use clap::Args;
use thriffty::planning::Exchange;
use thriffty::{Kind, Wire};

use crate::args::parse::choice;
use crate::ranks::world::{Failure, say};

/// Prints the names of exchanges, wires or kinds, one per line.
#[derive(Debug, Args)]
pub(crate) struct Options {
    #[arg(value_parser = choice([
        ("exchanges", names(Exchange::ALL)),
        ("wires", names(Wire::ALL)),
        ("kinds", names(Kind::ALL)),
    ]))]
    what: String,
}

fn names<const N: usize>(values: [impl Display; N]) -> String {
    values.map(|value| format!("{value}\n")).concat()
}

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    say(&options.what)
}
