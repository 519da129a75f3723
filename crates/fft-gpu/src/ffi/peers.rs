//! Other ranks' memory on devices: threads of this process share theirs, other processes of the host map it (CUDA IPC).

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use cudarc::driver::sys::{self, CUdeviceptr};
use cudarc::driver::{CudaContext, result};
use fft_core::{Comm, Error, PeerMemory, agree};

use super::event::Event;
use super::memory::{Block, Slot};
use super::peer_get::Place;
use super::tried;
use crate::base::{Gpu, GpuError};

/// What a rank lets others reach: its two work buffers and its window, and how far it is.
pub(crate) struct Estate {
    pub(crate) blocks: [Arc<Block>; BLOCKS],
    /// Recorded when messages are made, what others read is there, and what they are to write is no longer used.
    pub(crate) made: Event,
    /// Recorded when what others show, and messages, have been read, and what they show to be written has been.
    pub(crate) read: Event,
}

/// So many blocks, of which the window is the last.
pub(crate) const BLOCKS: usize = 3;
pub(crate) const WINDOW: usize = BLOCKS - 1;

impl Estate {
    /// For peers of this process, or of others.
    pub(crate) fn new(gpu: &Gpu, bytes: [usize; 3], foreign: bool) -> Result<Self, GpuError> {
        let block = |bytes| Ok::<_, GpuError>(Arc::new(Block::new(gpu.context(), bytes)?));
        let [a, b, window] = bytes;
        let blocks = [block(a)?, block(b)?, block(window)?];
        let event = || match foreign {
            true => Event::shown(gpu.context()),
            false => Event::new(gpu.context()),
        };
        let [made, read] = [event()?, event()?];
        Ok(Self { blocks, made, read })
    }
}

/// A rank that can be reached.
#[derive(Clone)]
pub(crate) enum Peer {
    Same(Arc<Estate>),
    Mapped(Arc<Mapped>),
}

/// Another process' block, mapped here.
pub(crate) struct Map {
    at: CUdeviceptr,
    bytes: usize,
    context: Arc<CudaContext>,
}

impl Map {
    /// Where it is here, and bytes.
    pub(super) fn place(&self) -> (u64, usize) {
        (self.at, self.bytes)
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        if self.context.bind_to_thread().is_ok() {
            // SAFETY: it was opened when this was made and is closed once, with what uses it held by what holds this. The driver
            // waits for what is queued.
            let _ = unsafe { sys::cuIpcCloseMemHandle(self.at) };
        }
    }
}

/// Another process' estate.
pub(crate) struct Mapped {
    blocks: [Map; 3],
    made: Event,
    read: Event,
}

impl Peer {
    pub(crate) fn made(&self) -> &Event {
        match self {
            Self::Same(estate) => &estate.made,
            Self::Mapped(mapped) => &mapped.made,
        }
    }

    pub(crate) fn read(&self) -> &Event {
        match self {
            Self::Same(estate) => &estate.read,
            Self::Mapped(mapped) => &mapped.read,
        }
    }

    /// A part of its window.
    ///
    /// # Errors
    /// [`GpuError::Short`].
    pub(crate) fn slot(&self, first: usize, bytes: usize) -> Result<Slot, GpuError> {
        let (expected, found) = (
            first.saturating_add(bytes),
            match self {
                Self::Same(estate) => estate.blocks[WINDOW].bytes(),
                Self::Mapped(mapped) => mapped.blocks[WINDOW].bytes,
            },
        );
        if found < expected {
            return Err(GpuError::Short { what: "the window of a rank", found, expected });
        }
        Ok(match self {
            Self::Same(estate) => Slot::of_block(&estate.blocks[WINDOW], first..first + bytes),
            Self::Mapped(mapped) => {
                let (at, all) = mapped.blocks[WINDOW].place();
                Slot::new(at, all, first..first + bytes, mapped.clone())
            }
        })
    }

    /// What it shows in a visit, to be read or to be written: a block of its estate or of the shared_arrays by number, or any memory of this process.
    pub(crate) fn shown<'v>(
        &'v self,
        _visit: &'v dyn PeerMemory,
        block: usize,
        (at, bytes): (u64, usize),
        lent: Option<&'v Map>,
    ) -> Place<'v> {
        let (at, bytes) = match self {
            Self::Same(estate) if block < WINDOW => {
                (estate.blocks[block].address(), estate.blocks[block].bytes())
            }
            Self::Same(_) => (at, bytes),
            Self::Mapped(mapped) if block < WINDOW => mapped.blocks[block].place(),
            // Nothing is never shown: routes keep it in the estate, and callers' arrays are of the shared_arrays.
            Self::Mapped(_) => lent.map_or((0, 0), Map::place),
        };
        // SAFETY: the peer shows it for the visit, and when that ends makes its stream wait for the event that this rank records
        // behind its last access before it lets anyone write there or reads what was written. What is written is divided: of the peer's
        // elements each rank writes those that it makes, as the layouts say.
        unsafe { Place::of(at, bytes) }
    }
}

