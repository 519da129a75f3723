//! Memory of fields: any, or such as the ranks of a host share.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

use bytemuck::Pod;
use fft_core::{Error, SharedMemory};

/// An array of zeros to begin with.
pub(crate) enum Array<E> {
    Own(Vec<E>),
    Shared(Lent),
}

/// Memory that was allocated for fields of a plan, and is not in use.
#[derive(Clone, Default)]
pub(crate) struct Spare(Arc<Mutex<Vec<Box<dyn SharedMemory>>>>);

/// Shared memory, which is spare when this is dropped.
pub(crate) struct Lent {
    /// Always there, but in `drop`.
    memory: Option<Box<dyn SharedMemory>>,
    spare: Spare,
}

impl Spare {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Spare memory, cleared.
    pub(crate) fn take(&self) -> Option<Lent> {
        let mut memory = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
        memory.bytes_mut().fill(0);
        Some(self.lend(memory))
    }

    /// Memory that is to be spare later.
    pub(crate) fn lend(&self, memory: Box<dyn SharedMemory>) -> Lent {
        Lent { memory: Some(memory), spare: self.clone() }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut spare = self.spare.0.lock().unwrap_or_else(PoisonError::into_inner);
        spare.extend(self.memory.take());
    }
}

impl<E: Pod> Array<E> {
    pub(crate) fn zeros(len: usize) -> Self {
        Self::Own(vec![E::zeroed(); len])
    }

    /// The same where there may be too little memory.
    pub(crate) fn try_zeros(len: usize, rank: usize) -> Result<Self, Error> {
        let error = |()| Error::Memory { rank, bytes: len.saturating_mul(size_of::<E>()) };
        bytemuck::allocation::try_zeroed_vec(len).map(Self::Own).map_err(error)
    }
}

impl<E: Pod> Deref for Array<E> {
    type Target = [E];

    fn deref(&self) -> &[E] {
        match self {
            Self::Own(array) => array,
            Self::Shared(Lent { memory, .. }) => {
                memory.as_ref().map_or(&[], |memory| bytemuck::cast_slice(memory.bytes()))
            }
        }
    }
}

impl<E: Pod> DerefMut for Array<E> {
    fn deref_mut(&mut self) -> &mut [E] {
        match self {
            Self::Own(array) => array,
            Self::Shared(Lent { memory, .. }) => memory
                .as_mut()
                .map_or(&mut [], |memory| bytemuck::cast_slice_mut(memory.bytes_mut())),
        }
    }
}

/// A copy is the rank's own.
impl<E: Pod> Clone for Array<E> {
    fn clone(&self) -> Self {
        Self::Own(self.to_vec())
    }
}
