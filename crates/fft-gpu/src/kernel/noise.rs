//! Pseudo-random numbers on the device, and distances: the data of benchmarks.

use std::marker::PhantomData;
use std::sync::Arc;

use cudarc::driver::{CudaStream, DevicePtr, DevicePtrMut};
use fft_core::{DynBrick, DynGrid, PerAxis, Placed, Transfer};

use crate::base::{Gpu, GpuError, GpuReal, Kernel, Source, tried};
use crate::ffi::{Pinned, run_distance, run_noise};

/// Bytes that each block of threads writes.
const BLOCK: usize = size_of::<[f64; 4]>();

/// Numbers from -1 to 1 by the index of a point in the grid, the same for any number of ranks.
pub struct Noise<T> {
    fill: Kernel,
    distance: Kernel,
    /// From an array of the grid to one of the brick.
    part: Transfer,
    width: usize,
    found: Pinned,
    real: PhantomData<T>,
}

impl<T: GpuReal> Noise<T> {
    /// The numbers of a brick of some arrays, with axes in memory in this order, and `width` real
    /// numbers for each point.
    ///
    /// # Errors
    /// [`GpuError::Allocation`], [`GpuError::Driver`].
    pub fn new(
        gpu: &Gpu,
        (grid, brick): (&DynGrid, &DynBrick),
        order: PerAxis<usize>,
        howmany: usize,
        width: usize,
    ) -> Result<Self, GpuError> {
        let kernel = |what| gpu.kernel(Source::Noise, &format!("{what}_{}", T::NAME));
        let (fill, distance) = (kernel("noise")?, kernel("distance")?);
        let whole = Placed { brick: grid.whole(), order: PerAxis::row_major(grid.axes()), howmany };
        let placed = Placed { brick: *brick, order, howmany };
        let part = Transfer::new(brick, 0..howmany, &whole, &placed);
        let found = Pinned::new(gpu.context(), distance.resident() * BLOCK)?;
        Ok(Self { fill, distance, part, width, found, real: PhantomData })
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
        run_noise(stream, &self.fill, &self.part, self.width, dst)
    }

    /// The sums of `(x - y)²` and `y²`, and the largest `|x - y|` and `|y|`, of an array `x`. `y` is
    /// the noise, or another array. Waits for the stream.
    ///
    /// # Errors
    /// [`GpuError::Short`], [`GpuError::Argument`], [`GpuError::Driver`].
    pub fn distance(
        &self,
        stream: &Arc<CudaStream>,
        x: &impl DevicePtr<T>,
    ) -> Result<[f64; 4], GpuError> {
        let none = None::<&cudarc::driver::CudaSlice<T>>;
        self.distance_of(stream, &self.part, self.width, x, none)
    }

    /// As [`Noise::distance`], of the first `reals` numbers of an array from those of another.
    ///
    /// # Errors
    /// [`GpuError::Short`], [`GpuError::Argument`], [`GpuError::Driver`].
    pub fn distance_from(
        &self,
        stream: &Arc<CudaStream>,
        reals: usize,
        x: &impl DevicePtr<T>,
        y: &impl DevicePtr<T>,
    ) -> Result<[f64; 4], GpuError> {
        self.distance_of(stream, &Transfer::run_of(reals), 1, x, Some(y))
    }

    fn distance_of(
        &self,
        stream: &Arc<CudaStream>,
        part: &Transfer,
        width: usize,
        x: &impl DevicePtr<T>,
        y: Option<&impl DevicePtr<T>>,
    ) -> Result<[f64; 4], GpuError> {
        let blocks = run_distance(stream, &self.distance, part, width, (x, y), &self.found)?;
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
