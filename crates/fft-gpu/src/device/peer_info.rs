//! The data that a rank sends to the others of its host in an exposure epoch.

use bytemuck::{Pod, Zeroable};
use fft_core::{Error, NodeMemory, PeerMemory, SharedMemory};

/// Memory that a rank exposes: a block or shared array by number, or an address, and bytes.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct ExposedMemory {
    pub(super) block: u64,
    pub(super) at: u64,
    pub(super) bytes: u64,
}

/// Bytes that describe the memory exposed for reads and for writes.
const HEAD: usize = size_of::<[ExposedMemory; 2]>();

/// The bytes of a rank: the memory that it exposes, and the length of its message to each rank.
pub(super) struct PeerInfo(Box<dyn SharedMemory>);

impl PeerInfo {
    /// Collective.
    pub(super) fn new(node_memory: &mut dyn NodeMemory, ranks: usize) -> Result<Self, Error> {
        Ok(Self(node_memory.allocate(HEAD + 8 * ranks)?))
    }

    /// Sets the memory that is exposed for reads and for writes.
    pub(super) fn expose(&mut self, memory: [ExposedMemory; 2]) {
        self.0.bytes_mut()[..HEAD].copy_from_slice(bytemuck::bytes_of(&memory));
    }

    /// Sets the length of the message to a rank.
    pub(super) fn set_length(&mut self, to: usize, bytes: usize) {
        let at = HEAD + 8 * to;
        self.0.bytes_mut()[at..at + 8].copy_from_slice(bytemuck::bytes_of(&(bytes as u64)));
    }

    /// The bytes that others read.
    pub(super) fn bytes(&mut self) -> &[u8] {
        self.0.bytes()
    }
}

/// The bytes of another rank, during an epoch.
#[derive(Clone, Copy)]
pub(super) struct InfoOf<'v>(&'v [u8]);

impl<'v> InfoOf<'v> {
    pub(super) fn peer(peers: &'v dyn PeerMemory, peer: usize) -> Self {
        Self(peers.shown(peer))
    }

    /// The memory that it exposes for reads and for writes.
    pub(super) fn exposed(&self) -> [ExposedMemory; 2] {
        bytemuck::pod_read_unaligned(&self.0[..HEAD])
    }

    /// The length of its message to a rank.
    pub(super) fn length(&self, to: usize) -> usize {
        let at = HEAD + 8 * to;
        bytemuck::pod_read_unaligned::<u64>(&self.0[at..at + 8]) as usize
    }
}
