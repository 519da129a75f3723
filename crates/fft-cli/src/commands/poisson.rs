//! `fft-cli bench poisson`: the time of a Poisson solver with ends, and its residual.

use std::marker::PhantomData;
use std::num::NonZeroUsize;
use std::time::Instant;

use bytemuck::{Zeroable, cast_slice, cast_slice_mut};
use clap::Args;
use serde::Serialize;
use thriffty::planning::{Direction, DynArray, DynPlan, PerAxis, Reduce, Transform};
use thriffty::spectral::{Domain, Operator, Scheme, Tridiagonal};
use thriffty::{Comm, Ends, Error, Kind};

use crate::args::choices::{Choices, Offer};
use crate::args::kinds::dispatch;
use crate::args::options::{Grids, Problem, TransformArgs};
use crate::args::parse::{choice, count};
use crate::args::shape::Shape;
use crate::output::report::Times;
use crate::output::units::time;
use crate::ranks::world::{Failure, print, refused, zeros};

/// Time a solver of Poisson's equation with boundary conditions, and measure its residual.
///
/// A solve is a forward transform, division by the symbols of a difference scheme or, along an axis
/// that is tridiagonal, systems on a stretched grid between walls without a slope, and an inverse
/// transform. The residual of the discrete equation is relative to the right-hand side, in the l2
/// norm.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Points along each of 1 to 4 axes: 256x256x192.
    shape: Shape,
    /// The boundary conditions of each axis, as of `fft-cli list ends`.
    #[arg(long, value_delimiter = ',', required = true, value_name = "ENDS,...")]
    #[arg(value_parser = choice(Ends::ALL.map(|ends| (ends.name(), ends))))]
    ends: Vec<Ends>,
    /// The difference scheme of the axes that are transformed.
    #[arg(long, default_value = "staggered2")]
    #[arg(value_parser = choice(Scheme::ALL.map(|scheme| (scheme.name(), scheme))))]
    scheme: Scheme,
    /// Measured repetitions, after one that is not.
    #[arg(long, default_value = "10", value_name = "N", value_parser = count)]
    reps: NonZeroUsize,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    grids: Grids,
    #[command(flatten)]
    choices: Choices<Solvable>,
}

/// The options of solvers, whose ends name the kinds.
#[derive(Clone, Debug)]
struct Solvable;

impl Offer for Solvable {
    fn takes(name: &str) -> bool {
        !["kinds", "zero_padded", "modes", "threads"].contains(&name)
    }
}

#[derive(Serialize)]
struct Report {
    ends: String,
    recipe: String,
    seconds: Times,
    /// Seconds of the operator alone, between the two transforms.
    operator: Times,
    residual: f64,
}

pub(super) fn run(comm: &dyn Comm, options: &Options) -> Result<(), Failure> {
    let axes = options.shape.lengths().len();
    if options.ends.len() != axes {
        return refused(format!("--ends has {} of {axes} axes", options.ends.len()));
    }
    let kinds = PerAxis::from_fn(axes, |axis| options.ends[axis].kind());
    let kind = if options.ends.contains(&Ends::Periodic) { Kind::R2C } else { Kind::Dct2 };
    let mut choices = options.choices.clone();
    choices.options.kinds = Some(kinds);
    choices.options.transposed_output = options.grids.output_grid.is_none();
    let transform = TransformArgs { kind, shape: options.shape.clone(), choices };
    let problem = Problem { transform, grids: options.grids.clone() };
    let plan = crate::engine::draft::placed(comm, &problem)?;
    dispatch!(kind, options.choices.placement.precision, run_as(plan, options))
}

fn run_as<K: Transform>(plan: DynPlan, options: &Options) -> Result<(), Failure> {
    let comm = plan.comm().dup()?;
    let mut solver = Solver::<K>::new(plan, options)?;
    let report = solver.report(options)?;
    let text = if options.json {
        serde_json::to_string(&report).map_err(|why| Error::argument("report", why, "JSON"))? + "\n"
    } else {
        format!(
            "{} {}\n{}\nsolve     {}\noperator  {}\nresidual  {:.1e}\n",
            options.shape,
            report.ends,
            report.recipe,
            time(report.seconds.median),
            time(report.operator.median),
            report.residual
        )
    };
    print(comm.as_ref(), &text)
}

/// A plan with its domain and arrays, on the plan's device.
struct Solver<K: Transform> {
    /// Dropped before the plan, which may own them.
    rho: DynArray,
    phi: DynArray,
    modes: DynArray,
    domain: Domain,
    plan: DynPlan,
    of: PhantomData<K>,
}