/// What ranks tell each other first.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Hello {
    /// The process: its number, and where something of it is.
    process: [u64; 2],
    context: u64,
    device: [u8; 16],
    number: u64,
    /// Whether memory and events can be shown to other processes, with an example of each.
    shows: u64,
    block: [[u8; 32]; 2],
    event: [[u8; 32]; 2],
}

/// What a rank has found out of another.
const REACHED: u8 = 1;
const BESIDE: u8 = 2;
const JOINED: u8 = 4;

/// Who reaches whom.
pub(crate) struct Peers {
    /// For each rank, whether it can be reached, and whether as a thread of this process.
    reached: Vec<bool>,
    same: Vec<bool>,
    /// Whether its device is this rank's, and whether it is at least joined to that.
    beside: Vec<bool>,
    joined: Vec<bool>,
    /// Whether every rank reaches every other.
    pub(crate) all: bool,
    /// Whether those that are reached can see any memory of each other.
    pub(crate) exposes_all: bool,
}

impl Peers {
    pub(crate) fn reached(&self, rank: usize) -> bool {
        self.reached[rank]
    }

    /// Whether its memory is read where it is, box by box: that of this rank's device; and, where transforms fetch what they read, of
    /// one that is [`joined`] to it. The other way around it is the same.
    ///
    /// Between two H200, 512³ complex numbers in double precision took 0.75 of the time of messages so; 0.9 to 1.5 of it other complex data, 1.5 where
    /// elements are moved one by one.
    pub(crate) fn beside(&self, rank: usize, fetches: bool) -> bool {
        if fetches { self.joined[rank] } else { self.beside[rank] }
    }

    /// As if no rank reached another.
    pub(crate) fn apart(rank: usize, size: usize) -> Self {
        let only = || (0..size).map(|peer| peer == rank).collect::<Vec<_>>();
        let [reached, same, beside, joined] = [only(), only(), only(), only()];
        Self { reached, same, beside, joined, all: size == 1, exposes_all: true }
    }

    /// Whether some that are reached are of other processes.
    pub(crate) fn foreign(&self) -> bool {
        self.reached.iter().zip(&self.same).any(|(reached, same)| *reached && !*same)
    }
}

fn this_process() -> [u64; 2] {
    static PLACE: u8 = 0;
    [u64::from(std::process::id()), std::ptr::from_ref(&PLACE).addr() as u64]
}

fn halves(whole: [u8; 64]) -> [[u8; 32]; 2] {
    let (mut one, mut other) = ([0; 32], [0; 32]);
    one.copy_from_slice(&whole[..32]);
    other.copy_from_slice(&whole[32..]);
    [one, other]
}

fn whole(halves: [[u8; 32]; 2]) -> [u8; 64] {
    let mut whole = [0; 64];
    whole[..32].copy_from_slice(&halves[0]);
    whole[32..].copy_from_slice(&halves[1]);
    whole
}

/// What another process maps a block by.
fn handle(block: &Block) -> Result<[u8; 64], GpuError> {
    let mut handle = sys::CUipcMemHandle { reserved: [0; 64] };
    // SAFETY: the block lives and is no memory of a pool; the call writes one handle.
    unsafe { sys::cuIpcGetMemHandle(&mut handle, block.address()) }
        .result()
        .map_err(tried("showing memory to other processes"))?;
    Ok(handle.reserved.map(|byte| byte as u8))
}

/// Another process' block.
fn open(context: &CudaContext, handle: [u8; 64]) -> Result<CUdeviceptr, GpuError> {
    let tried = tried("mapping memory of another process");
    context.bind_to_thread().map_err(&tried)?;
    let handle = sys::CUipcMemHandle { reserved: handle.map(|byte| byte as _) };
    let flags = sys::CUipcMem_flags::CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS as u32;
    let mut at = 0;
    // SAFETY: the context is current, and the call writes one address; a handle that is none is refused.
    unsafe { sys::cuIpcOpenMemHandle_v2(&mut at, handle, flags) }.result().map_err(&tried)?;
    Ok(at)
}

/// Whether memory of another device can be reached from this one, in one process.
fn enabled(gpu: &Gpu, hello: &Hello) -> bool {
    let (own, mut can) = (gpu.context(), 0);
    if own.bind_to_thread().is_err() {
        return false;
    }
    // SAFETY: the context is that of another rank of this process, which waits for this one. The call writes one number.
    unsafe {
        let asked = sys::cuDeviceCanAccessPeer(&mut can, own.cu_device(), hello.number as _);
        if asked.result().is_err() || can == 0 {
            return false;
        }
        let context = std::ptr::with_exposed_provenance_mut(hello.context as usize);
        let enabled = sys::cuCtxEnablePeerAccess(context, 0);
        enabled == sys::CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED || enabled.result().is_ok()
    }
}

