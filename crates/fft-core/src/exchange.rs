//! The seam between what is exchanged and how.

use std::fmt;
use std::str::FromStr;

use crate::Error;

/// How the data of a reshape travels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// Non-blocking sends and receives between pairs; each message is sent as soon as it is packed and
    /// unpacked as soon as it is there.
    #[default]
    P2p,
    /// One collective: pack everything, exchange, unpack everything.
    Alltoallv,
    /// Messages are forwarded in ⌈log_k P⌉ rounds, in each of which a rank sends to at most `k - 1` others: fewer and
    /// longer messages where there are many small ones. From 2 to 255.
    KWay(u8),
    /// Puts into a window that is made once per plan, beginning with ranks of other hosts in rotation. Plans that use it
    /// are dropped by all ranks in the same order. As [`Algorithm::P2p`] where ranks cannot put: threads, and an MPI
    /// that does not let them, which is said once in a warning.
    Ring(Epochs),
}

/// How the puts of [`Algorithm::Ring`] are known to be complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Epochs {
    /// `MPI_Win_fence` before and after.
    Fence,
    /// The window is open for the plan's whole life (`MPI_Win_lock_all`); puts are flushed.
    Flush,
}

impl Algorithm {
    /// All of them; of the k-way exchange, two.
    pub const ALL: [Self; 6] = [
        Self::P2p,
        Self::Alltoallv,
        Self::KWay(2),
        Self::KWay(4),
        Self::Ring(Epochs::Fence),
        Self::Ring(Epochs::Flush),
    ];

    /// A number that no other algorithm has, for ranks to compare.
    pub fn code(self) -> u64 {
        match self {
            Self::P2p => 0,
            Self::Alltoallv => 1,
            Self::Ring(Epochs::Fence) => 2,
            Self::Ring(Epochs::Flush) => 3,
            Self::KWay(k) => 1 << 8 | u64::from(k),
        }
    }
}

/// `p2p`, `alltoallv`, `kway4`, `ring`, `ring-flush`.
impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::P2p => f.pad("p2p"),
            Self::Alltoallv => f.pad("alltoallv"),
            Self::KWay(k) => f.pad(&format!("kway{k}")),
            Self::Ring(Epochs::Fence) => f.pad("ring"),
            Self::Ring(Epochs::Flush) => f.pad("ring-flush"),
        }
    }
}

/// Reads what [`Display`](fmt::Display) writes.
impl FromStr for Algorithm {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        if let Some(found) = Self::ALL.into_iter().find(|known| known.to_string() == name) {
            return Ok(found);
        }
        let k = name.strip_prefix("kway").and_then(|k| k.parse().ok()).filter(|k| *k >= 2);
        k.map(Self::KWay).ok_or_else(|| {
            let all = Self::ALL.map(|algorithm| algorithm.to_string()).join(", ");
            Error::argument("exchange", name, format!("one of {all}; kwayK for K from 2 to 255"))
        })
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
    /// Makes sure that this traffic needs no more memory. **Collective**: all ranks reserve for the same reshapes in
    /// the same order, and a rank that fails does so after its collective part.
    ///
    /// # Errors
    /// [`Error::Memory`]; what the transport returns.
    fn reserve(&mut self, traffic: &Traffic) -> Result<(), Error>;

    /// Exchanges. Collective over the ranks of the plan.
    ///
    /// # Errors
    /// When the transport fails.
    fn run(&mut self, traffic: &Traffic, port: &mut dyn Port) -> Result<(), Error>;

    /// Bytes of memory held.
    fn memory(&self) -> usize;
}
