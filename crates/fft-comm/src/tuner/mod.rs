//! The choice between recipes, by the model and by timings.
//!
//! `candidates.rs` lists recipes, `race.rs` times what it is given, and here recipes are bound and
//! reported on. Each candidate is a plan of its own, dropped afterwards.

mod candidates;
mod race;
mod report;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use fft_core::{
    Comm, Direction, Error, HostExecutor, Precision, Real, SharedMemory, Slot, agree, assert_same,
};

pub use candidates::{Candidate, Choice, candidates, favourite, shortlist};
pub use race::{Outcome, Progress, Trial, race};
pub use report::{Report, ReportRow, Source};

/// Times candidates and reports on all of them; the fastest is chosen. The first is tried whatever
/// the budget. Collective; the same on every rank.
///
/// Candidates transform noise forward. Each has a communicator of its own, and its own arrays where
/// these are shared. At most four are held at a time.
///
/// # Errors
/// On every rank: [`Error::OnRank`] when no candidate works, a rank lacks memory, or the transport
/// fails.
pub fn tune(
    comm: &dyn Comm,
    candidates: &[Candidate],
    budget: Duration,
    on_progress: &mut dyn FnMut(Progress),
) -> Result<Report, Error> {
    let first = candidates.first().ok_or_else(nothing)?;
    let arrays = match first.recipe.problem().options.shared_arrays {
        true => None,
        false => Some(Rc::new(RefCell::new(agree(comm, Arrays::of(first, comm.rank()))?))),
    };
    let mut make = |candidate: &Candidate| -> Result<Box<dyn Trial + '_>, Error> {
        let own = agree(comm, comm.dup())?;
        let recipe = &candidate.recipe;
        let exchanges = crate::exchange_in(recipe.problem().options.memory);
        let mut executor = HostExecutor::bind(recipe, own, exchanges)?;
        let asked = recipe.problem().options.exchange;
        let found = executor.exchange(asked);
        if found != asked {
            // The communicator lacks this exchange, on all ranks. Its replacement is another
            // candidate.
            return Err(Error::argument("exchange", found, asked));
        }
        let arrays = match &arrays {
            Some(arrays) => Data::Any(arrays.clone()),
            None => Data::new(comm, &mut executor, candidate)?,
        };
        Ok(Box::new(Bound { arrays, executor }))
    };
    tune_by(comm, candidates, budget, &mut make, on_progress)
}

/// Binds a candidate to be timed. Called by all ranks together.
pub type Make<'m, 't> = &'m mut dyn FnMut(&Candidate) -> Result<Box<dyn Trial + 't>, Error>;

/// As [`tune`], with candidates bound by `make`, to a device for instance. Collective; the same on
/// every rank.
///
/// # Errors
/// As [`tune`].
pub fn tune_by<'t>(
    comm: &dyn Comm,
    candidates: &[Candidate],
    budget: Duration,
    make: Make<'_, 't>,
    on_progress: &mut dyn FnMut(Progress),
) -> Result<Report, Error> {
    if candidates.is_empty() {
        return Err(nothing());
    }
    // Ranks with different candidates would hang.
    let recipes: Vec<_> = candidates.iter().map(|it| it.recipe.to_string()).collect();
    assert_same(comm, &[("candidates", recipes.join("\n"))])?;
    let mut make = |number: usize| make(&candidates[number]);
    let outcomes = race(comm, candidates.len(), budget, &mut make, on_progress)?;
    Report::measured(candidates, outcomes)
}

fn nothing() -> Error {
    Error::argument("candidates", 0, "at least 1")
}

/// Input and output, used by all trials in turn.
struct Arrays {
    input: Slot,
    output: Slot,
}

impl Arrays {
    /// Noise in both, so that all pages are mapped.
    fn of(candidate: &Candidate, rank: usize) -> Result<Self, Error> {
        let precision = candidate.recipe.problem().precision;
        let array = |bytes: usize| {
            let mut array = Slot::new(bytes, rank)?;
            fill(array.bytes_mut(), precision, rank);
            Ok::<_, Error>(array)
        };
        let [input, output] = bytes(candidate, rank);
        Ok(Self { input: array(input)?, output: array(output)? })
    }
}

fn bytes(candidate: &Candidate, rank: usize) -> [usize; 2] {
    let problem = candidate.recipe.problem();
    problem.reals(rank).map(|reals| reals * problem.precision.bytes())
}

fn fill(array: &mut [u8], precision: Precision, rank: usize) {
    fn noises<T: Real>(array: &mut [u8], rank: usize) {
        let mut state = rank as u64 + 1;
        let numbers: &mut [T] = bytemuck::cast_slice_mut(array);
        numbers.fill_with(|| noise(&mut state));
    }
    match precision {
        Precision::F32 => noises::<f32>(array, rank),
        Precision::F64 => noises::<f64>(array, rank),
    }
}

/// A number between -1/2 and 1/2 from a linear congruential generator, whose state may begin as
/// any.
pub fn noise<T: Real>(state: &mut u64) -> T {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    T::of((*state >> 11) as f64 / (1u64 << 53) as f64 - 0.5)
}

enum Data {
    Any(Rc<RefCell<Arrays>>),
    /// Shared memory, allocated by this executor.
    Seen([Box<dyn SharedMemory>; 2]),
}

impl Data {
    /// Memory that the ranks of a host share. Collective.
    fn new(
        comm: &dyn Comm,
        executor: &mut HostExecutor,
        candidate: &Candidate,
    ) -> Result<Self, Error> {
        let rank = comm.rank();
        let mut data = || {
            let [input, output] = bytes(candidate, rank);
            let [input, output] = [executor.allocate(input), executor.allocate(output)];
            Ok::<_, Error>(match input?.zip(output?) {
                // The rank is alone on its host.
                None => Self::Any(Rc::new(RefCell::new(Arrays::of(candidate, rank)?))),
                Some((mut input, output)) => {
                    fill(input.bytes_mut(), candidate.recipe.problem().precision, rank);
                    Self::Seen([input, output])
                }
            })
        };
        agree(comm, data())
    }
}

struct Bound {
    /// Dropped before the executor that may have allocated them.
    arrays: Data,
    executor: HostExecutor,
}

impl Trial for Bound {
    fn run(&mut self) -> Result<(), Error> {
        let forward = Direction::Forward;
        match &mut self.arrays {
            Data::Any(arrays) => {
                let Arrays { input, output } = &mut *arrays.borrow_mut();
                self.executor.run(forward, Some(input.bytes()), output.bytes_mut())
            }
            Data::Seen([input, output]) => {
                self.executor.run(forward, Some(input.bytes()), output.bytes_mut())
            }
        }
    }
}