/// The identity of a device; zeros where the driver tells none.
pub(crate) fn identity(context: &CudaContext) -> [u8; 16] {
    context.uuid().map(|uuid| uuid.bytes.map(|byte| byte as u8)).unwrap_or_default()
}

/// Whether the device of this identity is the context's own, or one that this process sees and that is joined to it by links that are made for
/// kernels to read through, as NVLink is: those do sums in each other's memory, which PCI Express does not.
pub(crate) fn joined(context: &CudaContext, other: [u8; 16]) -> bool {
    if other == identity(context) {
        return true;
    }
    let count = result::device::get_count().unwrap_or(0);
    let mut devices = (0..count).filter_map(|number| result::device::get(number).ok());
    let bytes = |uuid: sys::CUuuid| uuid.bytes.map(|byte| byte as u8);
    let is = |device: &sys::CUdevice| {
        result::device::get_uuid(*device).is_ok_and(|uuid| bytes(uuid) == other)
    };
    let Some(device) = devices.find(is) else { return false };
    let sums = sys::CUdevice_P2PAttribute::CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED;
    let mut can = 0;
    // SAFETY: both are devices of this process; the call writes one number.
    let asked =
        unsafe { sys::cuDeviceGetP2PAttribute(&mut can, sums, context.cu_device(), device) };
    asked.result().is_ok() && can != 0
}

/// Finds out who reaches whom, by trying. Collective.
///
/// # Errors
/// Those of the communicator.
pub(crate) fn connect(gpu: &Gpu, comm: &dyn Comm) -> Result<Peers, Error> {
    let (rank, size) = (comm.rank(), comm.size());
    let context = gpu.context();
    let example = || -> Result<_, GpuError> {
        let (block, event) = (Block::new(context, 1)?, Event::shown(context)?);
        let handles = (handle(&block)?, event.handle()?);
        Ok((block, event, handles))
    };
    let example = (size > 1).then(example).and_then(Result::ok);
    let mut hello = Hello {
        process: this_process(),
        context: context.cu_ctx().expose_provenance() as u64,
        device: identity(context),
        number: context.cu_device() as u64,
        ..Hello::zeroed()
    };
    if let Some((_, _, (block, event))) = &example {
        (hello.shows, hello.block, hello.event) = (1, halves(*block), halves(*event));
    }
    let mut all = vec![Hello::zeroed(); size];
    comm.allgather(bytemuck::bytes_of(&hello), bytemuck::cast_slice_mut(&mut all))?;
    let near = |peer: &usize| comm.host(*peer) == comm.host(rank);
    let tried = |(peer, other): (usize, &Hello)| {
        near(&peer)
            && match other.process == hello.process {
                true => other.device == hello.device || enabled(gpu, other),
                false => hello.shows == 1 && other.shows == 1 && maps(context, other),
            }
    };
    let told = |pair: (usize, &Hello)| match tried(pair) {
        true if pair.1.device == hello.device => REACHED | BESIDE | JOINED,
        true if joined(context, pair.1.device) => REACHED | JOINED,
        true => REACHED,
        false => 0,
    };
    let row: Vec<u8> = all.iter().enumerate().map(told).collect();
    let mut rows = vec![0; size * size];
    // All have tried when this is over: the examples may go.
    comm.allgather(&row, &mut rows)?;
    let both = |a: usize, b: usize, what: u8| rows[a * size + b] & rows[b * size + a] & what != 0;
    let [reached, beside, joined] = [REACHED, BESIDE, JOINED]
        .map(|what| (0..size).map(|peer| both(rank, peer, what)).collect());
    let same: Vec<_> = all.iter().map(|other| other.process == hello.process).collect();
    // Memory of pools is not reached from other devices.
    let alike = |other: &Hello| other.process == hello.process && other.device == hello.device;
    let exposes_all = (0..size).filter(near).all(|peer| alike(&all[peer]));
    let all = (0..size).all(|a| (0..size).all(|b| both(a, b, REACHED)));
    Ok(Peers { reached, same, beside, joined, all, exposes_all })
}

/// Whether another process' examples can be opened.
fn maps(context: &Arc<CudaContext>, other: &Hello) -> bool {
    let Ok(at) = open(context, whole(other.block)) else { return false };
    let event = Event::open(context, whole(other.event));
    // SAFETY: it has just been opened, and nothing uses it.
    let closed = unsafe { sys::cuIpcCloseMemHandle(at) };
    event.is_ok() && closed.result().is_ok()
}

