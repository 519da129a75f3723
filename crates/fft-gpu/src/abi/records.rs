//! Arguments of kernels: plain data, laid out as the structs of `kernels/` that they name.

use bytemuck::{Pod, Zeroable};
use fft_core::{DIMS, Transfer};

use super::divisor::Divisor;
use crate::base::GpuError;

/// Tiles of a message that are counted together: `SERIES` of `kernels/places.cuh`.
const SERIES: usize = 64;
/// The most axes of a grid.
pub(crate) const AXES: usize = 4;

/// `Batch` of `kernels/box.cuh`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct BatchRecord {
    pub(crate) items: u64,
    pub(crate) list: u64,
    pub(crate) firsts: u64,
    pub(crate) count: u32,
    pub(crate) tiles: u32,
}

/// `Queue` of `kernels/places.cuh`.
#[repr(C)]
pub(crate) struct QueueRecord {
    words: u64,
    series: u64,
}

impl QueueRecord {
    /// The first word of the series, after one word for the queue and one for each tile.
    fn series(tiles: usize) -> usize {
        (tiles + 1).next_multiple_of(2)
    }

    /// The queue of `tiles` tiles, in memory of [`queue_words`].
    pub(crate) fn of(tiles: usize, words: u64) -> Self {
        Self { words, series: words + (size_of::<u64>() * Self::series(tiles)) as u64 }
    }
}

/// Words of the queue of a batch: one, one for each tile, and two for each series. The series of an
/// item begin with number `first / SERIES + item`.
pub(crate) fn queue_words(tiles: usize, items: usize) -> usize {
    QueueRecord::series(tiles) + 2 * (tiles / SERIES + items + 1)
}

/// `Job` of `kernels/job.cuh`.
#[repr(C)]
pub(crate) struct EncodeJob {
    pub(crate) batch: BatchRecord,
    pub(crate) src: u64,
    pub(crate) messages: u64,
    pub(crate) states: u64,
    pub(crate) errors: u64,
    pub(crate) bits: u32,
    pub(crate) raw: u32,
    pub(crate) part: f64,
    pub(crate) step: f64,
    pub(crate) inverse: f64,
    pub(crate) queue: QueueRecord,
}

/// `Job` of `kernels/decode.cu`.
#[repr(C)]
pub(crate) struct DecodeJob {
    pub(crate) batch: BatchRecord,
    pub(crate) messages: u64,
    pub(crate) dst: u64,
    pub(crate) states: u64,
    pub(crate) lengths: u64,
    pub(crate) bits: u32,
    pub(crate) begins: u64,
    pub(crate) queue: QueueRecord,
    pub(crate) groups: u64,
}

/// `Part` of `kernels/part.cuh`.
#[repr(C)]
pub(crate) struct PartRecord {
    offset: u64,
    elements: u64,
    stride: [u64; DIMS],
    shape: [u32; DIMS],
    width: u32,
    /// Whether the box is one run.
    run: u32,
}

impl PartRecord {
    /// The source's side of a transfer of elements of `width` real numbers.
    pub(crate) fn new(part: &Transfer, width: usize) -> Result<Self, GpuError> {
        let (shape, view) = (part.shape(), part.source());
        let run = shape[..DIMS - 1].iter().all(|n| *n == 1) && view.stride[DIMS - 1] == 1;
        let longest = if run { 0 } else { shape.into_iter().max().unwrap_or(0) };
        GpuError::at_most("an axis of a box", longest, u32::MAX as usize)?;
        Ok(Self {
            offset: view.offset as u64,
            elements: part.elements() as u64,
            stride: view.stride.map(|stride| stride as u64),
            shape: shape.map(|n| n as u32),
            width: width as u32,
            run: u32::from(run),
        })
    }
}

/// `Lines` of `kernels/trig.cu`, where the fields are explained; `kind` is the type.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct LinesRecord {
    pub(crate) step: u64,
    pub(crate) pitch: u64,
    pub(crate) along: u32,
    pub(crate) across: u32,
    pub(crate) n: u32,
    pub(crate) inner: u32,
    pub(crate) length: u32,
    pub(crate) elements: u32,
    pub(crate) by_n: Divisor,
    pub(crate) by_inner: Divisor,
    pub(crate) by_length: Divisor,
    pub(crate) kind: u32,
    pub(crate) sine: u32,
}

/// `Modes` of `kernels/spectral.cu`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct ModesRecord {
    pub(crate) shape: [u32; AXES],
    pub(crate) by: [Divisor; AXES],
    pub(crate) first: [u32; AXES],
    pub(crate) component: [u32; AXES],
    pub(crate) tables: u64,
    pub(crate) elements: u32,
    pub(crate) dimensions: u32,
}

const _: () = assert!(size_of::<ModesRecord>() == 96, "the kernel has the same");
