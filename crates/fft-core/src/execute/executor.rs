//! A recipe bound to a communicator, a device and buffers; and the loop that runs it.

use super::device::{BindContext, Device, Operation, RunContext, WorkReals};
use super::error_budget::Budget;
use super::program::{BoundProgram, Buffers};
use super::trace::{Activity, Recorder};
use crate::base::{Error, Real, Timings, WireError};
use crate::comm::{Comm, Exchanger, NodeMemory, Unwinding, agree, agree_by_memory, matching};
use crate::problem::{Direction, Exchange};
use crate::recipe::Recipe;

/// A bound recipe. Data is passed as arrays of real numbers, each rank its own bricks. Callers
/// check lengths.
pub struct Executor<T: Real, Dev: Device<T>> {
    /// Dropped before memory that ranks free together, so that waiting ranks are notified.
    comm: Box<dyn Comm>,
    forward: BoundProgram<T, Dev>,
    inverse: BoundProgram<T, Dev>,
    work: Dev::Work,
    reals: WorkReals,
    context: RunContext<Dev>,
    /// Whether all ranks read each other's memory on one host.
    near: bool,
    lost: Option<WireError>,
}

/// Makes the exchanger that carries the messages of an exchange. Collective, also for a rank that
/// fails.
pub type MakeExchanger<'a> = &'a dyn Fn(Exchange, &dyn Comm) -> Result<Box<dyn Exchanger>, Error>;

/// An [`Executor`] of any types and device, without its runs.
pub trait AnyExecutor {
    /// The communicator.
    fn comm(&self) -> &dyn Comm;

    /// The exchange that runs in place of the named one.
    fn exchange(&self, named: Exchange) -> Exchange;

    /// The error of the last run over all ranks; `None` if messages are exact.
    fn lost(&self) -> Option<WireError>;

    /// Bytes of memory besides input and output: work buffers, slots, tiles.
    fn memory(&self) -> usize;

    /// Times since the last [`AnyExecutor::clear_timings`].
    fn timings(&self) -> Timings;

    /// Sets all times and counts to zero.
    fn clear_timings(&mut self);

    /// The recorder of events, if this executor has operations of its own.
    fn recorder(&mut self) -> Option<&mut Recorder>;

    /// The texts of a direction's operations.
    fn texts(&self, direction: Direction) -> &[String];

    /// As [`agree`]. With memory shared by all ranks, success needs no message. Collective.
    ///
    /// # Errors
    /// The lowest failing rank's; [`Error::Left`] if a process has dropped its executor.
    fn agree(&mut self, mine: Result<(), Error>) -> Result<(), Error>;
}

