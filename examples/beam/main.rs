//! The potential of a charged bunch in open space, against formulas and against plain doubling.
//!
//! `cargo run --release --example beam`, or with MPI
//! `cargo build --release --example beam --features mpi`
//! `mpirun -n 4 target/release/examples/beam`
//!
//! -∇²φ = ρ is solved for Gaussian bunches of charge 1, without walls or periods, by Hockney's
//! method: a convolution with Green's function on a grid of twice the length along each axis. Its
//! plan is zero-padded, so that zeros are neither sent nor transformed. The tables show
//!
//! - the error over n points along each axis, relative to the largest potential, for a round bunch
//!   and for a long one in a long box;
//! - the bytes that the busiest rank sends in a solution, if each rank is a host of its own;
//! - the median time of a solution.
//!
//! Plain doubling transforms a grid of (2n)³ points, including all zeros. Its bytes and times are
//! printed next to the padded plan's, and both plans are timed in turns.
//!
//! A picture, `beam.svg`, shows the errors over n and a line of slope 2. Options:
//!
//! - `--ranks N`: threads, 4 by default; an MPI job has its own ranks;
//! - `--largest N`: the largest n, 128 by default; the others are 16, 32 and so on;
//! - `--messages`: ranks send messages as if each was on a host of its own;
//! - `--device`: computes on CUDA devices, with the feature `cuda`;
//! - `--svg FILE`: another name of the picture.

mod bunch;
mod chart;
#[cfg(feature = "cuda")]
#[path = "../common/gpu.rs"]
mod gpu;
#[path = "../common/replace.rs"]
mod replace;
mod solver;
#[path = "../common/target.rs"]
mod target;

use std::path::PathBuf;
use std::process::ExitCode;

use thriffty::planning::agree;
use thriffty::{Comm, Error};

use bunch::{Bunch, LONG, ROUND};
use chart::drawing;
use replace::replace;
use solver::{Solver, bytes_sent, doubled_draft, padded_draft};
use target::{OnHost, Target, on_device};

const SMALLEST: usize = 16;
/// Timed solutions by each method; the median is shown.
const TURNS: usize = 5;

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

/// The errors of a bunch over n.
struct Convergence {
    name: &'static str,
    /// Largest and l2 error.
    errors: Vec<(usize, [f64; 2])>,
}

/// Prints the errors of a bunch for each n.
fn convergence<T: Target>(
    (world, target): (&dyn Comm, &T),
    options: &Options,
    bunch: &Bunch,
) -> Result<Convergence, Error> {
    let shown = |values: [f64; 3]| values.map(|value| value.to_string()).join(" x ");
    let title = format!("{} bunch, σ {}", bunch.name, shown(bunch.sigma));
    say(world, &format!("\n{title} in a box of {}", shown(bunch.lengths)));
    say(world, "    n    largest  ratio         l2  ratio   seconds");
    let mut errors: Vec<(usize, [f64; 2])> = Vec::new();
    for n in options.sizes() {
        let mut solver = Solver::padded((world, target), bunch, n, options.messages)?;
        let (phi, _) = solver.solve(bunch)?;
        let found = solver.errors(bunch, &phi)?;
        drop(phi);
        let times = (0..TURNS).map(|_| Ok(solver.solve(bunch)?.1)).collect::<Result<_, Error>>()?;
        let ratio = |which: usize| match errors.last() {
            Some((_, before)) => format!("{:.2}", before[which] / found[which]),
            None => "-".into(),
        };
        let [largest, l2] = found;
        let errors_shown = format!("{largest:10.2e} {:>6} {l2:10.2e} {:>6}", ratio(0), ratio(1));
        say(world, &format!("{n:5} {errors_shown} {:9.4}", median(times)));
        errors.push((n, found));
    }
    Ok(Convergence { name: bunch.name, errors })
}

/// Prints how much zero-padding saves.
fn comparison<T: Target>((world, target): (&dyn Comm, &T), options: &Options) -> Result<(), Error> {
    say(world, "\nzero-padded plan and plain doubling: busiest rank, both directions");
    say(world, "    n  MB padded  doubled  ratio  s padded  doubled  ratio");
    for n in options.sizes() {
        let sent = [bytes_sent(padded_draft(world, n))?, bytes_sent(doubled_draft(world, n))?];
        let mut padded = Solver::padded((world, target), &ROUND, n, options.messages)?;
        let mut doubled = Solver::doubled((world, target), &padded, options.messages)?;
        let mut times = [Vec::new(), Vec::new()];
        for turn in 0..=TURNS {
            for (times, solver) in times.iter_mut().zip([&mut padded, &mut doubled]) {
                let (_, seconds) = solver.solve(&ROUND)?;
                // The first turn touches new memory.
                if turn > 0 {
                    times.push(seconds);
                }
            }
        }
        let [less, more] = sent.map(|bytes| bytes / 1e6);
        let sent_ratio = if less > 0.0 { format!("{:.2}", more / less) } else { "-".into() };
        let [fast, slow] = times.map(median);
        let bytes_shown = format!("{less:9.3} {more:8.3} {sent_ratio:>6}");
        say(world, &format!("{n:5}  {bytes_shown} {fast:9.4} {slow:8.4} {:6.2}", slow / fast));
    }
    Ok(())
}

