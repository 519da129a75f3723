//! `fft-cli bench`: the time of a transform, its parts, and its errors.

use std::num::NonZeroUsize;

use bytemuck::{cast_slice, cast_slice_mut};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use indicatif::ProgressBar;
use thriffty::planning::{Direction, Element, Reduce, Transform, WireError};
use thriffty::{Comm, Error};

use super::poisson;
use super::serve::{self, Order};
use crate::args::encoding::Encoding;
use crate::args::kinds::dispatch;
use crate::args::options::{Problem, TransformArgs};
use crate::args::parse::{choice, count};
use crate::check::check::{self, Errors, RoundTrip};
use crate::check::reference::{self, gives_back_its_input};
use crate::check::wires::{Lost, relative};
use crate::data::fields::{Distance, Field, Source};
use crate::engine::engine::{Array, Engine};
use crate::output::report::{Report, Times};
use crate::output::split::Split;
use crate::output::units::flops;
use crate::ranks::world::{Failure, print, refused, zeros};

/// The problem that is timed.
#[derive(Debug)]
pub(crate) enum Bench {
    Transform(Box<Options>),
    Poisson(Box<poisson::Options>),
}

/// The command of a solver.
const POISSON: &str = "poisson";

impl Args for Bench {
    fn augment_args(command: Command) -> Command {
        Options::augment_args(command)
            .subcommand(poisson::Options::augment_args(Command::new(POISSON)))
            .subcommand_negates_reqs(true)
            .args_conflicts_with_subcommands(true)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Bench {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        match matches.subcommand_matches(POISSON) {
            Some(found) => Ok(Self::Poisson(Box::new(poisson::Options::from_arg_matches(found)?))),
            None => Ok(Self::Transform(Box::new(Options::from_arg_matches(matches)?))),
        }
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Time a transform and measure its errors.
///
/// GFlop/s are 5·N·log2(N) per second for N complex points and half of that for real data, as in
/// FFTW's benchmarks; N counts padding, too. Fails when an l2 error exceeds 2ε·max(4, log2 N), or
/// the error of a point 8 times that.
///
/// Where the inverse does not give the input back, because of --modes or scales, 32 of its points
/// are compared with their definition instead.
///
/// With --tolerance or --wire, the forward transform is compared with a transform by the same plan
/// without encoding. Fails when the error exceeds the tolerance or the reported bound; the bounds
/// above grow by the reported ones.
#[derive(Args, Debug)]
pub(crate) struct Options {
    #[command(flatten)]
    problem: Problem,
    /// Measured repetitions, after one that is not measured.
    #[arg(long, default_value = "10", value_name = "N")]
    #[arg(value_parser = count)]
    reps: NonZeroUsize,
    #[arg(long, default_value = "forward", value_parser = choice([("forward", Direction::Forward), ("inverse", Direction::Inverse)]))]
    direction: Direction,
    /// The input.
    #[arg(long, default_value = "noise", value_parser = choice(Field::ALL))]
    field: Field,
    /// The output: a table; json, one object; or csv, a line of names and a line of values.
    #[arg(long, default_value = "table", value_parser = choice([("table", Format::Table), ("json", Format::Json), ("csv", Format::Csv)]))]
    format: Format,
    /// The same as --format json.
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Compare 32 spectral points with their definition.
    #[arg(long)]
    check: bool,
    /// Print `ready`, then the seconds of one transform for each line `go`, until `quit` or the end
    /// of the input.
    ///
    /// For a line `timings`: the mean seconds of each part of the transforms since the last one,
    /// and the bytes sent.
    #[arg(long, conflicts_with_all = ["format", "json", "check", "reps"])]
    serve: bool,
}

#[derive(Clone, Copy, Debug)]
enum Format {
    Table,
    Json,
    Csv,
}

pub(super) fn run(comm: &dyn Comm, bench: &Bench) -> Result<(), Failure> {
    let options = match bench {
        Bench::Transform(options) => options,
        Bench::Poisson(options) => return poisson::run(comm, options),
    };
    let TransformArgs { kind, choices, .. } = &options.problem.transform;
    dispatch!(*kind, choices.placement.precision, run_as(comm, options))
}

fn run_as<K: Transform>(comm: &dyn Comm, options: &Options) -> Result<(), Failure> {
    let mut bench = Prepared::<K>::new(comm, options)?;
    bench.once(options.direction)?;
    if options.serve {
        return bench.serve(options);
    }
    bench.plan.clear_timings();
    let seconds = bench.times(options)?;
    let report = bench.report(options, seconds)?;
    let text = match if options.json { Format::Json } else { options.format } {
        Format::Table => report.to_table(),
        Format::Json => report.to_json(),
        Format::Csv => report.to_csv(),
    };
    print(comm, &text)?;
    let problem = bench.plan.problem();
    report.errors.judge::<K::Physical>(problem).or_else(refused)
}

/// A plan with its two arrays.
struct Prepared<K: Transform> {
    /// The scale of noise that stays on the device; both arrays are empty then.
    noise: Option<f64>,
    source: Source,
    physical: Array<K::Physical>,
    spectral: Array<K::Spectral>,
    /// Dropped last: the plan owns shared arrays.
    plan: Engine,
}

impl<K: Transform> Prepared<K> {
    /// Makes the plan, a field and its transform. Collective.
    fn new(comm: &dyn Comm, options: &Options) -> Result<Self, Failure> {
        let problem = &options.problem;
        let mut plan = match problem.transform.choices.placement.threads {
            Some(threads) => Engine::with_threads(comm, problem, threads)?,
            None => Engine::new(comm, problem)?,
        };
        let source = Source::new(options.field, &plan)?;
        let host = options.check
            || Encoding::of(problem.options()).is_asked_for()
            || !gives_back_its_input(plan.problem());
        if let Some(scale) = options.field.noise_scale().filter(|_| !host)
            && plan.noise_on_device(scale)?
        {
            let (physical, spectral) = (Array::Own(Vec::new()), Array::Own(Vec::new()));
            return Ok(Self { noise: Some(scale), plan, source, physical, spectral });
        }
        let (mut physical, mut spectral) = plan.arrays()?;
        source.fill(&mut physical[..]);
        plan.run(Direction::Forward, cast_slice(&physical), cast_slice_mut(&mut spectral))?;
        Ok(Self { noise: None, plan, source, physical, spectral })
    }

    /// Answers the orders of standard input. Collective.
    fn serve(mut self, options: &Options) -> Result<(), Failure> {
        let comm = self.plan.comm().dup()?;
        self.plan.clear_timings();
        let mut turns = 0;
        serve::run(comm.as_ref(), |order| match order {
            Order::Timings => {
                let split = Split::mean(comm.as_ref(), &self.plan.timings(), turns.max(1))?;
                self.plan.clear_timings();
                turns = 0;
                Ok(split.to_line())
            }
            _ => {
                turns += 1;
                Ok(format!("{:e}", self.once(options.direction)?))
            }
        })
    }

    /// The seconds of one transform on the slowest rank. Collective.
    fn once(&mut self, direction: Direction) -> Result<f64, Error> {
        let Self { plan, physical, spectral, .. } = self;
        plan.once(direction, cast_slice_mut(physical), cast_slice_mut(spectral))
    }

    fn times(&mut self, options: &Options) -> Result<Vec<f64>, Error> {
        let reps = options.reps.get();
        // The bar hides itself if standard error is not a terminal, and moves between measurements.
        let bar = match self.plan.comm().rank() {
            0 => ProgressBar::new(reps as u64),
            _ => ProgressBar::hidden(),
        };
        let rep = |_| self.once(options.direction).inspect(|_| bar.inc(1));
        let seconds = (0..reps).map(rep).collect();
        bar.finish_and_clear();
        seconds
    }

    /// The error of the forward transform by its wire, and the result without one. Collective.
    fn lost(&mut self, options: &Options) -> Result<(Lost, Vec<K::Spectral>), Failure> {
        let Self { plan, physical, spectral, .. } = self;
        plan.run(Direction::Forward, cast_slice(physical), cast_slice_mut(spectral))?;
        let mut exact: Vec<K::Spectral> = zeros(plan.comm(), plan.output_len())?;
        let mut without = plan.exact(&options.problem)?;
        without.run(Direction::Forward, cast_slice(physical), cast_slice_mut(&mut exact))?;
        let (forward, inverse) = (plan.wire_error().unwrap_or_default(), WireError::default());
        let error = relative(plan, &spectral[..], &exact)?;
        let tolerance = options.problem.options().tolerance;
        Ok((Lost { error, forward, inverse, tolerance }, exact))
    }

    /// Measures errors; overwrites the data. Collective.
    fn errors(&mut self, options: &Options) -> Result<Errors, Failure> {
        let grain = check::grain::<K::Real>(&self.source);
        if let Some(scale) = self.noise {
            let [difference, whole, most, largest] = self.plan.distance_on_device(scale)?;
            let distance = Distance { squares: [difference, whole], largest: [most, largest] };
            let round_trip = Some(RoundTrip::of(&self.plan, distance)?);
            return Ok(Errors { round_trip, inverse: None, forward: None, lost: None, grain });
        }
        // Inverse transforms have changed the input by rounding.
        self.source.fill(&mut self.physical[..]);
        let encoding = Encoding::of(options.problem.options());
        let lost = if encoding.is_asked_for() { Some(self.lost(options)?) } else { None };
        let Self { plan, source, physical, spectral, .. } = self;
        // The reference is compared with the transform without a wire.
        let exact = lost.as_ref().map_or(&spectral[..], |(_, exact)| exact);
        let forward =
            if options.check { Some(reference::error::<K>(plan, physical, exact)?) } else { None };
        plan.run(Direction::Inverse, cast_slice(spectral), cast_slice_mut(physical))?;
        let inverse = plan.wire_error().unwrap_or_default();
        let lost = lost.map(|(lost, _)| Lost { inverse, ..lost });
        let (round_trip, inverse) = if gives_back_its_input(plan.problem()) {
            (Some(RoundTrip::after(plan, source, &physical[..])?), None)
        } else {
            (None, Some(reference::inverse_error::<K>(plan, spectral, physical)?))
        };
        Ok(Errors { round_trip, inverse, forward, lost, grain })
    }

    /// The report; overwrites the data. Collective.
    fn report(&mut self, options: &Options, seconds: Vec<f64>) -> Result<Report, Failure> {
        let reps = seconds.len();
        let split = Split::mean(self.plan.comm(), &self.plan.timings(), reps)?;
        let errors = self.errors(options)?;
        let plan = &self.plan;
        let transform = &options.problem.transform;
        let (batch, precision) = (transform.options().batch, transform.choices.placement.precision);
        let points = check::points(plan.problem());
        let mut workspace = [plan.workspace_bytes() as f64];
        plan.comm().allreduce(Reduce::Sum, &mut workspace)?;
        let seconds = Times::of(seconds);
        let flops = flops(K::Physical::WIDTH, points, batch);
        Ok(Report {
            problem: transform.name(),
            field: options.field.name(),
            batch,
            direction: options.direction.choose("forward", "inverse"),
            ranks: plan.recipe().problem().input.ranks(),
            communicator: plan.comm().name(),
            recipe: plan.recipe().to_string(),
            reason: plan.reason().to_owned(),
            why_exact: plan.why_exact(),
            precision: precision.to_string(),
            exchange: plan.exchange().to_string(),
            transport: plan.transport(),
            reps,
            gflops: flops / seconds.median / 1e9,
            seconds,
            predicted: options.direction.choose(plan.predicted(), None),
            ratio: split.bits_per_real.map(|bits| 8.0 * precision.bytes() as f64 / bits),
            split,
            encoding: Encoding::of(transform.options()),
            workspace_bytes: workspace[0] as u64,
            errors,
            version: env!("CARGO_PKG_VERSION"),
        })
    }
}
