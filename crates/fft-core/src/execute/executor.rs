//! A recipe bound to a communicator, a device and buffers; and the loop that runs it.

use super::buffer_assignment::{BufferId, CallerData, Instruction};
use super::device::{BindContext, CallerArrays, OpBuffers, RunContext};
use super::device::{Device, Operation};
use super::error_budget::Budget;
use super::program::BoundProgram;
use crate::base::Timings;
use crate::base::{Error, Real, WireError};
use crate::comm::{Comm, Exchange, NodeMemory, SharedMemory, agree, matching};
use crate::problem::Algorithm;
use crate::problem::Direction;
use crate::recipe::Recipe;

/// A bound recipe. Data goes in and out as arrays of real numbers (a complex number is two), each rank
/// passing its own bricks; lengths are the caller's to check.
pub struct Executor<T: Real, Dev: Device<T>> {
    /// Dropped before what all ranks free together, so that those who go on hear of it.
    comm: Box<dyn Comm>,
    forward: BoundProgram<T, Dev>,
    inverse: BoundProgram<T, Dev>,
    work: Dev::Work,
    /// Real numbers of the plan's own memory.
    sizes: [usize; 2],
    context: RunContext<Dev>,
    /// Whether all ranks read each other's memory on one host.
    near: bool,
    lost: Option<WireError>,
}

/// Makes the exchange of an algorithm on a communicator. Called by all ranks together; one that fails must do so
/// after its collective part, or on all of them.
pub type MakeExchange<'a> = &'a dyn Fn(Algorithm, &dyn Comm) -> Result<Box<dyn Exchange>, Error>;

impl<T: Real, Dev: Device<T>> Executor<T, Dev> {
    /// Binds a recipe: allocates buffers and slots, prepares local transforms, makes the exchanges.
    /// Collective over `comm`, which the executor keeps; all ranks have the same recipe.
    ///
    /// # Errors
    /// On every rank the same: [`Error::OnRank`] when memory is short on one, or what `exchange` returns;
    /// [`Error::Disagreement`] when a rank expects other messages than are sent to it ([`matching`]).
    pub fn bind(
        recipe: &Recipe,
        comm: Box<dyn Comm>,
        mut device: Dev,
        exchange: MakeExchange<'_>,
    ) -> Result<Self, Error> {
        let algorithms = recipe.algorithms();
        let mut exchanges = Vec::with_capacity(algorithms.len());
        for algorithm in algorithms {
            let bound = recipe.problem().bound_exchange(algorithm);
            exchanges.push((algorithm, agree(comm.as_ref(), exchange(bound, comm.as_ref()))?));
        }
        let mut node_memory = device.connect(recipe, comm.as_ref())?;
        let mut programs = || -> Result<[BoundProgram<T, Dev>; 2], Error> {
            let mut program = |direction| {
                let site = BindContext {
                    direction,
                    comm: comm.as_ref(),
                    node_memory: node_memory.as_deref(),
                };
                Ok(BoundProgram::new(device.bind(recipe, site)?))
            };
            Ok([program(Direction::Forward)?, program(Direction::Inverse)?])
        };
        let mut programs = agree(comm.as_ref(), programs())?;
        // Before anything that ranks do together as their recipes say.
        let ops = programs.iter().flat_map(|program| &program.ops);
        matching(comm.as_ref(), ops.filter_map(Operation::message_plan))?;
        for (program, direction) in
            programs.iter_mut().zip([Direction::Forward, Direction::Inverse])
        {
            program.budget = Budget::new::<T, Dev>(recipe, direction, &program.ops, comm.as_ref())?;
        }
        let size = |work| programs.iter().map(|program| program.work(work)).max().unwrap_or(0);
        let sizes = [size(0), size(1)];
        let work = device.work(sizes, comm.as_ref(), node_memory.as_deref_mut().map(|c| c as _))?;
        let [forward, inverse] = programs;
        let context = RunContext { device, exchanges, node_memory, timings: Timings::default() };
        let near = recipe.problem().all_near();
        let mut bound = Self { comm, forward, inverse, work, sizes, context, near, lost: None };
        let reserved = bound.reserve();
        agree(bound.comm.as_ref(), reserved)?;
        Ok(bound)
    }

