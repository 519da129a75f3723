//! Finds the fastest recipe by timing.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

#[cfg(feature = "cuda")]
use fft_core::Exchange;
use fft_core::{Comm, Direction, Error, Precision, Problem, Real, Recipe, agree};
#[cfg(feature = "cuda")]
use fft_gpu::cudarc::driver::DriverError;

use super::candidates::{Candidate, Choice, candidates, shortlist};
use super::decide::{Chosen, Wanted};
use super::race::Trial;
use super::report::Report;
use super::tune::{noise, tune};
#[cfg(feature = "cuda")]
use crate::bound::OnDevice;
use crate::bound::{Bound, HostBound};
use crate::field::{Bytes, BytesMut, DynArray, Sizes};

/// Candidates that are timed.
const TIMED: usize = 8;

/// Binds a recipe. Collective.
pub(crate) type Bind<'a> = &'a dyn Fn(&Recipe) -> Result<Box<dyn Bound>, Error>;

/// Times candidates on the host. Collective.
pub(crate) fn by_clock(
    comm: &dyn Comm,
    problem: &Problem,
    wanted: &Wanted<'_>,
    budget: Duration,
) -> Result<Chosen, Error> {
    let may_put =
        wanted.options.exchange.is_none() && problem.input.ranks() > 1 && !problem.all_near();
    let can_put = match comm.one_sided() {
        Some(one_sided) if may_put => agree(comm, one_sided.window())?.is_some(),
        _ => false,
    };
    let options = wanted.options;
    let choice = Choice::of_clock(problem, options.exchange, can_put, options.wire.is_some())
        .of_messages(comm.has_messages())
        .with_layouts(options.layouts);
    let all = shortlist(candidates(problem, &choice)?, TIMED);
    let bind: Bind<'_> = &|recipe| {
        let bound = HostBound::bind(comm, recipe)?;
        let asked = recipe.problem().options.exchange;
        let found = bound.executor().exchange(asked);
        if found != asked {
            // The communicator lacks this exchange, on all ranks. Its replacement is another
            // candidate.
            return Err(Error::argument("exchange", found, asked));
        }
        Ok(Box::new(bound))
    };
    let lent = if problem.options.shared_arrays {
        None
    } else {
        // Made before the clock starts.
        let own = Sizes::of(problem, comm.rank()).bytes();
        Some(Arrays::of(comm, problem, own.map(|bytes| DynArray::zeros(bytes, comm.rank())))?)
    };
    let report = time((comm, problem), &all, wanted, budget, lent, bind)?;
    Ok((all, report))
}

/// Times recipes of every family on a device, each until the stream is idle. Collective.
#[cfg(feature = "cuda")]
pub(crate) fn by_device_clock(
    comm: &dyn Comm,
    problem: &Problem,
    wanted: &Wanted<'_>,
    budget: Duration,
    bind: Bind<'_>,
) -> Result<Chosen, Error> {
    let all = shortlist(recipes(problem, wanted)?, TIMED);
    let report = time((comm, problem), &all, wanted, budget, None, bind)?;
    Ok((all, report))
}

/// Times candidates, which transform noise forward in lent arrays, if any. Collective.
fn time(
    (comm, problem): (&dyn Comm, &Problem),
    all: &[Candidate],
    wanted: &Wanted<'_>,
    budget: Duration,
    lent: Option<Lent>,
    bind: Bind<'_>,
) -> Result<Report, Error> {
    let bytes = Sizes::of(problem, comm.rank()).bytes();
    // Arrays that other ranks access belong to one plan; other arrays pass from trial to trial.
    let lent = RefCell::new(lent);
    let mut make = |candidate: &Candidate| -> Result<Box<dyn Trial + '_>, Error> {
        let mut bound = bind(&candidate.recipe)?;
        let known = lent.borrow().clone();
        let arrays = match known {
            Some(arrays) => arrays,
            None => {
                let arrays = if problem.options.shared_arrays {
                    bytes.map(|bytes| bound.allocate(bytes))
                } else {
                    bytes.map(|bytes| bound.zeros(bytes))
                };
                Arrays::of(bound.executor().comm(), problem, arrays)?
            }
        };
        if !problem.options.shared_arrays {
            *lent.borrow_mut() = Some(arrays.clone());
        }
        Ok(Box::new(Timed { arrays, bound, bytes }))
    };
    tune(comm, all, budget, &mut make, &mut |news| (wanted.watch)(news))
}

