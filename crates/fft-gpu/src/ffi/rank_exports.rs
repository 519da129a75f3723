//! The memory and events of a rank that other ranks of its host access.
//!
//! Threads of a process share them; other processes map them by CUDA IPC.

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use cudarc::driver::CudaContext;
use cudarc::driver::sys::{self, CUdeviceptr};
use fft_core::PeerMemory;

use super::block::Block;
use super::event::CudaEvent;
use super::rank_memory::RankMemory;
use super::slots::DeviceSlot;
use crate::base::{Gpu, GpuError, tried};

/// Blocks of a rank: two work buffers, and the window of messages last.
pub(crate) const BLOCKS: usize = 3;
const WINDOW: usize = BLOCKS - 1;
/// The most chunks of data that is copied while later chunks are transformed.
pub(crate) const MOST_CHUNKS: usize = 16;

pub(crate) struct RankExports {
    pub(crate) blocks: [Arc<Block>; BLOCKS],
    /// Recorded when messages and exposed data are ready, and exposed memory may be written.
    pub(crate) ready: CudaEvent,
    /// Recorded when this rank has read messages and accessed what others expose.
    pub(crate) accessed: CudaEvent,
    /// Recorded after the transforms of each chunk, if an exchange has chunks.
    pub(crate) chunks: Vec<CudaEvent>,
}

impl RankExports {
    /// For peers of this process, or also of others. All ranks have events for the same number of
    /// chunks.
    pub(crate) fn new(
        gpu: &Gpu,
        bytes: [usize; BLOCKS],
        chunks: usize,
        foreign: bool,
    ) -> Result<Self, GpuError> {
        let block = |bytes| Ok::<_, GpuError>(Arc::new(Block::new(gpu.context(), bytes)?));
        let [a, b, window] = bytes;
        let blocks = [block(a)?, block(b)?, block(window)?];
        let event = || {
            if foreign {
                CudaEvent::interprocess(gpu.context())
            } else {
                CudaEvent::new(gpu.context())
            }
        };
        let [ready, accessed] = [event()?, event()?];
        let chunks = (0..chunks.min(MOST_CHUNKS)).map(|_| event()).collect::<Result<_, _>>()?;
        Ok(Self { blocks, ready, accessed, chunks })
    }
}

/// Another process' block, mapped here.
pub(crate) struct MappedBlock {
    at: CUdeviceptr,
    bytes: usize,
    context: Arc<CudaContext>,
}

impl MappedBlock {
    pub(super) fn open(
        context: &Arc<CudaContext>,
        handle: [u8; 64],
        bytes: usize,
    ) -> Result<Self, GpuError> {
        let tried = tried("mapping memory of another process");
        context.bind_to_thread().map_err(&tried)?;
        let handle = sys::CUipcMemHandle { reserved: handle.map(|byte| byte as _) };
        let flags = sys::CUipcMem_flags::CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS as u32;
        let mut at = 0;
        // SAFETY: the context is current, and the call writes one address; it refuses a bad handle.
        unsafe { sys::cuIpcOpenMemHandle_v2(&mut at, handle, flags) }.result().map_err(&tried)?;
        Ok(Self { at, bytes, context: context.clone() })
    }

    /// Its address here, and bytes.
    fn place(&self) -> (u64, usize) {
        (self.at, self.bytes)
    }
}

impl Drop for MappedBlock {
    fn drop(&mut self) {
        if self.context.bind_to_thread().is_ok() {
            // SAFETY: it was opened by `open` and is closed once. Its users hold it, and the driver
            // waits for queued work.
            let _ = unsafe { sys::cuIpcCloseMemHandle(self.at) };
        }
    }
}

/// Another process' exports, mapped here.
pub(crate) struct MappedExports {
    blocks: [MappedBlock; BLOCKS],
    ready: CudaEvent,
    accessed: CudaEvent,
    chunks: Vec<CudaEvent>,
}

/// The exports of a rank that is reached.
#[derive(Clone)]
pub(crate) enum Peer {
    Same(Arc<RankExports>),
    Mapped(Arc<MappedExports>),
}

impl Peer {
    pub(crate) fn ready(&self) -> &CudaEvent {
        match self {
            Self::Same(exports) => &exports.ready,
            Self::Mapped(mapped) => &mapped.ready,
        }
    }

    pub(crate) fn accessed(&self) -> &CudaEvent {
        match self {
            Self::Same(exports) => &exports.accessed,
            Self::Mapped(mapped) => &mapped.accessed,
        }
    }

    pub(crate) fn chunk(&self, number: usize) -> &CudaEvent {
        match self {
            Self::Same(exports) => &exports.chunks[number],
            Self::Mapped(mapped) => &mapped.chunks[number],
        }
    }

