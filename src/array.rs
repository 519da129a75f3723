//! Memory of fields: any, or such as the ranks of a host share.

use std::ops::{Deref, DerefMut};

use bytemuck::Pod;
use fft_core::{Error, SharedMemory};

use crate::spare::Lent;

/// An array of zeros to begin with.
pub(crate) enum Array<E> {
    Own(Vec<E>),
    Shared(Lent<Box<dyn SharedMemory>>),
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
            Self::Shared(memory) => bytemuck::cast_slice(memory.bytes()),
        }
    }
}

impl<E: Pod> DerefMut for Array<E> {
    fn deref_mut(&mut self) -> &mut [E] {
        match self {
            Self::Own(array) => array,
            Self::Shared(memory) => bytemuck::cast_slice_mut(memory.bytes_mut()),
        }
    }
}

/// A copy is the rank's own.
impl<E: Pod> Clone for Array<E> {
    fn clone(&self) -> Self {
        Self::Own(self.to_vec())
    }
}