/// What ranks tell each other of their estates.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Card {
    estate: u64,
    bytes: [u64; 3],
    blocks: [[[u8; 32]; 2]; 3],
    events: [[[u8; 32]; 2]; 2],
}

impl Peers {
    /// Shows this rank's estate to those that reach it, and theirs to it; itself included. Collective.
    ///
    /// # Errors
    /// On every rank, when one cannot map another's memory.
    pub(crate) fn share(
        &self,
        gpu: &Gpu,
        comm: &dyn Comm,
        mine: &Arc<Estate>,
    ) -> Result<Vec<Option<Peer>>, Error> {
        let (rank, size) = (comm.rank(), comm.size());
        let mut card = Card {
            estate: Arc::as_ptr(mine).expose_provenance() as u64,
            bytes: mine.blocks.each_ref().map(|block| block.bytes() as u64),
            ..Card::zeroed()
        };
        let shown = if self.foreign() { show(mine, &mut card) } else { Ok(()) };
        agree(comm, shown.map_err(|why| why.on(rank)))?;
        let mut cards = vec![Card::zeroed(); size];
        comm.allgather(bytemuck::bytes_of(&card), bytemuck::cast_slice_mut(&mut cards))?;
        let peer = |(peer, card): (usize, &Card)| match (self.reached[peer], self.same[peer]) {
            (false, _) => Ok(None),
            (true, true) => {
                let estate: *const Estate = std::ptr::with_exposed_provenance(card.estate as usize);
                // SAFETY: a rank of this process holds the estate until all ranks have met below, or for ever.
                let estate = unsafe {
                    Arc::increment_strong_count(estate);
                    Arc::from_raw(estate)
                };
                Ok(Some(Peer::Same(estate)))
            }
            (true, false) => map(gpu.context(), card).map(|mapped| Some(Peer::Mapped(mapped))),
        };
        let peers: Result<Vec<_>, GpuError> = cards.iter().enumerate().map(peer).collect();
        let met = agree(comm, peers.map_err(|why| why.on(rank)));
        if met.is_err() {
            // Somebody may have gone before others took what they were shown.
            std::mem::forget(mine.clone());
        }
        met
    }
}

fn show(estate: &Estate, card: &mut Card) -> Result<(), GpuError> {
    for (place, block) in card.blocks.iter_mut().zip(&estate.blocks) {
        *place = halves(handle(block)?);
    }
    card.events = [halves(estate.made.handle()?), halves(estate.read.handle()?)];
    Ok(())
}

fn map(context: &Arc<CudaContext>, card: &Card) -> Result<Arc<Mapped>, GpuError> {
    let [made, read] = card.events.map(|event| Event::open(context, whole(event)));
    let block = |which: usize| -> Result<Map, GpuError> {
        let (at, bytes) = (open(context, whole(card.blocks[which]))?, card.bytes[which] as usize);
        Ok(Map { at, bytes, context: context.clone() })
    };
    let blocks = [block(0)?, block(1)?, block(WINDOW)?];
    Ok(Arc::new(Mapped { blocks, made: made?, read: read? }))
}

/// What ranks tell each other of one block.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Note {
    bytes: u64,
    block: [[u8; 32]; 2],
}

impl Peers {
    /// Shows a block of this rank to those that reach it, and maps those of other processes. Collective.
    ///
    /// # Errors
    /// On every rank, when one cannot map another's memory.
    pub(crate) fn lend(
        &self,
        gpu: &Gpu,
        comm: &dyn Comm,
        mine: &Arc<Block>,
    ) -> Result<Vec<Option<Map>>, Error> {
        let (rank, context) = (comm.rank(), gpu.context());
        let shown = if self.foreign() { handle(mine) } else { Ok([0; 64]) };
        let shown = agree(comm, shown.map_err(|why| why.on(rank)))?;
        let note = Note { bytes: mine.bytes() as u64, block: halves(shown) };
        let mut notes = vec![Note::zeroed(); comm.size()];
        comm.allgather(bytemuck::bytes_of(&note), bytemuck::cast_slice_mut(&mut notes))?;
        let one = |(peer, note): (usize, &Note)| -> Result<Option<Map>, GpuError> {
            let foreign = self.reached[peer] && !self.same[peer];
            let at = foreign.then(|| open(context, whole(note.block))).transpose()?;
            let bytes = note.bytes as usize;
            Ok(at.map(|at| Map { at, bytes, context: context.clone() }))
        };
        let maps: Result<Vec<_>, GpuError> = notes.iter().enumerate().map(one).collect();
        let met = agree(comm, maps.map_err(|why| why.on(rank)));
        if met.is_err() {
            // Others may still have it mapped.
            std::mem::forget(mine.clone());
        }
        met
    }
}
