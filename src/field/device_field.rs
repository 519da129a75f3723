//! Fields on a device.

use fft_core::{Element, Error};
use fft_gpu::GpuReal;
use fft_gpu::cudarc::driver::{CudaView, CudaViewMut};

use super::array::DynArray;
use super::device_array::DeviceArray;
use super::field::Field;
use super::part::{Device, Side, Spectral};
use super::transform::Transform;

impl<S: Side, K: Transform, const D: usize> Field<S, K, D, Device> {
    /// Copies the field to the host, and waits for that.
    ///
    /// # Errors
    /// What failed before, or when the driver fails, on this rank.
    pub fn to_host(&self) -> Result<Field<S, K, D>, Error> {
        let array = self.array()?;
        let mut here = DynArray::zeros(self.part.sizes().in_place_bytes(), self.part.rank())?;
        array.read(&mut here.bytes_mut()[..self.bytes()])?;
        Ok(Field::new(self.part.clone(), here))
    }

    /// Copies a field of the host into this one.
    pub(crate) fn copy_from(&mut self, from: &Field<S, K, D>) {
        let bytes = bytemuck::cast_slice(from.as_slice());
        let copied = self.array_mut().and_then(|array| array.write(bytes));
        self.record_error(copied);
    }

    /// Sets every point to a function of its global index, which is computed on the host; every
    /// array of a batch gets the same.
    pub fn fill(&mut self, value: impl FnMut([usize; D]) -> S::Element<K>) {
        match DynArray::zeros(self.bytes(), self.part.rank()) {
            Ok(array) => {
                let mut here = Field::<S, K, D>::new(self.part.clone(), array);
                here.fill(value);
                self.copy_from(&here);
            }
            Err(error) => self.record_error(Err(error)),
        }
    }

    /// Bytes of this rank's points.
    fn bytes(&self) -> usize {
        self.part.points() * size_of::<S::Element<K>>()
    }

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

/// Fields without an array on a device have an error that says why.
fn not_there() -> Error {
    Error::argument("field", "one without an array", "one on a device")
}

impl<S: Side, K: Transform<Real: GpuReal>, const D: usize> Field<S, K, D, Device> {
    /// The points of this rank as real numbers, in the plan's order of axes, one array after the
    /// other for batches. A complex number is two: cudarc knows no complex type.
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

impl<K: Transform, const D: usize> Field<Spectral, K, D, Device> {
    /// As on the host: the field is copied there and back.
    pub fn map_modes(self, value: impl FnMut([i64; D], K::Spectral) -> K::Spectral) -> Self {
        self.through_host(|here| here.map_modes(value))
    }

    pub(crate) fn through_host(
        mut self,
        change: impl FnOnce(Field<Spectral, K, D>) -> Field<Spectral, K, D>,
    ) -> Self {
        match self.to_host() {
            Ok(here) => self.copy_from(&change(here)),
            Err(error) => self.record_error(Err(error)),
        }
        self
    }
}
