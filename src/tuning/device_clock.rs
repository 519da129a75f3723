//! The fastest recipe by the clock of a device.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use fft_comm::tuner::{Candidate, Choice, Trial, candidates, noise, shortlist, tune_by};
use fft_core::{Algorithm, Comm, Direction, Error, Precision, Problem, Real, Recipe, agree};
use fft_gpu::cudarc::driver::DriverError;

use super::decide::{Chosen, TIMED, Wanted};
use crate::bound::{Bound, OnDevice};
use crate::field::{Bytes, BytesMut, DynArray, Sizes};

/// Binds a recipe to the device. Collective.
pub(crate) type Bind<'a> = &'a dyn Fn(&Recipe) -> Result<Box<dyn Bound>, Error>;

/// Times recipes of every family, each until the stream is idle. Collective.
pub(crate) fn by_device_clock(
    comm: &dyn Comm,
    problem: &Problem,
    wanted: &Wanted<'_>,
    budget: Duration,
    bind: Bind<'_>,
) -> Result<Chosen, Error> {
    let all = shortlist(recipes(problem, wanted)?, TIMED);
    let bytes = Sizes::of(problem, comm.rank()).bytes();
    // Arrays that others see belong to one plan; others go from trial to trial.
    let lent: RefCell<Option<Rc<RefCell<Arrays>>>> = RefCell::default();
    let mut make = |candidate: &Candidate| -> Result<Box<dyn Trial + '_>, Error> {
        let mut bound = bind(&candidate.recipe)?;
        let known = lent.borrow().clone();
        let arrays = match known {
            Some(arrays) => arrays,
            None => Rc::new(RefCell::new(Arrays::new(bound.as_mut(), problem, bytes)?)),
        };
        if !problem.options.shared_arrays {
            *lent.borrow_mut() = Some(arrays.clone());
        }
        Ok(Box::new(Timed { bound, arrays, bytes }))
    };
    let report = tune_by(comm, &all, budget, &mut make, &mut |news| (wanted.watch)(news))?;
    Ok((all, report))
}

/// The recipes worth timing: those of whole messages, with the exchange that was given. A device
/// chooses chunks itself.
fn recipes(problem: &Problem, wanted: &Wanted<'_>) -> Result<Vec<Candidate>, Error> {
    let (whole, given) = (Algorithm::P2p, problem.options.exchange);
    let mut like = problem.clone();
    like.options.exchange = whole;
    let mut choice = Choice::of_clock(&like, Some(whole), false, wanted.fixed);
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

/// Input and output.
struct Arrays {
    input: DynArray,
    output: DynArray,
}

impl Arrays {
    /// Noise, and zeros; such as other ranks see, where they look. Collective.
    fn new(bound: &mut dyn Bound, problem: &Problem, bytes: [usize; 2]) -> Result<Self, Error> {
        let [input, output] = match problem.options.shared_arrays {
            true => [bound.allocate(bytes[0])?, bound.allocate(bytes[1])?].map(Ok),
            false => [bound.zeros(bytes[0]), bound.zeros(bytes[1])],
        };
        let rank = bound.executor().comm().rank();
        let noise = match problem.precision {
            Precision::F32 => noise_bytes::<f32>(bytes[0], rank),
            Precision::F64 => noise_bytes::<f64>(bytes[0], rank),
        };
        let made = input.and_then(|mut input| {
            input.write(&noise)?;
            Ok(Self { input, output: output? })
        });
        agree(bound.executor().comm(), made)
    }
}

fn noise_bytes<T: Real>(bytes: usize, rank: usize) -> Vec<u8> {
    let mut state = rank as u64 + 1;
    let numbers: Vec<T> = (0..bytes / size_of::<T>()).map(|_| noise(&mut state)).collect();
    bytemuck::cast_slice(&numbers).to_vec()
}

/// A candidate, bound.
struct Timed {
    /// Dropped after the arrays, which may be its own.
    arrays: Rc<RefCell<Arrays>>,
    bound: Box<dyn Bound>,
    bytes: [usize; 2],
}

impl Trial for Timed {
    fn run(&mut self) -> Result<(), Error> {
        let Self { bound, arrays, bytes } = self;
        let Arrays { input, output } = &mut *arrays.borrow_mut();
        let stream = bound.on_device().map(|OnDevice { stream, .. }| stream.clone());
        let (Some(stream), Some(input), Some(output)) =
            (stream, input.device(), output.device_mut())
        else {
            return Err(Error::argument("trial", "one on the host", "one on a device"));
        };
        input.with(&stream, bytes[0], |input| {
            output.with_mut(&stream, bytes[1], |output| {
                let (input, output) = (Some(Bytes::Device(input)), BytesMut::Device(output));
                bound.run(Direction::Forward, input, output)
            })
        })?;
        let (rank, call) = (bound.executor().comm().rank(), "waiting for the device");
        let failed = |why: DriverError| Error::Transport { rank, call, text: why.to_string() };
        stream.synchronize().map_err(failed)
    }
}
