//! The arrays of fields on a device.

use fft_core::{Element, Error};
use fft_gpu::GpuReal;
use fft_gpu::cudarc::driver::{CudaView, CudaViewMut};

use super::device_array::DeviceArray;
use super::field::Field;
use super::part::{Device, Side};
use super::transform::Transform;

impl<S: Side, K: Transform, const D: usize> Field<S, K, D, Device> {
    fn array(&self) -> Result<&DeviceArray, Error> {
        match (&self.error, self.data.device()) {
            (None, Some(array)) => Ok(array),
            (error, _) => Err(error.clone().unwrap_or_else(not_there)),
        }
    }

    fn array_mut(&mut self) -> Result<&mut DeviceArray, Error> {
        match (&self.error, self.data.device_mut()) {
            (None, Some(array)) => Ok(array),
            (error, _) => Err(error.clone().unwrap_or_else(not_there)),
        }
    }
}

/// If a field has no array on a device, its error says why.
pub(crate) fn not_there() -> Error {
    Error::argument("field", "one without an array", "one on a device")
}

impl<S: Side, K: Transform<Real: GpuReal>, const D: usize> Field<S, K, D, Device> {
    /// The points of this rank as real numbers, in the plan's order of axes, one array after the
    /// other for batches. A complex number takes two, because cudarc has no complex type.
    ///
    /// # Errors
    /// What failed before, on this rank.
    pub fn as_slice(&self) -> Result<CudaView<'_, K::Real>, Error> {
        let reals = self.part.points() * S::Element::<K>::WIDTH;
        Ok(self.array()?.numbers(reals))
    }

    /// The points of this rank, to be changed.
    ///
    /// # Errors
    /// As [`Field::as_slice`].
    pub fn as_mut_slice(&mut self) -> Result<CudaViewMut<'_, K::Real>, Error> {
        let reals = self.part.points() * S::Element::<K>::WIDTH;
        Ok(self.array_mut()?.numbers_mut(reals))
    }
}
