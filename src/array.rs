//! Memory of fields: any, or such as the ranks of a host share.

use fft_core::{Error, SharedMemory, Slot};

use crate::spare::Lent;

/// An array of bytes, zeros to begin with, at an address that is aligned for any numbers: what [`DynPlan::zeros`](crate::DynPlan::zeros)
/// and [`DynPlan::shared_zeros`](crate::DynPlan::shared_zeros) make.
pub struct DynArray(Memory);

enum Memory {
    Own(Slot),
    Shared(Lent<Box<dyn SharedMemory>>),
}

impl DynArray {
    /// An array of this rank's own.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub(crate) fn zeros(bytes: usize, rank: usize) -> Result<Self, Error> {
        Ok(Self(Memory::Own(Slot::new(bytes, rank)?)))
    }

    /// An array that other ranks of the host see.
    pub(crate) fn lent(memory: Lent<Box<dyn SharedMemory>>) -> Self {
        Self(Memory::Shared(memory))
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        match &self.0 {
            Memory::Own(array) => array.bytes(),
            Memory::Shared(memory) => memory.bytes(),
        }
    }

    /// The same, to be changed.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.0 {
            Memory::Own(array) => array.bytes_mut(),
            Memory::Shared(memory) => memory.bytes_mut(),
        }
    }
}

/// A copy is the rank's own.
///
/// # Panics
/// If there is no memory for it.
impl Clone for DynArray {
    fn clone(&self) -> Self {
        let mut copy = Self::zeros(self.bytes().len(), 0).unwrap_or_else(|error| panic!("{error}"));
        copy.bytes_mut().copy_from_slice(self.bytes());
        copy
    }
}
