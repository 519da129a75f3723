//! Local transforms of a group, in the fastest way.

use std::sync::Arc;

use cudarc::driver::CudaStream;
use fft_core::FftGroup;

use super::cuda::Cuda;
use super::fastest::fastest;
use super::fft_parts::{Part, run_all};
use super::group::fft_run;
use crate::abi::FftRun;
use crate::base::{GpuError, GpuReal};
use crate::ffi::DeviceMemory;
use crate::kernel::Scaling;

/// One or two transforms, along adjacent axes.
pub(super) struct DeviceFft<T> {
    /// None without data.
    parts: Vec<Part<T>>,
    /// Real numbers after.
    reals: usize,
    scale: Option<(Scaling<T>, T)>,
    run: FftRun,
}

impl<T: GpuReal> DeviceFft<T> {
    /// Plans a group; also returns the bytes of work area that it needs.
    pub(super) fn new(device: &Cuda, group: &FftGroup) -> Result<(Self, usize), GpuError> {
        let [before, reals] = group.reals();
        let (mut parts, mut factor) = (Vec::new(), 1.0);
        if before.min(reals) > 0 {
            (parts, factor) =
                if group.is_trig() { Part::trig(device, group)? } else { fastest(device, group)? };
        }
        let work = parts.iter().map(Part::work_bytes).max().unwrap_or(0);
        let scale =
            if factor != 1.0 { Some((Scaling::new(&device.gpu)?, T::of(factor))) } else { None };
        Ok((Self { parts, reals, scale, run: fft_run(group) }, work))
    }

    /// Whether its factor takes a pass.
    pub(super) fn is_scaled(&self) -> bool {
        self.scale.is_some()
    }

    pub(super) fn memory(&self) -> usize {
        self.parts.iter().map(Part::memory).sum()
    }

    /// Queues the transforms, from one array to another or in place.
    pub(super) fn run(
        &mut self,
        stream: &Arc<CudaStream>,
        work: &mut DeviceMemory<u8>,
        src: Option<&DeviceMemory<T>>,
        dst: &mut DeviceMemory<T>,
    ) -> Result<(), GpuError> {
        let halves = self.run == FftRun::RealToComplex;
        run_all(&mut self.parts, stream, work, src, dst, halves)?;
        match (&self.scale, self.parts.is_empty()) {
            (Some((scaling, factor)), false) => {
                scaling.run(stream, &mut *dst.part_mut(0..self.reals), *factor)
            }
            _ => Ok(()),
        }
    }
}
