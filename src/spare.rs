//! Memory of a plan's that fields borrow: when one is dropped, the next has it.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

/// Memory that was made for fields of a plan, and is not in use.
pub(crate) struct Spare<M>(Arc<Mutex<Vec<M>>>);

/// Memory of a field, which is spare when this is dropped.
pub(crate) struct Lent<M> {
    /// Always there, but in `drop`.
    memory: Option<M>,
    spare: Spare<M>,
}

impl<M> Default for Spare<M> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<M> Spare<M> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Spare memory, as it was left.
    pub(crate) fn take(&self) -> Option<Lent<M>> {
        let memory = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
        Some(self.lend(memory))
    }

    /// Memory that is to be spare later.
    pub(crate) fn lend(&self, memory: M) -> Lent<M> {
        Lent { memory: Some(memory), spare: Self(self.0.clone()) }
    }
}

/// What is only missing in `drop`.
const THERE: &str = "there until it is dropped";

impl<M> Deref for Lent<M> {
    type Target = M;

    fn deref(&self) -> &M {
        self.memory.as_ref().expect(THERE)
    }
}

impl<M> DerefMut for Lent<M> {
    fn deref_mut(&mut self) -> &mut M {
        self.memory.as_mut().expect(THERE)
    }
}

impl<M> Drop for Lent<M> {
    fn drop(&mut self) {
        let mut spare = self.spare.0.lock().unwrap_or_else(PoisonError::into_inner);
        spare.extend(self.memory.take());
    }
}
