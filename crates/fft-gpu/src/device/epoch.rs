//! Ranks of a host meet: each shows what it has, and works in what others show.

use cudarc::driver::DeviceSlice;
use fft_core::{Error, Expose, NodeMemory, PeerMemory};

use super::peer_info::{Said, Told};
use super::{Cuda, Meeting};
use crate::base::{GpuError, GpuReal};
use crate::ffi::{BLOCKS, DeviceMemory, Estate, Peer, Place, SharedArrays};

/// The other ranks during a visit.
#[derive(Clone, Copy)]
pub(super) struct Met<'v> {
    rank: usize,
    near: &'v [Option<Peer>],
    shared_arrays: &'v SharedArrays,
    peers: &'v dyn PeerMemory,
}

impl<'v> Met<'v> {
    /// What a rank shows to be read; this rank has it here.
    pub(super) fn source<T>(&self, peer: usize, own: &'v DeviceMemory<T>) -> Place<'v> {
        if peer == self.rank { Place::own(own) } else { self.shown(peer, 0) }
    }

    /// What another rank shows to be written, each element by the one rank that makes it; `None` of this rank's own.
    pub(super) fn target(&self, peer: usize) -> Option<Place<'v>> {
        (peer != self.rank).then(|| self.shown(peer, 1))
    }

    fn shown(&self, peer: usize, which: usize) -> Place<'v> {
        let Some(other) = &self.near[peer] else { return Place::nothing() };
        let (block, place) = Said::by(self.peers, peer).shows()[which];
        let lent = block.checked_sub(BLOCKS).and_then(|number| self.shared_arrays.of(number, peer));
        other.shown(self.peers, block, place, lent)
    }

    /// How long a rank's message to this one is.
    pub(super) fn sends(&self, peer: usize) -> usize {
        Said::by(self.peers, peer).sends(self.rank)
    }
}

/// How others find memory: the numbers behind an estate's blocks are those of the shared_arrays.
fn told<T>((estate, shared_arrays): (&Estate, &SharedArrays), memory: &DeviceMemory<T>) -> Told {
    let at = memory.address();
    let block = estate.blocks.iter().position(|block| block.address() == at);
    let block = block.or_else(|| shared_arrays.number(at).map(|number| BLOCKS + number));
    (block.unwrap_or(usize::MAX), (at, memory.num_bytes()))
}

/// Meets the ranks of the host. Each shows `src` to be read and `dst` to be written, and says how long its messages to others are; `work`
/// is queued behind what they have queued. Returns when everybody has queued theirs, and keeps this rank's stream from what follows
/// until all of it is done.
pub(super) fn visit<T: GpuReal>(
    device: &mut Cuda<T>,
    node_memory: &mut dyn NodeMemory,
    (src, dst): (&DeviceMemory<T>, &mut DeviceMemory<T>),
    sends: &mut dyn Iterator<Item = (usize, usize)>,
    mut work: impl FnMut(&mut Cuda<T>, Met<'_>, &mut DeviceMemory<T>) -> Result<(), GpuError>,
) -> Result<(), Error> {
    // What follows borrows the meeting apart from the rest of the device.
    let mut meeting = device.meeting.take().expect("ranks meet first");
    let Meeting { near, shared_arrays, estate, peer_info, .. } = &mut meeting;
    let estate = estate.as_ref().expect("made with the plan's memory");
    let peer_info = peer_info.as_mut().expect("made where ranks of the host meet");
    let shared_arrays = &*shared_arrays;
    peer_info.shows([told((estate, shared_arrays), src), told((estate, shared_arrays), dst)]);
    for (peer, bytes) in sends {
        peer_info.sends(peer, bytes);
    }
    let made = estate.made.record(&device.stream);
    device.record_error(made);
    let rank = device.rank;
    let others = || near.iter().enumerate().filter(move |(peer, _)| *peer != rank);
    let met = node_memory.exposure_epoch(Expose::Read(peer_info.bytes()), &mut |peers| {
        let hold = |peer: &Option<Peer>| {
            peer.as_ref().map_or(Ok(()), |peer| peer.made().hold(&device.stream))
        };
        let held = others().try_for_each(|(_, peer)| hold(peer));
        let queued =
            held.and_then(|()| work(device, Met { rank, near, shared_arrays, peers }, dst));
        // Whatever failed: others wait for what has been queued, which works in their memory.
        let recorded = estate.read.record(&device.stream);
        if recorded.is_err() {
            let _ = device.stream.synchronize();
        }
        device.record_error(queued.and(recorded));
        Ok(())
    });
    if met.is_ok() {
        for (_, peer) in others() {
            let held = peer.as_ref().map_or(Ok(()), |peer| peer.read().hold(&device.stream));
            device.record_error(held);
        }
    }
    device.meeting = Some(meeting);
    met
}
