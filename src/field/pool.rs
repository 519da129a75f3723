//! Memory of fields that a plan keeps for the next field when one is dropped.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex};

use fft_core::locked;

/// Memory that no field uses at present.
pub(crate) struct Pool<M>(Arc<Mutex<Vec<M>>>);

/// Memory of a field, which returns to the pool when it is dropped.
pub(crate) struct Pooled<M> {
    /// `None` only during `drop`.
    memory: Option<M>,
    pool: Pool<M>,
}

impl<M> Default for Pool<M> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<M> Pool<M> {
    pub(crate) fn is_empty(&self) -> bool {
        locked(&self.0).is_empty()
    }

    /// Memory as the last field left it.
    pub(crate) fn take(&self) -> Option<Pooled<M>> {
        let memory = locked(&self.0).pop()?;
        Some(self.lend(memory))
    }

    /// Memory that returns to this pool.
    pub(crate) fn lend(&self, memory: M) -> Pooled<M> {
        Pooled { memory: Some(memory), pool: Self(self.0.clone()) }
    }
}

/// Only `drop` takes the memory.
const THERE: &str = "there until it is dropped";

impl<M> Deref for Pooled<M> {
    type Target = M;

    fn deref(&self) -> &M {
        self.memory.as_ref().expect(THERE)
    }
}

impl<M> DerefMut for Pooled<M> {
    fn deref_mut(&mut self) -> &mut M {
        self.memory.as_mut().expect(THERE)
    }
}

impl<M> Drop for Pooled<M> {
    fn drop(&mut self) {
        let mut pool = locked(&self.pool.0);
        pool.extend(self.memory.take());
    }
}
