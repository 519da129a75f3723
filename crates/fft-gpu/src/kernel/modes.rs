//! Pointwise multiplication of fields between transforms.

use std::f64::consts::TAU;
use std::marker::PhantomData;
use std::sync::Arc;

use cudarc::driver::{CudaStream, DevicePtr, DevicePtrMut};
use fft_core::{DynBrick, DynGrid, PerAxis};

use crate::abi::divisor::{Divisor, MOST_ELEMENTS};
use crate::abi::records::{AXES, ModesRecord};
use crate::base::{Gpu, GpuError, GpuReal, Kernel, Source};
use crate::ffi;

/// Multiplication of a spectrum by functions of the wavenumber k = 2π·index/length.
///
/// The upper half of indices stands for negative ones.
pub struct Modes<T> {
    record: ModesRecord,
    /// The place in memory of each axis of the grid.
    places: Vec<usize>,
    poisson: Kernel,
    gradient: Kernel,
    real: PhantomData<T>,
}

/// The place in memory of each axis of the grid, of [`AXES`].
fn places_of(
    grid: &DynGrid,
    brick: &DynBrick,
    order: PerAxis<usize>,
    lengths: PerAxis<f64>,
) -> Result<Vec<usize>, GpuError> {
    let axes = grid.axes();
    for (what, found) in [
        ("the axes of a brick", brick.axes()),
        ("the axes of an order", order.len()),
        ("the lengths of a domain", lengths.len()),
    ] {
        if found != axes {
            return Err(GpuError::argument(what, found, "one for each axis"));
        }
    }
    let place = |axis: usize| order.iter().position(|a| *a == axis);
    let places: Option<Vec<_>> = (0..axes).map(|axis| Some(AXES - axes + place(axis)?)).collect();
    places.ok_or_else(|| {
        GpuError::argument("the order of axes", format!("{order:?}"), "each axis once")
    })
}

impl<T: GpuReal> Modes<T> {
    /// The modes of a brick of the spectrum of a field, with axes in memory in this order.
    ///
    /// The grid is that of the field, and lengths are those of the domain. A real field's brick has
    /// indices from 0 to n/2 along the halved axis.
    ///
    /// # Errors
    /// [`GpuError::Argument`] for a bad order, or 2^31 modes or more.
    pub fn new(
        gpu: &Gpu,
        grid: &DynGrid,
        brick: &DynBrick,
        order: PerAxis<usize>,
        lengths: PerAxis<f64>,
    ) -> Result<Self, GpuError> {
        let places = places_of(grid, brick, order, lengths)?;
        let longest = grid.shape().into_iter().max().unwrap_or(0);
        GpuError::at_most("the number of modes", brick.points().max(longest), MOST_ELEMENTS)?;
        let mut record = ModesRecord {
            shape: [1; AXES],
            by: [Divisor::by(1); AXES],
            first: [0; AXES],
            grid: [1; AXES],
            unit: [0.0; AXES],
            elements: brick.points() as u32,
            axis: 0,
        };
        for (axis, &place) in places.iter().enumerate() {
            record.shape[place] = brick.len(axis) as u32;
            record.by[place] = Divisor::by(brick.len(axis).max(1));
            record.first[place] = brick.lo[axis] as u32;
            record.grid[place] = grid.len(axis) as u32;
            record.unit[place] = TAU / lengths[axis];
        }
        let kernel = |what| gpu.kernel(Source::Spectral, &format!("{what}_{}", T::NAME));
        let (poisson, gradient) = (kernel("poisson")?, kernel("gradient")?);
        Ok(Self { record, places, poisson, gradient, real: PhantomData })
    }

    /// Solves -∇²φ = ρ in place: divides by k², times a factor, and makes the mean 0.
    ///
    /// One read and one write.
    ///
    /// # Errors
    /// [`GpuError::Short`], [`GpuError::Argument`], [`GpuError::Driver`].
    pub fn poisson(
        &self,
        stream: &Arc<CudaStream>,
        data: &mut impl DevicePtrMut<T>,
        factor: T,
    ) -> Result<(), GpuError> {
        ffi::poisson(stream, &self.poisson, &self.record, data, factor)
    }

    /// The derivative along an axis of the grid: multiplies by ik, times a factor.
    ///
    /// The Nyquist mode of an axis of even length becomes 0. One read and one write.
    ///
    /// # Errors
    /// As [`Modes::poisson`].
    ///
    /// # Panics
    /// If the grid has no such axis.
    pub fn gradient(
        &self,
        stream: &Arc<CudaStream>,
        axis: usize,
        src: &impl DevicePtr<T>,
        dst: &mut impl DevicePtrMut<T>,
        factor: T,
    ) -> Result<(), GpuError> {
        let record = ModesRecord { axis: self.places[axis] as u32, ..self.record };
        ffi::gradient(stream, &self.gradient, &record, src, dst, factor)
    }
}

/// Multiplication of all numbers of a buffer.
pub struct Scaling<T> {
    kernel: Kernel,
    real: PhantomData<T>,
}

impl<T: GpuReal> Scaling<T> {
    /// Loads the kernel.
    ///
    /// # Errors
    /// [`GpuError::Driver`].
    pub fn new(gpu: &Gpu) -> Result<Self, GpuError> {
        let kernel = gpu.kernel(Source::Spectral, &format!("scale_{}", T::NAME))?;
        Ok(Self { kernel, real: PhantomData })
    }

    /// Queues the multiplication: one read and one write.
    ///
    /// # Errors
    /// [`GpuError::Driver`].
    pub fn run(
        &self,
        stream: &Arc<CudaStream>,
        data: &mut impl DevicePtrMut<T>,
        factor: T,
    ) -> Result<(), GpuError> {
        ffi::scale(stream, &self.kernel, data, factor)
    }
}
