//! Copies of boxes, many in one launch.

use std::sync::Arc;

use cudarc::driver::{CudaStream, DevicePtr, DevicePtrMut};
use fft_core::Transfer;

use crate::batch::{Batch, Reach};
use crate::boxes::{Items, Placement, Rows, Tiled, Tiling};
use crate::ffi::{Kernel, Source, run_transfer};
use crate::{Gpu, GpuError};

/// One copy: a transfer between arrays that begin so many elements into their buffers.
#[derive(Clone, Copy, Debug)]
pub struct Move<'a> {
    /// From a box to a box.
    pub transfer: &'a Transfer,
    /// Where the source's array begins.
    pub from: usize,
    /// Where the destination's array begins.
    pub to: usize,
}

/// Copies of boxes with any order of axes, ready to run as one launch: packing all messages of a reshape as they are,
/// unpacking them, keeping one's own data. The CPU twin is [`Transfer::run`].
///
/// Boxes of the destination should not overlap: an element that several copies write is any of theirs.
pub struct Transfers {
    kernel: Kernel,
    batch: Batch,
}

impl Transfers {
    /// Prepares copies of elements of 4, 8 or 16 bytes: descriptors go to the device through this stream.
    ///
    /// # Errors
    /// [`GpuError::Argument`] for another size, [`GpuError::TooLarge`] for a box of 2^31 elements or more,
    /// [`GpuError::Memory`], [`GpuError::Driver`].
    pub fn new(
        gpu: &Gpu,
        stream: &Arc<CudaStream>,
        element_bytes: usize,
        moves: &[Move<'_>],
    ) -> Result<Self, GpuError> {
        let Tiles { all, unit, reaches } = tile(element_bytes, moves)?;
        let batch = Batch::new(stream, &all, reaches)?;
        Ok(Self { kernel: gpu.kernel(Source::Transfer, &format!("transfer_{unit}"))?, batch })
    }

    /// Bytes of memory of the device.
    pub(crate) fn memory(&self) -> usize {
        self.batch.memory()
    }

    /// Copies, on a stream: each element is read once and written once. Returns when the launch is queued.
    ///
    /// # Errors
    /// [`GpuError::Short`] and [`GpuError::Unaligned`], in which case nothing is launched; [`GpuError::Driver`].
    pub fn run<S, D>(
        &self,
        stream: &Arc<CudaStream>,
        src: &impl DevicePtr<S>,
        dst: &mut impl DevicePtrMut<D>,
    ) -> Result<(), GpuError> {
        run_transfer(stream, &self.kernel, &self.batch, src, dst)
    }
}

/// What is further apart in an array is in other pages of memory.
const NEAR_BYTES: usize = 64 << 10;

/// Copies, cut into tiles.
pub(crate) struct Tiles {
    pub(crate) all: Items<Tiled>,
    /// Bytes that travel as one element.
    pub(crate) unit: usize,
    pub(crate) reaches: (Reach, Reach),
}

/// Cuts copies of elements of so many bytes into tiles.
///
/// # Errors
/// As [`Transfers::new`].
pub(crate) fn tile(element_bytes: usize, moves: &[Move<'_>]) -> Result<Tiles, GpuError> {
    if ![4, 8, 16].contains(&element_bytes) {
        let (what, found) = ("bytes of an element", element_bytes.to_string());
        return Err(GpuError::Argument { what, found, expected: "4, 8 or 16" });
    }
    let moves = moves.iter().filter(|one| one.transfer.elements() > 0);
    let mut placements: Vec<_> =
        moves.map(|one| Placement::new(one.transfer, one.from, one.to)).collect();
    // Neighbours that always stay together travel as one element, of 16 bytes if all boxes have such.
    let joins = |many: &usize| placements.iter().all(|placement| placement.joins(*many));
    let many =
        [4, 2].into_iter().filter(|many| many * element_bytes <= 16).find(joins).unwrap_or(1);
    placements.iter_mut().for_each(|placement| *placement = placement.joined(many));
    let bytes = many * element_bytes;
    let tiling = Tiling { quantum: 1, rows: Rows::Once, bytes };
    let mut all = Items::new();
    for placement in &placements {
        all.add(|item, tiles| placement.tiled(&tiling, item, tiles))?;
    }
    let reach = |end: fn(&Placement) -> usize| Reach {
        bytes: placements.iter().map(end).max().unwrap_or(0) * bytes,
        align: bytes,
    };
    let reaches = (reach(|p| p.end(&p.from)), reach(|p| p.end(&p.to)));
    // What is written at a time should be side by side; unless that are messages, and what they take lies together.
    let packs = placements.iter().all(|placement| placement.packs(NEAR_BYTES / bytes));
    let place = if packs { Tiled::source_of } else { Tiled::destination_of };
    Ok(Tiles { all: all.along(place), unit: bytes, reaches })
}
