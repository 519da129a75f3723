//! Options of execution, which leave the result's meaning unchanged.

use super::exchange::Exchange;
use super::memory::{Access, Memory};
use crate::base::Tolerance;
use crate::codec::Wire;

/// Execution options, equal on all ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TransportOptions {
    /// The encoding of messages to other hosts, or of all messages if hosts are unknown.
    pub wire: Wire,
    /// The error that [`Wire::Tolerance`] may add.
    pub tolerance: Option<Tolerance>,
    /// The exchange of each reshape.
    pub exchange: Exchange,
    /// Bytes of a chunk, packed while earlier ones are in flight. At least 8 KiB for each rank.
    pub chunk: usize,
    /// The memory that a plan may allocate.
    pub memory: Memory,
    /// Whether results have the same bits whatever the layouts, the ranks and the exchange.
    pub reproducible: bool,
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
            exchange: Exchange::default(),
            chunk: Self::CHUNK,
            memory: Memory::default(),
            reproducible: false,
            shared_arrays: false,
            access: Access::default(),
        }
    }
}
