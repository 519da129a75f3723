//! Copies of boxes out of several ranks' memory into this one's, in one pass.
//!
//! Copy engines move long rows of other devices, while a kernel copies everything else: engines use
//! a link better than a kernel that loads over it. They may move chunks, each after an event of its
//! owner, while the owner transforms later chunks.

use std::sync::Arc;

use cudarc::driver::sys::{self, CUDA_MEMCPY3D, CUdeviceptr};
use cudarc::driver::{CudaStream, DevicePtrMut, DeviceSlice};
use fft_core::{EngineCopy, Transfer};

use super::event::CudaEvent;
use super::launch::run_peer_get;
use super::memory::DeviceMemory;
use super::rank_memory::{RankAddresses, RankMemory};
use crate::abi::Move;
use crate::abi::batch::{Batch, Reach};
use crate::abi::boxes::TiledBox;
use crate::abi::copies::TiledCopies;
use crate::base::{Gpu, GpuError, GpuReal, Kernel, Source, tried};

/// Copies from several sources, ready to run.
pub(crate) struct PeerGets {
    kernel: Kernel,
    batch: Batch,
    items: Vec<TiledBox>,
    /// The source of each item, and the item's offset there, in units of `unit` bytes.
    offsets: Vec<(usize, u64)>,
    unit: u64,
    sources: RankAddresses,
    /// `None` if they move nothing.
    engines: Option<Engines>,
}

/// A box of a rank's memory: its rank, its chunk, and where it goes.
pub(crate) type PeerBox<'a> = (usize, usize, &'a Transfer);

/// The events that copies of chunks wait for.
pub(crate) struct ChunkEvents<'a> {
    /// Recorded when the destination could be written.
    pub(crate) begun: &'a CudaEvent,
    /// The event of a rank and a chunk.
    pub(crate) ready: &'a dyn Fn(usize, usize) -> &'a CudaEvent,
}

/// Copies by engines, on a stream of their own.
struct Engines {
    copies: Vec<FarCopy>,
    /// Bytes of the destination that they write to.
    writes: usize,
    stream: Arc<CudaStream>,
    begun: CudaEvent,
    done: CudaEvent,
}

/// A copy from another device, and the bytes of the source that it reads.
struct FarCopy {
    source: usize,
    chunk: usize,
    reads: usize,
    copy: EngineCopy,
}

impl PeerGets {
    /// Prepares copies of elements of `width` real numbers, each from the source with this number.
    /// `far` lists the sources on other devices, which are read in the order of `parts`.
    pub(crate) fn new<T: GpuReal>(
        gpu: &Gpu,
        stream: &Arc<CudaStream>,
        width: usize,
        sources: usize,
        parts: &[PeerBox<'_>],
        far: &dyn Fn(usize) -> bool,
    ) -> Result<Self, GpuError> {
        let element = width * size_of::<T>();
        let (mut copies, mut near, mut engine_writes) = (Vec::new(), Vec::new(), 0);
        for &(source, chunk, transfer) in parts.iter().filter(|part| part.2.elements() > 0) {
            match Some(transfer).filter(|_| far(source)).and_then(|it| EngineCopy::new(it, element))
            {
                Some(copy) => {
                    copies.push(FarCopy { source, chunk, reads: transfer.reach() * element, copy });
                    engine_writes = engine_writes.max(transfer.span() * element);
                }
                None => near.push((source, transfer)),
            }
        }
        let moves: Vec<_> =
            near.iter().map(|(_, transfer)| Move { transfer, from: 0, to: 0 }).collect();
        let TiledCopies { all, unit, reaches: (_, writes), .. } =
            TiledCopies::new(element, &moves)?.into_one();
        let mut reaches = vec![0; sources];
        let mut offsets = Vec::with_capacity(all.items.len());
        for ((source, transfer), item) in near.iter().zip(&all.items) {
            reaches[*source] = reaches[*source].max(transfer.reach() * element);
            offsets.push((*source, item.from.offset));
        }
        // Reads are checked for each source.
        let reads = Reach { bytes: 0, align: 1 };
        let batch = Batch::new(stream, &all, (reads, writes))?;
        let kernel = gpu.kernel(Source::Transfer, &format!("transfer_{unit}"))?;
        let (unit, sources, items) = (unit as u64, RankAddresses::new(reaches), all.items);
        let engines = if copies.is_empty() {
            None
        } else {
            Some(Engines {
                copies,
                writes: engine_writes,
                stream: gpu.new_stream()?,
                begun: CudaEvent::new(gpu.context())?,
                done: CudaEvent::new(gpu.context())?,
            })
        };
        Ok(Self { kernel, batch, items, offsets, unit, sources, engines })
    }

    pub(crate) fn memory(&self) -> usize {
        self.batch.memory()
    }

    /// Queues the copies. Copies by engines come after `chunks`, or else after the stream's work.
    pub(crate) fn run<'v, T>(
        &mut self,
        stream: &Arc<CudaStream>,
        source: &dyn Fn(usize) -> RankMemory<'v>,
        dst: &mut DeviceMemory<T>,
        chunks: Option<&ChunkEvents<'_>>,
    ) -> Result<(), GpuError> {
        let Self { batch, items, offsets, unit, sources, engines, .. } = self;
        sources.follow(source, |bases| {
            for (item, (source, offset)) in items.iter_mut().zip(&*offsets) {
                item.from.offset = bases[*source] / *unit + offset;
            }
            batch.update(stream, items)
        })?;
        let begun = engines.as_ref().map(|it| it.begin(stream, source, dst, chunks));
        // SAFETY: the boxes are inside the sources, which work queued now may read.
        let copied = unsafe { run_peer_get(stream, &self.kernel, &self.batch, dst) };
        match (engines, begun) {
            (Some(engines), Some(begun)) => engines.end(stream, begun).and(copied),
            _ => copied,
        }
    }
}

