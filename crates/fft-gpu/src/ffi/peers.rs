//! Which ranks reach each other's device memory, and how they access it.

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use cudarc::driver::{CudaContext, result, sys};
use fft_core::{Comm, DeviceLink, Error, agree};

use super::block::Block;
use super::event::CudaEvent;
use super::rank_exports::{ExportHandles, MappedBlock, Peer, RankExports, block_handle};
use crate::base::{Gpu, GpuError};

/// The first message of a rank to the others.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Hello {
    /// The process: its id, and an address in it.
    process: [u64; 2],
    context: u64,
    device: [u8; 16],
    number: u64,
    /// Whether the handles of a block and an event, to try, follow.
    exports: u64,
    block: [u8; 64],
    event: [u8; 64],
}

/// The links, indexed by the byte that ranks exchange.
const LINKS: [DeviceLink; 4] =
    [DeviceLink::Apart, DeviceLink::Reached, DeviceLink::Joined, DeviceLink::SameDevice];

pub(crate) struct Peers {
    rank: usize,
    /// The links between all pairs of ranks, row by row.
    pub(crate) links: Vec<DeviceLink>,
    /// Whether each rank is a thread of this process.
    same: Vec<bool>,
    /// Whether every rank reaches every other.
    pub(crate) all: bool,
    /// Whether the ranks that are reached can access any memory of each other.
    pub(crate) exposes_all: bool,
}

impl Peers {
    /// As if no rank reached another.
    pub(crate) fn apart(rank: usize, size: usize) -> Self {
        let hosts: Vec<_> = (0..size).collect();
        let links = DeviceLink::on_hosts(&hosts);
        let same = (0..size).map(|peer| peer == rank).collect();
        Self { rank, links, same, all: size == 1, exposes_all: true }
    }

    fn link(&self, peer: usize) -> DeviceLink {
        self.links[self.rank * self.same.len() + peer]
    }

    pub(crate) fn reached(&self, rank: usize) -> bool {
        self.link(rank) != DeviceLink::Apart
    }

    /// Whether a rank's memory is on this rank's device.
    pub(crate) fn same_device(&self, rank: usize) -> bool {
        self.link(rank) == DeviceLink::SameDevice
    }

    /// Whether ranks of other processes are reached.
    pub(crate) fn foreign(&self) -> bool {
        (0..self.same.len()).any(|peer| self.reached(peer) && !self.same[peer])
    }

    /// The exports of all ranks that are reached, this one included. Collective.
    pub(crate) fn share(
        &self,
        gpu: &Gpu,
        comm: &dyn Comm,
        mine: &Arc<RankExports>,
    ) -> Result<Vec<Option<Peer>>, Error> {
        let handles = ExportHandles::new(mine, self.foreign());
        exchange_handles(comm, mine, handles, |peer, handles: &ExportHandles| {
            match (self.reached(peer), self.same[peer]) {
                (false, _) => Ok(None),
                // SAFETY: that rank holds its exports until all have agreed, or forever.
                (true, true) => Ok(Some(unsafe { handles.same() })),
                (true, false) => handles.map(gpu.context()).map(Some),
            }
        })
    }

    /// Exposes a block to the ranks that reach this one, and maps the blocks of other processes.
    /// Collective.
    pub(crate) fn map_blocks(
        &self,
        gpu: &Gpu,
        comm: &dyn Comm,
        mine: &Arc<Block>,
    ) -> Result<Vec<Option<MappedBlock>>, Error> {
        let handle = if self.foreign() { block_handle(mine) } else { Ok([0; 64]) };
        let handle = handle.map(|block| BlockHandle { bytes: mine.bytes() as u64, block });
        exchange_handles(comm, mine, handle, |peer, handle: &BlockHandle| {
            let foreign = self.reached(peer) && !self.same[peer];
            let open = || MappedBlock::open(gpu.context(), handle.block, handle.bytes as usize);
            foreign.then(open).transpose()
        })
    }
}

/// A block, for other processes.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct BlockHandle {
    bytes: u64,
    block: [u8; 64],
}

