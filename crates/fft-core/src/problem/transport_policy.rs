//! How the messages of a problem travel: decided once, from its options and its hosts.

use super::algorithm::Algorithm;
use super::options::{Access, Memory, TransportOptions};
use super::problem::Problem;
use crate::base::cache_sizes::{CACHED_CHUNK_BYTES, LONG_MESSAGE_BYTES, MESSAGE_BYTES};
use crate::geometry::Topology;

/// Chunks of a rank's data from which on they are streamed.
const MANY_CHUNKS: usize = 8;

/// The size of chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunking {
    /// Bytes at most, unless a plane across the axis that is cut is larger; at least 8 KiB for each rank.
    pub bytes: usize,
    /// Whether such planes are cut as well, into shorter runs of memory.
    pub fine: bool,
}

impl Chunking {
    /// With messages that are not too short on average.
    pub(crate) fn for_ranks(self, ranks: usize) -> Self {
        Self { bytes: self.bytes.max(MESSAGE_BYTES * ranks), ..self }
    }
}

/// How messages travel, the same on all ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TransportPolicy {
    /// The exchange that is executed: on devices, `shared` is `pipelined`.
    pub exchange: Algorithm,
    /// Whether all ranks read each other's memory on one host.
    pub all_near: bool,
    /// How bricks are cut into chunks, if they are: to pack one while others are under way, or to spare memory.
    pub chunking: Option<Chunking>,
    /// Whether chunks are transformed in cache before they are packed.
    pub pipelined: bool,
    /// Whether all messages of an exchange are kept until the last has come.
    pub buffers_all: bool,
    /// Bytes of a tile that is transformed before packing, at most.
    pub tile_bytes: usize,
    /// Rounds of an exchange, at most.
    pub rounds: usize,
    /// Bytes of a chunk, where its size differs from the default and matters.
    pub uncommon_chunk: Option<usize>,
}

/// What decides about chunks.
struct Sizes {
    ranks: usize,
    /// Bytes of data that a rank holds on average.
    share: usize,
    /// Bytes of a chunk whose messages are long on average.
    long_chunk: usize,
    /// Whether messages could be read as they come, where that pays.
    may_stream: bool,
    /// Whether they are: the data is large, in chunks that fit into cache. That takes less memory than whole messages, or
    /// all chunks at once, and no more time.
    streams: bool,
}

impl Sizes {
    fn of(problem: &Problem, one_rank_per_host: bool) -> Self {
        use Algorithm::{Alltoallv, KWay, P2p, Pipelined, Shared};
        let ranks = problem.input.ranks();
        let point = problem.precision.bytes() * if problem.complex { 2 } else { 1 };
        let point = point.saturating_mul(problem.howmany);
        let share = problem.grid().points().saturating_mul(point) / ranks;
        let long = LONG_MESSAGE_BYTES.saturating_mul(ranks);
        let long_chunk = problem.options.chunk.max(long);
        let can = match problem.options.exchange {
            P2p | Pipelined | Alltoallv | KWay(_) => true,
            Shared => one_rank_per_host,
            _ => false,
        };
        let may_stream = can
            && problem.options.memory == Memory::Ample
            && problem.options.access == Access::Cached;
        let streams = may_stream && long <= CACHED_CHUNK_BYTES && share / long_chunk >= MANY_CHUNKS;
        Self { ranks, share, long_chunk, may_stream, streams }
    }

    /// Bytes of a chunk. With little memory at most a 256th of what a rank holds, of which two make a
    /// round, or a 128th where each is a round.
    fn chunk_bytes(&self, problem: &Problem) -> usize {
        match problem.options.memory {
            Memory::Ample if self.streams => self.long_chunk,
            Memory::Ample => problem.options.chunk,
            Memory::Least => {
                let parts = if is_collective(problem.options.exchange) { 128 } else { 256 };
                problem.options.chunk.min(self.share / parts).max(1)
            }
        }
    }
}

/// Whether no other message is under way while a chunk is packed.
fn is_collective(exchange: Algorithm) -> bool {
    matches!(exchange, Algorithm::Alltoallv | Algorithm::KWay(_))
}

impl Problem {
    /// How messages travel. Cost: O(ranks).
    pub fn policy(&self) -> TransportPolicy {
        TransportPolicy::of(self)
    }
}

impl TransportPolicy {
    /// That of a problem. Cost: O(ranks).
    pub fn of(problem: &Problem) -> Self {
        use Algorithm::{Pipelined, Ring, Shared};
        let (named, ranks) = (problem.options.exchange, problem.input.ranks());
        let one_rank_per_host =
            problem.hosts.is_empty() || Topology::new(&problem.hosts, ranks).ranks_per_host() == 1;
        let sizes = Sizes::of(problem, one_rank_per_host);
        let cached = problem.options.access == Access::Cached;
        let least = problem.options.memory == Memory::Least;
        let exchange = if named == Shared && !cached { Pipelined } else { named };
        let all_near = problem.all_near();
        let chunked = matches!(named, Shared | Pipelined | Ring(_)) || least || sizes.streams;
        let bytes = sizes.chunk_bytes(problem);
        let chunking = Chunking { bytes, fine: least || is_collective(named) };
        let pipelined = match named {
            Pipelined | Ring(_) => true,
            // Ranks that read this rank's memory must find there what has been transformed.
            Shared => one_rank_per_host,
            _ => least || sizes.streams,
        };
        let tile_bytes = if least { bytes.max(MESSAGE_BYTES * sizes.ranks) } else { usize::MAX };
        let matters = (chunked || sizes.may_stream) && !all_near && ranks > 1;
        Self {
            exchange,
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