impl<T: Real, Dev: Device<T>> Executor<T, Dev> {
    /// Binds a recipe: allocates buffers, prepares local transforms and makes the exchanges.
    /// Collective over `comm`; all ranks pass the same recipe.
    ///
    /// # Errors
    /// The same on every rank: [`Error::OnRank`] for lack of memory; errors of `exchange`;
    /// [`Error::Disagreement`] if messages do not match ([`matching`]).
    pub fn bind(
        recipe: &Recipe,
        comm: Box<dyn Comm>,
        mut device: Dev,
        exchange: MakeExchanger<'_>,
    ) -> Result<Self, Error> {
        let named = recipe.exchanges();
        let setting = recipe.problem().setting();
        let mut exchanges = Vec::with_capacity(named.len());
        for named in named {
            let bound = named.executed(&setting);
            exchanges.push((named, agree(comm.as_ref(), exchange(bound, comm.as_ref()))?));
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
        // Checked before any collective call that depends on the recipe.
        let ops = programs.iter().flat_map(|program| &program.ops);
        matching(comm.as_ref(), ops.filter_map(Operation::message_plan))?;
        for (program, direction) in
            programs.iter_mut().zip([Direction::Forward, Direction::Inverse])
        {
            program.budget = Budget::new::<T, Dev>(recipe, direction, &program.ops, comm.as_ref())?;
        }
        let reals = WorkReals::most(programs.each_ref().map(BoundProgram::work));
        let work = device.work(reals, comm.as_ref(), node_memory.as_deref_mut().map(|c| c as _))?;
        let [forward, inverse] = programs;
        let context = RunContext { device, exchanges, node_memory, timings: Recorder::default() };
        let near = recipe.problem().all_near();
        let mut bound = Self { comm, forward, inverse, work, reals, context, near, lost: None };
        let reserved = bound.reserve();
        agree(bound.comm.as_ref(), reserved)?;
        Ok(bound)
    }

    /// Prepares all operations together with other ranks, also after a failure.
    fn reserve(&mut self) -> Result<(), Error> {
        let mut result = Ok(());
        for op in self.forward.ops.iter_mut().chain(&mut self.inverse.ops) {
            result = result.and(op.reserve(&mut self.context));
        }
        result
    }

    /// Transforms `src` into `dst`, or `dst` in place. Collective. Allocates nothing,
    /// unless it is traced.
    ///
    /// Without `src`, `dst` starts with the input and is as long as the longer of input and output.
    ///
    /// # Errors
    /// The same on every rank: [`Error::OnRank`] for a damaged message or a failed transport. `dst`
    /// is then undefined.
    ///
    /// # Panics
    /// If `src` or `dst` is too short for this rank's bricks.
    pub fn run(
        &mut self,
        direction: Direction,
        src: Option<&Dev::Memory>,
        dst: &mut Dev::Memory,
    ) -> Result<(), Error> {
        self.lost = None;
        let begun = self.context.timings.begin();
        let range = direction.choose(c"thriffty forward", c"thriffty inverse");
        self.context.timings.begin_range(range);
        let ended = self.run_program(direction, src, dst);
        self.context.timings.end_range();
        self.context.timings.end(begun, Activity::Run(direction));
        ended
    }

    fn run_program(
        &mut self,
        direction: Direction,
        src: Option<&Dev::Memory>,
        dst: &mut Dev::Memory,
    ) -> Result<(), Error> {
        let Self { comm, context, work, .. } = self;
        let program = direction.choose(&mut self.forward, &mut self.inverse);
        let _unwinding = Unwinding::watch(comm.as_ref());
        program.open(&mut context.device, src.unwrap_or(dst), comm.as_ref())?;
        let buffers = Buffers { input: src, places: Dev::places(work, dst) };
        let mine = program.run(context, buffers);
        let node_memory = context.node_memory.as_deref_mut().filter(|_| self.near);
        agree_by_memory(comm.as_ref(), node_memory, mine)?;
        self.lost = program.close(&mut context.device, comm.as_ref())?;
        Ok(())
    }

    /// Number of operations of a direction: passes over memory.
    pub fn operations(&self, direction: Direction) -> usize {
        direction.choose(&self.forward, &self.inverse).ops.len()
    }

    /// Memory of the ranks of this host, if they share it.
    pub(crate) fn node_memory(&self) -> Option<&dyn NodeMemory> {
        self.context.node_memory.as_deref()
    }

    /// The same, mutable.
    pub(crate) fn node_memory_mut(&mut self) -> Option<&mut Box<dyn NodeMemory>> {
        self.context.node_memory.as_mut()
    }

    /// The device.
    pub fn device(&self) -> &Dev {
        &self.context.device
    }

    /// The device, mutable.
    pub fn device_mut(&mut self) -> &mut Dev {
        &mut self.context.device
    }
}

impl<T: Real, Dev: Device<T>> AnyExecutor for Executor<T, Dev> {
    fn comm(&self) -> &dyn Comm {
        self.comm.as_ref()
    }

    fn exchange(&self, named: Exchange) -> Exchange {
        let found = self.context.exchanges.iter().find(|(found, _)| *found == named);
        found.map_or(named, |(_, exchange)| exchange.exchange())
    }

    fn lost(&self) -> Option<WireError> {
        self.lost
    }

    fn memory(&self) -> usize {
        let exchanges = self.context.exchanges.iter();
        let slots: usize = exchanges.map(|(_, exchange)| exchange.memory()).sum();
        let tiles: usize =
            self.forward.ops.iter().chain(&self.inverse.ops).map(Operation::memory).sum();
        self.reals.all() * size_of::<T>() + slots + tiles + self.context.device.held()
    }

    fn timings(&self) -> Timings {
        *self.context.timings
    }

    fn clear_timings(&mut self) {
        *self.context.timings = Timings::default();
    }

    fn recorder(&mut self) -> Option<&mut Recorder> {
        Some(&mut self.context.timings)
    }

    fn texts(&self, direction: Direction) -> &[String] {
        &direction.choose(&self.forward, &self.inverse).texts
    }

    fn agree(&mut self, mine: Result<(), Error>) -> Result<(), Error> {
        let begun = self.context.timings.begin();
        let node_memory = self.context.node_memory.as_deref_mut().filter(|_| self.near);
        let agreed = agree_by_memory(self.comm.as_ref(), node_memory, mine);
        self.context.timings.end(begun, Activity::Agreement);
        agreed
    }
}
