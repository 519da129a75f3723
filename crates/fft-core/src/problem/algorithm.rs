//! How the data of a reshape travels.

use std::fmt;
use std::str::FromStr;

use crate::base::Error;

/// How the data of a reshape travels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// Ranks of one host read each other's memory there and send nothing; on devices as [`Algorithm::Pipelined`]. Others exchange messages in chunks, as
    /// [`Algorithm::Pipelined`], and where no two ranks are on one host transform them on the way.
    #[default]
    Shared,
    /// Non-blocking sends and receives between pairs; each message is sent as soon as it is packed, and unpacked as soon
    /// as it is there, or kept where a transform follows that unpacks and transforms in one pass. Large data, where messages stay
    /// long, goes in chunks as [`Algorithm::Pipelined`].
    P2p,
    /// As [`Algorithm::P2p`], in chunks: one is transformed and packed while the ones before it fly. What arrives
    /// meanwhile is unpacked, so that memory for a few chunks is enough; of small data it is kept where a transform
    /// follows that unpacks and transforms in one pass.
    Pipelined,
    /// One collective: pack everything, exchange, unpack everything; of large data, one for each chunk. It wants to know the size of every message before,
    /// at both ends. Where that depends on the data (with [`Wire::Tolerance`](crate::Wire::Tolerance) and
    /// [`Wire::Lossless`](crate::Wire::Lossless)) messages travel as with [`Algorithm::P2p`], which needs only their
    /// bounds, and tells nobody their sizes before.
    Alltoallv,
    /// Messages are forwarded in ⌈log_k P⌉ rounds, in each of which a rank sends to at most `k - 1` others: fewer and
    /// longer messages where there are many small ones. Large data goes in chunks, one after another. From 2 to 255.
    KWay(u8),
    /// RmaWindow into a window that is made once per plan, in chunks as [`Algorithm::Pipelined`], each to ranks of other hosts
    /// in rotation and then to those of the own. Plans that use it are dropped by all ranks in the same order. As
    /// [`Algorithm::Pipelined`] where ranks cannot put: threads, and an MPI that does not let them, which is said once
    /// in a warning.
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
    pub const ALL: [Self; 8] = [
        Self::Shared,
        Self::P2p,
        Self::Pipelined,
        Self::Alltoallv,
        Self::KWay(2),
        Self::KWay(4),
        Self::Ring(Epochs::Fence),
        Self::Ring(Epochs::Flush),
    ];

    /// Whether messages of a reshape can be kept until all have come, for a transform that follows. Otherwise each is
    /// unpacked on arrival.
    pub fn keeps(self) -> bool {
        !matches!(self, Self::Ring(_))
    }

    /// A number that no other algorithm has, for ranks to compare.
    pub fn code(self) -> u64 {
        match self {
            Self::Shared => 0,
            Self::P2p => 1,
            Self::Alltoallv => 2,
            Self::Ring(Epochs::Fence) => 3,
            Self::Ring(Epochs::Flush) => 4,
            Self::Pipelined => 5,
            Self::KWay(k) => 1 << 8 | u64::from(k),
        }
    }
}

/// `shared`, `p2p`, `pipelined`, `alltoallv`, `kway4`, `ring`, `ring-flush`.
impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shared => f.pad("shared"),
            Self::P2p => f.pad("p2p"),
            Self::Pipelined => f.pad("pipelined"),
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
