//! The seam between what is exchanged and how.

use std::fmt;

use crate::Error;

/// How the messages of a reshape travel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// Non-blocking sends and receives between pairs; each message is sent as soon as it is packed and
    /// unpacked as soon as it is there.
    #[default]
    P2p,
    /// One collective: pack everything, exchange, unpack everything.
    Alltoallv,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::P2p, Self::Alltoallv];

    /// `p2p`, `alltoallv`.
    pub fn name(self) -> &'static str {
        match self {
            Self::P2p => "p2p",
            Self::Alltoallv => "alltoallv",
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One end of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parcel {
    /// The other end.
    pub peer: usize,
    /// The most bytes it can have.
    pub bytes: usize,
}

/// The messages of one reshape, as one rank sees them. At most one to and one from each peer; never one to
/// itself. Each rank begins with the peer after itself, so that not all aim at the same one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Outgoing, in order of sending.
    pub sends: Vec<Parcel>,
    /// Incoming.
    pub recvs: Vec<Parcel>,
}

/// What an exchange calls to fill messages and to empty them. Numbers of messages are places in
/// [`Traffic`].
pub trait Port {
    /// Packs and encodes an outgoing message and returns its bytes, at most the parcel's.
    fn pack(&mut self, number: usize, message: &mut [u8]) -> usize;

    /// Called once, when nothing is left to pack: the time to copy what stays on this rank.
    fn own(&mut self);

    /// Shows an incoming message. Returns whether it has been read; otherwise it must be kept until
    /// [`Port::finish`]. A message that does not decode is remembered and reported after the exchange, which
    /// goes on: the other ranks wait for it.
    fn arrived(&mut self, number: usize, message: &[u8]) -> bool;

    /// Called once, when all messages are there, with those that were kept.
    fn finish<'m>(&mut self, message: &dyn Fn(usize) -> &'m [u8]);
}

/// A way to exchange messages. One exists per plan and algorithm, with its memory, and serves every reshape.
pub trait Exchange: Send {
    /// Makes sure that this traffic, in either direction, needs no more memory. Not collective.
    ///
    /// # Errors
    /// [`Error::Memory`].
    fn reserve(&mut self, traffic: &Traffic) -> Result<(), Error>;

    /// Exchanges. Collective over the ranks of the plan.
    ///
    /// # Errors
    /// When the transport fails.
    fn run(&mut self, traffic: &Traffic, port: &mut dyn Port) -> Result<(), Error>;

    /// Bytes of memory held.
    fn memory(&self) -> usize;
}
