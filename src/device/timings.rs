//! Recipes by the timings of a device.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use fft_comm::tuner::{Candidate, Choice, Trial, candidates, noise, shortlist, tune_by};
use fft_core::{Algorithm, Comm, Direction, Error, Executor, Problem, Recipe, agree};
use fft_gpu::cudarc::driver::{CudaStream, DriverError};
use fft_gpu::{Cuda, Gpu, GpuError, GpuReal, GpuTransport, lend, lend_mut};

use super::array::{DeviceArray as Array, Memory};
use crate::pool::Pool;
use crate::tune::{Chosen, TIMED, Wanted};

/// A device, as plans are bound to it.
pub(super) struct Bench<'a> {
    pub(super) gpu: &'a Gpu,
    pub(super) stream: &'a Arc<CudaStream>,
    pub(super) transport: GpuTransport,
}

impl Bench<'_> {
    /// The device of one plan.
    pub(super) fn device<T: GpuReal>(&self, rank: usize) -> Result<Cuda<T>, Error> {
        let device = Cuda::new(self.gpu, self.stream.clone()).map_err(|why| why.on(rank))?;
        Ok(device.transport(self.transport))
    }

    /// Times recipes of every family, each until the stream is idle. Collective.
    pub(super) fn by_clock<T: GpuReal>(
        &self,
        comm: &dyn Comm,
        problem: &Problem,
        wanted: &Wanted<'_>,
        budget: Duration,
    ) -> Result<Chosen, Error> {
        let all = shortlist(recipes(problem, wanted)?, TIMED);
        let (stream, rank) = (self.stream, comm.rank());
        let reals = problem.reals(rank);
        // Arrays that others see are a plan's own.
        let any = (!problem.shared_arrays).then(|| Arrays::<T>::new(stream, reals, rank));
        let any = agree(comm, any.transpose())?.map(|arrays| Rc::new(RefCell::new(arrays)));
        let mut make = |candidate: &Candidate| -> Result<Box<dyn Trial + '_>, Error> {
            let own = agree(comm, comm.dup())?;
            let device = agree(comm, self.device(comm.rank()))?;
            let bind = Executor::bind(&candidate.recipe, own, device, &fft_comm::exchange);
            let mut executor = bind?;
            let arrays = match &any {
                Some(arrays) => arrays.clone(),
                None => Rc::new(RefCell::new(Arrays::seen(&mut executor, stream, reals)?)),
            };
            Ok(Box::new(Bound { executor, stream, arrays }))
        };
        let on_progress = &mut |news| (wanted.watch)(news);
        let report = tune_by(comm, &all, budget, &mut make, on_progress)?;
        Ok((all, report))
    }
}

/// What is worth being timed: chunks are the device's own, and recipes those of whole messages, by whatever exchange these go.
fn recipes(problem: &Problem, wanted: &Wanted<'_>) -> Result<Vec<Candidate>, Error> {
    let (whole, given) = (Algorithm::P2p, problem.exchange);
    let mut like = problem.clone();
    like.exchange = whole;
    let mut choice = Choice::of_clock(&like, Some(whole), false, wanted.fixed);
    choice.chunks.truncate(1);
    let named = |candidate: Candidate| {
        let text = candidate.recipe.to_string();
        let mut problem = candidate.recipe.problem().clone();
        problem.exchange = given;
        let text = text.replace(&format!(" {whole} "), &format!(" {given} "));
        Ok(Candidate::of(Recipe::exact(problem, &text)?))
    };
    let found = candidates(&like, &choice)?;
    if given == whole { Ok(found) } else { found.into_iter().map(named).collect() }
}

/// Input and output.
struct Arrays<T> {
    input: Array<T>,
    output: Array<T>,
    /// Numbers of each: there are no arrays of none on a device.
    reals: [usize; 2],
}

impl<T: GpuReal> Arrays<T> {
    /// Any, for all trials in turn.
    fn new(stream: &Arc<CudaStream>, reals: [usize; 2], rank: usize) -> Result<Self, Error> {
        let bytes = reals.iter().sum::<usize>() * size_of::<T>();
        let failed = |why| GpuError::allocating(bytes, why).on(rank);
        let input = stream.clone_htod(&numbers::<T>(reals[0], rank)).map_err(failed)?;
        let output = stream.alloc_zeros(reals[1].max(1)).map_err(failed)?;
        Ok(Self { input: Array::own(input), output: Array::own(output), reals })
    }

    /// Such as other ranks see, for one trial. Collective.
    fn seen(
        executor: &mut Executor<T, Cuda<T>>,
        stream: &Arc<CudaStream>,
        reals: [usize; 2],
    ) -> Result<Self, Error> {
        let (pool, rank) = (Pool::default(), executor.comm().rank());
        let mut array = |reals| {
            let made = executor.device_mut().allocate(reals);
            made.map(|slice| Array(Memory::Shared(pool.lend(slice))))
        };
        let (mut input, output) = (array(reals[0])?, array(reals[1])?);
        let numbers = numbers::<T>(reals[0], rank);
        let copied = stream.memcpy_htod(&numbers, &mut input.slice_mut(0..numbers.len()));
        let what = "copying numbers to be transformed";
        let failed = |why: DriverError| GpuError::Driver { what, why: why.to_string() }.on(rank);
        agree(executor.comm(), copied.map_err(failed))?;
        Ok(Self { input, output, reals })
    }
}

/// At least one.
fn numbers<T: GpuReal>(reals: usize, rank: usize) -> Vec<T> {
    let mut state = rank as u64 + 1;
    (0..reals.max(1)).map(|_| noise(&mut state)).collect()
}

/// A candidate, bound.
struct Bound<'a, T: GpuReal> {
    executor: Executor<T, Cuda<T>>,
    stream: &'a Arc<CudaStream>,
    arrays: Rc<RefCell<Arrays<T>>>,
}

impl<T: GpuReal> Trial for Bound<'_, T> {
    fn run(&mut self) -> Result<(), Error> {
        let Arrays { input, output, reals } = &mut *self.arrays.borrow_mut();
        let (from, mut to) = (input.slice(0..reals[0]), output.slice_mut(0..reals[1]));
        let (from, mut to) = (lend(&from, self.stream), lend_mut(&mut to, self.stream));
        self.executor.run(Direction::Forward, Some(&from), &mut to)?;
        let (rank, call) = (self.executor.comm().rank(), "waiting for the device");
        let failed = |why: DriverError| Error::Transport { rank, call, text: why.to_string() };
        self.stream.synchronize().map_err(failed)
    }
}