impl<K: Transform> Solver<K> {
    /// Collective.
    fn new(mut plan: DynPlan, options: &Options) -> Result<Self, Failure> {
        let shape = options.shape.lengths();
        let lengths: Vec<f64> = shape.iter().map(|n| *n as f64).collect();
        let schemes = vec![options.scheme; shape.len()];
        let mut domain = plan.domain(&lengths)?.with_schemes(&schemes)?;
        if let Some(axis) = options.ends.iter().position(|ends| *ends == Ends::Tridiagonal) {
            // Finer at both walls.
            let n = shape[axis] as f64;
            let face = |j: usize| n * (3.0 * j as f64 / n - 1.5).tanh() / 2.0;
            let faces: Vec<_> = (0..=shape[axis]).map(face).collect();
            domain =
                domain.with_tridiagonal(Tridiagonal::second_derivative(&faces, Ends::Neumann)?)?;
        }
        let rank = plan.comm().rank() as u64;
        let mut noise: Vec<K::Physical> = zeros(plan.comm(), plan.input_len())?;
        // A step of a linear congruential generator for each number, as good as any noise here.
        let mut state = 0x9e37_79b9_7f4a_7c15u64.wrapping_mul(rank + 1);
        for real in cast_slice_mut::<_, K::Real>(&mut noise) {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *real = thriffty::planning::Real::of((state >> 40) as f64 / (1u64 << 23) as f64 - 1.0);
        }
        let [mut rho, phi, modes] = if plan.problem().options.shared_arrays {
            [plan.shared_zeros()?, plan.shared_zeros()?, plan.shared_zeros()?]
        } else {
            let zeros = [plan.zeros(), plan.zeros(), plan.zeros()];
            let [rho, phi, modes] = zeros.map(|array| plan.agree(array));
            [rho?, phi?, modes?]
        };
        let written = rho.write(cast_slice(&noise));
        plan.agree(written)?;
        Ok(Self { rho, phi, modes, domain, plan, of: PhantomData })
    }

    /// The seconds of an operator between two transforms, and of both transforms with it, on the
    /// slowest rank. Collective.
    fn once(&mut self, operator: Operator, from_phi: bool) -> Result<[f64; 2], Error> {
        let Self { rho, phi, modes, domain, plan, .. } = self;
        let bytes = plan.output_len() * size_of::<K::Spectral>();
        plan.comm().barrier()?;
        let start = Instant::now();
        plan.run_arrays(Direction::Forward, if from_phi { phi } else { rho }, modes)?;
        let transformed = modes.synchronize();
        plan.agree(transformed)?;
        let middle = Instant::now();
        let applied = domain.apply_array_in_place(operator, Ok(()), (modes, bytes));
        let applied = applied.and_then(|()| modes.synchronize());
        let operator = middle.elapsed().as_secs_f64();
        plan.agree(applied)?;
        plan.run_arrays(Direction::Inverse, modes, phi)?;
        let done = phi.synchronize();
        let mut seconds = [operator, start.elapsed().as_secs_f64()];
        plan.agree(done)?;
        plan.comm().allreduce(Reduce::Max, &mut seconds)?;
        Ok(seconds)
    }

    fn report(&mut self, options: &Options) -> Result<Report, Failure> {
        self.once(Operator::Poisson, false)?;
        let (mut operator, mut seconds) = (Vec::new(), Vec::new());
        for _ in 0..options.reps.get() {
            let [one, all] = self.once(Operator::Poisson, false)?;
            operator.push(one);
            seconds.push(all);
        }
        self.once(Operator::Laplacian, true)?;
        let ends: Vec<_> = options.ends.iter().map(|ends| ends.name()).collect();
        Ok(Report {
            ends: ends.join(","),
            recipe: self.plan.recipe().to_string(),
            seconds: Times::of(seconds),
            operator: Times::of(operator),
            residual: self.residual(options)?,
        })
    }

    /// The residual, where `phi` has the Laplacian of the solution. Collective.
    fn residual(&self, options: &Options) -> Result<f64, Error> {
        let numbers = |array: &DynArray| -> Result<Vec<f64>, Error> {
            let mut points: Vec<K::Physical> = vec![Zeroable::zeroed(); self.plan.input_len()];
            array.read(cast_slice_mut(&mut points))?;
            let reals = cast_slice::<_, K::Real>(&points).iter();
            Ok(reals.map(|real| thriffty::planning::Real::as_f64(*real)).collect())
        };
        let both = numbers(&self.rho).and_then(|rho| Ok((rho, numbers(&self.phi)?)));
        let (rho, laplacian) = thriffty::planning::agree(self.plan.comm(), both)?;
        let mut differences: Vec<f64> = rho.iter().zip(laplacian).map(|(x, y)| x + y).collect();
        let comm = self.plan.comm();
        // A mean stays where no end holds it.
        if options.ends.iter().all(|ends| ends.slopes() == [true; 2]) {
            let mut sums = [differences.iter().sum(), differences.len() as f64];
            comm.allreduce(Reduce::Sum, &mut sums)?;
            differences.iter_mut().for_each(|r| *r -= sums[0] / sums[1]);
        }
        let squares = |values: &[f64]| values.iter().map(|v| v * v).sum::<f64>();
        let mut sums = [squares(&differences), squares(&rho)];
        comm.allreduce(Reduce::Sum, &mut sums)?;
        Ok((sums[0] / sums[1]).sqrt())
    }
}
