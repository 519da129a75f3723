//! Fields on a device.

use std::ops::Range;

use fft_core::{Element, Error, Kind, Real};
use fft_gpu::cudarc::driver::{CudaView, CudaViewMut};
use fft_gpu::{GpuReal, Modes};

use super::array::DynArray;
use super::device_array::DeviceArray;
use super::field::Field;
use super::modes::{Wavenumbers, check_derivable, check_lengths};
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

    /// As on the host: the field is copied there and back.
    pub fn map_wavenumbers(
        self,
        lengths: [f64; D],
        value: impl FnMut(Wavenumbers<D>, K::Spectral) -> K::Spectral,
    ) -> Self {
        self.through_host(|here| here.map_wavenumbers(lengths, value))
    }

    fn through_host(
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

impl<K: Transform<Real: GpuReal>, const D: usize> Field<Spectral, K, D, Device> {
    /// As on the host, by a kernel that reads and writes once. All axes are of kind C2C, R2C or
    /// Identity.
    pub fn poisson(mut self, lengths: [f64; D]) -> Self {
        let modes = self.modes(lengths);
        let (rank, batches) = (self.part.rank(), self.batches());
        let solved = modes.and_then(|modes| {
            let array = self.array_mut()?;
            let (bytes, stream) = (array.len(), array.stream().clone());
            array.with_mut(&stream, bytes, |memory| {
                let mut reals = memory.cast_mut::<K::Real>();
                batches.into_iter().try_for_each(|batch| {
                    let solved =
                        modes.poisson(&stream, &mut *reals.part_mut(batch), K::Real::of(1.0));
                    solved.map_err(|why| why.on(rank))
                })
            })
        });
        self.record_error(solved);
        self
    }

    /// As on the host, by a kernel that reads once; memory for the result is allocated.
    ///
    /// # Panics
    /// If there is no such axis.
    pub fn gradient(&self, axis: usize, lengths: [f64; D]) -> Self {
        let made = self.derived(axis, lengths);
        let (data, error) = match made {
            Ok(array) => (DynArray::on_device(array), Ok(())),
            Err(error) => (DynArray::empty(), Err(error)),
        };
        let mut made = Self::new(self.part.clone(), data);
        made.record_error(error);
        made
    }

    fn derived(&self, axis: usize, lengths: [f64; D]) -> Result<DeviceArray, Error> {
        let (from, rank) = (self.array()?, self.part.rank());
        check_derivable(self.part.problem(), axis)?;
        let modes = self.modes(lengths)?;
        let (bytes, stream) = (from.len(), from.stream());
        let mut to = DeviceArray::zeros(from.gpu(), stream, bytes, rank)?;
        to.with_mut(stream, bytes, |to| {
            from.with(stream, bytes, |from| {
                let (from, mut to) = (from.cast::<K::Real>(), to.cast_mut::<K::Real>());
                self.batches().into_iter().try_for_each(|batch| {
                    let (from, mut to) = (from.part(batch.clone()), to.part_mut(batch));
                    let one = K::Real::of(1.0);
                    let done = modes.gradient(stream, axis, &*from, &mut *to, one);
                    done.map_err(|why| why.on(rank))
                })
            })
        })?;
        Ok(to)
    }

    /// The real numbers of each batch.
    fn batches(&self) -> Vec<Range<usize>> {
        let reals = self.brick().points() * K::Spectral::WIDTH;
        let batch = |batch| batch * reals..(batch + 1) * reals;
        (0..self.part.problem().howmany).map(batch).collect()
    }

    fn modes(&self, lengths: [f64; D]) -> Result<Modes<K::Real>, Error> {
        check_lengths(lengths)?;
        let (problem, layout) = (self.part.problem(), self.part.layout());
        let mut waves = lengths;
        for axis in 0..D {
            match problem.kinds[axis] {
                Kind::Identity => waves[axis] = f64::INFINITY,
                Kind::C2C | Kind::R2C => {}
                kind => {
                    let expected = "c2c, r2c or none on a device";
                    return Err(Error::argument(format!("kind of axis {axis}"), kind, expected));
                }
            }
        }
        let (gpu, grid) = (self.array()?.gpu(), problem.grid());
        Modes::new(gpu, &grid, &self.part.brick(), layout.order(), waves.into())
            .map_err(|why| why.on(self.part.rank()))
    }
}
