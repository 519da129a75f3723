//! Sums of squares.

use std::sync::Arc;

use cudarc::driver::CudaStream;
use fft_core::{Energy, Transfer};

use crate::ffi::{DeviceMemory, Event, Kernel, Pinned, Source, run_energy};
use crate::{Gpu, GpuError, GpuReal};

/// Parts at most: all of a spectrum, and the two planes that are not there twice.
const PARTS: usize = 3;
/// Bytes of what a block of threads adds up.
const BLOCK: usize = size_of::<[f64; 3]>();

/// Adds up squares on the device, and waits for the sums.
pub(super) struct Squares<T> {
    kernel: Kernel,
    sums: Pinned,
    done: Event,
    real: std::marker::PhantomData<T>,
}

impl<T: GpuReal> Squares<T> {
    pub(super) fn new(gpu: &Gpu) -> Result<Self, GpuError> {
        let kernel = gpu.kernel(Source::Energy, &format!("energy_{}", T::NAME))?;
        let sums = Pinned::new(gpu.context(), PARTS * kernel.resident() * BLOCK)?;
        let (done, real) = (Event::new(gpu.context())?, std::marker::PhantomData);
        Ok(Self { kernel, sums, done, real })
    }

    /// Bytes of memory held.
    pub(super) fn memory(&self) -> usize {
        self.sums.bytes()
    }

    /// Adds to the sums of the sources' sides of transfers: a launch for each, and one wait for all.
    ///
    /// # Panics
    /// If there are more than [`PARTS`].
    pub(super) fn add(
        &self,
        stream: &Arc<CudaStream>,
        parts: &[Transfer],
        width: usize,
        src: &DeviceMemory<T>,
        sums: &mut [Energy],
    ) -> Result<(), GpuError> {
        let mut ends = [0; PARTS + 1];
        for (number, part) in parts.iter().enumerate() {
            let first = ends[number];
            let place = first * BLOCK;
            let blocks = run_energy(stream, &self.kernel, part, width, src, (&self.sums, place))?;
            ends[number + 1] = first + blocks;
        }
        self.done.record(stream)?;
        self.done.wait()?;
        for (number, sum) in sums.iter_mut().enumerate().take(parts.len()) {
            for block in ends[number]..ends[number + 1] {
                let mut found = Energy::default();
                self.sums.read(block * BLOCK, bytemuck::bytes_of_mut(&mut found.0));
                *sum = [*sum, found].into_iter().sum();
            }
        }
        Ok(())
    }
}
