//! Arrays of callers that ranks of a host see: each rank has one of every number.

use std::mem::ManuallyDrop;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream, CudaViewMut};

use super::memory::{Block, numbers_mut};
use super::peers::Map;
use super::tried;
use crate::base::{GpuError, GpuReal};

/// All of a plan. They stay as long as it, as others have them mapped.
#[derive(Default)]
pub(crate) struct SharedArrays(Vec<Shown>);

struct Shown {
    block: Arc<Block>,
    /// Those of ranks that are other processes.
    maps: Vec<Option<Map>>,
}

impl SharedArrays {
    pub(crate) fn add(&mut self, block: Arc<Block>, maps: Vec<Option<Map>>) {
        self.0.push(Shown { block, maps });
    }

    /// The number of this rank's array that begins at an address.
    pub(crate) fn number(&self, at: u64) -> Option<usize> {
        self.0.iter().position(|shown| shown.block.address() == at)
    }

    /// Another process' array of a number, if there is such.
    pub(crate) fn of(&self, number: usize, peer: usize) -> Option<&Map> {
        self.0.get(number).and_then(|shown| shown.maps[peer].as_ref())
    }

    /// Whether arrays of other processes are mapped.
    pub(crate) fn maps(&self) -> bool {
        self.0.iter().any(|shown| shown.maps.iter().any(Option::is_some))
    }

    /// Lets go of other processes' arrays.
    pub(crate) fn unmap(&mut self) {
        self.0.iter_mut().for_each(|shown| shown.maps.iter_mut().for_each(|map| *map = None));
    }
}

/// Bytes on a device that ranks of a host see, as a slice of cudarc's.
pub struct SharedSlice {
    slice: ManuallyDrop<CudaSlice<u8>>,
    block: Arc<Block>,
}

impl SharedSlice {
    /// So many zeros, used on a stream.
    ///
    /// # Errors
    /// [`GpuError::Memory`], [`GpuError::Driver`].
    pub(crate) fn zeros(stream: &Arc<CudaStream>, bytes: usize) -> Result<Self, GpuError> {
        // There are no arrays of nothing on a device.
        let bytes = bytes.max(1);
        let block = Arc::new(Block::new(stream.context(), bytes)?);
        let at = block.address();
        // SAFETY: the block has as many bytes, stays as long as this, and the slice never frees it; what it holds is set now.
        let make = AssertUnwindSafe(|| unsafe { stream.upgrade_device_ptr(at, bytes) });
        // cudarc panics where it gets no events for a slice: here other ranks wait for this one.
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

    /// The slice, to be read.
    pub fn as_slice(&self) -> &CudaSlice<u8> {
        &self.slice
    }

    /// A part, to be changed.
    ///
    /// # Panics
    /// If there is no such part.
    pub fn slice_mut(&mut self, range: Range<usize>) -> CudaViewMut<'_, u8> {
        self.slice.slice_mut(range)
    }

    /// The first real numbers, to be changed.
    ///
    /// # Panics
    /// If there are not as many.
    pub fn numbers_mut<T: GpuReal>(&mut self, len: usize) -> CudaViewMut<'_, T> {
        numbers_mut(&mut self.slice, len)
    }
}

impl Drop for SharedSlice {
    fn drop(&mut self) {
        // SAFETY: it is taken once, here. To leak it leaves the memory to the block, which waits for what uses it when it is freed.
        unsafe { ManuallyDrop::take(&mut self.slice) }.leak();
    }
}
