//! Recipes by the clock of a device.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use fft_comm::tuner::{Candidate, Choice, Trial, candidates, noise, shortlist, tune_by};
use fft_core::{Algorithm, Comm, Direction, Error, Executor, Layout, Problem, Recipe, agree};
use fft_gpu::cudarc::driver::{CudaSlice, CudaStream, DriverError};
use fft_gpu::{Cuda, Gpu, GpuError, GpuReal, Passage, lend, lend_mut};

use crate::tune::{Chosen, TIMED, Wanted};

/// A device, as plans are bound to it.
pub(super) struct Bench<'a> {
    pub(super) gpu: &'a Gpu,
    pub(super) stream: &'a Arc<CudaStream>,
    pub(super) passage: Passage,
}

impl Bench<'_> {
    /// The device of one plan.
    pub(super) fn device<T: GpuReal>(&self, rank: usize) -> Result<Cuda<T>, Error> {
        let device = Cuda::new(self.gpu, self.stream.clone()).map_err(|why| why.on(rank))?;
        Ok(device.passage(self.passage))
    }

    /// Times recipes of every family, each until the stream is idle. Collective.
    pub(super) fn by_clock<T: GpuReal, const D: usize>(
        &self,
        comm: &dyn Comm,
        problem: &Problem<D>,
        wanted: &Wanted<'_>,
        budget: Duration,
    ) -> Result<Chosen<D>, Error> {
        let all = shortlist(recipes(problem, wanted)?, TIMED);
        let arrays = agree(comm, Arrays::<T>::new(self.stream, problem, comm.rank()))?;
        let arrays = RefCell::new(arrays);
        let mut make = |candidate: &Candidate<D>| -> Result<Box<dyn Trial + '_>, Error> {
            let own = agree(comm, comm.dup())?;
            let device = agree(comm, self.device(comm.rank()))?;
            let executor = Executor::bind(&candidate.recipe, own, device, &fft_comm::exchange)?;
            Ok(Box::new(Bound { executor, stream: self.stream, arrays: &arrays }))
        };
        let heard = &mut |news| (wanted.watch)(news);
        let report = tune_by(comm, &all, budget, &mut make, heard)?;
        Ok((all, report))
    }
}

/// What is worth being timed: chunks are the device's own, and recipes those of whole messages, by whatever exchange these go.
fn recipes<const D: usize>(
    problem: &Problem<D>,
    wanted: &Wanted<'_>,
) -> Result<Vec<Candidate<D>>, Error> {
    let (whole, given) = (Algorithm::P2p, problem.exchange);
    let mut like = problem.clone();
    like.exchange = whole;
    let mut choice = Choice::of_clock(&like, Some(whole), false, wanted.fixed);
    choice.chunks.truncate(1);
    let named = |candidate: Candidate<D>| {
        let text = candidate.recipe.to_string();
        let mut problem = candidate.recipe.problem().clone();
        problem.exchange = given;
        let text = text.replace(&format!(" {whole} "), &format!(" {given} "));
        Ok(Candidate::of(Recipe::exact(problem, &text)?))
    };
    let found = candidates(&like, &choice)?;
    if given == whole { Ok(found) } else { found.into_iter().map(named).collect() }
}

/// Input and output, used by all trials in turn.
struct Arrays<T> {
    input: CudaSlice<T>,
    output: CudaSlice<T>,
    /// Numbers of each: there are no arrays of none on a device.
    reals: [usize; 2],
}

impl<T: GpuReal> Arrays<T> {
    fn new<const D: usize>(
        stream: &Arc<CudaStream>,
        problem: &Problem<D>,
        rank: usize,
    ) -> Result<Self, Error> {
        let reals = |layout: &Layout<D>, complex: bool| {
            layout.brick(rank).points() * problem.howmany * if complex { 2 } else { 1 }
        };
        let reals = [
            reals(&problem.input, problem.complex),
            reals(&problem.output, problem.complex_spectrum()),
        ];
        let mut state = rank as u64 + 1;
        let numbers: Vec<T> = (0..reals[0].max(1)).map(|_| noise(&mut state)).collect();
        let bytes = reals.iter().sum::<usize>() * size_of::<T>();
        let failed = |why| GpuError::allocating(bytes, why).on(rank);
        let input = stream.clone_htod(&numbers).map_err(failed)?;
        let output = stream.alloc_zeros(reals[1].max(1)).map_err(failed)?;
        Ok(Self { input, output, reals })
    }
}

/// A candidate, bound.
struct Bound<'a, T: GpuReal> {
    executor: Executor<T, Cuda<T>>,
    stream: &'a Arc<CudaStream>,
    arrays: &'a RefCell<Arrays<T>>,
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
