//! Which of several recipes is fastest: by the model, and by the clock.
//!
//! `candidates.rs` lists recipes, purely, in the order of what the model expects of them; `race.rs` times what it is
//! given, turn by turn, and drops what is clearly slower; here recipes are bound, each as a plan of its own that is
//! dropped afterwards, and the outcome becomes a [`Report`]. No plan that somebody uses is ever touched.

mod candidates;
mod race;
mod report;

use std::cell::RefCell;
use std::time::Duration;

use fft_core::{Comm, Cpu, Direction, Error, Executor, Host, Layout, Real, SharedMemory, agree};

use crate::same;
pub use candidates::{Candidate, Choice, candidates, favourite, shortlist};
pub use race::{Fate, Progress, Trial, race};
pub use report::{Report, Row, Source};

/// Times the candidates, of which the first is tried whatever the budget, and reports on all of them; the chosen one is
/// the fastest. Collective; the same on every rank.
///
/// Forward transforms of noise. Each candidate has its own plan on its own communicator; of those that have not lost, up
/// to four are held at a time.
///
/// # Errors
/// On every rank: [`Error::OnRank`] when no candidate works, with what the first says; when a rank lacks memory for input
/// and output; or the transport fails.
pub fn tune<T: Real, const D: usize>(
    comm: &dyn Comm,
    candidates: &[Candidate<D>],
    budget: Duration,
    heard: &mut dyn FnMut(Progress),
) -> Result<Report, Error> {
    let first = candidates.first().ok_or_else(nothing)?;
    let arrays = RefCell::new(agree(comm, Arrays::<T>::of(first, comm.rank()))?);
    let mut make = |candidate: &Candidate<D>| -> Result<Box<dyn Trial + '_>, Error> {
        let own = agree(comm, comm.dup())?;
        let recipe = &candidate.recipe;
        let exchanges = crate::exchange_in(recipe.problem().memory);
        let mut executor = Executor::bind(recipe, own, Host(Cpu::default()), exchanges)?;
        let asked = recipe.problem().exchange;
        let found = executor.exchange(asked);
        if found != asked {
            // Known to all: it is the communicator that cannot. What it does instead is another candidate.
            return Err(Error::argument("exchange", found, asked));
        }
        let own = match recipe.problem().shared_arrays {
            true => shared(&mut executor, &arrays.borrow())?,
            false => None,
        };
        Ok(Box::new(Bound { own, executor, arrays: &arrays }))
    };
    tune_by(comm, candidates, budget, &mut make, heard)
}

/// Binds a candidate, to be timed. Called by all ranks together.
pub type Make<'m, 't, const D: usize> =
    &'m mut dyn FnMut(&Candidate<D>) -> Result<Box<dyn Trial + 't>, Error>;

/// As [`tune`], of candidates that are bound by `make`: to another device, say. Collective; the same on every rank.
///
/// # Errors
/// As [`tune`].
pub fn tune_by<'t, const D: usize>(
    comm: &dyn Comm,
    candidates: &[Candidate<D>],
    budget: Duration,
    make: Make<'_, 't, D>,
    heard: &mut dyn FnMut(Progress),
) -> Result<Report, Error> {
    if candidates.is_empty() {
        return Err(nothing());
    }
    // Ranks that time different things would wait for each other in different places.
    let recipes: Vec<_> = candidates.iter().map(|it| it.recipe.to_string()).collect();
    same(comm, "candidates", &recipes.join("\n"))?;
    let mut make = |number: usize| make(&candidates[number]);
    let fates = race(comm, candidates.len(), budget, &mut make, heard)?;
    Report::measured(candidates, fates)
}

fn nothing() -> Error {
    Error::argument("candidates", 0, "at least 1")
}

/// Input and output, used by all trials in turn.
struct Arrays<T> {
    input: Vec<T>,
    output: Vec<T>,
}

impl<T: Real> Arrays<T> {
    fn of<const D: usize>(candidate: &Candidate<D>, rank: usize) -> Result<Self, Error> {
        let problem = candidate.recipe.problem();
        let array = |layout: &Layout<D>, complex: bool| {
            let width = if complex { 2 } else { 1 };
            let reals = layout.brick(rank).points() * problem.howmany * width;
            let mut array = Vec::new();
            let bytes = reals * size_of::<T>();
            array.try_reserve_exact(reals).map_err(|_| Error::Memory { rank, bytes })?;
            let mut state = rank as u64 + 1;
            array.extend((0..reals).map(|_| noise::<T>(&mut state)));
            Ok::<Vec<T>, Error>(array)
        };
        Ok(Self {
            input: array(&problem.input, problem.complex)?,
            output: array(&problem.output, problem.complex_spectrum())?,
        })
    }
}

/// A number between -1/2 and 1/2, from a state that may begin as any.
pub fn noise<T: Real>(state: &mut u64) -> T {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    T::of((*state >> 11) as f64 / (1u64 << 53) as f64 - 0.5)
}

/// A candidate, bound.
struct Bound<'a, T: Real> {
    /// Input and output that other ranks see, where the problem has such. Dropped before the executor.
    own: Option<[Box<dyn SharedMemory>; 2]>,
    executor: Executor<T, Host<Cpu<T>>>,
    arrays: &'a RefCell<Arrays<T>>,
}

impl<T: Real> Trial for Bound<'_, T> {
    fn run(&mut self) -> Result<(), Error> {
        let forward = Direction::Forward;
        if let Some([input, output]) = &mut self.own {
            let (input, output) = (input.bytes(), output.bytes_mut());
            let (input, output) = (bytemuck::cast_slice(input), bytemuck::cast_slice_mut(output));
            return self.executor.run(forward, Some(input), output);
        }
        let Arrays { input, output } = &mut *self.arrays.borrow_mut();
        self.executor.run(forward, Some(input), output)
    }
}

/// The arrays once more, in memory that the ranks of a host share. Collective.
fn shared<T: Real>(
    executor: &mut Executor<T, Host<Cpu<T>>>,
    arrays: &Arrays<T>,
) -> Result<Option<[Box<dyn SharedMemory>; 2]>, Error> {
    let input = executor.allocate(size_of_val(&arrays.input[..]))?;
    let output = executor.allocate(size_of_val(&arrays.output[..]))?;
    Ok(input.zip(output).map(|(mut input, output)| {
        input.bytes_mut().copy_from_slice(bytemuck::cast_slice(&arrays.input));
        [input, output]
    }))
}
