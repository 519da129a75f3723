//! The executor on a host for either precision, compiled here once for each.

use std::ops::{Deref, DerefMut};

use bytemuck::Pod;

use crate::base::{Error, Precision};
use crate::comm::{Comm, SharedMemory};
use crate::execute::{AnyExecutor, Executor, MakeExchanger};
use crate::host::cpu::cpu::Cpu;
use crate::problem::Direction;
use crate::recipe::Recipe;

/// An [`Executor`] on the host in the precision of its recipe. Arrays are bytes.
pub enum HostExecutor {
    /// Single precision.
    F32(Box<Executor<f32, Cpu<f32>>>),
    /// Double precision.
    F64(Box<Executor<f64, Cpu<f64>>>),
}

/// An array as numbers. An empty one may have any address, such as NULL.
fn numbers<T: Pod>(bytes: &[u8]) -> &[T] {
    if bytes.is_empty() { &[] } else { bytemuck::cast_slice(bytes) }
}

fn numbers_mut<T: Pod>(bytes: &mut [u8]) -> &mut [T] {
    if bytes.is_empty() { &mut [] } else { bytemuck::cast_slice_mut(bytes) }
}

macro_rules! either {
    ($executor:expr, $it:ident => $what:expr) => {
        match $executor {
            HostExecutor::F32($it) => $what,
            HostExecutor::F64($it) => $what,
        }
    };
}

impl HostExecutor {
    /// As [`Executor::bind`], with the options and the machine of the recipe's problem.
    /// Collective.
    ///
    /// # Errors
    /// The errors of [`Executor::bind`].
    pub fn bind(
        recipe: &Recipe,
        comm: Box<dyn Comm>,
        exchange: MakeExchanger<'_>,
    ) -> Result<Self, Error> {
        let problem = recipe.problem();
        let (options, costs) = (&problem.options, &problem.machine.lines);
        Ok(match problem.precision {
            Precision::F32 => {
                let device = Cpu::new(options, costs);
                Self::F32(Box::new(Executor::bind(recipe, comm, device, exchange)?))
            }
            Precision::F64 => {
                let device = Cpu::new(options, costs);
                Self::F64(Box::new(Executor::bind(recipe, comm, device, exchange)?))
            }
        })
    }

    /// As [`Executor::run`]. Collective.
    ///
    /// # Errors
    /// The errors of [`Executor::run`].
    ///
    /// # Panics
    /// If a nonempty array is misaligned or too short for this rank's bricks.
    pub fn run(
        &mut self,
        direction: Direction,
        src: Option<&[u8]>,
        dst: &mut [u8],
    ) -> Result<(), Error> {
        either!(self, it => {
            it.run(direction, src.map(numbers), numbers_mut(dst))
        })
    }

    /// Number of operations of a direction: passes over memory.
    pub fn operations(&self, direction: Direction) -> usize {
        either!(self, it => it.operations(direction))
    }

    /// Whether other ranks of the host, if any, can access this memory.
    pub fn sees(&self, memory: &[u8]) -> bool {
        either!(self, it => it.sees(memory))
    }

    /// Whether this rank shares memory with others.
    pub fn has_neighbours(&mut self) -> bool {
        either!(self, it => it.node_memory().is_some())
    }

    /// Zeroed memory for input or output, shared with the other ranks of the host. `None` if this
    /// rank shares no memory. Collective; lengths may differ.
    ///
    /// # Errors
    /// On every rank of the host if the allocation fails on one.
    pub fn allocate(&mut self, bytes: usize) -> Result<Option<Box<dyn SharedMemory>>, Error> {
        let node_memory = either!(self, it => it.node_memory());
        node_memory.map(|node_memory| node_memory.allocate(bytes)).transpose()
    }
}

impl Deref for HostExecutor {
    type Target = dyn AnyExecutor;

    fn deref(&self) -> &Self::Target {
        either!(self, it => it.as_ref())
    }
}

impl DerefMut for HostExecutor {
    fn deref_mut(&mut self) -> &mut Self::Target {
        either!(self, it => it.as_mut())
    }
}
