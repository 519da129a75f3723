//! Arrays of callers that ranks of a host see: each rank has one of every number.

use std::mem::ManuallyDrop;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream, CudaView, CudaViewMut};

use super::memory::Block;
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

/// An array on a device that ranks of a host see, as a slice of cudarc's.
pub struct SharedSlice<T> {
    slice: ManuallyDrop<CudaSlice<T>>,
    block: Arc<Block>,
}

impl<T: GpuReal> SharedSlice<T> {
    /// So many zeros, used on a stream.
    ///
    /// # Errors
    /// [`GpuError::Memory`], [`GpuError::Driver`].
    pub(crate) fn zeros(stream: &Arc<CudaStream>, reals: usize) -> Result<Self, GpuError> {
        // There are no arrays of nothing on a device.
        let reals = reals.max(1);
        let block = Arc::new(Block::new(stream.context(), reals * size_of::<T>())?);
        let at = block.address();
        // SAFETY: the block has as many numbers, stays as long as this, and the slice never frees it; what it holds is set now.
        let make = AssertUnwindSafe(|| unsafe { stream.upgrade_device_ptr(at, reals) });
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

    /// A part.
    ///
    /// # Panics
    /// If there is no such part.
    pub fn slice(&self, range: Range<usize>) -> CudaView<'_, T> {
        self.slice.slice(range)
    }

    /// A part, to be changed.
    ///
    /// # Panics
    /// If there is no such part.
    pub fn slice_mut(&mut self, range: Range<usize>) -> CudaViewMut<'_, T> {
        self.slice.slice_mut(range)
    }

    /// Numbers.
    #[allow(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> usize {
        self.slice.len()
    }

    /// The stream that it was made on.
    pub fn stream(&self) -> &Arc<CudaStream> {
        self.slice.stream()
    }
}

impl<T> Drop for SharedSlice<T> {
    fn drop(&mut self) {
        // SAFETY: it is taken once, here. To leak it leaves the memory to the block, which waits for what uses it when it is freed.
        unsafe { ManuallyDrop::take(&mut self.slice) }.leak();
    }
}
