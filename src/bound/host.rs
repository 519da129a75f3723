//! Recipes that are bound to the host.

use fft_core::{
    AnyExecutor, Comm, Direction, Error, HostExecutor, Precision, Recipe, SharedMemory, agree,
    bind_on_host,
};

use super::bound::{Bound, check_on_host};
use crate::field::{Bytes, BytesMut, DynArray, Pool};

pub(crate) struct HostBound {
    /// Given back before the memory of the host, which the executor has, is dropped.
    pool: Pool<Box<dyn SharedMemory>>,
    executor: Box<dyn HostExecutor>,
    precision: Precision,
}

impl HostBound {
    /// Collective; all ranks have the same recipe.
    ///
    /// # Errors
    /// The errors of [`bind_on_host`].
    pub(crate) fn bind(comm: &dyn Comm, recipe: &Recipe) -> Result<Self, Error> {
        let own = agree(comm, comm.dup())?;
        let exchanges = fft_comm::exchanger_in(recipe.problem().options.memory);
        let executor = bind_on_host(recipe, own, exchanges)?;
        let precision = recipe.problem().precision;
        Ok(Self { pool: Pool::default(), executor, precision })
    }
}

impl Bound for HostBound {
    fn executor(&self) -> &dyn AnyExecutor {
        &*self.executor
    }

    fn executor_mut(&mut self) -> &mut dyn AnyExecutor {
        &mut *self.executor
    }

    fn check(&self, what: &'static str, array: Bytes<'_>) -> Result<(), Error> {
        check_on_host(what, array, self.precision)
    }

    fn sees(&self, array: Bytes<'_>) -> bool {
        match array {
            Bytes::Host(bytes) => self.executor.sees(bytes),
            #[cfg(feature = "cuda")]
            Bytes::Device(_) => false,
        }
    }

    fn run(
        &mut self,
        direction: Direction,
        input: Option<Bytes<'_>>,
        output: BytesMut<'_>,
    ) -> Result<(), Error> {
        self.executor.run(direction, input.map(Bytes::on_host), output.on_host())
    }

    fn zeros(&self, bytes: usize) -> Result<DynArray, Error> {
        DynArray::zeros(bytes, self.executor.comm().rank())
    }

    fn has_spare(&mut self) -> bool {
        !self.pool.is_empty() || !self.executor.has_neighbours()
    }

    fn spare(&mut self, bytes: usize) -> Result<DynArray, Error> {
        // A rank that is alone on its host has memory like any other.
        let Some(mut pooled) = self.pool.take() else { return self.zeros(bytes) };
        pooled.bytes_mut().fill(0);
        Ok(DynArray::shared(pooled))
    }

    fn allocate(&mut self, bytes: usize) -> Result<DynArray, Error> {
        // What one host got and another did not goes to the pool.
        match self.executor.allocate(bytes)? {
            Some(memory) => Ok(DynArray::shared(self.pool.lend(memory))),
            None => self.zeros(bytes),
        }
    }
}
