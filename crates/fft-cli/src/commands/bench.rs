//! `fft-cli bench`: how long a transform takes, where the time goes, and how exact it is.

use bytemuck::{cast_slice, cast_slice_mut};
use indicatif::ProgressBar;
use thriffty::planning::{Direction, Element, Reduce, WireError};
use thriffty::{Comm, Error};

use super::serve::Order;
use crate::args::cli;
use crate::check::check::Errors;
use crate::check::reference;
use crate::check::wires::{Encoding, Lost, relative};
use crate::commands::serve;
use crate::data::fields::Source;
use crate::engine::engine::{Array, Engine};
use crate::engine::family::{Family, Task, dispatch};
use crate::output::report::{Report, Split};
use crate::ranks::world::{Failure, print, refused, zeros};

/// Runs the command. Collective.
pub(crate) fn run(comm: &dyn Comm, options: &cli::Bench) -> Result<(), Failure> {
    let cli::Problem { kind, precision, .. } = &options.problem;
    dispatch(Bench { comm, options }, *kind, *precision)
}

struct Bench<'a> {
    comm: &'a dyn Comm,
    options: &'a cli::Bench,
}

impl Task for Bench<'_> {
    type Output = ();

    fn run<K: Family>(self) -> Result<(), Failure> {
        let Self { comm, options } = self;
        let mut bench = Prepared::<K>::new(comm, options)?;
        bench.once(options.direction)?;
        if options.serve {
            return bench.serve(options);
        }
        bench.plan.clear_timings();
        let seconds = bench.times(options)?;
        let report = bench.report(options, seconds)?;
        let text = if options.json { format!("{}\n", report.to_json()) } else { report.to_table() };
        print(comm, &text)?;
        let problem = bench.plan.recipe().problem();
        let reals = problem.grid().points() * K::Physical::WIDTH;
        report.errors.judge::<K::Physical>(&problem.kinds, reals).or_else(refused)
    }
}

/// A plan with its data, which are transformed from one array into the other.
struct Prepared<K: Family> {
    source: Source,
    physical: Array<K::Physical>,
    spectral: Array<K::Spectral>,
    /// Dropped last: what is shared is the plan's.
    plan: Engine,
}

impl<K: Family> Prepared<K> {
    /// Makes the plan, and both arrays: a field and its transform. Collective.
    fn new(comm: &dyn Comm, options: &cli::Bench) -> Result<Self, Failure> {
        let mut plan = Engine::new::<K>(comm, options)?;
        let (mut physical, mut spectral) = plan.arrays()?;
        let source = Source::new(options.field, &plan)?;
        source.fill(&mut physical[..]);
        plan.run(Direction::Forward, cast_slice(&physical), cast_slice_mut(&mut spectral))?;
        Ok(Self { plan, source, physical, spectral })
    }

    /// Transforms when told to, and says where the time went since that was last asked. Collective.
    fn serve(mut self, options: &cli::Bench) -> Result<(), Failure> {
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

    fn times(&mut self, options: &cli::Bench) -> Result<Vec<f64>, Error> {
        let reps = options.reps.get();
        // The bar hides itself where standard error is no terminal, and moves between measurements only.
        let bar = match self.plan.comm().rank() {
            0 => ProgressBar::new(reps as u64),
            _ => ProgressBar::hidden(),
        };
        let rep = |_| self.once(options.direction).inspect(|_| bar.inc(1));
        let seconds = (0..reps).map(rep).collect();
        bar.finish_and_clear();
        seconds
    }

    /// What the wire takes from the forward transform, and the result without; leaves its input and result behind.
    /// Collective.
    fn lost(&mut self, options: &cli::Bench) -> Result<(Lost, Vec<K::Spectral>), Failure> {
        let Self { plan, physical, spectral, .. } = self;
        plan.run(Direction::Forward, cast_slice(physical), cast_slice_mut(spectral))?;
        let mut exact: Vec<K::Spectral> = zeros(plan.comm(), plan.output_len())?;
        let mut without = plan.exact::<K>(&options.problem)?;
        without.run(Direction::Forward, cast_slice(physical), cast_slice_mut(&mut exact))?;
        let (forward, inverse) = (plan.wire_error().unwrap_or_default(), WireError::default());
        let error = relative(plan, &spectral[..], &exact)?;
        let tolerance = Encoding::of(&options.problem.wires).tolerance;
        Ok((Lost { error, forward, inverse, tolerance }, exact))
    }

    /// Everything there is to say. Uses up the timings and the data. Collective.
    fn report(&mut self, options: &cli::Bench, seconds: Vec<f64>) -> Result<Report, Failure> {
        let split = Split::mean(self.plan.comm(), &self.plan.timings(), seconds.len())?;
        // After inverse transforms the input is a little different from the one that the spectrum was made of.
        self.source.fill(&mut self.physical[..]);
        let encoding = Encoding::of(&options.problem.wires);
        let lost = if encoding.is_asked_for() { Some(self.lost(options)?) } else { None };
        let Self { plan, source, physical, spectral } = self;
        // The transform by its definition, the wire by the transform without.
        let exact = lost.as_ref().map_or(&spectral[..], |(_, exact)| exact);
        let forward = match options.check {
            true => Some(reference::error::<K>(plan, physical, exact)?),
            false => None,
        };
        plan.run(Direction::Inverse, cast_slice(spectral), cast_slice_mut(physical))?;
        let inverse = plan.wire_error().unwrap_or_default();
        let lost = lost.map(|(lost, _)| Lost { inverse, ..lost });
        let errors = Errors { forward, lost, ..Errors::after(plan, source, &physical[..])? };
        let (points, howmany) =
            (plan.recipe().problem().grid().points(), options.problem.howmany.get());
        let mut memory = [plan.memory() as f64];
        plan.comm().allreduce(Reduce::Sum, &mut memory)?;
        Ok(Report {
            problem: format!("{} {}", options.problem.kind, options.problem.shape),
            howmany,
            recipe: plan.recipe().to_string(),
            ranks: plan.comm().size(),
            transport: plan.comm().name(),
            precision: options.problem.precision,
            field: options.field,
            encoding,
            exchange: plan.exchange(),
            gpu_transport: plan.transport(),
            direction: options.direction,
            flops: flops(K::Physical::WIDTH, points, howmany),
            predicted: match options.direction {
                Direction::Forward => plan.predicted(),
                Direction::Inverse => None,
            },
            seconds,
            split,
            memory: memory[0],
            errors,
        })
    }
}

/// By the convention of FFTW's benchmarks, `5 N log₂ N` for complex data and half of it for real data.
fn flops(width: usize, points: usize, howmany: usize) -> f64 {
    2.5 * (width * points * howmany) as f64 * (points as f64).log2()
}