fn say(world: &dyn Comm, line: &str) {
    if world.rank() == 0 {
        println!("{line}");
    }
}

fn study<T: Target>(world: &dyn Comm, target: &T, options: &Options) -> Result<(), Error> {
    let ranks = format!("{} ranks ({})", world.size(), world.name());
    say(world, &format!("{ranks}; errors are relative to the largest potential"));
    let at = (world, target);
    let found = [convergence(at, options, &ROUND)?, convergence(at, options, &LONG)?];
    comparison(at, options)?;
    let written = match world.rank() {
        0 => replace(&options.svg, drawing(&found).as_bytes()),
        _ => Ok(()),
    };
    let path = options.svg.display();
    agree(world, written.map_err(|why| Error::argument(path.to_string(), why, "a new picture")))?;
    say(world, &format!("\n{path} shows the errors over n"));
    Ok(())
}

#[derive(Clone, Debug)]
struct Options {
    ranks: usize,
    largest: usize,
    messages: bool,
    is_on_device: bool,
    svg: PathBuf,
}

impl Options {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let svg = PathBuf::from("beam.svg");
        let mut options =
            Self { ranks: 4, largest: 128, messages: false, is_on_device: false, svg };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            match word.as_str() {
                "--ranks" => options.ranks = number(&word, &value()?, 1)?,
                "--largest" => options.largest = number(&word, &value()?, SMALLEST)?,
                "--messages" => options.messages = true,
                "--device" => options.is_on_device = true,
                "--svg" => options.svg = value()?.into(),
                _ => {
                    let known = "--ranks N, --largest N, --messages, --device, --svg FILE";
                    return Err(format!("unknown argument {word}: expected {known}"));
                }
            }
        }
        Ok(options)
    }

    /// The numbers of points along each axis.
    fn sizes(&self) -> impl Iterator<Item = usize> + use<> {
        let largest = self.largest;
        std::iter::successors(Some(SMALLEST), |n| Some(2 * n)).take_while(move |n| *n <= largest)
    }
}

/// A whole number of an option, not below the least.
fn number(option: &str, text: &str, least: usize) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if number >= least => Ok(number),
        _ => Err(format!("{option}: found {text}, expected a number from {least} on")),
    }
}

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(text) => {
            eprintln!("beam: {text}");
            return ExitCode::from(2);
        }
    };
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error.iter().for_each(|error| eprintln!("beam: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Runs on the processes of an MPI job, or on threads. Only one rank has the text of an error.
fn run(options: &Options) -> Result<(), Option<Error>> {
    thriffty::run(options.ranks, |world| {
        let done = if options.is_on_device {
            on_device(world).and_then(|target| study(world, &target, options))
        } else {
            study(world, &OnHost, options)
        };
        done.map_err(|error| (world.rank() == 0).then_some(error))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(ranks: usize, bunch: &Bunch, n: usize) -> [f64; 2] {
        let found = thriffty::threads(ranks, |world| {
            let mut solver = Solver::padded((&world, &OnHost), bunch, n, false)?;
            let (phi, _) = solver.solve(bunch)?;
            solver.errors(bunch, &phi)
        });
        found.unwrap()[0]
    }

    #[test]
    fn errors_fall_with_the_square_of_the_spacing() {
        for bunch in [&ROUND, &LONG] {
            let [coarse, fine] = [errors(3, bunch, 16), errors(1, bunch, 32)];
            let [largest, l2] = [0, 1].map(|which| coarse[which] / fine[which]);
            let name = bunch.name;
            assert!((3.0..4.5).contains(&largest), "{name}: {coarse:?}, {fine:?}");
            assert!((3.6..4.4).contains(&l2), "{name}: {coarse:?}, {fine:?}");
        }
    }

    #[test]
    fn ranks_and_methods_have_the_same_potential() {
        let one = errors(1, &ROUND, 16);
        thriffty::threads(3, |world| {
            let mut padded = Solver::padded((&world, &OnHost), &ROUND, 16, false)?;
            let mut doubled = Solver::doubled((&world, &OnHost), &padded, true)?;
            for solver in [&mut padded, &mut doubled] {
                let (phi, _) = solver.solve(&ROUND)?;
                let found = solver.errors(&ROUND, &phi)?;
                assert!((0..2).all(|i| (found[i] / one[i] - 1.0).abs() < 1e-9), "{found:?}");
            }
            let sent = [padded_draft(&world, 16), doubled_draft(&world, 16)].map(bytes_sent);
            let [less, more] = sent.map(Result::unwrap);
            assert!(less > 0.0 && 1.5 * less < more, "{less}, {more}");
            Ok::<_, Error>(())
        })
        .unwrap();
    }

    #[test]
    fn wrong_options_are_told() {
        let parse = |text: &str| Options::parse(text.split_whitespace().map(String::from));
        assert_eq!(parse("--largest 64").unwrap().sizes().collect::<Vec<_>>(), [16, 32, 64]);
        for (text, told) in [
            ("--ranks 0", "--ranks: found 0, expected a number from 1 on"),
            ("--svg", "--svg needs a value"),
            ("beam", "unknown argument beam"),
        ] {
            assert!(parse(text).unwrap_err().starts_with(told), "{text}");
        }
    }
}