/// The recipes worth timing: those with whole messages and the given exchange, because a device
/// chooses chunks itself.
#[cfg(feature = "cuda")]
fn recipes(problem: &Problem, wanted: &Wanted<'_>) -> Result<Vec<Candidate>, Error> {
    let (whole, given) = (Exchange::P2p, problem.options.exchange);
    let mut like = problem.clone();
    like.options.exchange = whole;
    let mut choice = Choice::of_clock(&like, Some(whole), false, wanted.options.wire.is_some())
        .with_layouts(wanted.options.layouts);
    choice.chunks.truncate(1);
    let named = |candidate: Candidate| {
        let text = candidate.recipe.to_string();
        let mut problem = candidate.recipe.problem().clone();
        problem.options.exchange = given;
        let text = text.replace(&format!(" {whole} "), &format!(" {given} "));
        Ok(Candidate::of(Recipe::exact(problem, &text)?))
    };
    let found = candidates(&like, &choice)?;
    if given == whole { Ok(found) } else { found.into_iter().map(named).collect() }
}

struct Arrays {
    input: DynArray,
    output: DynArray,
}

/// Arrays of several trials in turn.
type Lent = Rc<RefCell<Arrays>>;

impl Arrays {
    /// Noise in both, so that all pages are mapped. Collective.
    fn of(
        comm: &dyn Comm,
        problem: &Problem,
        arrays: [Result<DynArray, Error>; 2],
    ) -> Result<Lent, Error> {
        let bytes = Sizes::of(problem, comm.rank()).bytes();
        let made = || {
            let [input, output] = arrays;
            let mut arrays = Self { input: input?, output: output? };
            for (array, bytes) in [&mut arrays.input, &mut arrays.output].into_iter().zip(bytes) {
                match problem.precision {
                    Precision::F32 => fill::<f32>(array, bytes, comm.rank())?,
                    Precision::F64 => fill::<f64>(array, bytes, comm.rank())?,
                }
            }
            Ok(Rc::new(RefCell::new(arrays)))
        };
        agree(comm, made())
    }
}

fn fill<T: Real>(array: &mut DynArray, bytes: usize, rank: usize) -> Result<(), Error> {
    let mut state = rank as u64 + 1;
    if array.device_address().is_some() {
        let numbers: Vec<T> = (0..bytes / size_of::<T>()).map(|_| noise(&mut state)).collect();
        return array.write(bytemuck::cast_slice(&numbers));
    }
    let numbers: &mut [T] = bytemuck::cast_slice_mut(&mut array.bytes_mut()[..bytes]);
    numbers.fill_with(|| noise(&mut state));
    Ok(())
}

struct Timed {
    /// Dropped before the plan that may have allocated them.
    arrays: Lent,
    bound: Box<dyn Bound>,
    bytes: [usize; 2],
}

impl Trial for Timed {
    fn run(&mut self) -> Result<(), Error> {
        let Self { bound, arrays, bytes } = self;
        let Arrays { input, output } = &mut *arrays.borrow_mut();
        #[cfg(feature = "cuda")]
        if let Some(OnDevice { queue, .. }) = bound.on_device()
            && let (Some(from), Some(to)) = (input.device(), output.device_mut())
        {
            let stream = queue.stream.clone();
            from.with(&stream, bytes[0], |from| {
                to.with_mut(&stream, bytes[1], |to| {
                    bound.run(Direction::Forward, Some(Bytes::Device(from)), BytesMut::Device(to))
                })
            })?;
            // Not the stream of the arrays, which may be another trial's.
            let (rank, call) = (bound.executor().comm().rank(), "waiting for the device");
            let failed = |why: DriverError| Error::Transport { rank, call, text: why.to_string() };
            return stream.synchronize().map_err(failed);
        }
        let (input, output) = (&input.bytes()[..bytes[0]], &mut output.bytes_mut()[..bytes[1]]);
        bound.run(Direction::Forward, Some(Bytes::Host(input)), BytesMut::Host(output))
    }
}