    /// A part of its window.
    pub(crate) fn slot(&self, first: usize, bytes: usize) -> Result<DeviceSlot, GpuError> {
        let (at, all) = self.block(WINDOW);
        GpuError::at_least("the window of a rank", all, first.saturating_add(bytes))?;
        let range = first..first + bytes;
        Ok(match self {
            Self::Same(exports) => DeviceSlot::of_block(&exports.blocks[WINDOW], range),
            Self::Mapped(mapped) => DeviceSlot::new(at, all, range, mapped.clone()),
        })
    }

    fn block(&self, number: usize) -> (u64, usize) {
        match self {
            Self::Same(exports) => {
                (exports.blocks[number].address(), exports.blocks[number].bytes())
            }
            Self::Mapped(mapped) => mapped.blocks[number].place(),
        }
    }

    /// The memory that it exposes during an epoch, for reads or for writes. That is a work buffer
    /// by number, a shared array that is `mapped` here, or for threads of this process any memory
    /// at an address.
    pub(crate) fn exposed<'v>(
        &'v self,
        _epoch: &'v dyn PeerMemory,
        block: usize,
        place: (u64, usize),
        mapped: Option<&'v MappedBlock>,
    ) -> RankMemory<'v> {
        let (at, bytes) = match self {
            _ if block < WINDOW => self.block(block),
            Self::Same(_) => place,
            // Other processes expose work buffers and shared arrays only.
            Self::Mapped(_) => mapped.map_or((0, 0), MappedBlock::place),
        };
        // SAFETY: the peer exposes it during the epoch. When that ends its stream waits for the
        // event after this rank's last access. Each written element has one writer.
        unsafe { RankMemory::of(at, bytes) }
    }
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct ExportHandles {
    exports: u64,
    bytes: [u64; BLOCKS],
    blocks: [[u8; 64]; BLOCKS],
    events: [[u8; 64]; 2],
    chunks: [[u8; 64]; MOST_CHUNKS],
    /// The number of chunks that have events.
    count: u64,
}

impl ExportHandles {
    /// For threads of this process, and if `foreign` for other processes.
    pub(super) fn new(mine: &Arc<RankExports>, foreign: bool) -> Result<Self, GpuError> {
        let mut handles = Self {
            exports: Arc::as_ptr(mine).expose_provenance() as u64,
            bytes: mine.blocks.each_ref().map(|block| block.bytes() as u64),
            count: mine.chunks.len() as u64,
            ..Self::zeroed()
        };
        if foreign {
            for (handle, block) in handles.blocks.iter_mut().zip(&mine.blocks) {
                *handle = block_handle(block)?;
            }
            handles.events = [mine.ready.handle()?, mine.accessed.handle()?];
            for (handle, event) in handles.chunks.iter_mut().zip(&mine.chunks) {
                *handle = event.handle()?;
            }
        }
        Ok(handles)
    }

    /// The exports of a thread of this process.
    ///
    /// # Safety
    /// The rank that made the handles holds its exports.
    pub(super) unsafe fn same(&self) -> Peer {
        let exports: *const RankExports = std::ptr::with_exposed_provenance(self.exports as usize);
        // SAFETY: the caller's.
        Peer::Same(unsafe {
            Arc::increment_strong_count(exports);
            Arc::from_raw(exports)
        })
    }

    /// Maps the exports of another process.
    pub(super) fn map(&self, context: &Arc<CudaContext>) -> Result<Peer, GpuError> {
        let [ready, accessed] = self.events.map(|event| CudaEvent::open(context, event));
        let block = |number: usize| {
            MappedBlock::open(context, self.blocks[number], self.bytes[number] as usize)
        };
        let blocks = [block(0)?, block(1)?, block(WINDOW)?];
        let chunks = self.chunks[..(self.count as usize).min(MOST_CHUNKS)].iter();
        let chunks =
            chunks.map(|event| CudaEvent::open(context, *event)).collect::<Result<_, _>>()?;
        let mapped = MappedExports { blocks, ready: ready?, accessed: accessed?, chunks };
        Ok(Peer::Mapped(Arc::new(mapped)))
    }
}

/// The handle that another process maps a block by.
pub(super) fn block_handle(block: &Block) -> Result<[u8; 64], GpuError> {
    let mut handle = sys::CUipcMemHandle { reserved: [0; 64] };
    // SAFETY: the block lives and is no memory of a pool; the call writes one handle.
    unsafe { sys::cuIpcGetMemHandle(&mut handle, block.address()) }
        .result()
        .map_err(tried("exporting memory to other processes"))?;
    Ok(handle.reserved.map(|byte| byte as u8))
}
