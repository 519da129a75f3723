//! The transport of a problem's messages, derived from options and hosts.

use super::algorithm::Algorithm;
use super::options::{Access, Memory, TransportOptions};
use super::problem::Problem;
use crate::base::cache_sizes::{
    BUNDLE_BYTES, CACHED_CHUNK_BYTES, LONG_MESSAGE_BYTES, MESSAGE_BYTES,
};
use crate::geometry::Topology;

/// Chunks of a rank's data at most, where hosts send as one.
const MOST_BUNDLES: usize = 16;
/// Chunks of a rank's data from which on they are streamed.
const MANY_CHUNKS: usize = 8;

/// The size of chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunking {
    /// Maximum bytes, unless a plane across the cut axis is larger. They make messages of a useful
    /// length.
    pub bytes: usize,
    /// Whether planes are cut as well, into shorter runs of memory.
    pub fine: bool,
}

/// The transport of messages, the same on all ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TransportPolicy {
    /// The executed exchange: `pipelined` replaces `shared` on devices, and `hosts` also with least
    /// memory or one rank per host.
    pub exchange: Algorithm,
    /// Whether messages of all ranks of a host to all ranks of another are sent as one.
    pub bundles: bool,
    /// Whether all ranks read each other's memory on one host.
    pub all_near: bool,
    /// The size of chunks, if bricks are cut.
    pub chunking: Option<Chunking>,
    /// Whether chunks are transformed in cache before packing.
    pub pipelined: bool,
    /// Whether all messages of an exchange are buffered until the last has arrived.
    pub buffers_all: bool,
    /// Maximum bytes of a tile that is transformed before packing.
    pub tile_bytes: usize,
    /// Maximum rounds of an exchange.
    pub rounds: usize,
    /// Bytes of a chunk, where its size matters and is not the default.
    pub uncommon_chunk: Option<usize>,
}

/// Sizes that decide about chunks.
struct Sizes {
    ranks: usize,
    /// Hosts whose ranks send as one.
    bundling_hosts: Option<usize>,
    /// Average bytes of a rank's data.
    share: usize,
    /// Bytes of a chunk whose messages are long on average.
    long_chunk: usize,
    may_stream: bool,
    /// Whether messages are streamed: the data is large, and its chunks fit into cache.
    streams: bool,
}

impl Sizes {
    fn of(problem: &Problem, hosts: Option<&Topology>) -> Self {
        use Algorithm::{Alltoallv, Hosts, KWay, P2p, Pipelined, Shared};
        let ranks = problem.input.ranks();
        let point = problem.precision.bytes() * if problem.complex { 2 } else { 1 };
        let point = point.saturating_mul(problem.batch);
        let share = problem.grid().points().saturating_mul(point) / ranks;
        let long = LONG_MESSAGE_BYTES.saturating_mul(ranks);
        let long_chunk = problem.options.chunk.max(long);
        let can = match problem.options.exchange {
            P2p | Pipelined | Alltoallv | KWay(_) => true,
            Shared => hosts.is_none(),
            _ => false,
        };
        let cached = problem.options.access == Access::Cached;
        let ample = problem.options.memory == Memory::Ample;
        let may_stream = can && ample && cached;
        let streams = may_stream && long <= CACHED_CHUNK_BYTES && share / long_chunk >= MANY_CHUNKS;
        let bundles = cached && ample && problem.options.exchange == Hosts;
        let bundling_hosts = hosts.map(Topology::hosts).filter(|hosts| bundles && *hosts > 1);
        Self { ranks, bundling_hosts, share, long_chunk, may_stream, streams }
    }

    /// Bytes of a chunk whose messages have so many bytes on average.
    fn chunk_of_messages(&self, bytes: usize) -> usize {
        match self.bundling_hosts {
            None => bytes.saturating_mul(self.ranks),
            // A host sends a message to each host.
            Some(hosts) => bytes.saturating_mul(hosts * hosts) / self.ranks,
        }
    }

    /// Bytes of a chunk. With [`Memory::Least`] a chunk is a small share of a rank's data.
    fn chunk_bytes(&self, problem: &Problem) -> usize {
        let given = problem.options.chunk;
        let bytes = match problem.options.memory {
            Memory::Ample if self.streams => self.long_chunk,
            Memory::Ample if self.bundling_hosts.is_some() && given == TransportOptions::CHUNK => {
                self.chunk_of_messages(BUNDLE_BYTES).max(self.share / MOST_BUNDLES)
            }
            Memory::Ample => given,
            Memory::Least => {
                let parts = if is_collective(problem.options.exchange) { 128 } else { 256 };
                given.min(self.share / parts).max(1)
            }
        };
        bytes.max(self.chunk_of_messages(MESSAGE_BYTES))
    }
}

/// Whether a chunk's messages complete before the next chunk is packed.
fn is_collective(exchange: Algorithm) -> bool {
    matches!(exchange, Algorithm::Alltoallv | Algorithm::KWay(_))
}

impl Problem {
    /// The transport of its messages. Cost: O(ranks).
    pub fn policy(&self) -> TransportPolicy {
        TransportPolicy::of(self)
    }
}

impl TransportPolicy {
    /// The policy of a problem. Cost: O(ranks).
    pub fn of(problem: &Problem) -> Self {
        use Algorithm::{Hosts, Pipelined, Ring, Shared};
        let (named, ranks) = (problem.options.exchange, problem.input.ranks());
        // Hosts with several ranks, if there are any.
        let hosts = (!problem.hosts.is_empty()).then(|| Topology::new(&problem.hosts, ranks));
        let hosts = hosts.filter(|hosts| hosts.ranks_per_host() > 1);
        let sizes = Sizes::of(problem, hosts.as_ref());
        let cached = problem.options.access == Access::Cached;
        let least = problem.options.memory == Memory::Least;
        let apart = least || hosts.is_none();
        let replaced = matches!(named, Shared | Hosts) && !cached || named == Hosts && apart;
        let exchange = if replaced { Pipelined } else { named };
        let all_near = problem.all_near();
        let chunked =
            matches!(named, Shared | Hosts | Pipelined | Ring(_)) || least || sizes.streams;
        let (bytes, bundles) = (sizes.chunk_bytes(problem), sizes.bundling_hosts.is_some());
        let chunking = Chunking { bytes, fine: least || is_collective(named) || bundles };
        let pipelined = match named {
            Pipelined | Hosts | Ring(_) => true,
            // Peers read transformed data in this rank's memory, so it is transformed there.
            Shared => hosts.is_none(),
            _ => least || sizes.streams,
        };
        let tile_bytes = if least { bytes } else { usize::MAX };
        let matters = (chunked || sizes.may_stream) && !all_near && ranks > 1;
        Self {
            exchange,
            bundles,
            all_near,
            chunking: chunked.then_some(chunking),
            pipelined: cached && pipelined,
            buffers_all: !least && named.keeps() && !sizes.streams,
            tile_bytes,
            rounds: problem.options.memory.rounds(exchange),
            uncommon_chunk: Some(problem.options.chunk)
                .filter(|chunk| matters && *chunk != TransportOptions::CHUNK),
        }
    }
}
