//! The interface between the executor and a device.
//!
//! The executor runs a list of operations. A device defines the operations of a recipe: passes
//! through caches on a host ([`crate::HostOp`]), launches on a GPU.

use std::time::Instant;

use super::trace::Recorder;
use crate::base::{Energy, Error, Real};
use crate::comm::{Comm, Exchanger, MessagePlan, NodeMemory};
use crate::geometry::Transfer;
use crate::lower::MemoryNeeds;
use crate::problem::Exchange;
use crate::problem::{Direction, Problem};
use crate::recipe::Recipe;
use crate::recipe::norm_gain::Loss;

/// A kind of memory and its operations. The executor is generic over it.
///
/// Memory is an array of real numbers; a complex number is two, real part first. Work may be
/// queued; [`Device::finish`] reports its failures.
pub trait Device<T: Real>: Sized {
    /// The memory of operations: `[T]` on a host.
    type Memory: ?Sized;
    /// The plan's memory.
    type Work;
    /// A bound operation.
    type Op: Operation<T, Self>;

    /// Connects the ranks before anything is bound. Returns access to memory of ranks on the same
    /// host, if the recipe uses it. Collective.
    ///
    /// # Errors
    /// On every rank the same, or with [`Error::OnRank`].
    fn connect(
        &mut self,
        recipe: &Recipe,
        comm: &dyn Comm,
    ) -> Result<Option<Box<dyn NodeMemory>>, Error>;

    /// The operations of one direction, called by all ranks. A rank that fails may skip the next
    /// direction: collective calls of a device must first agree on failures.
    ///
    /// # Errors
    /// [`Error::Memory`]; [`Error::Argument`] for an unsupported recipe.
    fn bind(
        &mut self,
        recipe: &Recipe,
        context: BindContext<'_>,
    ) -> Result<Operations<Self::Op>, Error>;

    /// The plan's memory. Collective.
    ///
    /// # Errors
    /// On every rank, if one lacks memory.
    fn work(
        &mut self,
        reals: WorkReals,
        comm: &dyn Comm,
        node_memory: Option<&mut dyn NodeMemory>,
    ) -> Result<Self::Work, Error>;

    /// The plan's memory with the output of a run.
    fn places<'a>(
        work: &'a mut Self::Work,
        output: &'a mut Self::Memory,
    ) -> Places<'a, Self::Memory>;

    /// Bytes of memory that are held besides the memory of the plan and of its operations.
    fn held(&self) -> usize {
        0
    }

    /// Copies the first real numbers of an array.
    fn copy(&mut self, reals: usize, src: &Self::Memory, dst: &mut Self::Memory);

    /// Adds the sums of squares of boxes, the source sides of transfers. May be queued.
    fn energy(&mut self, parts: &[Transfer], width: usize, src: &Self::Memory, sums: &mut [Energy]);

    /// Adds the queued results of [`Device::energy`], after [`Device::finish`], or waits for them.
    fn energy_queued(&mut self, _sums: &mut [Energy]) {}

    /// Waits for queued work at the end of every run.
    ///
    /// # Errors
    /// The first failure of queued work.
    fn finish(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Marks the end of what is queued so far, before the first operation of a traced run and after
    /// each. Does nothing if operations are done when they return.
    fn mark(&mut self) {}

    /// When the device reached each mark since the last call, for which it waits. Empty if
    /// operations are done when they return, or if the times cannot be measured.
    fn take_marks(&mut self) -> Vec<Instant> {
        Vec::new()
    }
}

/// A bound operation of a recipe.
pub trait Operation<T: Real, Dev: Device<T>> {
    /// The error it may add.
    fn loss(&self) -> Option<Loss> {
        None
    }

    /// Sets the quantization step, and a finer one for messages of larger error ([`Loss::room`]).
    fn set_step(&mut self, _step: f64, _finer: Option<f64>) {}

    /// The sum of squared errors of the last run, which is finished, in units of its data.
    fn squared_error(&self) -> f64 {
        0.0
    }

