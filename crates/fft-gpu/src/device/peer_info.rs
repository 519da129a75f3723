//! What a rank says of itself when ranks of a host meet.

use fft_core::{Error, NodeMemory, PeerMemory, SharedMemory};

/// The words of a rank: which block of its estate or array of its shared_arrays the others read, or where else they read, and how many bytes it has there; the same of
/// what they write; and how long its message to each rank is.
pub(super) struct PeerInfo(Box<dyn SharedMemory>);

/// Words for what is read, and as many for what is written.
const PLACE: usize = 3;
const HEAD: usize = 2 * PLACE;

/// Memory as it is told to others: a block by number, or where it is, and bytes.
pub(super) type Told = (usize, (u64, usize));

impl PeerInfo {
    /// Collective.
    pub(super) fn new(node_memory: &mut dyn NodeMemory, ranks: usize) -> Result<Self, Error> {
        Ok(Self(node_memory.allocate((HEAD + ranks) * 8)?))
    }

    fn put(&mut self, place: usize, word: usize) {
        self.0.bytes_mut()[8 * place..][..8].copy_from_slice(&(word as u64).to_ne_bytes());
    }

    /// Says where to read, and where to write.
    pub(super) fn shows(&mut self, places: [Told; 2]) {
        for (first, (block, (at, bytes))) in [0, PLACE].into_iter().zip(places) {
            self.put(first, block);
            self.put(first + 1, at as usize);
            self.put(first + 2, bytes);
        }
    }

    /// Says how long the message to a rank is.
    pub(super) fn sends(&mut self, to: usize, bytes: usize) {
        self.put(HEAD + to, bytes);
    }

    /// What is shown to the others.
    pub(super) fn bytes(&mut self) -> &[u8] {
        self.0.bytes()
    }
}

/// What another rank has said.
#[derive(Clone, Copy)]
pub(super) struct Said<'v>(&'v [u8]);

impl<'v> Said<'v> {
    pub(super) fn by(peers: &'v dyn PeerMemory, peer: usize) -> Self {
        Self(peers.shown(peer))
    }

    fn word(&self, place: usize) -> usize {
        let mut word = [0; 8];
        word.copy_from_slice(&self.0[8 * place..][..8]);
        u64::from_ne_bytes(word) as usize
    }

    /// Where to read there, and where to write.
    pub(super) fn shows(&self) -> [Told; 2] {
        [0, PLACE]
            .map(|first| (self.word(first), (self.word(first + 1) as u64, self.word(first + 2))))
    }

    /// How long its message to this rank is.
    pub(super) fn sends(&self, to: usize) -> usize {
        self.word(HEAD + to)
    }
}
