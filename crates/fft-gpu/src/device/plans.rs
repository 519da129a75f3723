//! The part of the device that plans call: connection, binding, memory, errors.

use std::sync::Arc;
use std::time::Instant;

use fft_core::{
    BindContext, Capabilities, Comm, Device, DeviceCapabilities, Energy, Error, Exchange,
    NodeMemory, Operations, Places, Recipe, Step, Transfer, WorkReals, agree, on_all_ranks,
    on_any_rank,
};

use super::binder::{Bound, bind};
use super::connections::Connections;
use super::cuda::Cuda;
use super::energy::Squares;
use super::op::CudaOp;
use super::peer_info::PeerInfo;
use super::trig::check_kinds;
use crate::abi::form::is_coded_by_host;
use crate::base::{GpuError, GpuReal, GpuTransport, tried};
use crate::ffi::{Block, DeviceMemory, Owned, Peers, RankExports, connect, device_buffer, links};

/// A plan's own memory on a device.
pub struct CudaWork<T> {
    pub(super) buffers: [Owned<T>; 2],
}

impl Cuda {
    /// The transport to the ranks that are hardest to reach. `by_host` is whether the host codes
    /// messages.
    fn transport_to<T: GpuReal>(
        &self,
        comm: &dyn Comm,
        recipe: &Recipe,
        wanted: GpuTransport,
        peers: &Peers,
        by_host: bool,
    ) -> Result<GpuTransport, Error> {
        if peers.all {
            return Ok(GpuTransport::PeerToPeer);
        }
        if wanted == GpuTransport::HostStaged || by_host {
            return Ok(GpuTransport::HostStaged);
        }
        let Some(device) = comm.device() else { return Ok(GpuTransport::HostStaged) };
        if !device.has_flights() && !recipe.steps().iter().all(goes_by_alltoallv::<T>) {
            return Ok(GpuTransport::HostStaged);
        }
        let like = Block::new(self.gpu.context(), 1).map_err(|why| why.on(self.rank));
        let like = device_buffer(&Arc::new(agree(comm, like)?), self.rank);
        Ok(if device.reaches(&like)? { GpuTransport::GpuDirect } else { GpuTransport::HostStaged })
    }
}

/// Whether a step, if it is a reshape, sends messages of fixed length by the collective.
fn goes_by_alltoallv<T: GpuReal>(step: &Step) -> bool {
    match step {
        Step::Reshape { wire, exchange } => {
            *exchange == Exchange::Alltoallv && wire.codec::<T>().fixed(1, 1).is_some()
        }
        _ => true,
    }
}

impl Cuda {
    /// Determines which ranks reach each other's memory. Collective.
    pub(super) fn connect_ranks(
        &mut self,
        comm: &dyn Comm,
        wanted: GpuTransport,
    ) -> Result<Option<Box<dyn NodeMemory>>, Error> {
        self.rank = comm.rank();
        let own = agree(comm, comm.dup())?;
        let size = comm.size();
        let (peers, mut node_memory) = match wanted {
            GpuTransport::PeerToPeer => {
                (connect(&self.gpu, comm)?, agree(comm, comm.node_memory())?)
            }
            _ => (Peers::apart(self.rank, size), None),
        };
        let info = node_memory.as_mut().map(|memory| PeerInfo::new(memory.as_mut(), size));
        let info = agree(comm, info.transpose())?;
        // A rank alone on its host need not synchronize.
        let facts = [links(), peers.exposes_all, info.is_none()];
        let [loads, exposes_all, are_alone] = on_all_ranks(comm, facts)?;
        let mut capabilities = DeviceCapabilities::new(size, peers.links.clone());
        (capabilities.loads, capabilities.stores) = (loads, loads);
        (capabilities.synchronizes, capabilities.exposes_all) = (!are_alone, exposes_all);
        self.connections = Some(Connections::new(own, peers, info, capabilities));
        Ok(node_memory)
    }
}

impl<T: GpuReal> Device<T> for Cuda {
    type Memory = DeviceMemory<T>;
    type Work = CudaWork<T>;
    type Op = CudaOp<T>;

    fn connect(
        &mut self,
        recipe: &Recipe,
        comm: &dyn Comm,
    ) -> Result<Option<Box<dyn NodeMemory>>, Error> {
        self.rank = comm.rank();
        check_kinds(recipe.problem())?;
        let lossy = |step: &Step| matches!(step, Step::Reshape { wire, .. } if wire.is_lossy());
        if recipe.steps().iter().any(lossy) {
            let squares = Squares::new::<T>(&self.gpu).map_err(|why| why.on(self.rank));
            self.squares = Some(agree(comm, squares)?);
        }
        let by_host =
            |step: &Step| matches!(step, Step::Reshape { wire, .. } if is_coded_by_host(*wire));
        let by_host = recipe.steps().iter().any(by_host);
        let wanted = match self.wanted {
            // The host codes encoded messages even between ranks that reach each other.
            GpuTransport::PeerToPeer if by_host && recipe.problem().hosts.is_empty() => {
                GpuTransport::HostStaged
            }
            wanted => wanted,
        };
        let node_memory = self.connect_ranks(comm, wanted)?;
        let peers = &self.connections().peers;
        self.taken = self.transport_to::<T>(comm, recipe, wanted, peers, by_host)?;
        Ok(node_memory)
    }

