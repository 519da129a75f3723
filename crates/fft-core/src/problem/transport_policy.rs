//! The transport of a problem's messages, derived from options and hosts.

use super::exchange::{Exchange, Pattern, Setting};
use super::memory::{Access, Memory};
use super::options::TransportOptions;
use super::problem::Problem;
use crate::base::cache_sizes::{
    BUNDLE_BYTES, CACHED_CHUNK_BYTES, LONG_MESSAGE_BYTES, MESSAGE_BYTES,
};
use crate::geometry::Topology;

/// The most chunks of a rank's data if hosts send as one.
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
    /// The executed exchange: `pipelined` replaces exchanges that do not run here.
    pub exchange: Exchange,
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
    /// Bytes of a chunk, if its size matters and is not the default.
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
    fn of(problem: &Problem, setting: &Setting, executed: Exchange) -> Self {
        let ranks = setting.ranks;
        let point = problem.precision.bytes() * if problem.complex { 2 } else { 1 };
        let point = point.saturating_mul(problem.batch);
        let share = problem.grid().points().saturating_mul(point) / ranks;
        let long = LONG_MESSAGE_BYTES.saturating_mul(ranks);
        let long_chunk = problem.options.chunk.max(long);
        let can = match problem.options.exchange.pattern() {
            Pattern::Direct | Pattern::Collective | Pattern::Forwarded => true,
            Pattern::Read => !setting.shares_hosts,
            Pattern::Bundled | Pattern::Put => false,
        };
        let may_stream = can && setting.memory == Memory::Ample && setting.on_hosts;
        let streams = may_stream && long <= CACHED_CHUNK_BYTES && share / long_chunk >= MANY_CHUNKS;
        let bundles = executed.pattern() == Pattern::Bundled && setting.hosts > 1;
        let bundling_hosts = bundles.then_some(setting.hosts);
        Self { ranks, bundling_hosts, share, long_chunk, may_stream, streams }
    }

    /// Bytes of a chunk whose messages have `bytes` bytes on average.
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
                let parts =
                    if problem.options.exchange.pattern().is_collective() { 128 } else { 256 };
                given.min(self.share / parts).max(1)
            }
        };
        bytes.max(self.chunk_of_messages(MESSAGE_BYTES))
    }
}

impl Problem {
    /// The setting of its exchanges. Cost: O(ranks).
    pub(crate) fn setting(&self) -> Setting {
        let ranks = self.input.ranks();
        let hosts = Topology::new(&self.hosts, ranks);
        let points: f64 = self.grid().shape().iter().map(|&len| len as f64).product();
        let reals = points * self.batch as f64 * if self.complex { 2.0 } else { 1.0 };
        let bytes = reals * self.precision.bytes() as f64;
        Setting {
            ranks,
            hosts: hosts.hosts(),
            shares_hosts: hosts.ranks_per_host() > 1,
            on_hosts: self.options.access == Access::Cached,
            memory: self.options.memory,
            can_put: false,
            message_bytes: bytes / (ranks as f64).powf(1.5),
        }
    }

    /// The exchanges that suit it, in the order in which ties are broken; the first is the
    /// fallback. `can_put` is whether ranks can put into each other's memory.
    pub fn suited_exchanges(&self, can_put: bool) -> Vec<Exchange> {
        Exchange::suited(&Setting { can_put, ..self.setting() })
    }

    /// The transport of its messages. Cost: O(ranks).
    pub fn policy(&self) -> TransportPolicy {
        TransportPolicy::of(self)
    }
}

impl TransportPolicy {
    /// The policy of a problem. Cost: O(ranks).
    pub fn of(problem: &Problem) -> Self {
        let (named, setting) = (problem.options.exchange, problem.setting());
        // A named exchange is planned as it is, even on devices, where another one runs.
        let puts = named.pattern() == Pattern::Put;
        let exchange = if puts { named } else { named.executed(&setting) };
        let sizes = Sizes::of(problem, &setting, exchange);
        let least = setting.memory == Memory::Least;
        let all_near = problem.all_near();
        let chunked = named.is_chunked() || least || sizes.streams;
        let (bytes, bundles) = (sizes.chunk_bytes(problem), sizes.bundling_hosts.is_some());
        let fine = least || named.pattern().is_collective() || bundles;
        // Data that peers read is transformed in this rank's memory.
        let pipelined = chunked && !(named.reads_peers() && setting.shares_hosts);
        let tile_bytes = if least { bytes } else { usize::MAX };
        let matters = (chunked || sizes.may_stream) && !all_near && setting.ranks > 1;
        Self {
            exchange,
            bundles,
            all_near,
            chunking: chunked.then_some(Chunking { bytes, fine }),
            pipelined: setting.on_hosts && pipelined,
            // Messages that are put can be buffered only until the epoch ends.
            buffers_all: !least && named.pattern() != Pattern::Put && !sizes.streams,
            tile_bytes,
            rounds: exchange.pattern().rounds(setting.memory),
            uncommon_chunk: Some(problem.options.chunk)
                .filter(|chunk| matters && *chunk != TransportOptions::CHUNK),
        }
    }
}
