//! The executor on a host for either precision, compiled here once for each.

use bytemuck::Pod;

use crate::base::{Error, Precision, Timings, WireError};
use crate::comm::{Comm, SharedMemory};
use crate::execute::{Executor, MakeExchange};
use crate::host::cpu::cpu::Cpu;
use crate::problem::Algorithm;
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
    /// As [`Executor::bind`], with the memory option of the recipe's problem. Collective.
    ///
    /// # Errors
    /// Those of [`Executor::bind`].
    pub fn bind(
        recipe: &Recipe,
        comm: Box<dyn Comm>,
        exchange: MakeExchange<'_>,
    ) -> Result<Self, Error> {
        let memory = recipe.problem().options.memory;
        Ok(match recipe.problem().precision {
            Precision::F32 => {
                Self::F32(Box::new(Executor::bind(recipe, comm, Cpu::new(memory), exchange)?))
            }
            Precision::F64 => {
                Self::F64(Box::new(Executor::bind(recipe, comm, Cpu::new(memory), exchange)?))
            }
        })
    }

    /// As [`Executor::run`]. Collective.
    ///
    /// # Errors
    /// Those of [`Executor::run`].
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

    /// As [`Executor::agree`]. Collective.
    ///
    /// # Errors
    /// Those of [`Executor::agree`].
    pub fn agree<R>(&mut self, mine: Result<R, Error>) -> Result<R, Error> {
        either!(self, it => it.agree(mine))
    }

    /// As [`Executor::allocate`]. Collective.
    ///
    /// # Errors
    /// Those of [`Executor::allocate`].
    pub fn allocate(&mut self, bytes: usize) -> Result<Option<Box<dyn SharedMemory>>, Error> {
        either!(self, it => it.allocate(bytes))
    }

    /// As [`Executor::has_neighbours`].
    pub fn has_neighbours(&self) -> bool {
        either!(self, it => it.has_neighbours())
    }

    /// As [`Executor::is_seen`].
    pub fn is_seen(&self, memory: &[u8]) -> bool {
        either!(self, it => it.is_seen(memory))
    }

    /// As [`Executor::exchange`].
    pub fn exchange(&self, named: Algorithm) -> Algorithm {
        either!(self, it => it.exchange(named))
    }

    /// As [`Executor::lost`].
    pub fn lost(&self) -> Option<WireError> {
        either!(self, it => it.lost())
    }

    /// The communicator.
    pub fn comm(&self) -> &dyn Comm {
        either!(self, it => it.comm())
    }

    /// As [`Executor::timings`].
    pub fn timings(&self) -> Timings {
        either!(self, it => it.timings())
    }

    /// As [`Executor::clear_timings`].
    pub fn clear_timings(&mut self) {
        either!(self, it => it.clear_timings());
    }

    /// As [`Executor::operations`].
    pub fn operations(&self, direction: Direction) -> usize {
        either!(self, it => it.operations(direction))
    }

    /// As [`Executor::memory`].
    pub fn memory(&self) -> usize {
        either!(self, it => it.memory())
    }
}