    /// The state of messages in the last run, which is finished.
    ///
    /// # Errors
    /// For the first message that did not decode.
    fn damage(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Its messages, if any, as passed to [`Operation::reserve`]; available once it is bound.
    fn message_plan(&self) -> Option<&MessagePlan>;

    /// Collective preparation. A rank that fails still completes its part.
    ///
    /// # Errors
    /// Errors of the transport, [`Error::Memory`].
    fn reserve(&mut self, _tools: &mut RunContext<Dev>) -> Result<(), Error> {
        Ok(())
    }

    /// Executes the operation from one buffer to another, or in place.
    ///
    /// # Errors
    /// A damaged message, after the exchange, unless [`Operation::damage`] reports it; errors of
    /// the transport.
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

/// The buffers of an operation.
pub struct OpBuffers<'a, M: ?Sized> {
    /// The source, unless it is the destination.
    pub src: Option<&'a M>,
    /// The destination.
    pub dst: &'a mut M,
    /// Memory to work in that other ranks access, if they do not access source or destination.
    pub window: Option<Window<'a, M>>,
    /// Memory for the second part of a split source or destination.
    pub spare: Option<&'a mut M>,
}

/// Memory that other ranks access during an operation.
pub struct Window<'a, M: ?Sized> {
    /// The memory.
    pub memory: &'a mut M,
    /// Whether the operation first copies its source to the window.
    pub copies_in: bool,
    /// Whether the operation copies its result from the window to the destination.
    pub copies_out: bool,
}

/// All memory that a run can write.
pub struct Places<'a, M: ?Sized> {
    /// The caller's output.
    pub output: &'a mut M,
    /// The plan's two buffers.
    pub work: [&'a mut M; 2],
    /// Memory for the second parts of split values, on devices that split values.
    pub spare: Option<&'a mut M>,
}

/// Real numbers in the plan's memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct WorkReals {
    /// In each buffer.
    pub buffers: [usize; 2],
    /// Real numbers in the memory for second parts of split values.
    pub spare: usize,
}

impl WorkReals {
    /// The larger needs of two directions.
    pub(crate) fn most([a, b]: [Self; 2]) -> Self {
        let buffers = [0, 1].map(|buffer| a.buffers[buffer].max(b.buffers[buffer]));
        Self { buffers, spare: a.spare.max(b.spare) }
    }

    pub(crate) fn all(&self) -> usize {
        self.buffers.iter().sum::<usize>() + self.spare
    }
}

/// The operations of one direction, in order.
pub struct Operations<Op> {
    /// The operations.
    pub ops: Vec<Op>,
    /// The memory that they need on this rank.
    pub needs: MemoryNeeds,
    /// The text of each operation, as the program prints it.
    pub texts: Vec<String>,
}

/// The arguments of binding besides the recipe.
#[derive(Clone, Copy)]
pub struct BindContext<'a> {
    /// The direction.
    pub direction: Direction,
    /// The communicator.
    pub comm: &'a dyn Comm,
    /// The result of [`Device::connect`].
    pub node_memory: Option<&'a dyn NodeMemory>,
}

impl BindContext<'_> {
    /// Whether other ranks of the host can access the caller's arrays, too.
    pub(crate) fn exposes_all(&self, problem: &Problem) -> bool {
        problem.options.shared_arrays || self.node_memory.is_none_or(NodeMemory::exposes_all)
    }
}

/// The resources of operations.
pub struct RunContext<Dev> {
    /// The device.
    pub device: Dev,
    pub(crate) exchanges: Vec<(Exchange, Box<dyn Exchanger>)>,
    /// Memory of other ranks on this host, if shared.
    pub node_memory: Option<Box<dyn NodeMemory>>,
    /// Accumulated times, and events if the plan is traced.
    pub timings: Recorder,
}

impl<Dev> RunContext<Dev> {
    /// The exchanger that carries the messages of an exchange, and the other resources.
    ///
    /// # Panics
    /// If the recipe does not name the exchange.
    pub fn split(&mut self, wanted: Exchange) -> RunParts<'_, Dev> {
        let Self { device, exchanges, node_memory, timings } = self;
        let found = exchanges.iter_mut().find(|(named, _)| *named == wanted);
        let exchange = found.expect("bind makes every exchange that the recipe names").1.as_mut();
        RunParts { device, exchange, node_memory, timings }
    }
}

/// The parts of [`RunContext`].
pub struct RunParts<'a, Dev> {
    /// The device.
    pub device: &'a mut Dev,
    /// One exchange.
    pub exchange: &'a mut dyn Exchanger,
    /// As in [`RunContext`].
    pub node_memory: &'a mut Option<Box<dyn NodeMemory>>,
    /// As in [`RunContext`].
    pub timings: &'a mut Recorder,
}
