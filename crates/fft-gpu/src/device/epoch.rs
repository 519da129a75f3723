//! Exposure epochs of ranks of a host on the device.
//!
//! ```text
//! record `ready` after this rank's queued work
//! enter: announce the exposed memory and lengths of messages; wait until all have entered
//!     make the stream wait for the others' `ready`
//!     queue the work, record `accessed`
//! exit: wait until all have queued theirs
//! make the stream wait for the others' `accessed`
//! ```

use fft_core::{Error, Expose, NodeMemory, PeerMemory};

use super::connections::Connections;
use super::cuda::Cuda;
use super::peer_info::InfoOf;
use crate::base::{GpuError, GpuReal};
use crate::ffi::{BLOCKS, CudaEvent, DeviceMemory, RankMemory};

/// The other ranks during an epoch.
#[derive(Clone, Copy)]
pub(super) struct EpochPeers<'v> {
    rank: usize,
    connections: &'v Connections,
    peers: &'v dyn PeerMemory,
}

impl<'v> EpochPeers<'v> {
    /// The memory that a rank exposes for reads; `own` is this rank's.
    pub(super) fn source<T>(&self, peer: usize, own: &'v DeviceMemory<T>) -> RankMemory<'v> {
        if peer == self.rank { RankMemory::own(own) } else { self.exposed(peer, 0) }
    }

    /// The memory that another rank exposes for writes; `None` for this rank. Each element has one
    /// writer.
    pub(super) fn target(&self, peer: usize) -> Option<RankMemory<'v>> {
        (peer != self.rank).then(|| self.exposed(peer, 1))
    }

    fn exposed(&self, peer: usize, which: usize) -> RankMemory<'v> {
        let Connections { exports, shared_arrays, .. } = self.connections;
        let Some(other) = &exports[peer] else { return RankMemory::nothing() };
        let memory = InfoOf::peer(self.peers, peer).exposed()[which];
        let (block, place) = (memory.block as usize, (memory.at, memory.bytes as usize));
        let array = block.checked_sub(BLOCKS).and_then(|number| shared_arrays.of(number, peer));
        other.exposed(self.peers, block, place, array)
    }

    /// The event after a chunk of the memory that a rank exposes for reads.
    pub(super) fn chunk(&self, peer: usize, number: usize) -> &'v CudaEvent {
        self.connections.exports[peer].as_ref().expect("a rank that is reached").chunk(number)
    }

    /// The length of a rank's message to this one.
    pub(super) fn length(&self, peer: usize) -> usize {
        InfoOf::peer(self.peers, peer).length(self.rank)
    }
}

/// Runs an exposure epoch with the ranks of the host. Each exposes `src` for reads and `dst` for
/// writes, and announces the `lengths` of its messages. `work` is queued after the work that the
/// others have queued. This rank's stream continues when all of it is done.
pub(super) fn exposure_epoch<T: GpuReal>(
    device: &mut Cuda,
    node_memory: &mut dyn NodeMemory,
    (src, dst): (&DeviceMemory<T>, &mut DeviceMemory<T>),
    lengths: &mut dyn Iterator<Item = (usize, usize)>,
    mut work: impl FnMut(&mut Cuda, EpochPeers<'_>, &mut DeviceMemory<T>) -> Result<(), GpuError>,
) -> Result<(), Error> {
    // `work` borrows the connections apart from the rest of the device.
    let mut all = device.connections.take().expect("ranks connect first");
    let mut info = all.peer_info.take().expect("made where ranks of the host synchronize");
    info.expose([all.exposed(src), all.exposed(dst)]);
    lengths.for_each(|(peer, bytes)| info.set_length(peer, bytes));
    let own = all.own.as_ref().expect("made with the plan's memory");
    let ready = own.ready.record(&device.stream);
    device.record_error(ready);
    let (rank, connections) = (device.rank, &all);
    let others = || {
        let ranks = connections.exports.iter().enumerate();
        ranks.filter(move |(peer, _)| *peer != rank).filter_map(|(_, peer)| peer.as_ref())
    };
    let met = node_memory.exposure_epoch(Expose::Read(info.bytes()), &mut |peers| {
        let held = others().try_for_each(|peer| peer.ready().hold(&device.stream));
        let queued = held.and_then(|()| work(device, EpochPeers { rank, connections, peers }, dst));
        // Whatever failed, others wait for the queued work, because it accesses their memory.
        let recorded = own.accessed.record(&device.stream);
        if recorded.is_err() {
            let _ = device.stream.synchronize();
        }
        device.record_error(queued.and(recorded));
        Ok(())
    });
    if met.is_ok() {
        for peer in others() {
            let held = peer.accessed().hold(&device.stream);
            device.record_error(held);
        }
    }
    all.peer_info = Some(info);
    device.connections = Some(all);
    met
}
