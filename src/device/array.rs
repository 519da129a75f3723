//! Memory of fields on a device: any, or such as the ranks of a host see.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use fft_gpu::cudarc::driver::{CudaSlice, CudaStream, CudaView, CudaViewMut};
use fft_gpu::{GpuError, GpuReal, SharedSlice};

/// An array of real numbers.
pub(super) enum Array<T> {
    Own(CudaSlice<T>),
    Shared(Lent<T>),
}

/// Arrays that were made for fields of a plan, and are not in use.
pub(super) struct Spare<T>(Arc<Mutex<Vec<SharedSlice<T>>>>);

/// A shared array, which is spare when this is dropped.
pub(super) struct Lent<T> {
    /// Always there, but in `drop`.
    slice: Option<SharedSlice<T>>,
    spare: Spare<T>,
}

impl<T> Default for Spare<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: GpuReal> Spare<T> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// A spare array, if there is one, cleared.
    ///
    /// # Errors
    /// [`GpuError::Driver`].
    pub(super) fn take(&self) -> Result<Option<Lent<T>>, GpuError> {
        let found = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let Some(slice) = found else { return Ok(None) };
        let mut lent = self.lend(slice);
        lent.get_mut().clear()?;
        Ok(Some(lent))
    }

    /// An array that is to be spare later.
    pub(super) fn lend(&self, slice: SharedSlice<T>) -> Lent<T> {
        Lent { slice: Some(slice), spare: Self(self.0.clone()) }
    }
}

impl<T> Lent<T> {
    fn get(&self) -> &SharedSlice<T> {
        self.slice.as_ref().expect("there until it is dropped")
    }

    fn get_mut(&mut self) -> &mut SharedSlice<T> {
        self.slice.as_mut().expect("there until it is dropped")
    }
}

impl<T> Drop for Lent<T> {
    fn drop(&mut self) {
        let mut spare = self.spare.0.lock().unwrap_or_else(PoisonError::into_inner);
        spare.extend(self.slice.take());
    }
}

impl<T: GpuReal> Array<T> {
    pub(super) fn slice(&self, range: Range<usize>) -> CudaView<'_, T> {
        match self {
            Self::Own(array) => array.slice(range),
            Self::Shared(lent) => lent.get().slice(range),
        }
    }

    pub(super) fn slice_mut(&mut self, range: Range<usize>) -> CudaViewMut<'_, T> {
        match self {
            Self::Own(array) => array.slice_mut(range),
            Self::Shared(lent) => lent.get_mut().slice_mut(range),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Own(array) => array.len(),
            Self::Shared(lent) => lent.get().len(),
        }
    }

    pub(super) fn stream(&self) -> &Arc<CudaStream> {
        match self {
            Self::Own(array) => array.stream(),
            Self::Shared(lent) => lent.get().stream(),
        }
    }
}
