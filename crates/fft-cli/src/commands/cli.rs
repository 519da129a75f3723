//! The command line, and the call of its command.

use std::num::NonZeroUsize;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};
use thriffty::Comm;
use thriffty::warnings::shown;

use super::{
    bench, calibrate, list, plan, sample, spectrum, study, trace, transform, tune, verify,
};
use crate::args::parse::count;
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
    #[arg(value_parser = count)]
    pub(crate) ranks: Option<NonZeroUsize>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Bench(bench::Bench),
    Calibrate(calibrate::Options),
    Tune(tune::Options),
    Transform(transform::Options),
    Verify(verify::Options),
    Sample(sample::Options),
    Spectrum(spectrum::Options),
    Study(study::Options),
    Plan(plan::Options),
    Scale(plan::Scaling),
    Trace(trace::Options),
    List(list::Options),
}

impl Cli {
    /// The command, if it needs no ranks.
    pub(crate) fn alone(&self) -> Option<Box<dyn Fn() -> Result<(), Failure> + '_>> {
        match &self.command {
            Command::Plan(options) => Some(Box::new(|| plan::run(options, self.ranks))),
            Command::Scale(options) => Some(Box::new(|| plan::run_scale(options, self.ranks))),
            Command::Trace(options) => Some(Box::new(|| trace::run(options))),
            Command::List(options) => Some(Box::new(|| list::run(options))),
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
            Command::Plan(_) | Command::Scale(_) | Command::Trace(_) | Command::List(_) => {
                unreachable!("run without ranks")
            }
        }
    }
}

/// Describes a wrong command line in one line: the first paragraph of
/// clap's error, its tip, and where to read on.
pub(crate) fn complaint(error: &clap::Error, words: &[String]) -> String {
    let text = error.to_string();
    let mut paragraphs = text.split("\n\n").map(on_one_line);
    let first = paragraphs.next().unwrap_or_default();
    let mut complaint = without_middle(first.strip_prefix("error: ").unwrap_or(&first));
    let unknown = error.kind() == ErrorKind::UnknownArgument;
    if let Some(number) = words.iter().find(|word| unknown && is_negative(word)) {
        // clap takes it for an option.
        complaint =
            format!("found {}, but no number may be negative", without_middle(&shown(number)));
    } else if let Some(tip) = paragraphs.find(|paragraph| paragraph.starts_with("tip: ")) {
        complaint = format!("{complaint}; {}", without_middle(&tip));
    }
    format!("{complaint} (see {} --help)", command_of(words))
}

fn is_negative(word: &str) -> bool {
    let number = word.strip_prefix('-').unwrap_or_default();
    number.starts_with(|first: char| first.is_ascii_digit() || first == '.')
}

fn on_one_line(paragraph: &str) -> String {
    paragraph.split_whitespace().map(shown).collect::<Vec<_>>().join(" ")
}

/// The program, and the command that the words name, if any.
fn command_of(words: &[String]) -> String {
    let program = Cli::command();
    match words.iter().find_map(|word| program.find_subcommand(word)) {
        Some(command) => format!("{} {}", program.get_name(), command.get_name()),
        None => program.get_name().into(),
    }
}

/// Shortens a text to some hundreds of characters: the value comes first, its fault last.
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
        Cli::command().debug_assert();
    }

    fn complaint_about(words: &[&str]) -> String {
        let parsed = Cli::try_parse_from(["fft-cli"].iter().chain(words));
        complaint(&parsed.unwrap_err(), &words.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn complaints_are_short() {
        for long in ["x".repeat(100_000), "x ".repeat(50_000)] {
            let text = complaint_about(&["bench", &long, "8"]);
            assert!(text.len() < 1000 && text.contains("possible values"), "{text}");
        }
    }

    #[test]
    fn complaints_are_one_line() {
        for line in ["bench", "bench c2d 8", "bench c2c 8x0", "bench c2c 8 --reps 0", "x"] {
            let text = complaint_about(&line.split(' ').collect::<Vec<_>>());
            assert!(!text.contains('\n') && !text.starts_with("error"), "{text}");
        }
    }

    #[test]
    fn complaints_point_to_the_help_of_their_command() {
        for (line, command) in [
            ("--ranks 2 bench", "fft-cli bench"),
            ("bench c2c 8 --no-such", "fft-cli bench"),
            ("plan c2c 8 --reps 2", "fft-cli plan"),
            ("tune c2c 8 --ranks 0", "fft-cli tune"),
            ("--ranks 0 transform", "fft-cli transform"),
            ("benhc", "fft-cli"),
            ("--no-such", "fft-cli"),
        ] {
            let text = complaint_about(&line.split(' ').collect::<Vec<_>>());
            assert!(text.ends_with(&format!(" (see {command} --help)")), "{line}: {text}");
        }
        let text = complaint_about(&["bench", "c2c", "8", "--tune", "measure"]);
        assert!(text.contains("; tip: a similar argument exists: '--tuning' (see"), "{text}");
    }

    /// Every option and argument that is a number, or made of numbers.
    #[test]
    fn numbers_that_make_no_sense_are_told_what_makes_sense() {
        const COUNT: &str = "expected a whole number of 1 or more";
        for (line, expected) in [
            ("bench c2c 8 --ranks", COUNT),
            ("bench c2c 8 --reps", COUNT),
            ("bench c2c", COUNT),
            ("bench c2c 8 --input-grid", COUNT),
            ("bench c2c 8 --output-grid", COUNT),
            ("bench c2c 8 --tolerance", "expected a number above 0 and at most 1"),
            ("transform r2c in.npy out.npy --last", COUNT),
            ("sample taylor-green --out . --n", COUNT),
            ("study c2c", COUNT),
            ("study c2c 8 --ranks-list", COUNT),
            ("plan c2c 8 --per-host", COUNT),
            ("plan c2c 8 --chunk", COUNT),
            ("plan c2c 8 --bandwidth", "expected a number above 0"),
            ("scale c2c 8 --ranks-list", COUNT),
        ] {
            for number in ["0", "x"] {
                let words: Vec<_> = line.split(' ').chain([number]).collect();
                let text = complaint_about(&words);
                assert!(text.contains(expected), "{words:?}: {text}");
            }
        }
        for line in ["bench c2c 8 --tuning measure:", "plan c2c 8 --latency "] {
            for time in ["soon", "1 hour", "nan"] {
                let line = format!("{line}{}", time.replace(' ', ""));
                let words: Vec<_> = line.split(' ').collect();
                let text = complaint_about(&words);
                assert!(text.contains("expected a time of 0 or more"), "{words:?}: {text}");
            }
        }
        for line in [
            "bench c2c 8 --ranks -1",
            "plan c2c 8 --latency -1s",
            "bench c2c -8x8",
            "bench c2c 8 --tolerance -.5",
            "study c2c 8 --ranks-list -2,4",
        ] {
            let words: Vec<_> = line.split(' ').collect();
            let found = words.iter().find(|word| is_negative(word)).unwrap();
            let text = complaint_about(&words);
            let expected = format!("found {found}, but no number may be negative (see ");
            assert!(text.starts_with(&expected), "{line}: {text}");
        }
    }
}