    /// Everything that ranks prepare together. A failure does not keep this rank from the rest.
    fn reserve(&mut self) -> Result<(), Error> {
        let mut result = Ok(());
        for op in self.forward.ops.iter_mut().chain(&mut self.inverse.ops) {
            result = result.and(op.reserve(&mut self.context));
        }
        result
    }

    /// Transforms `src` into `dst`, or `dst` in place. Collective. Allocates nothing.
    ///
    /// Without `src`, the first numbers of `dst` are the input, and it is as long as the longer of input and
    /// output.
    ///
    /// # Errors
    /// The same on every rank, after all of them have finished: [`Error::OnRank`] when a message was
    /// damaged, or when the transport failed. `dst` then holds nothing of use.
    ///
    /// # Panics
    /// If `src` or `dst` is too short for this rank's bricks.
    pub fn run(
        &mut self,
        direction: Direction,
        src: Option<&Dev::Memory>,
        dst: &mut Dev::Memory,
    ) -> Result<(), Error> {
        let Self { comm, context, work, .. } = self;
        let program = direction.choose(&mut self.forward, &mut self.inverse);
        self.lost = None;
        let already = std::thread::panicking();
        let _unwinding = Unwinding { comm: comm.as_ref(), already };
        program.open(&mut context.device, src.unwrap_or(dst), comm.as_ref())?;
        let (ops, instructions) = program.split(src.is_some());
        let mut buffers = Buffers { input: src, writable: Dev::places(work, dst) };
        let mut result = Ok(());
        for instruction in instructions {
            let done = match *instruction {
                Instruction::Run { op, from, to, caller } => {
                    ops[op].run(context, buffers.of(from, to, caller))
                }
                Instruction::Copy { ref all, from, to } => {
                    let (src, dst) = buffers.pair(from, to);
                    context.device.copy(all, src.expect("a copy has a source"), dst);
                    Ok(())
                }
            };
            // Others wait for this rank in what is to come, whatever went wrong here.
            result = result.and(done);
        }
        let finished = result.and(context.device.finish());
        let mine = finished.and_then(|()| ops.iter().try_for_each(Operation::damage));
        settle(comm.as_ref(), context.node_memory.as_deref_mut().filter(|_| self.near), mine)?;
        self.lost = program.close(&mut context.device, comm.as_ref())?;
        Ok(())
    }

    /// As [`agree`]; where all ranks read each other's memory on one host, no message is sent as long as all is well. Collective.
    ///
    /// # Errors
    /// The lowest failing rank's; [`Error::Left`] when a process has dropped its executor.
    pub fn agree<R>(&mut self, mine: Result<R, Error>) -> Result<R, Error> {
        settle(
            self.comm.as_ref(),
            self.context.node_memory.as_deref_mut().filter(|_| self.near),
            mine,
        )
    }

    /// Zeroed memory for input or output that the other ranks of the host can see; `None` where this rank is alone on
    /// its host, or looks into no other's memory. Collective; ranks may ask for different lengths.
    ///
    /// # Errors
    /// On every rank of the host when one does not get it. Those of other hosts are not asked.
    pub fn allocate(&mut self, bytes: usize) -> Result<Option<Box<dyn SharedMemory>>, Error> {
        let node_memory = self.context.node_memory.as_mut();
        node_memory.map(|node_memory| node_memory.allocate(bytes)).transpose()
    }

    /// Whether this rank looks into others' memory, or they into its own.
    pub fn has_neighbours(&self) -> bool {
        self.context.node_memory.is_some()
    }

    /// Whether memory is where the other ranks of the host can see it, as far as there are any who look.
    pub fn is_seen(&self, memory: &[u8]) -> bool {
        self.context.node_memory.as_ref().is_none_or(|node_memory| node_memory.sees(memory))
    }

    /// How messages travel where the recipe names this algorithm.
    pub fn exchange(&self, named: Algorithm) -> Algorithm {
        let found = self.context.exchanges.iter().find(|(algorithm, _)| *algorithm == named);
        found.map_or(named, |(_, exchange)| exchange.algorithm())
    }

