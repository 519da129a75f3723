//! How transforms access their data on devices.
//!
//! They load it from ranks on the same device if all ranks can, and complex ones also from ranks on
//! joined devices. Between devices, copy engines that move chunks during the transforms may gain
//! more, if columns are as fast as contiguous lines, because engines turn no axes.

use fft_core::{Access, Machine, PerAxis, Precision, is_large, loads_lines};

use super::chunked_fft::prefers_chunks;
use super::fastest::MEASURED_BYTES;
use crate::abi::column_fft::ColumnKernel;

/// Bytes of a block's shared memory on GPUs of NVIDIA's Hopper generation.
const SHARED_BYTES: usize = 227 << 10;

/// A transform of whole lines along at most three axes.
#[derive(Clone, Debug)]
pub struct WholeTransform {
    /// Lengths, if all axes are complex, the last one perhaps halved.
    pub complex: Option<PerAxis<usize>>,
    /// Lengths, if all axes have cosine or sine transforms.
    pub cosines: Option<PerAxis<usize>>,
    /// Whether input is complex.
    pub has_complex_input: bool,
    /// Whether input and output have the same order of axes in memory.
    pub same_orders: bool,
    /// The number of arrays.
    pub batch: usize,
    /// The number of ranks.
    pub ranks: usize,
    /// The precision.
    pub precision: Precision,
}

/// What the devices of ranks can do.
#[derive(Clone, Copy, Debug)]
pub struct DeviceFacts {
    /// Whether transforms can load their input themselves.
    pub loads: bool,
    /// Whether columns of these lengths are as fast as contiguous lines.
    pub columns: bool,
    /// Whether all devices are joined by links.
    pub joined: bool,
    /// Whether all ranks are on one device.
    pub one: bool,
}

impl WholeTransform {
    fn elements(&self, lens: &[usize]) -> usize {
        let points = lens.iter().fold(self.batch, |all, n| all.saturating_mul(*n));
        points / self.ranks
    }

    /// Whether transforms would load their input themselves, if devices can.
    pub fn is_loaded(&self) -> bool {
        // Each of several arrays would need tables of its own.
        let Some(lens) = self.complex.filter(|_| self.batch == 1) else { return false };
        let bytes = self.elements(&lens).saturating_mul(2 * self.precision.bytes());
        is_large(bytes) && lens.iter().all(|n| loads_lines(self.precision, *n))
    }

    /// Whether an array is so large that kernels for columns are worthwhile.
    pub fn has_large_columns(&self) -> bool {
        let bytes =
            |lens: PerAxis<usize>| self.elements(&lens).saturating_mul(2 * self.precision.bytes());
        self.complex.is_some_and(|lens| bytes(lens) >= MEASURED_BYTES)
    }

    /// Whether GPUs of NVIDIA's Hopper generation have kernels for its columns.
    pub fn has_columns(&self) -> bool {
        let has_kernel =
            |n: &usize| ColumnKernel::new(*n, 64, self.precision, SHARED_BYTES).is_some();
        self.has_large_columns() && self.complex.is_some_and(|lens| lens.iter().all(has_kernel))
    }

    /// The access on devices with the same capabilities.
    pub fn access(&self, facts: DeviceFacts, machine: Option<&Machine>) -> Access {
        let prefers = |elements: usize| {
            let complex_numbers =
                elements.saturating_mul(self.precision.bytes()) / size_of::<f64>();
            self.same_orders && prefers_chunks::<f64>(complex_numbers, self.ranks, machine)
        };
        let columns = facts.columns && self.has_large_columns();
        let chunks = columns && self.complex.is_some_and(|lens| prefers(self.elements(&lens)));
        let halves = if self.has_complex_input { 1 } else { 2 };
        let cosines = self.cosines.is_some_and(|lens| prefers(self.elements(&lens) / halves));
        let loads = facts.loads && self.is_loaded();
        let joins = self.has_complex_input || cosines;
        let near = (loads || cosines) && (facts.one || joins && facts.joined);
        if near && !cosines && (!chunks || facts.one) {
            Access::Fetched
        } else if columns || cosines && near && !facts.one {
            Access::Strided
        } else {
            Access::Contiguous
        }
    }
}
