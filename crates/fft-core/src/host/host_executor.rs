//! The executor on a host for either precision, compiled here once for each.

use bytemuck::Pod;

use crate::base::{Error, Precision, Real};
use crate::comm::{Comm, SharedMemory};
use crate::execute::{AnyExecutor, Executor, MakeExchanger};
use crate::host::cpu::cpu::Cpu;
use crate::problem::Direction;
use crate::recipe::Recipe;

/// An [`Executor`] on the host in the precision of its recipe. Arrays are bytes.
pub trait HostExecutor: AnyExecutor + Send {
    /// As [`Executor::run`]. Collective.
    ///
    /// # Errors
    /// The errors of [`Executor::run`].
    ///
    /// # Panics
    /// If a nonempty array is misaligned or too short for this rank's bricks.
    fn run(
        &mut self,
        direction: Direction,
        src: Option<&[u8]>,
        dst: &mut [u8],
    ) -> Result<(), Error>;

    /// Number of operations of a direction: passes over memory.
    fn operations(&self, direction: Direction) -> usize;

    /// Whether other ranks of the host, if any, can access this memory.
    fn sees(&self, memory: &[u8]) -> bool;

    /// Whether this rank shares memory with others.
    fn has_neighbours(&self) -> bool;

    /// Zeroed memory for input or output, shared with the other ranks of the host. `None` if this
    /// rank shares no memory. Collective; lengths may differ.
    ///
    /// # Errors
    /// On every rank of the host if the allocation fails on one.
    fn allocate(&mut self, bytes: usize) -> Result<Option<Box<dyn SharedMemory>>, Error>;
}

/// As [`Executor::bind`], with the options and the machine of the recipe's problem. Collective.
///
/// # Errors
/// The errors of [`Executor::bind`].
pub fn bind_on_host(
    recipe: &Recipe,
    comm: Box<dyn Comm>,
    exchange: MakeExchanger<'_>,
) -> Result<Box<dyn HostExecutor>, Error> {
    match recipe.problem().precision {
        Precision::F32 => bind::<f32>(recipe, comm, exchange),
        Precision::F64 => bind::<f64>(recipe, comm, exchange),
    }
}

fn bind<T: Real>(
    recipe: &Recipe,
    comm: Box<dyn Comm>,
    exchange: MakeExchanger<'_>,
) -> Result<Box<dyn HostExecutor>, Error> {
    let problem = recipe.problem();
    let device = Cpu::<T>::new(&problem.options, &problem.machine.lines);
    Ok(Box::new(Executor::bind(recipe, comm, device, exchange)?))
}

/// An array as numbers. An empty one may have any address, such as NULL.
fn numbers<T: Pod>(bytes: &[u8]) -> &[T] {
    if bytes.is_empty() { &[] } else { bytemuck::cast_slice(bytes) }
}

fn numbers_mut<T: Pod>(bytes: &mut [u8]) -> &mut [T] {
    if bytes.is_empty() { &mut [] } else { bytemuck::cast_slice_mut(bytes) }
}

impl<T: Real> HostExecutor for Executor<T, Cpu<T>> {
    fn run(
        &mut self,
        direction: Direction,
        src: Option<&[u8]>,
        dst: &mut [u8],
    ) -> Result<(), Error> {
        Executor::run(self, direction, src.map(numbers), numbers_mut(dst))
    }

    fn operations(&self, direction: Direction) -> usize {
        Executor::operations(self, direction)
    }

    fn sees(&self, memory: &[u8]) -> bool {
        self.node_memory().is_none_or(|node_memory| node_memory.sees(memory))
    }

    fn has_neighbours(&self) -> bool {
        self.node_memory().is_some()
    }

    fn allocate(&mut self, bytes: usize) -> Result<Option<Box<dyn SharedMemory>>, Error> {
        self.node_memory_mut().map(|node_memory| node_memory.allocate(bytes)).transpose()
    }
}
