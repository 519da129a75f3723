//! Copies of boxes, many in one launch.

use std::sync::Arc;

use cudarc::driver::{CudaStream, DevicePtr, DevicePtrMut};
use fft_core::Transfer;

use crate::abi::batch::{Batch, Reach};
use crate::abi::boxes::{Items, Placement, Rows, Tiled, Tiling};
use crate::base::{Gpu, GpuError};
use crate::ffi::{Kernel, Source, run_transfer};

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
        redistribution: &[Move<'_>],
    ) -> Result<Self, GpuError> {
        let Tiles { all, unit, reaches, .. } = tile(element_bytes, redistribution)?.between_two();
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
    /// Whether each fills one run of the destination, with what is at most [`NEAR_BYTES`] from one to the next in the source.
    packs: bool,
    /// Bytes that travel as one element.
    pub(crate) unit: usize,
    pub(crate) reaches: (Reach, Reach),
}

/// Cuts copies of elements of so many bytes into tiles.
///
/// # Errors
/// As [`Transfers::new`].
pub(crate) fn tile(element_bytes: usize, redistribution: &[Move<'_>]) -> Result<Tiles, GpuError> {
    if ![4, 8, 16].contains(&element_bytes) {
        let (what, found) = ("bytes of an element", element_bytes.to_string());
        return Err(GpuError::Argument { what, found, expected: "4, 8 or 16" });
    }
    let redistribution = redistribution.iter().filter(|one| one.transfer.elements() > 0);
    let mut placements: Vec<_> =
        redistribution.map(|one| Placement::new(one.transfer, one.from, one.to)).collect();
    // PeerMemory that always stay together travel as one element, of 16 bytes if all boxes have such.
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
    let packs = placements.iter().all(|placement| placement.packs(NEAR_BYTES / bytes));
    Ok(Tiles { all, packs, unit: bytes, reaches })
}

impl Tiles {
    /// Listed for copies from one array to another: as they are written, so that what is written at a time is side by side; but where runs
    /// are, of what lies together in the source, as they are read.
    pub(crate) fn between_two(mut self) -> Self {
        let place = if self.packs { Tiled::source_of } else { Tiled::destination_of };
        self.all = self.all.along(place);
        self
    }

    /// Listed for copies from several arrays to one: as they are written, in a circle from where the first copy begins, which should be
    /// another for each who copies. So not all read the same array at a time.
    pub(crate) fn into_one(mut self) -> Self {
        self.all = self.all.along(Tiled::destination_of);
        let first = self.all.tiles.iter().position(|tile| tile.item == 0);
        self.all.tiles.rotate_left(first.unwrap_or(0));
        self
    }
}

#[cfg(test)]
mod tests {
    use fft_core::{Brick, Placed};

    use super::*;
    use crate::abi::boxes::Tile;

    const SHAPE: [usize; 3] = [8, 64, 256];

    /// Copies of quarters of an array along an axis, from this one on: into messages one behind the other, of this order, or back.
    fn quarters((axis, first): (usize, usize), order: [usize; 3], unpacks: bool) -> Tiles {
        let whole = Placed::new(Brick { lo: [0; 3], hi: SHAPE }, [0, 1, 2], 1);
        let (many, each) = (SHAPE.iter().product::<usize>() / 4, SHAPE[axis] / 4);
        let part = |i: usize| {
            let (mut brick, i) = (whole.brick, (first + i) % 4);
            (brick.lo[axis], brick.hi[axis]) = (each * i, each * (i + 1));
            let message = Placed::new(brick, order, 1);
            let [from, to] = if unpacks { [&message, &whole] } else { [&whole, &message] };
            Transfer::new(&brick, 0..1, from, to)
        };
        let parts: Vec<_> = (0..4).map(part).collect();
        let redistribution = parts.iter().enumerate().map(|(i, transfer)| match unpacks {
            true => Move { transfer, from: many * i, to: 0 },
            false => Move { transfer, from: 0, to: many * i },
        });
        tile(16, &redistribution.collect::<Vec<_>>()).unwrap()
    }

    fn is_along(Tiles { all, .. }: &Tiles, place: fn(&Tiled, &Tile) -> u64) -> bool {
        all.tiles.is_sorted_by_key(|tile| place(&all.items[tile.item as usize], tile))
    }

    #[test]
    fn copies_are_listed_as_they_are_written_or_what_is_packed_as_it_lies() {
        let packed = quarters((2, 0), [0, 1, 2], false).between_two();
        assert!(is_along(&packed, Tiled::source_of) && !is_along(&packed, Tiled::destination_of));
        let unpacked = quarters((2, 0), [0, 1, 2], true).between_two();
        assert!(is_along(&unpacked, Tiled::destination_of));
        assert!(!is_along(&unpacked, Tiled::source_of));
        // Adjacent elements of the message are 64 × 256 × 16 bytes apart.
        let apart = quarters((2, 0), [1, 2, 0], false).between_two();
        assert!(is_along(&apart, Tiled::destination_of) && !is_along(&apart, Tiled::source_of));
    }

    #[test]
    fn what_comes_from_several_arrays_is_listed_in_a_circle() {
        // The first copy is of the third quarter of what is written.
        let Tiles { all, .. } = quarters((0, 2), [0, 1, 2], true).into_one();
        let each = all.tiles.len() / 4;
        let found: Vec<u32> = all.tiles.iter().map(|tile| tile.item).collect();
        let expected: Vec<u32> = (0..4).flat_map(|item| vec![item; each]).collect();
        assert_eq!(found, expected);
        let places: Vec<u64> = (all.tiles.iter())
            .map(|tile| all.items[tile.item as usize].destination_of(tile))
            .collect();
        assert!(places[..2 * each].is_sorted() && places[2 * each..].is_sorted());
        assert_eq!([places[0], places[2 * each]], [2 * 2 * 64 * 256, 0]);
    }
}