impl Engines {
    /// Queues the copies.
    fn begin<'v, T>(
        &self,
        stream: &Arc<CudaStream>,
        source: &dyn Fn(usize) -> RankMemory<'v>,
        dst: &mut DeviceMemory<T>,
        chunks: Option<&ChunkEvents<'_>>,
    ) -> Result<(), GpuError> {
        GpuError::at_least("the destination", dst.num_bytes(), self.writes)?;
        let (to, _writes) = dst.device_ptr_mut(stream);
        match chunks {
            Some(chunks) => chunks.begun.hold(&self.stream)?,
            None => {
                self.begun.record(stream)?;
                self.begun.hold(&self.stream)?;
            }
        }
        self.copies.iter().try_for_each(|FarCopy { source: rank, chunk, reads, copy }| {
            let RankMemory { at, bytes, .. } = source(*rank);
            GpuError::at_least("the memory of a rank", bytes, *reads)?;
            if let Some(chunks) = chunks {
                (chunks.ready)(*rank, *chunk).hold(&self.stream)?;
            }
            // SAFETY: the box is inside the source, which work queued now may read, and inside the
            // destination.
            unsafe { queue(&self.stream, copy, at, to) }
        })
    }

    /// Makes the stream wait for the copies. If that fails, the host waits, because for the other
    /// ranks this rank has read their memory when its stream gets there.
    fn end(&self, stream: &CudaStream, begun: Result<(), GpuError>) -> Result<(), GpuError> {
        let held = self.done.record(&self.stream).and_then(|()| self.done.hold(stream));
        if held.is_err() {
            let _ = self.stream.synchronize();
        }
        begun.and(held)
    }
}

/// Queues a copy between addresses.
///
/// # Safety
/// The boxes are in memory that may be read, and written, until the copy is done.
unsafe fn queue(
    stream: &CudaStream,
    copy: &EngineCopy,
    src: CUdeviceptr,
    dst: CUdeviceptr,
) -> Result<(), GpuError> {
    let tried = tried("copying from another device");
    stream.context().bind_to_thread().map_err(&tried)?;
    let EngineCopy { row, rows, planes, sides: [from, to], calls } = copy;
    for [first, there] in calls {
        let device = sys::CUmemorytype::CU_MEMORYTYPE_DEVICE;
        let arguments = CUDA_MEMCPY3D {
            srcXInBytes: 0,
            srcY: 0,
            srcZ: 0,
            srcLOD: 0,
            srcMemoryType: device,
            srcHost: std::ptr::null(),
            srcDevice: src + *first as u64,
            srcArray: std::ptr::null_mut(),
            reserved0: std::ptr::null_mut(),
            srcPitch: from.pitch,
            srcHeight: from.height,
            dstXInBytes: 0,
            dstY: 0,
            dstZ: 0,
            dstLOD: 0,
            dstMemoryType: device,
            dstHost: std::ptr::null_mut(),
            dstDevice: dst + *there as u64,
            dstArray: std::ptr::null_mut(),
            reserved1: std::ptr::null_mut(),
            dstPitch: to.pitch,
            dstHeight: to.height,
            WidthInBytes: *row,
            Height: *rows,
            Depth: *planes,
        };
        // SAFETY: the caller vouches for the memory; the context is current.
        unsafe { sys::cuMemcpy3DAsync_v2(&arguments, stream.cu_stream()) }
            .result()
            .map_err(&tried)?;
    }
    Ok(())
}
