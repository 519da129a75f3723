//! The programs of a problem, and where they store data, as `frozen.rs` compares them.
//!
//! Each problem is lowered for ranks that are threads, for processes with shared memory, and for
//! processes without it, in both directions. The file has the program of the first rank out of
//! place, and a checksum of that in place and of the last rank's.

use std::fmt::Write;

use fft_core::{Capabilities, Direction, Recipe};

use crate::frozen::checksum;

/// What ranks reach: all memory of each other, what the plan allocates, or nothing.
const RANKS: [(&str, Option<bool>); 3] =
    [("threads", Some(true)), ("processes", Some(false)), ("messages", None)];

/// The programs of a recipe, and where they store data.
pub(crate) fn programs(recipe: &Recipe) -> String {
    let mut text = String::new();
    for direction in [Direction::Forward, Direction::Inverse] {
        let mut last = String::new();
        for (ranks, exposes_all) in RANKS {
            let program = placed(recipe, direction, exposes_all);
            let same = if program == last { ": the same" } else { "" };
            writeln!(text, "{direction:?} {ranks}{same}").unwrap();
            if same.is_empty() {
                text += &program;
                last = program;
            }
        }
    }
    text
}

fn placed(recipe: &Recipe, direction: Direction, exposes_all: Option<bool>) -> String {
    let problem = recipe.problem();
    let program = recipe.lower(direction, Capabilities::of(problem, exposes_all));
    let exposes_all = problem.options.shared_arrays || exposes_all.unwrap_or(true);
    let placed = |rank, in_place| program.placed(rank, in_place, exposes_all);
    let last = problem.input.ranks() - 1;
    let others = [placed(0, true), placed(last, false), placed(last, true)].join("\n");
    let mut text = String::new();
    for line in placed(0, false).lines() {
        writeln!(text, "  {line}").unwrap();
    }
    writeln!(text, "  {:016x}", checksum(others.bytes())).unwrap();
    text
}
