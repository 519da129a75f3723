//! Memory of fields on a device: any, or such as the ranks of a host see.

use std::ops::Range;
use std::sync::Arc;

use fft_gpu::cudarc::driver::{CudaSlice, CudaStream, CudaView, CudaViewMut};
use fft_gpu::{GpuReal, SharedSlice};

use crate::spare::Lent;

/// An array of real numbers.
pub(super) enum DeviceArray<T> {
    Own(CudaSlice<T>),
    Shared(Lent<SharedSlice<T>>),
}

impl<T: GpuReal> DeviceArray<T> {
    pub(super) fn slice(&self, range: Range<usize>) -> CudaView<'_, T> {
        match self {
            Self::Own(array) => array.slice(range),
            Self::Shared(array) => array.slice(range),
        }
    }

    pub(super) fn slice_mut(&mut self, range: Range<usize>) -> CudaViewMut<'_, T> {
        match self {
            Self::Own(array) => array.slice_mut(range),
            Self::Shared(array) => array.slice_mut(range),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Own(array) => array.len(),
            Self::Shared(array) => array.len(),
        }
    }

    pub(super) fn stream(&self) -> &Arc<CudaStream> {
        match self {
            Self::Own(array) => array.stream(),
            Self::Shared(array) => array.stream(),
        }
    }
}
