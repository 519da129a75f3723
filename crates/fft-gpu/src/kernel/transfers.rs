//! Copies of boxes, many in one launch.

use std::sync::Arc;

use cudarc::driver::{CudaStream, DevicePtr, DevicePtrMut};

use crate::abi::Move;
use crate::abi::batch::Batch;
use crate::abi::copies::TiledCopies;
use crate::base::{Gpu, GpuError, Kernel, Source};
use crate::ffi::run_transfer;

/// Copies of boxes with any order of axes, ready to run as one launch.
///
/// The CPU twin is [`fft_core::Transfer::run`]. Boxes of the destination should not overlap.
pub struct Transfers {
    kernel: Kernel,
    batch: Batch,
}

impl Transfers {
    /// Prepares copies of elements of 4, 8 or 16 bytes; uploads descriptors on this stream.
    ///
    /// # Errors
    /// [`GpuError::Argument`] for another size or a box of 2^31 elements or more,
    /// [`GpuError::Memory`], [`GpuError::Driver`].
    pub fn new(
        gpu: &Gpu,
        stream: &Arc<CudaStream>,
        element_bytes: usize,
        moves: &[Move<'_>],
    ) -> Result<Self, GpuError> {
        let TiledCopies { all, unit, reaches, .. } =
            TiledCopies::new(element_bytes, moves)?.between_two();
        let batch = Batch::new(stream, &all, reaches)?;
        Ok(Self { kernel: gpu.kernel(Source::Transfer, &format!("transfer_{unit}"))?, batch })
    }

    pub(crate) fn memory(&self) -> usize {
        self.batch.memory()
    }

    /// Queues the copies: each element is read once and written once.
    ///
    /// # Errors
    /// [`GpuError::Short`] and [`GpuError::Argument`] before a launch; [`GpuError::Driver`].
    pub fn run<S, D>(
        &self,
        stream: &Arc<CudaStream>,
        src: &impl DevicePtr<S>,
        dst: &mut impl DevicePtrMut<D>,
    ) -> Result<(), GpuError> {
        run_transfer(stream, &self.kernel, &self.batch, src, dst)
    }
}