/// Gathers the ranks' handles and maps each. Collective.
fn exchange_handles<K, H: Pod, M>(
    comm: &dyn Comm,
    mine: &Arc<K>,
    handles: Result<H, GpuError>,
    map: impl Fn(usize, &H) -> Result<Option<M>, GpuError>,
) -> Result<Vec<Option<M>>, Error> {
    let rank = comm.rank();
    let handles = agree(comm, handles.map_err(|why| why.on(rank)))?;
    let mut all = vec![H::zeroed(); comm.size()];
    comm.allgather(bytemuck::bytes_of(&handles), bytemuck::cast_slice_mut(&mut all))?;
    let maps = all.iter().enumerate().map(|(peer, handles)| map(peer, handles));
    let maps = maps.collect::<Result<Vec<_>, GpuError>>();
    let agreed = agree(comm, maps.map_err(|why| why.on(rank)));
    if agreed.is_err() {
        std::mem::forget(mine.clone());
    }
    agreed
}

fn this_process() -> [u64; 2] {
    static ADDRESS: u8 = 0;
    [u64::from(std::process::id()), std::ptr::from_ref(&ADDRESS).addr() as u64]
}

/// Whether this process can access memory of a device of another of its threads.
fn enable(gpu: &Gpu, hello: &Hello) -> bool {
    let (own, mut can) = (gpu.context(), 0);
    if own.bind_to_thread().is_err() {
        return false;
    }
    // SAFETY: the context belongs to another rank of this process, which waits for this one. The
    // call writes one number.
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

/// The UUID of a device; zeros if the driver reports none.
pub(crate) fn identity(context: &CudaContext) -> [u8; 16] {
    context.uuid().map(|uuid| uuid.bytes.map(|byte| byte as u8)).unwrap_or_default()
}

/// Whether the device of this UUID is the context's, or joined to it by links such as NVLink. Such
/// links support atomic operations, which PCI Express does not.
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
    let atomics = sys::CUdevice_P2PAttribute::CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED;
    let mut can = 0;
    // SAFETY: both are devices of this process; the call writes one number.
    let asked =
        unsafe { sys::cuDeviceGetP2PAttribute(&mut can, atomics, context.cu_device(), device) };
    asked.result().is_ok() && can != 0
}

/// Determines by trials which ranks reach each other. Collective.
pub(crate) fn connect(gpu: &Gpu, comm: &dyn Comm) -> Result<Peers, Error> {
    let (rank, size) = (comm.rank(), comm.size());
    let context = gpu.context();
    let example = || -> Result<_, GpuError> {
        let (block, event) = (Block::new(context, 1)?, CudaEvent::interprocess(context)?);
        let handles = (block_handle(&block)?, event.handle()?);
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
        (hello.exports, hello.block, hello.event) = (1, *block, *event);
    }
    let mut all = vec![Hello::zeroed(); size];
    comm.allgather(bytemuck::bytes_of(&hello), bytemuck::cast_slice_mut(&mut all))?;
    let on_host = |peer: &usize| comm.host(*peer) == comm.host(rank);
    let link = |(peer, other): (usize, &Hello)| {
        if on_host(&peer) { link(gpu, &hello, other) as u8 } else { DeviceLink::Apart as u8 }
    };
    let row: Vec<u8> = all.iter().enumerate().map(link).collect();
    let mut rows = vec![0; size * size];
    // All ranks have tried when this returns, so the samples can be dropped.
    comm.allgather(&row, &mut rows)?;
    // If two ranks disagree, the slower link is used.
    let pair = |number: usize| {
        let (a, b) = (number / size, number % size);
        LINKS[rows[a * size + b].min(rows[b * size + a]) as usize]
    };
    let links: Vec<_> = (0..size * size).map(pair).collect();
    let same: Vec<_> = all.iter().map(|other| other.process == hello.process).collect();
    // Other devices do not reach memory of pools.
    let alike = |other: &Hello| other.process == hello.process && other.device == hello.device;
    let exposes_all = (0..size).filter(on_host).all(|peer| alike(&all[peer]));
    let all = !links.contains(&DeviceLink::Apart);
    Ok(Peers { rank, links, same, all, exposes_all })
}

/// The link to another rank of this host.
fn link(gpu: &Gpu, mine: &Hello, other: &Hello) -> DeviceLink {
    let (context, same_device) = (gpu.context(), other.device == mine.device);
    let reached = if other.process == mine.process {
        same_device || enable(gpu, other)
    } else {
        mine.exports == 1 && other.exports == 1 && maps(context, other)
    };
    match reached {
        true if same_device => DeviceLink::SameDevice,
        true if joined(context, other.device) => DeviceLink::Joined,
        true => DeviceLink::Reached,
        false => DeviceLink::Apart,
    }
}

/// Whether another process' examples can be opened.
fn maps(context: &Arc<CudaContext>, other: &Hello) -> bool {
    MappedBlock::open(context, other.block, 1).is_ok()
        && CudaEvent::open(context, other.event).is_ok()
}