    /// What it runs on.
    pub fn device(&self) -> &Dev {
        &self.context.device
    }

    /// The same, to be asked for memory.
    pub fn device_mut(&mut self) -> &mut Dev {
        &mut self.context.device
    }

    /// What the last run lost on the wire, as all ranks together know; `None` when nothing may be lost.
    pub fn lost(&self) -> Option<WireError> {
        self.lost
    }

    /// Operations of a direction: passes over memory.
    pub fn operations(&self, direction: Direction) -> usize {
        direction.choose(&self.forward, &self.inverse).ops.len()
    }

    /// The communicator.
    pub fn comm(&self) -> &dyn Comm {
        self.comm.as_ref()
    }

    /// Where time went since the last [`Executor::clear_timings`].
    pub fn timings(&self) -> Timings {
        self.context.timings
    }

    /// Sets all times and counts to zero.
    pub fn clear_timings(&mut self) {
        self.context.timings = Timings::default();
    }

    /// Bytes of memory beside input and output: work buffers, slots, tiles.
    pub fn memory(&self) -> usize {
        let exchanges = self.context.exchanges.iter();
        let slots: usize = exchanges.map(|(_, exchange)| exchange.memory()).sum();
        let tiles: usize =
            self.forward.ops.iter().chain(&self.inverse.ops).map(Operation::memory).sum();
        self.sizes.iter().sum::<usize>() * size_of::<T>()
            + slots
            + tiles
            + self.context.device.held()
    }
}

/// [`agree`], by a meeting where all ranks have a node_memory together and all is well.
fn settle<R>(
    comm: &dyn Comm,
    node_memory: Option<&mut (dyn NodeMemory + 'static)>,
    mine: Result<R, Error>,
) -> Result<R, Error> {
    match node_memory.map(|node_memory| node_memory.sync(mine.is_ok())).transpose()? {
        Some(true) => mine,
        _ => agree(comm, mine),
    }
}

/// Tells the communicator of a panic, while others wait for this rank.
struct Unwinding<'a> {
    comm: &'a dyn Comm,
    /// Whether it is of a panic before, in the course of which something is transformed.
    already: bool,
}

impl Drop for Unwinding<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() && !self.already {
            self.comm.abandon();
        }
    }
}

/// The memory of one run.
struct Buffers<'a, M: ?Sized> {
    input: Option<&'a M>,
    /// The output and the work buffers.
    writable: [&'a mut M; 3],
}

impl<M: ?Sized> Buffers<'_, M> {
    /// What an operation reads and writes.
    fn of(&mut self, from: BufferId, to: BufferId, caller: CallerData) -> OpBuffers<'_, M> {
        if !caller.is_used() {
            let (src, dst) = self.pair(from, to);
            return OpBuffers { src, dst, caller: None };
        }
        let CallerData { copy_in, copy_out, in_both } = caller;
        let [output, first, second] = &mut self.writable;
        let dst = if to == BufferId::Work(0) { first } else { second };
        let input = self.input.filter(|_| copy_in == Some(BufferId::Input));
        let has_output = copy_out || in_both || copy_in == Some(BufferId::Output);
        let output = has_output.then_some(&mut **output);
        let caller = CallerArrays { input, output, copy_in: copy_in.is_some(), copy_out };
        OpBuffers { src: None, dst, caller: Some(caller) }
    }

    /// A buffer to read and one to write; only the latter when they are the same.
    fn pair(&mut self, from: BufferId, to: BufferId) -> (Option<&M>, &mut M) {
        let number = |place| match place {
            BufferId::Output | BufferId::Input => 0,
            BufferId::Work(which) => 1 + which,
        };
        if from == BufferId::Input {
            return (self.input, self.writable[number(to)]);
        }
        if from == to {
            return (None, self.writable[number(to)]);
        }
        let [src, dst] = self
            .writable
            .get_disjoint_mut([number(from), number(to)])
            .expect("two places are two pieces of memory");
        (Some(src), dst)
    }
}
