//! Arrays of callers that the ranks of a host access: each rank has one of every number.

use std::mem::ManuallyDrop;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream, CudaViewMut};

use super::block::Block;
use super::memory::numbers_mut;
use super::rank_exports::MappedBlock;
use crate::base::{GpuError, GpuReal, tried};

/// The shared arrays of a plan, which live as long as the plan, because others map them.
#[derive(Default)]
pub(crate) struct SharedArrays(Vec<SharedArray>);

struct SharedArray {
    block: Arc<Block>,
    /// The arrays of ranks of other processes.
    maps: Vec<Option<MappedBlock>>,
}

impl SharedArrays {
    pub(crate) fn add(&mut self, block: Arc<Block>, maps: Vec<Option<MappedBlock>>) {
        self.0.push(SharedArray { block, maps });
    }

    /// The number of this rank's array at an address.
    pub(crate) fn number(&self, at: u64) -> Option<usize> {
        self.0.iter().position(|array| array.block.address() == at)
    }

    /// Another process' array of a number.
    pub(crate) fn of(&self, number: usize, peer: usize) -> Option<&MappedBlock> {
        self.0.get(number).and_then(|array| array.maps[peer].as_ref())
    }

    /// Whether any array of another process is mapped.
    pub(crate) fn maps(&self) -> bool {
        self.0.iter().any(|array| array.maps.iter().any(Option::is_some))
    }

    /// Unmaps other processes' arrays.
    pub(crate) fn unmap(&mut self) {
        self.0.iter_mut().for_each(|array| array.maps.iter_mut().for_each(|map| *map = None));
    }
}

/// Bytes that the ranks of a host access, as a slice of cudarc's.
pub struct SharedSlice {
    slice: ManuallyDrop<CudaSlice<u8>>,
    block: Arc<Block>,
}

impl SharedSlice {
    /// Zeros, used on a stream.
    pub(crate) fn zeros(stream: &Arc<CudaStream>, bytes: usize) -> Result<Self, GpuError> {
        // The device has no empty arrays.
        let bytes = bytes.max(1);
        let block = Arc::new(Block::new(stream.context(), bytes)?);
        let at = block.address();
        // SAFETY: the block has as many bytes and outlives the slice, which never frees it. Its
        // contents are set below.
        let make = AssertUnwindSafe(|| unsafe { stream.upgrade_device_ptr(at, bytes) });
        // cudarc panics if it gets no events, but other ranks wait for this one.
        let why = |_| GpuError::Driver { what: "making an array", why: "no events".into() };
        let slice = catch_unwind(make).map_err(why)?;
        let mut made = Self { slice: ManuallyDrop::new(slice), block };
        made.clear()?;
        Ok(made)
    }

    /// Sets everything to 0.
    ///
    /// # Errors
    /// [`GpuError::Driver`].
    pub fn clear(&mut self) -> Result<(), GpuError> {
        let stream = self.slice.stream().clone();
        stream.memset_zeros(&mut *self.slice).map_err(tried("clearing an array"))
    }

    pub(crate) fn block(&self) -> &Arc<Block> {
        &self.block
    }

    /// The slice, for reading.
    pub fn as_slice(&self) -> &CudaSlice<u8> {
        &self.slice
    }

    /// A part, for writing.
    ///
    /// # Panics
    /// If the range is not inside.
    pub fn slice_mut(&mut self, range: Range<usize>) -> CudaViewMut<'_, u8> {
        self.slice.slice_mut(range)
    }

    /// The first real numbers, for writing.
    ///
    /// # Panics
    /// If there are not as many.
    pub fn numbers_mut<T: GpuReal>(&mut self, len: usize) -> CudaViewMut<'_, T> {
        numbers_mut(&mut self.slice, len)
    }
}

impl Drop for SharedSlice {
    fn drop(&mut self) {
        // SAFETY: it is taken once. Leaking leaves the memory to the block, which frees it.
        unsafe { ManuallyDrop::take(&mut self.slice) }.leak();
    }
}
