//! Options of execution, which leave the result's meaning unchanged.

use super::algorithm::Algorithm;
use crate::base::Tolerance;
use crate::base::named::names;
use crate::codec::Wire;

/// Execution options, equal on all ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TransportOptions {
    /// The encoding of messages to other hosts, or of all messages if hosts are unknown.
    pub wire: Wire,
    /// The error that [`Wire::Tolerance`] may add.
    pub tolerance: Option<Tolerance>,
    /// The algorithm of exchanges.
    pub exchange: Algorithm,
    /// Bytes of a chunk, packed while earlier ones are in flight. At least 8 KiB for each rank.
    pub chunk: usize,
    /// The memory that a plan may allocate.
    pub memory: Memory,
    /// Whether input and output are in shared memory of the host, so that no copy is needed.
    pub shared_arrays: bool,
    /// Memory access of local transforms.
    pub access: Access,
}

impl TransportOptions {
    /// Default bytes of a chunk, which stays in the second-level cache.
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

/// Memory of a plan besides input and output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Memory {
    /// As much memory as is fastest.
    ///
    /// Large data is sent in chunks, up to four in flight; one with [`Algorithm::KWay`].
    /// [`Algorithm::Ring`] holds a quarter of a reshape's messages at once. Small data, and data of
    /// many ranks, is held as whole messages.
    ///
    /// [`Algorithm::Shared`] on one host has no messages. It holds what does not fit into the
    /// output, or a copy of the data where bricks are uneven.
    #[default]
    Ample,
    /// Memory for intermediate data that does not fit into the output, and for short messages in
    /// many rounds.
    ///
    /// Steps alternate between the output and one other buffer. Intermediate data exceeds the
    /// output for half spectra of `n + 2` real numbers and for layouts less even than at the ends.
    /// Bricks are cut in whole planes, so a plane may be added.
    ///
    /// With [`Algorithm::Shared`], peers cannot read a buffer split in two, nor the output under
    /// MPI. Then the result is copied, or ranks of one host send messages.
    Least,
}

names!(Memory, "memory", { Ample = "ample", Least = "least" });

/// Memory access of local transforms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Access {
    /// Lines at any stride, through caches: on hosts.
    #[default]
    Cached,
    /// Contiguous lines only; messages are packed from memory: on devices.
    Contiguous,
    /// Lines at any stride as fast as contiguous ones; messages are packed from memory: on devices
    /// with kernels for columns of these lengths, or where chunks make up for slower columns.
    Strided,
    /// As [`Access::Contiguous`]; in addition, transforms read their input from peers on the same
    /// host (`planner/peer_read_order.rs`).
    Fetched,
}
