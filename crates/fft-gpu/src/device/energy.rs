//! Sums of squares.

use std::sync::Arc;

use cudarc::driver::CudaStream;
use fft_core::{Energy, Transfer};

use crate::base::{Gpu, GpuError, GpuReal};
use crate::ffi::{DeviceMemory, Kernel, Pinned, Source, run_energy};

/// Parts at most: all of a spectrum, and the two planes that are not there twice.
const PARTS: usize = 3;
/// Bytes of what a block of threads adds up.
const BLOCK: usize = size_of::<[f64; 3]>();

/// Adds up squares on the device.
pub(super) struct Squares<T> {
    kernel: Kernel,
    sums: Pinned,
    /// Where the sums of each part begin, and where the next's do.
    ends: [usize; PARTS + 1],
    parts: usize,
    real: std::marker::PhantomData<T>,
}

impl<T: GpuReal> Squares<T> {
    pub(super) fn new(gpu: &Gpu) -> Result<Self, GpuError> {
        let kernel = gpu.kernel(Source::Energy, &format!("energy_{}", T::NAME))?;
        let sums = Pinned::new(gpu.context(), PARTS * kernel.resident() * BLOCK)?;
        let real = std::marker::PhantomData;
        Ok(Self { kernel, sums, ends: [0; PARTS + 1], parts: 0, real })
    }

    /// Bytes of memory held.
    pub(super) fn memory(&self) -> usize {
        self.sums.bytes()
    }

    /// Queues the adding up of the sources' sides of transfers: a launch for each.
    ///
    /// # Panics
    /// If there are more than [`PARTS`].
    pub(super) fn add(
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

    /// Adds what was queued last to a sum for each part, when the device has come so far.
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
