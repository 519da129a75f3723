//! The command line, and the call of its command.

use std::num::NonZeroUsize;

use clap::{Parser, Subcommand};
use thriffty::Comm;
use thriffty::warnings::shown;

use super::{bench, calibrate, plan, sample, spectrum, study, transform, tune, verify};
use crate::ranks::world::Failure;

/// Benchmarks, verifies and runs distributed Fourier transforms on NumPy files.
///
/// Ranks are threads of this process (--ranks), or processes that mpirun started, in a build with
/// MPI.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
pub(crate) struct Cli {
    /// Run on P ranks, which are threads of this process.
    #[arg(long, global = true, value_name = "P")]
    pub(crate) ranks: Option<NonZeroUsize>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Bench(bench::Options),
    Calibrate(calibrate::Options),
    Tune(tune::Options),
    Transform(transform::Options),
    Verify(verify::Options),
    Sample(sample::Options),
    Spectrum(spectrum::Options),
    Study(study::Options),
    Plan(plan::Options),
    Scale(plan::Scaling),
}

impl Cli {
    /// The command, if it needs no ranks.
    pub(crate) fn alone(&self) -> Option<Box<dyn Fn() -> Result<(), Failure> + '_>> {
        match &self.command {
            Command::Plan(options) => Some(Box::new(|| plan::run(options, self.ranks))),
            Command::Scale(options) => Some(Box::new(|| plan::run_scale(options, self.ranks))),
            _ => None,
        }
    }

    /// Runs any other command. Collective.
    pub(crate) fn run(&self, comm: &dyn Comm) -> Result<(), Failure> {
        match &self.command {
            Command::Bench(options) => bench::run(comm, options),
            Command::Calibrate(options) => calibrate::run(comm, options),
            Command::Tune(options) => tune::run(comm, options),
            Command::Transform(options) => transform::run(comm, options),
            Command::Verify(options) => verify::run(comm, options),
            Command::Sample(options) => sample::run(comm, options),
            Command::Spectrum(options) => spectrum::run(comm, options),
            Command::Study(options) => study::run(comm, options, self.ranks.is_some()),
            Command::Plan(_) | Command::Scale(_) => unreachable!("run without ranks"),
        }
    }
}

/// The first paragraph of an error of clap, on one line.
pub(crate) fn complaint(error: &clap::Error) -> String {
    let text = error.to_string();
    let first = text.split("\n\n").next().unwrap_or_default();
    let words = first.split_whitespace().map(shown).collect::<Vec<_>>().join(" ");
    let words = words.strip_prefix("error: ").unwrap_or(&words);
    format!("{} (see fft-cli --help)", without_middle(words))
}

/// A text of at most some hundreds of characters: the value comes first, what is wrong with it
/// last.
fn without_middle(text: &str) -> String {
    const ENDS: [usize; 2] = [400, 300];
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= 2 * ENDS[0] {
        return text.into();
    }
    let (first, last) = (&letters[..ENDS[0]], &letters[letters.len() - ENDS[1]..]);
    format!("{} ... {}", first.iter().collect::<String>(), last.iter().collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_defined() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn complaints_are_short() {
        for long in ["x".repeat(100_000), "x ".repeat(50_000)] {
            let parsed = Cli::try_parse_from(["fft-cli", "bench", &long, "8"]);
            let text = complaint(&parsed.unwrap_err());
            assert!(text.len() < 1000 && text.contains("possible values"), "{text}");
        }
    }

    #[test]
    fn complaints_are_one_line() {
        for line in ["bench", "bench c2d 8", "bench c2c 8x0", "bench c2c 8 --reps 0", "x"] {
            let words = std::iter::once("fft-cli").chain(line.split(' '));
            let text = complaint(&Cli::try_parse_from(words).unwrap_err());
            assert!(!text.contains('\n') && !text.starts_with("error"), "{text}");
        }
    }
}
