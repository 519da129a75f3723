//! What a transform needs of where it runs.
//!
//! The executor walks operations and knows nothing of them but what is here. What a recipe's steps become is the device's to
//! say: on a host passes through its caches, which fetch, transform and store in one ([`crate::HostOp`]); on a GPU launches.

use super::buffer_assignment::BufferRequirement;
use crate::base::{Energy, Error, Real, Timings};
use crate::comm::{Comm, Exchange, MessagePlan, NodeMemory};
use crate::geometry::Transfer;
use crate::problem::Algorithm;
use crate::problem::{Direction, Problem};
use crate::recipe::Recipe;
use crate::recipe::norm_gain::Loss;

/// Where data lives, and how the steps of a recipe are done there. The executor is generic over it.
///
/// Memory is an array of real numbers; a complex number is two, real part first.
///
/// Work may be queued: what fails then is remembered and said by [`Device::finish`].
pub trait Device<T: Real>: Sized {
    /// What operations read and write: `[T]` on a host.
    type Memory: ?Sized;
    /// A plan's own memory, in two pieces.
    type Work;
    /// A bound step, or several that run as one.
    type Op: Operation<T, Self>;

    /// Meets the other ranks before anything is bound, and returns what those of one host need to reach each other's memory
    /// where the recipe wants that. Collective.
    ///
    /// # Errors
    /// On every rank the same, or with [`Error::OnRank`].
    fn connect(
        &mut self,
        recipe: &Recipe,
        comm: &dyn Comm,
    ) -> Result<Option<Box<dyn NodeMemory>>, Error>;

    /// The operations of one direction. Called by all ranks, of which one that fails may not come for the next direction: a device that has
    /// them agree on something agrees on failures first.
    ///
    /// # Errors
    /// [`Error::Memory`]; [`Error::Argument`] for what this device cannot do.
    fn bind(
        &mut self,
        recipe: &Recipe,
        site: BindContext<'_>,
    ) -> Result<Operations<Self::Op>, Error>;

    /// A plan's own memory, of so many real numbers each. Collective.
    ///
    /// # Errors
    /// On every rank, when one lacks memory.
    fn work(
        &mut self,
        reals: [usize; 2],
        comm: &dyn Comm,
        node_memory: Option<&mut dyn NodeMemory>,
    ) -> Result<Self::Work, Error>;

    /// All memory that a run can write.
    fn places<'a>(
        work: &'a mut Self::Work,
        output: &'a mut Self::Memory,
    ) -> [&'a mut Self::Memory; 3];

    /// Bytes of memory that a plan holds here beside its own two pieces and what operations hold.
    fn held(&self) -> usize {
        0
    }

    /// Copies real numbers.
    fn copy(&mut self, all: &Transfer, src: &Self::Memory, dst: &mut Self::Memory);

    /// Adds the squares of the numbers of boxes of elements of `width` real numbers, the source's sides of transfers, to a sum
    /// for each: now, or when they are asked for.
    fn energy(&mut self, parts: &[Transfer], width: usize, src: &Self::Memory, sums: &mut [Energy]);

    /// Adds to the sums what [`Device::energy`] has queued for them, if it does; waits for that unless the run is
    /// [finished](Device::finish).
    fn energy_queued(&mut self, _sums: &mut [Energy]) {}

    /// Called at the end of every run: waits for what the host must know before it returns, if anything.
    ///
    /// # Errors
    /// The first failure of what was queued.
    fn finish(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

/// A bound step of a recipe, or several.
pub trait Operation<T: Real, Dev: Device<T>> {
    /// What it asks of the places that it reads and writes.
    fn buffer_requirement(&self) -> BufferRequirement;

    /// What it may lose.
    fn loss(&self) -> Option<Loss> {
        None
    }

    /// Sets the distance between neighbouring values on a wire that wants to be told, and the finer one for messages that
    /// would lose more than errors that are spread evenly over half of it to either side ([`Loss::room`]).
    fn set_step(&mut self, _step: f64, _finer: Option<f64>) {}

    /// What it lost in the last run, which is finished: the sum of squares, as its data was then.
    fn squared_error(&self) -> f64 {
        0.0
    }

    /// What was wrong with messages in the last run, which is finished, if that is not known before.
    ///
    /// # Errors
    /// For the first message that did not decode.
    fn damage(&self) -> Result<(), Error> {
        Ok(())
    }

    /// The messages that it exchanges, if it does: those that it [reserves](Operation::reserve) for, known when it is bound.
    fn message_plan(&self) -> Option<&MessagePlan>;

    /// What ranks prepare together. Collective; a rank that fails does so after its part.
    ///
    /// # Errors
    /// What the transport returns, [`Error::Memory`].
    fn reserve(&mut self, _tools: &mut RunContext<Dev>) -> Result<(), Error> {
        Ok(())
    }

    /// From one buffer to another, or in place.
    ///
    /// # Errors
    /// A damaged message, after the exchange, unless that is for [`Operation::damage`] to say; the transport's.
    fn run(
        &mut self,
        context: &mut RunContext<Dev>,
        buffers: OpBuffers<'_, Dev::Memory>,
    ) -> Result<(), Error>;

    /// Bytes of memory held.
    fn memory(&self) -> usize {
        0
    }
}

/// What an operation reads and writes.
pub struct OpBuffers<'a, M: ?Sized> {
    /// What is read, unless the operation works in place.
    pub src: Option<&'a M>,
    /// What is written.
    pub dst: &'a mut M,
    /// Where an operation that works in place in memory that other ranks reach finds the caller's arrays.
    pub caller: Option<CallerArrays<'a, M>>,
}

/// The caller's arrays, where this rank's data comes from and goes to.
pub struct CallerArrays<'a, M: ?Sized> {
    /// The input, where data is taken from that and it is not the output.
    pub input: Option<&'a M>,
    /// The output, unless nothing is there.
    pub output: Option<&'a mut M>,
    /// Whether data comes from the input, or else from the output; otherwise it is in the buffer already.
    pub copy_in: bool,
    /// Whether it goes to the output; otherwise it stays in the buffer.
    pub copy_out: bool,
}

