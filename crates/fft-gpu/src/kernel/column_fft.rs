//! Transforms of columns by a kernel that is compiled for their length.

use std::sync::Arc;

use cudarc::driver::sys::CUdevice_attribute as Attribute;
use cudarc::driver::sys::CUfunction_attribute_enum as Of;
use cudarc::driver::{CudaFunction, CudaSlice, CudaStream};
use fft_core::Direction;

use crate::abi::column_fft::ColumnKernel;
use crate::base::{Gpu, GpuError, GpuReal, tried};
use crate::ffi::{Columns, DeviceMemory, compiled, compiles, run_columns};

/// Complex transforms along the middle axis of an array `[outer][n][inner]`, or of the first of a
/// longer last axis.
///
/// Each point is read once and written once. Lengths are products of at most four numbers up to 16,
/// whose columns fit into shared memory.
pub struct ColumnFft<T> {
    kernel: Columns,
    roots: CudaSlice<T>,
}

impl<T: GpuReal> ColumnFft<T> {
    /// Bytes of neighbouring columns that a block may take: half a cache line of the device, or all
    /// of it. Which is faster depends on the length.
    pub const ROWS: [usize; 2] = [64, 128];

    /// Whether there is a kernel for columns of this length. It is compiled to find out.
    pub fn has_length(gpu: &Gpu, n: usize) -> bool {
        let shared_bytes = gpu.modules().shared_bytes();
        let kernel = ColumnKernel::new(n, Self::ROWS[0], T::PRECISION, shared_bytes);
        compiles() && kernel.is_some_and(|kernel| functions(gpu, &kernel).is_ok())
    }

    /// Compiles the kernel whose blocks take `row_bytes` of neighbouring columns; `None` for other
    /// lengths, and without NVIDIA's run-time compiler (`libnvrtc.so`).
    ///
    /// # Errors
    /// [`GpuError::Driver`].
    pub fn new(
        gpu: &Gpu,
        stream: &Arc<CudaStream>,
        [outer, n, inner]: [usize; 3],
        row_bytes: usize,
    ) -> Result<Option<Self>, GpuError> {
        let kernel = ColumnKernel::new(n, row_bytes, T::PRECISION, gpu.modules().shared_bytes());
        // A grid has fewer than 2^31 blocks, and all counts are of 32 bits.
        let most = u32::MAX as usize / 2;
        let fits = |kernel: &ColumnKernel| {
            inner > 0
                && inner <= most
                && outer.saturating_mul(inner.div_ceil(kernel.columns)) <= most
        };
        let Some(kernel) = kernel.filter(fits).filter(|_| compiles()) else { return Ok(None) };
        let [forward, inverse] = functions(gpu, &kernel)?;
        let roots = kernel.roots().into_iter().flatten().map(T::of).collect::<Vec<_>>();
        let roots = stream.clone_htod(&roots).map_err(tried("copying roots of unity"))?;
        let (columns, threads, shared_bytes) =
            (kernel.columns, kernel.threads(), kernel.shared_bytes());
        let pitch = inner;
        let kernel =
            Columns { forward, inverse, columns, threads, shared_bytes, outer, n, inner, pitch };
        Ok(Some(Self { kernel, roots }))
    }

    /// The same columns with points that are `pitch` elements apart; `None` if these cannot be
    /// counted.
    pub fn with_pitch(mut self, pitch: usize) -> Option<Self> {
        self.kernel.pitch = pitch;
        (self.kernel.inner..=u32::MAX as usize / 2).contains(&pitch).then_some(self)
    }

    /// Queues the transforms, times a factor, from one array to another or in place.
    ///
    /// # Errors
    /// [`GpuError::Short`], [`GpuError::Argument`], [`GpuError::Driver`].
    pub fn run(
        &self,
        stream: &Arc<CudaStream>,
        direction: Direction,
        src: Option<&DeviceMemory<T>>,
        dst: &mut DeviceMemory<T>,
        factor: f64,
    ) -> Result<(), GpuError> {
        run_columns(stream, &self.kernel, direction, &self.roots, src, dst, T::of(factor))
    }

    /// Bytes of memory held.
    pub fn memory(&self) -> usize {
        2 * self.kernel.n * size_of::<T>()
    }
}

/// The kernel in both directions, allowed to use its shared memory.
fn functions(gpu: &Gpu, kernel: &ColumnKernel) -> Result<[CudaFunction; 2], GpuError> {
    let tried = tried("loading a kernel for columns");
    let context = gpu.context();
    context.bind_to_thread().map_err(&tried)?;
    let ask = |what| context.attribute(what).map_err(&tried);
    let capability = (
        ask(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
        ask(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
    );
    let source = kernel.source();
    let module = gpu.modules().compiled(&source, || compiled(&source, capability))?;
    let function = |name| -> Result<CudaFunction, GpuError> {
        let function = module.load_function(name).map_err(&tried)?;
        let bytes = kernel.shared_bytes() as i32;
        let what = Of::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        function.set_attribute(what, bytes).map_err(&tried)?;
        Ok(function)
    };
    Ok([function("forward")?, function("inverse")?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use fft_core::Precision::{F32, F64};

    /// The compiler needs no device.
    #[test]
    fn kernels_compile() {
        if !compiles() {
            return println!("not run: no libnvrtc.so on this machine");
        }
        for (n, precision) in [(16, F64), (143, F32), (1000, F64), (1024, F32)] {
            let kernel = ColumnKernel::new(n, 64, precision, 227 << 10).expect("a smooth length");
            for capability in [(8, 0), (9, 0)] {
                compiled(&kernel.source(), capability).unwrap();
            }
        }
    }
}
