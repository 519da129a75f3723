//! Sums of squares.

use std::sync::Arc;

use cudarc::driver::CudaStream;
use fft_core::{Energy, Transfer};

use crate::base::{Gpu, GpuError, GpuReal, Kernel, Source};
use crate::ffi::{DeviceMemory, Pinned, run_energy};

/// The most parts: a whole spectrum, and the two planes without a conjugate.
const PARTS: usize = 3;
/// Bytes of the sums of a block of threads.
const BLOCK: usize = size_of::<[f64; 3]>();

/// Sums of squares on the device.
pub(super) struct Squares {
    kernel: Kernel,
    sums: Pinned,
    /// The first block of each part, and the end.
    ends: [usize; PARTS + 1],
    parts: usize,
}

impl Squares {
    pub(super) fn new<T: GpuReal>(gpu: &Gpu) -> Result<Self, GpuError> {
        let kernel = gpu.kernel(Source::Energy, &format!("energy_{}", T::NAME))?;
        let sums = Pinned::new(gpu.context(), PARTS * kernel.resident() * BLOCK)?;
        Ok(Self { kernel, sums, ends: [0; PARTS + 1], parts: 0 })
    }

    pub(super) fn memory(&self) -> usize {
        self.sums.bytes()
    }

    /// Queues the sums over the transfers' sources, one launch each.
    pub(super) fn add<T: GpuReal>(
        &mut self,
        stream: &Arc<CudaStream>,
        parts: &[Transfer],
        width: usize,
        src: &DeviceMemory<T>,
    ) -> Result<(), GpuError> {
        self.parts = 0;
        for (number, part) in parts.iter().enumerate() {
            let first = self.ends[number];
            let place = first * BLOCK;
            let blocks = run_energy(stream, &self.kernel, part, width, src, (&self.sums, place))?;
            self.ends[number + 1] = first + blocks;
        }
        self.parts = parts.len();
        Ok(())
    }

    /// Adds the results that were queued last to one sum for each part; the caller has waited for
    /// the stream.
    pub(super) fn read(&self, sums: &mut [Energy]) {
        for (number, sum) in sums.iter_mut().enumerate().take(self.parts) {
            for block in self.ends[number]..self.ends[number + 1] {
                let mut found = Energy::default();
                self.sums.read(block * BLOCK, bytemuck::bytes_of_mut(&mut found.0));
                *sum = [*sum, found].into_iter().sum();
            }
        }
    }
}
