//! What a rank says of itself when ranks of a host meet in a reshape.

use fft_core::{Commons, Error, Neighbours, SharedMemory};

/// The words of a rank: which block of its estate the others read, or where else they read, how many bytes it has there, and
/// how long its message to each rank is.
pub(super) struct Post(Box<dyn SharedMemory>);

const HEAD: usize = 3;

impl Post {
    /// Collective.
    pub(super) fn new(commons: &mut dyn Commons, ranks: usize) -> Result<Self, Error> {
        Ok(Self(commons.allocate((HEAD + ranks) * 8)?))
    }

    fn put(&mut self, place: usize, word: usize) {
        self.0.bytes_mut()[8 * place..][..8].copy_from_slice(&(word as u64).to_ne_bytes());
    }

    /// Says where to read.
    pub(super) fn shows(&mut self, block: usize, (at, bytes): (u64, usize)) {
        self.put(0, block);
        self.put(1, at as usize);
        self.put(2, bytes);
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
    pub(super) fn by(neighbours: &'v dyn Neighbours, peer: usize) -> Self {
        Self(neighbours.shown(peer))
    }

    fn word(&self, place: usize) -> usize {
        let mut word = [0; 8];
        word.copy_from_slice(&self.0[8 * place..][..8]);
        u64::from_ne_bytes(word) as usize
    }

    /// Which block it shows, and where other memory is.
    pub(super) fn shows(&self) -> (usize, (u64, usize)) {
        (self.word(0), (self.word(1) as u64, self.word(2)))
    }

    /// How long its message to this rank is.
    pub(super) fn sends(&self, to: usize) -> usize {
        self.word(HEAD + to)
    }
}
