//! Pseudo-random numbers on the device, and distances: the data of benchmarks.

use std::marker::PhantomData;
use std::sync::Arc;

use cudarc::driver::{CudaStream, DevicePtr, DevicePtrMut};
use fft_core::{DynBrick, DynGrid, PerAxis, Placed, Transfer};

use crate::base::{Gpu, GpuError, GpuReal, Kernel, Source, tried};
use crate::ffi::{NoiseSource, Pinned, run_distance, run_noise};

/// Bytes that each block of threads writes.
const BLOCK: usize = size_of::<[f64; 4]>();

/// Uniform numbers by the index of a point in the grid, the same for any number of ranks.
pub struct Noise<T> {
    fill: Kernel,
    distance: Kernel,
    source: NoiseSource,
    found: Pinned,
    real: PhantomData<T>,
}

impl<T: GpuReal> Noise<T> {
    /// The numbers from `-scale/2` to `scale/2` of a brick of some arrays, with axes in memory in
    /// this order, and `width` real numbers for each point.
    ///
    /// # Errors
    /// [`GpuError::Driver`].
    pub fn new(
        gpu: &Gpu,
        (grid, brick): (&DynGrid, &DynBrick),
        order: PerAxis<usize>,
        batch: usize,
        (width, scale): (usize, f64),
    ) -> Result<Self, GpuError> {
        let kernel = |what| gpu.kernel(Source::Noise, &format!("{what}_{}", T::NAME));
        let (fill, distance) = (kernel("noise")?, kernel("distance")?);
        let whole = Placed { brick: grid.whole(), order: PerAxis::row_major(grid.axes()), batch };
        let placed = Placed { brick: *brick, order, batch };
        let part = Transfer::new(brick, 0..batch, &whole, &placed);
        let source = NoiseSource { part, width, scale };
        let found = Pinned::new(gpu.context(), distance.resident() * BLOCK)?;
        Ok(Self { fill, distance, source, found, real: PhantomData })
    }

    /// Fills an array. Queued on the stream.
    ///
    /// # Errors
    /// [`GpuError::Short`], [`GpuError::Argument`], [`GpuError::Driver`].
    pub fn fill(
        &self,
        stream: &Arc<CudaStream>,
        dst: &mut impl DevicePtrMut<T>,
    ) -> Result<(), GpuError> {
        run_noise(stream, &self.fill, &self.source, dst)
    }

    /// The sums of `(x - y)²` and `y²`, and the largest `|x - y|` and `|y|`, of an array `x` from
    /// the noise `y`. Waits for the stream.
    ///
    /// # Errors
    /// [`GpuError::Short`], [`GpuError::Argument`], [`GpuError::Driver`].
    pub fn distance(
        &self,
        stream: &Arc<CudaStream>,
        x: &impl DevicePtr<T>,
    ) -> Result<[f64; 4], GpuError> {
        let blocks = run_distance(stream, &self.distance, &self.source, x, &self.found)?;
        stream.synchronize().map_err(tried("waiting for a distance"))?;
        let mut all = [0.0_f64; 4];
        for block in 0..blocks {
            let mut found = [0.0_f64; 4];
            self.found.read(block * BLOCK, bytemuck::bytes_of_mut(&mut found));
            for (at, (all, found)) in all.iter_mut().zip(found).enumerate() {
                // Unlike `f64::max`, this keeps a NaN.
                let larger = if all.is_nan() || *all > found { *all } else { found };
                *all = if at < 2 { *all + found } else { larger };
            }
        }
        Ok(all)
    }
}
