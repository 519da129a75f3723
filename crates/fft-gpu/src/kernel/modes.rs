//! What is done to fields between transforms.

use std::f64::consts::TAU;
use std::sync::Arc;

use cudarc::driver::{CudaStream, DevicePtr, DevicePtrMut};
use fft_core::{DynBrick, DynGrid, PerAxis};

use crate::abi::boxes::Divisor;
use crate::base::{Gpu, GpuError, GpuReal};
use crate::ffi;
use crate::ffi::{Kernel, Source};

/// Axes that a grid can have.
const AXES: usize = 4;

/// The fields are those of `Modes` in `kernels/spectral.cu`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct ModesRecord {
    shape: [u32; AXES],
    by: [Divisor; AXES],
    first: [u32; AXES],
    grid: [u32; AXES],
    unit: [f64; AXES],
    pub(crate) elements: u32,
    axis: u32,
}

const _: () = assert!(size_of::<ModesRecord>() == 120, "the kernel has the same");

/// Multiplication of a spectrum by functions of the wavenumber k = 2π·index/length, the upper half of indices standing for
/// negative ones.
pub struct Modes<T> {
    record: ModesRecord,
    /// Where each axis of the grid is in memory.
    places: Vec<usize>,
    poisson: Kernel,
    gradient: Kernel,
    real: std::marker::PhantomData<T>,
}

impl<T: GpuReal> Modes<T> {
    /// The modes of a brick of the spectrum of a field, with axes in memory in this order. The grid is that of the field; of a
    /// real field's spectrum, the brick has indices from 0 to n/2 along the axis that is halved. Lengths are those of the
    /// domain.
    ///
    /// # Errors
    /// [`GpuError::TooLarge`] for a brick of 2^31 modes or more, [`GpuError::Argument`] for an order that is none.
    pub fn new(
        gpu: &Gpu,
        grid: &DynGrid,
        brick: &DynBrick,
        order: PerAxis<usize>,
        lengths: PerAxis<f64>,
    ) -> Result<Self, GpuError> {
        let axes = grid.axes();
        for (what, found) in [
            ("the axes of a brick", brick.axes()),
            ("the axes of an order", order.len()),
            ("the lengths of a domain", lengths.len()),
        ] {
            if found != axes {
                let found = found.to_string();
                return Err(GpuError::Argument { what, found, expected: "one for each axis" });
            }
        }
        let place = |axis: usize| order.iter().position(|a| *a == axis);
        let places: Option<Vec<_>> =
            (0..axes).map(|axis| Some(AXES - axes + place(axis)?)).collect();
        let Some(places) = places else {
            let (what, found) = ("the order of axes", format!("{order:?}"));
            return Err(GpuError::Argument { what, found, expected: "each axis once" });
        };
        let (found, expected) = (brick.points(), (1 << 31) - 1);
        let most = grid.shape().into_iter().max().unwrap_or(0);
        if found > expected || most > expected {
            let found = found.max(most);
            return Err(GpuError::TooLarge { what: "the number of modes", found, expected });
        }
        let one = Divisor::by(1);
        let mut record = ModesRecord {
            shape: [1; AXES],
            by: [one; AXES],
            first: [0; AXES],
            grid: [1; AXES],
            unit: [0.0; AXES],
            elements: found as u32,
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
        Ok(Self { record, places, poisson, gradient, real: std::marker::PhantomData })
    }

    /// Solves -∇²φ = ρ in place: divides by k², times a factor, and makes the mean 0. One read and one write.
    ///
    /// # Errors
    /// [`GpuError::Short`], [`GpuError::Unaligned`], [`GpuError::Driver`].
    pub fn poisson(
        &self,
        stream: &Arc<CudaStream>,
        data: &mut impl DevicePtrMut<T>,
        factor: T,
    ) -> Result<(), GpuError> {
        ffi::poisson(stream, &self.poisson, &self.record, data, factor)
    }

    /// The derivative along an axis of the grid: multiplies by ik, times a factor. The mode in the middle of an axis of even
    /// length, which stands for both signs, becomes 0. One read and one write.
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
    real: std::marker::PhantomData<T>,
}

impl<T: GpuReal> Scaling<T> {
    /// Prepares it.
    ///
    /// # Errors
    /// [`GpuError::Driver`].
    pub fn new(gpu: &Gpu) -> Result<Self, GpuError> {
        let kernel = gpu.kernel(Source::Spectral, &format!("scale_{}", T::NAME))?;
        Ok(Self { kernel, real: std::marker::PhantomData })
    }

    /// Multiplies: one read and one write.
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
