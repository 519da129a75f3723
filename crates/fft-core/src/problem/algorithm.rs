//! Algorithms of exchanges.

use std::fmt;
use std::str::FromStr;

use crate::base::Error;

/// The algorithm of an exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// Ranks of one host read each other's memory; other messages are sent as by
    /// [`Algorithm::Pipelined`]. Devices use the latter.
    #[default]
    Shared,
    /// [`Algorithm::Pipelined`] with one message from all ranks of a host to all ranks of another
    /// for each chunk. Ranks pack it in memory that they share, and unpack it there.
    ///
    /// [`Algorithm::Pipelined`] replaces it with [`Memory::Least`](crate::Memory::Least), on
    /// devices, and where each rank has a host of its own.
    Hosts,
    /// Non-blocking sends and receives. Each message is sent once packed and unpacked on arrival,
    /// or buffered for a fused unpack. Large data is split into chunks.
    P2p,
    /// [`Algorithm::P2p`] in chunks, packed while earlier ones are in flight.
    Pipelined,
    /// One collective call for all messages, or one per chunk of large data.
    ///
    /// Encodings of variable length ([`Wire::Tolerance`](crate::Wire::Tolerance),
    /// [`Wire::Lossless`](crate::Wire::Lossless)) are sent as by [`Algorithm::P2p`].
    Alltoallv,
    /// Messages are forwarded in ⌈log_k P⌉ rounds of at most `k - 1` sends, `k` from 2 to 255.
    KWay(u8),
    /// One-sided puts into a window, in chunks, to other hosts first.
    ///
    /// All ranks drop such plans in the same order. [`Algorithm::Pipelined`] replaces it, with a
    /// warning, where one-sided communication is not available.
    Ring(Epochs),
}

/// The synchronization of [`Algorithm::Ring`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Epochs {
    /// `MPI_Win_fence` before and after.
    Fence,
    /// `MPI_Win_lock_all` for the life of the plan; puts are flushed.
    Flush,
}

impl Algorithm {
    /// All algorithms, with two of the k-way exchange.
    pub const ALL: [Self; 9] = [
        Self::Shared,
        Self::Hosts,
        Self::P2p,
        Self::Pipelined,
        Self::Alltoallv,
        Self::KWay(2),
        Self::KWay(4),
        Self::Ring(Epochs::Fence),
        Self::Ring(Epochs::Flush),
    ];

    /// Whether messages can be buffered until all have arrived, for a fused unpack.
    pub fn keeps(self) -> bool {
        !matches!(self, Self::Ring(_))
    }
}

/// For example `shared`, `p2p`, `kway4`, `ring-flush`.
impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shared => f.pad("shared"),
            Self::Hosts => f.pad("hosts"),
            Self::P2p => f.pad("p2p"),
            Self::Pipelined => f.pad("pipelined"),
            Self::Alltoallv => f.pad("alltoallv"),
            Self::KWay(k) => f.pad(&format!("kway{k}")),
            Self::Ring(Epochs::Fence) => f.pad("ring"),
            Self::Ring(Epochs::Flush) => f.pad("ring-flush"),
        }
    }
}

/// Parses the names that [`Display`](fmt::Display) writes.
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
