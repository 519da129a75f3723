//! Memory of ranks that kernels access by address.

use std::marker::PhantomData;

use cudarc::driver::DeviceSlice;

use super::memory::DeviceMemory;
use crate::base::GpuError;

/// The alignment of ranks' memory, in bytes.
const ALIGN: usize = 16;

/// Memory of a rank that may be read, or written if it is exposed for that, during `'a`.
#[derive(Clone, Copy)]
pub(crate) struct RankMemory<'a> {
    pub(super) at: u64,
    pub(super) bytes: usize,
    lent: PhantomData<&'a ()>,
}

impl<'a> RankMemory<'a> {
    /// This rank's own.
    pub(crate) fn own<T>(memory: &'a DeviceMemory<T>) -> Self {
        Self { at: memory.address(), bytes: memory.num_bytes(), lent: PhantomData }
    }

    /// Another rank's.
    ///
    /// # Safety
    /// Work that is queued during `'a` may read it on this device, or write it where it is exposed
    /// for that.
    pub(super) unsafe fn of(at: u64, bytes: usize) -> Self {
        Self { at, bytes, lent: PhantomData }
    }

    /// No memory, for a rank that is not reached.
    pub(crate) fn nothing() -> Self {
        Self { at: 0, bytes: 0, lent: PhantomData }
    }
}

/// The addresses of ranks' memory that descriptors on the device hold.
pub(super) struct RankAddresses {
    /// Bytes of each rank's memory that are accessed.
    reaches: Vec<usize>,
    bases: Vec<u64>,
}

impl RankAddresses {
    /// For descriptors that have no addresses yet.
    pub(super) fn new(reaches: Vec<usize>) -> Self {
        let bases = vec![0; reaches.len()];
        Self { reaches, bases }
    }

    /// Updates the descriptors if an address has changed.
    pub(super) fn follow<'v>(
        &mut self,
        memory: &dyn Fn(usize) -> RankMemory<'v>,
        update: impl FnOnce(&[u64]) -> Result<(), GpuError>,
    ) -> Result<(), GpuError> {
        let updated =
            self.locate(memory).and_then(|moved| if moved { update(&self.bases) } else { Ok(()) });
        if updated.is_err() {
            // The descriptors no longer have these addresses.
            self.bases.fill(0);
        }
        updated
    }

    /// Whether an address has changed.
    fn locate<'v>(&mut self, memory: &dyn Fn(usize) -> RankMemory<'v>) -> Result<bool, GpuError> {
        let what = "the memory of a rank";
        let mut moved = false;
        for (rank, &expected) in self.reaches.iter().enumerate().filter(|(_, n)| **n > 0) {
            let RankMemory { at, bytes, .. } = memory(rank);
            GpuError::at_least(what, bytes, expected)?;
            GpuError::aligned(what, at, ALIGN)?;
            moved |= std::mem::replace(&mut self.bases[rank], at) != at;
        }
        Ok(moved)
    }
}
