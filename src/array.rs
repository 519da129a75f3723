//! Memory of fields: any, or such as the ranks of a host share.

use fft_core::{Error, SharedMemory};

use crate::pool::Pooled;

/// Bytes, zeros to begin with, aligned for any number. [`DynPlan::zeros`](crate::DynPlan::zeros)
/// and
/// [`DynPlan::shared_zeros`](crate::DynPlan::shared_zeros) make them.
#[derive(Debug)]
pub struct DynArray(Memory);

enum Memory {
    /// So many bytes at the beginning. Longer alignment than of these words would have pages
    /// written to be zeroed.
    Own(Vec<u128>, usize),
    Shared(Pooled<Box<dyn SharedMemory>>),
}

impl DynArray {
    /// An array of this rank's own.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub(crate) fn zeros(bytes: usize, rank: usize) -> Result<Self, Error> {
        let words = bytemuck::allocation::try_zeroed_vec(bytes.div_ceil(size_of::<u128>()));
        let words = words.map_err(|()| Error::Memory { rank, bytes })?;
        Ok(Self(Memory::Own(words, bytes)))
    }

    /// An array that other ranks of the host see.
    pub(crate) fn lent(memory: Pooled<Box<dyn SharedMemory>>) -> Self {
        Self(Memory::Shared(memory))
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        match &self.0 {
            Memory::Own(words, bytes) => &bytemuck::cast_slice(words)[..*bytes],
            Memory::Shared(memory) => memory.bytes(),
        }
    }

    /// The same, to be changed.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.0 {
            Memory::Own(words, bytes) => &mut bytemuck::cast_slice_mut(words)[..*bytes],
            Memory::Shared(memory) => memory.bytes_mut(),
        }
    }
}

/// A copy is the rank's own.
impl Clone for DynArray {
    fn clone(&self) -> Self {
        let words = match &self.0 {
            Memory::Own(words, _) => words.clone(),
            Memory::Shared(memory) => {
                let mut words = vec![0u128; memory.bytes().len().div_ceil(size_of::<u128>())];
                let copy: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
                copy[..memory.bytes().len()].copy_from_slice(memory.bytes());
                words
            }
        };
        Self(Memory::Own(words, self.bytes().len()))
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Own(_, bytes) => write!(f, "{bytes} bytes"),
            Self::Shared(memory) => write!(f, "{} bytes that are shared", memory.bytes().len()),
        }
    }
}
