//! A plan's device and its connections to the other ranks.

use std::sync::Arc;

use cudarc::driver::DeviceSlice;
use fft_core::{Comm, DeviceCapabilities};

use super::peer_info::{ExposedMemory, PeerInfo};
use crate::ffi::{BLOCKS, DeviceMemory, Peer, Peers, RankExports, SharedArrays};

/// The communicator, and the memory that ranks of the host expose.
pub(super) struct Connections {
    /// A duplicate, for collective preparations of operations.
    pub(super) comm: Box<dyn Comm>,
    pub(super) peers: Peers,
    /// What the devices of all ranks can do.
    pub(super) capabilities: DeviceCapabilities,
    /// The exports of each rank that is reached, once the plan has its memory.
    pub(super) exports: Vec<Option<Peer>>,
    /// This rank's.
    pub(super) own: Option<Arc<RankExports>>,
    /// Arrays of callers.
    pub(super) shared_arrays: SharedArrays,
    /// Where ranks of the host synchronize.
    pub(super) peer_info: Option<PeerInfo>,
}

impl Connections {
    pub(super) fn new(
        comm: Box<dyn Comm>,
        peers: Peers,
        peer_info: Option<PeerInfo>,
        capabilities: DeviceCapabilities,
    ) -> Self {
        let (exports, shared_arrays) = (Vec::new(), SharedArrays::default());
        Self { comm, peers, capabilities, exports, own: None, shared_arrays, peer_info }
    }

    /// The description by which others find memory; shared arrays are numbered after the blocks.
    pub(super) fn exposed<T>(&self, memory: &DeviceMemory<T>) -> ExposedMemory {
        let at = memory.address();
        let own = self.own.as_ref().expect("made with the plan's memory");
        let block = own.blocks.iter().position(|block| block.address() == at);
        let array = || self.shared_arrays.number(at).map(|number| BLOCKS + number);
        let block = block.or_else(array).unwrap_or(usize::MAX) as u64;
        ExposedMemory { block, at, bytes: memory.num_bytes() as u64 }
    }

    /// Unmaps other processes' memory, and waits until they have unmapped this rank's.
    pub(super) fn leave(&mut self) {
        let mapped = self.exports.iter().flatten().any(|peer| matches!(peer, Peer::Mapped(_)));
        let mapped = mapped || self.shared_arrays.maps();
        self.exports.clear();
        self.shared_arrays.unmap();
        if mapped {
            // A departed rank maps nothing.
            let _ = self.comm.barrier();
        }
    }
}
