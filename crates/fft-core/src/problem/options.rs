//! Options of a transform that do not change what it computes.

use std::fmt;
use std::str::FromStr;

use super::algorithm::Algorithm;
use crate::base::{Error, Tolerance};
use crate::codec::Wire;

/// How a transform is executed. Equal on all ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TransportOptions {
    /// How messages to other hosts are represented, or all, where ranks are not to know who is on their host.
    pub wire: Wire,
    /// What a transform may lose on the wire [`Wire::Tolerance`].
    pub tolerance: Option<Tolerance>,
    /// How they travel.
    pub exchange: Algorithm,
    /// Bytes of a chunk of messages where they travel in chunks: one is packed while the one before it flies. At least
    /// 8 KiB for each rank.
    pub chunk: usize,
    /// What a plan may take.
    pub memory: Memory,
    /// Whether input and output are in memory that the ranks of a host share, so that nothing need be brought there.
    pub shared_arrays: bool,
    /// How local transforms come to their data.
    pub access: Access,
}

impl TransportOptions {
    /// Bytes of a chunk by default: it stays in the second-level cache while the one before it is under way.
    pub const CHUNK: usize = 1 << 19;
}

impl Default for TransportOptions {
    fn default() -> Self {
        Self {
            wire: Wire::default(),
            tolerance: None,
            exchange: Algorithm::default(),
            chunk: Self::CHUNK,
            memory: Memory::default(),
            shared_arrays: false,
            access: Access::default(),
        }
    }
}

/// How much memory a plan takes beside input and output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Memory {
    /// As much as makes it fast. Large data goes in chunks, of which four are under way at once, with [`Algorithm::KWay`] one: with 256³
    /// points on 4 ranks 1.03 to 1.11 times what a rank holds, of real data 1.4. [`Algorithm::Ring`] has a quarter of all messages of a
    /// reshape at once, 1.6 to 2.3 times; where data is small, on more than 16 ranks, and between some ranks of several hosts that share
    /// memory, others have all of them, 2.3 to 3 times.
    /// [`Algorithm::Shared`] on one host has no messages: once that at most and, where what is between does not fit into the
    /// output, what of it does not; or, where ranks could not read that in two pieces, as with bricks that are not even, twice.
    /// Half a MiB is for lines that lie far apart.
    #[default]
    Ample,
    /// Once what a rank holds at most in the course of a transform, what of that does not fit into the output, and 1 to 6 % for
    /// messages, which go in about 128 rounds; with small data 8 KiB for each rank and each message at a time.
    ///
    /// The output is one of the two places that steps read and write by turns. More than it has room for is half a spectrum, of
    /// n + 2 real numbers for n, on the way back to real data in another array, by 2 in n; and what layouts give to a rank that
    /// are less even between than at the ends: up to twice what it holds, where it holds nothing at the end. With
    /// reshapes from one place to another none that keeps its input does with less. Bricks are cut in whole planes, so that a
    /// plane may be added.
    ///
    /// With [`Algorithm::Shared`] ranks cannot read each other's memory where it is in two pieces, nor under MPI in the output.
    /// Then the result is made in the other place and copied, or ranks of one host send messages, too.
    Least,
}

impl Memory {
    /// Rounds that the messages of a reshape go in at most, where there are chunks: each ends before the next begins.
    pub fn rounds(self, exchange: Algorithm) -> usize {
        use Algorithm::{Alltoallv, KWay, Ring};
        match (self, exchange) {
            // What is unpacked after the last of them delays the end.
            (Self::Ample, Ring(_)) => 4,
            // One message to a rank at a time.
            (_, Alltoallv | KWay(_)) => usize::MAX,
            (Self::Ample, _) => 1,
            (Self::Least, _) => 128,
        }
    }
}

/// `ample`, `least`.
impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ample => "ample",
            Self::Least => "least",
        })
    }
}

/// Reads what [`Display`](fmt::Display) writes.
impl FromStr for Memory {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let found = [Self::Ample, Self::Least].into_iter().find(|known| known.to_string() == name);
        found.ok_or_else(|| Error::argument("memory", name, "ample or least"))
    }
}

/// How local transforms come to their data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Access {
    /// Through caches, lines wherever they lie: on hosts.
    #[default]
    Cached,
    /// Lines are transformed where they are contiguous, and messages packed from memory: on devices, which have no caches to do both
    /// in at once.
    Contiguous,
    /// The same; and after a reshape between ranks that share a device, or have some that are joined, they fetch what they read, so that
    /// the axis which is contiguous stays so (`fetching.rs`).
    Fetched,
}