    fn bind(
        &mut self,
        recipe: &Recipe,
        context: BindContext<'_>,
    ) -> Result<Operations<CudaOp<T>>, Error> {
        let direction = context.direction;
        let before = (self.area_bytes, self.window_bytes, self.staging_bytes, self.chunks);
        loop {
            (self.area_bytes, self.window_bytes, self.staging_bytes, self.chunks) = before;
            let capabilities = self.capabilities().clone();
            let program = recipe.lower(direction, Capabilities::of_devices(&capabilities));
            let Bound { ops, refused } = agree(context.comm, bind(self, &program))?;
            let refused = on_any_rank(context.comm, [refused.loads, refused.stores])?;
            let capabilities = self.capabilities_mut();
            match refused {
                [false, false] => {
                    let exposes_all = self.sees_all(recipe.problem());
                    let needs = program.memory_needs(context.comm.rank(), exposes_all);
                    return Ok(Operations { ops, needs, texts: program.texts() });
                }
                [false, true] => capabilities.stores = false,
                _ => (capabilities.loads, capabilities.stores) = (false, false),
            }
        }
    }

    fn work(
        &mut self,
        reals: WorkReals,
        comm: &dyn Comm,
        _node_memory: Option<&mut dyn NodeMemory>,
    ) -> Result<CudaWork<T>, Error> {
        let (gpu, stream, rank) = (&self.gpu, &self.stream, self.rank);
        let Connections { peers, .. } = self.connections();
        let make = || -> Result<_, GpuError> {
            let [a, b] = reals.buffers.map(|reals| reals * size_of::<T>());
            let exports =
                RankExports::new(gpu, [a, b, self.window_bytes], self.chunks, peers.foreign())?;
            let area = Arc::new(Block::new(gpu.context(), self.area_bytes)?);
            // If some rank is not reached, all ranks have both, because windows are collective.
            let [out, come] = self.staging_bytes.map(|bytes| {
                let some = (!peers.all).then(|| Block::new(gpu.context(), bytes));
                some.transpose().map(|block| block.map(Arc::new))
            });
            Ok((Arc::new(exports), Owned::new(area, stream), [out?, come?]))
        };
        let (exports, area, staging) = agree(comm, make().map_err(|why| why.on(rank)))?;
        (self.area, self.staging) = (Some(area), staging);
        let buffers = [0, 1].map(|which| Owned::new(exports.blocks[which].clone(), stream));
        let connections = self.connections.as_mut().expect("ranks connect first");
        connections.exports = connections.peers.share(gpu, comm, &exports)?;
        connections.own = Some(exports);
        Ok(CudaWork { buffers })
    }

    fn places<'a>(
        work: &'a mut CudaWork<T>,
        output: &'a mut DeviceMemory<T>,
    ) -> Places<'a, DeviceMemory<T>> {
        let work = work.buffers.each_mut().map(Owned::memory_mut);
        Places { output, work, spare: None }
    }

    fn held(&self) -> usize {
        let squares = self.squares.as_ref().map_or(0, Squares::memory);
        self.area_bytes + self.window_bytes + self.staging_bytes.iter().sum::<usize>() + squares
    }

    fn copy(&mut self, reals: usize, src: &DeviceMemory<T>, dst: &mut DeviceMemory<T>) {
        let copied = self
            .stream
            .memcpy_dtod(&*src.part(0..reals), &mut *dst.part_mut(0..reals))
            .map_err(tried("copying"));
        self.record_error(copied);
    }

    fn energy(
        &mut self,
        parts: &[Transfer],
        width: usize,
        src: &DeviceMemory<T>,
        _sums: &mut [Energy],
    ) {
        self.needs_sync = true;
        let squares = self.squares.as_mut().expect("made where something may be lost");
        let queued = squares.add(&self.stream, parts, width, src);
        self.record_error(queued);
    }

    fn energy_queued(&mut self, sums: &mut [Energy]) {
        self.synchronize();
        let squares = self.squares.as_ref().expect("made where something may be lost");
        match self.failed {
            Ok(()) => squares.read(sums),
            // All ranks see that there is no norm; `finish` reports the reason.
            Err(_) => sums[0].0[1] = f64::NAN,
        }
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.take_failure()
    }

    fn mark(&mut self) {
        let marked = self.record_mark();
        self.record_error(marked);
    }

    fn take_marks(&mut self) -> Vec<Instant> {
        // A finished run does not fail because of its trace, which then has the times of the host.
        self.take_marked_times().unwrap_or_default()
    }
}
