//! Memory of fields on a device: any, or such as the ranks of a host see.

use std::ops::Range;
use std::sync::Arc;

use fft_gpu::cudarc::driver::{CudaSlice, CudaStream, CudaView, CudaViewMut};
use fft_gpu::{GpuReal, SharedSlice};

use crate::pool::Pooled;

/// An array of real numbers on a device: what
/// [`DynDevicePlan::shared_zeros`](crate::DynDevicePlan::shared_zeros) makes.
pub struct DeviceArray<T>(pub(super) Memory<T>);

pub(super) enum Memory<T> {
    Own(CudaSlice<T>),
    Shared(Pooled<SharedSlice<T>>),
}

impl<T: GpuReal> DeviceArray<T> {
    /// An array of this rank's own.
    pub(super) fn own(memory: CudaSlice<T>) -> Self {
        Self(Memory::Own(memory))
    }

    /// Some of its numbers.
    ///
    /// # Panics
    /// If it has fewer.
    pub fn slice(&self, range: Range<usize>) -> CudaView<'_, T> {
        match &self.0 {
            Memory::Own(array) => array.slice(range),
            Memory::Shared(array) => array.slice(range),
        }
    }

    /// The same, to be changed.
    ///
    /// # Panics
    /// As [`DeviceArray::slice`].
    pub fn slice_mut(&mut self, range: Range<usize>) -> CudaViewMut<'_, T> {
        match &mut self.0 {
            Memory::Own(array) => array.slice_mut(range),
            Memory::Shared(array) => array.slice_mut(range),
        }
    }

    pub(super) fn len(&self) -> usize {
        match &self.0 {
            Memory::Own(array) => array.len(),
            Memory::Shared(array) => array.len(),
        }
    }

    pub(super) fn stream(&self) -> &Arc<CudaStream> {
        match &self.0 {
            Memory::Own(array) => array.stream(),
            Memory::Shared(array) => array.stream(),
        }
    }
}