/// The operations of one direction, in order.
pub struct Operations<Op> {
    /// The operations.
    pub ops: Vec<Op>,
    /// Real numbers on this rank before, between and after them.
    pub sizes: Vec<usize>,
    /// Whether other ranks can see any memory, or only the plan's own.
    pub exposes_all: bool,
}

/// For whom operations are bound, beside the recipe.
#[derive(Clone, Copy)]
pub struct BindContext<'a> {
    /// Which way.
    pub direction: Direction,
    /// The ranks.
    pub comm: &'a dyn Comm,
    /// What [`Device::meet`] returned.
    pub node_memory: Option<&'a dyn NodeMemory>,
}

impl BindContext<'_> {
    /// Whether other ranks of the host can see the caller's arrays, too.
    pub(crate) fn exposes_all(&self, problem: &Problem) -> bool {
        problem.options.shared_arrays || self.node_memory.is_none_or(NodeMemory::exposes_all)
    }
}

/// What operations run on.
pub struct RunContext<Dev> {
    /// The device.
    pub device: Dev,
    pub(crate) exchanges: Vec<(Algorithm, Box<dyn Exchange>)>,
    /// For operations that reach other ranks' memory, where there are any on this host.
    pub node_memory: Option<Box<dyn NodeMemory>>,
    /// Where time goes.
    pub timings: Timings,
}

impl<Dev> RunContext<Dev> {
    /// The exchange of an algorithm that the recipe names, and what else it copy_in to use it.
    ///
    /// # Panics
    /// If the recipe does not name it.
    pub fn split(&mut self, wanted: Algorithm) -> RunParts<'_, Dev> {
        let Self { device, exchanges, node_memory, timings } = self;
        let found = exchanges.iter_mut().find(|(algorithm, _)| *algorithm == wanted);
        let exchange = found.expect("bind makes every exchange that the recipe names").1.as_mut();
        RunParts { device, exchange, node_memory, timings }
    }
}

/// [`RunContext`], each by itself.
pub struct RunParts<'a, Dev> {
    /// The device.
    pub device: &'a mut Dev,
    /// One exchange.
    pub exchange: &'a mut dyn Exchange,
    /// As in [`RunContext`].
    pub node_memory: &'a mut Option<Box<dyn NodeMemory>>,
    /// As in [`RunContext`].
    pub timings: &'a mut Timings,
}
