//! Sums of squares.

use std::sync::Arc;

use cudarc::driver::CudaStream;
use fft_core::Transfer;

use crate::ffi::{Event, Kernel, Memory, Pinned, Source, run_energy};
use crate::{Gpu, GpuError, GpuReal};

/// Adds up squares on the device, and waits for the sum.
pub(super) struct Squares<T> {
    kernel: Kernel,
    sums: Pinned,
    done: Event,
    real: std::marker::PhantomData<T>,
}

impl<T: GpuReal> Squares<T> {
    pub(super) fn new(gpu: &Gpu) -> Result<Self, GpuError> {
        let kernel = gpu.kernel(Source::Energy, &format!("energy_{}", T::NAME))?;
        let sums = Pinned::new(gpu.context(), kernel.resident() * size_of::<[f64; 3]>())?;
        let (done, real) = (Event::new(gpu.context())?, std::marker::PhantomData);
        Ok(Self { kernel, sums, done, real })
    }

    /// The sums of [`fft_core::Energy`], of the source's side of a transfer.
    pub(super) fn of(
        &self,
        stream: &Arc<CudaStream>,
        part: &Transfer,
        width: usize,
        src: &Memory<T>,
    ) -> Result<[f64; 3], GpuError> {
        let blocks = run_energy(stream, &self.kernel, part, width, src, &self.sums)?;
        self.done.record(stream)?;
        self.done.wait()?;
        let mut sums = [0.0; 3];
        for block in 0..blocks {
            let mut found = [0f64; 3];
            self.sums.read(block * size_of_val(&found), bytemuck::bytes_of_mut(&mut found));
            sums.iter_mut().zip(found).for_each(|(sum, found)| *sum += found);
        }
        Ok(sums)
    }
}
