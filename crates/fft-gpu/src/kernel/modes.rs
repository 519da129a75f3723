//! Pointwise operators on spectra, and scaling.

use std::marker::PhantomData;
use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream, DevicePtrMut, DeviceSlice};
use fft_core::{Modes, Operator, Precision, SystemTask};

use super::systems::DeviceSystems;
use crate::abi::divisor::{Divisor, MOST_ELEMENTS};
use crate::abi::records::{AXES, ModesRecord};
use crate::base::{Gpu, GpuError, GpuReal, Kernel, Source, tried};
use crate::ffi::{self, DeviceMemory};

/// The modes of a rank's part of a spectrum, with their wavenumbers on the device.
///
/// The host has checked that arrays have the operator's components; that they reach as far is
/// checked here.
pub struct DeviceModes {
    record: ModesRecord,
    /// What the record's address points at.
    tables: CudaSlice<f64>,
    width: usize,
    precision: Precision,
    by_wavenumbers: Kernel,
    derivatives: Kernel,
    products: Kernel,
    systems: Option<DeviceSystems>,
}

/// A kernel's operator and its arguments.
enum Call<'a> {
    ByWavenumbers(u32, f64),
    /// The component of a derivative along one axis; otherwise 0.
    Derivatives(u32, u32),
    Systems(&'a DeviceSystems, SystemTask),
}

impl DeviceModes {
    /// Copies the tables of modes to the device, and reserves memory for tridiagonal systems.
    ///
    /// # Errors
    /// [`GpuError::Argument`] for 2^31 modes or more; [`GpuError::Memory`]; [`GpuError::Driver`].
    pub fn new(gpu: &Gpu, stream: &Arc<CudaStream>, modes: &Modes) -> Result<Self, GpuError> {
        let (record, tables) = Self::tables(stream, modes)?;
        let precision = modes.spectrum().precision;
        let kernel = |what| gpu.kernel(Source::Spectral, &format!("{what}_{precision}"));
        let width = modes.width();
        let products = if width == 2 { "products" } else { "real_products" };
        let systems = modes.systems().filter(|_| modes.points() > 0);
        let systems = systems.map(|of| DeviceSystems::new(gpu, stream, of, (width, precision)));
        Ok(Self {
            record,
            tables,
            width,
            precision,
            by_wavenumbers: kernel("by_wavenumbers")?,
            derivatives: kernel("derivatives")?,
            products: kernel(products)?,
            systems: systems.transpose()?,
        })
    }

    fn tables(
        stream: &Arc<CudaStream>,
        modes: &Modes,
    ) -> Result<(ModesRecord, CudaSlice<f64>), GpuError> {
        GpuError::at_most("the number of modes", modes.points(), MOST_ELEMENTS)?;
        let mut record = ModesRecord {
            shape: [1; AXES],
            by: [Divisor::by(1); AXES],
            first: [0; AXES],
            component: [AXES as u32; AXES],
            tables: 0,
            elements: modes.points() as u32,
            dimensions: modes.dimensions() as u32,
        };
        // Missing axes have one mode without a wavenumber.
        let mut tables = vec![0.0; 3];
        for (place, axis) in (AXES - modes.axes().len()..).zip(modes.axes()) {
            record.shape[place] = axis.k.len() as u32;
            record.by[place] = Divisor::by(axis.k.len().max(1));
            record.first[place] = tables.len() as u32;
            record.component[place] = axis.component.unwrap_or(AXES) as u32;
            tables.extend([&axis.k, &axis.odd, &axis.level].into_iter().flatten());
        }
        let copied = stream.clone_htod(&tables).map_err(tried("copying wavenumbers"))?;
        Ok((record, copied))
    }

    fn call(&self, modes: &Modes, operator: Operator) -> Result<Call<'_>, GpuError> {
        use Call::{ByWavenumbers, Derivatives};
        let staggered = modes.axes().iter().find(|axis| axis.scheme().is_staggered());
        if let Some(axis) = staggered.filter(|_| operator.derives()) {
            let what = "scheme of derivatives on a device";
            return Err(GpuError::argument(what, axis.scheme(), "one that is not staggered"));
        }
        if let Some((systems, task)) = self.systems.as_ref().zip(SystemTask::of(operator)) {
            return Ok(Call::Systems(systems, task));
        }
        Ok(match operator {
            Operator::Laplacian => ByWavenumbers(0, 0.0),
            Operator::Poisson => ByWavenumbers(1, 0.0),
            Operator::Helmholtz(shift) => ByWavenumbers(2, shift),
            Operator::Gaussian(deviation) => ByWavenumbers(3, deviation),
            Operator::Cutoff(fraction) => ByWavenumbers(4, Operator::limit(fraction)),
            Operator::Derivative(axis) => {
                Derivatives(0, modes.along(axis).component.unwrap_or(AXES) as u32)
            }
            Operator::Gradient => Derivatives(1, 0),
            Operator::Divergence => Derivatives(2, 0),
            Operator::Curl => Derivatives(3, 0),
            Operator::Project => Derivatives(4, 0),
            other => return Err(GpuError::argument("operator", format!("{other:?}"), "another")),
        })
    }

    /// Bytes of one component.
    fn component_bytes(&self) -> usize {
        self.record.elements as usize * self.width * self.precision.bytes()
    }

    /// Queues an operator on arrays; without a source, within the destination. One read and one
    /// write.
    ///
    /// # Errors
    /// [`Modes::components`]; [`GpuError::Short`], [`GpuError::Argument`], [`GpuError::Driver`].
    pub fn apply(
        &self,
        stream: &Arc<CudaStream>,
        modes: &Modes,
        (operator, [before, after]): (Operator, [usize; 2]),
        src: Option<&DeviceMemory<u8>>,
        dst: &mut DeviceMemory<u8>,
    ) -> Result<(), GpuError> {
        if self.record.elements == 0 {
            return Ok(());
        }
        let [from, to] = [before, after].map(|components| components * self.component_bytes());
        let call = self.call(modes, operator)?;
        let (record, real) = ((&self.record, &self.tables), self.precision.bytes());
        for operand in 0..dst.len() / to {
            let input = src.map(|src| src.part(operand * from..(operand + 1) * from));
            let mut output = dst.part_mut(operand * to..(operand + 1) * to);
            let arrays = (input.as_deref(), &mut *output, real);
            match call {
                Call::Systems(systems, task) => systems.run(stream, task, arrays),
                Call::ByWavenumbers(what, parameter) => ffi::by_wavenumbers(
                    (stream, &self.by_wavenumbers),
                    record,
                    (what, parameter, self.width as u32),
                    arrays,
                ),
                Call::Derivatives(what, component) => {
                    ffi::derivatives((stream, &self.derivatives), record, (what, component), arrays)
                }
            }?;
        }
        Ok(())
    }

    /// Queues the multiplication of arrays by a kernel of one component, or by its conjugate. One
    /// read of both, and one write.
    ///
    /// # Errors
    /// [`GpuError::Short`], [`GpuError::Argument`], [`GpuError::Driver`].
    pub fn multiply(
        &self,
        stream: &Arc<CudaStream>,
        kernel: &DeviceMemory<u8>,
        conjugate: bool,
        data: &mut DeviceMemory<u8>,
    ) -> Result<(), GpuError> {
        let sign = (self.width == 2).then_some(if conjugate { -1.0 } else { 1.0 });
        let of = (self.record.elements as usize, sign, self.precision);
        ffi::products((stream, &self.products), of, kernel, data)
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
