//! Exchanges: the algorithms that carry messages.
//!
//! Each exchange is described by its [`Traits`]. Planning, costs and simulation depend only on
//! these, so a new exchange needs a variant, a name and its traits here, and an implementation in
//! fft-comm.

use super::memory::Memory;
use crate::base::named::{Name, Named, text};

/// The algorithm that carries the messages of a reshape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Exchange {
    /// Ranks of one host read each other's memory; other messages are sent as by
    /// [`Exchange::Pipelined`]. Devices use the latter.
    #[default]
    Shared,
    /// [`Exchange::Pipelined`] with one message from all ranks of a host to all ranks of another
    /// for each chunk. Ranks pack it in memory that they share, and unpack it there.
    ///
    /// [`Exchange::Pipelined`] replaces it with [`Memory::Least`], on devices, and if each rank has
    /// a host of its own.
    Hosts,
    /// Non-blocking sends and receives. Each message is sent once packed and unpacked on arrival,
    /// or buffered for a fused unpack. Large data is split into chunks.
    P2p,
    /// [`Exchange::P2p`] in chunks, packed while earlier ones are in flight.
    Pipelined,
    /// One collective call for all messages, or one per chunk of large data.
    ///
    /// Encodings of variable length ([`Wire::Tolerance`](crate::Wire::Tolerance),
    /// [`Wire::Lossless`](crate::Wire::Lossless)) are sent as by [`Exchange::P2p`].
    Alltoallv,
    /// Messages are forwarded in ⌈log_k P⌉ rounds of at most `k - 1` sends, `k` from 2 to 255.
    KWay(u8),
    /// One-sided puts into a window, in chunks, to other hosts first.
    ///
    /// All ranks must drop such plans in the same order. [`Exchange::Pipelined`] replaces it, with
    /// a warning, if one-sided communication is not available.
    Ring(Epochs),
}

/// The synchronization of [`Exchange::Ring`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Epochs {
    /// `MPI_Win_fence` before and after.
    Fence,
    /// `MPI_Win_lock_all` for the life of the plan; puts are flushed.
    Flush,
}

/// How the messages of an exchange reach their receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Each to its receiver, once it is packed.
    Direct,
    /// The same, but ranks of a host read each other's memory.
    Read,
    /// Together with the messages of other ranks of the host, between ranks that lead their hosts.
    Bundled,
    /// All in one call that ends when they have arrived.
    Collective,
    /// Through other ranks, in rounds that begin once all are packed.
    Forwarded,
    /// Put into the receivers' memory, in epochs that all ranks begin and end together.
    Put,
}

impl Pattern {
    /// Whether the messages of a chunk, one for each receiver, complete before the next chunk is
    /// packed.
    pub fn is_collective(self) -> bool {
        matches!(self, Self::Collective | Self::Forwarded)
    }

    /// Maximum rounds of a chunked reshape. Each round completes before the next begins.
    pub fn rounds(self, memory: Memory) -> usize {
        match (self, memory) {
            (Self::Collective | Self::Forwarded, _) => usize::MAX,
            // The last messages are unpacked after all others and delay the end.
            (Self::Put, Memory::Ample) => 4,
            (_, Memory::Ample) => 1,
            (_, Memory::Least) => 128,
        }
    }
}

/// The conditions under which an exchange is to run.
pub(crate) struct Setting {
    pub(crate) ranks: usize,
    pub(crate) hosts: usize,
    /// Whether some ranks share a host.
    pub(crate) shares_hosts: bool,
    /// Whether data is in memory of hosts, not of devices.
    pub(crate) on_hosts: bool,
    pub(crate) memory: Memory,
    /// Whether ranks can put into each other's memory.
    pub(crate) can_put: bool,
    /// Mean bytes of a message in pencils, where each rank has one for each other rank of its row
    /// or column. It is a floating-point number, because the search itself reports sizes that
    /// cannot be counted.
    pub(crate) message_bytes: f64,
}

/// Costs of a reshape on the busiest rank, from which exchanges compute the time of their messages.
pub(crate) struct FlightCosts<'a> {
    pub(crate) ranks: f64,
    /// Bytes of all messages as encoded.
    pub(crate) packed: f64,
    pub(crate) rounds: f64,
    /// Seconds of messages that go straight to their receivers.
    pub(crate) direct: f64,
    /// Seconds of the additional copy of a collective call within a host.
    pub(crate) collected: f64,
    /// The latency of the slowest link.
    pub(crate) latency: f64,
    /// Seconds of this number of messages with these bytes in total, over the slowest link.
    pub(crate) send: &'a dyn Fn(f64, f64) -> f64,
    /// Seconds of memory accesses to this number of bytes.
    pub(crate) memory: &'a dyn Fn(f64) -> f64,
}

/// The traits of an exchange.
struct Traits {
    name: Name,
    pattern: Pattern,
    /// Whether data is always cut in chunks, so that one is packed while others are in flight.
    chunked: bool,
    /// Whether it runs in a setting; if not, [`Exchange::Pipelined`] replaces it.
    runs: fn(&Setting) -> bool,
    /// Whether it may be the fastest in a setting with several ranks.
    suits: fn(&Setting) -> bool,
    /// Seconds of its messages.
    flight: fn(&FlightCosts<'_>, Exchange) -> f64,
}

/// Mean bytes of a message below which forwarding is considered.
const SMALL: f64 = 65_536.0;

impl Exchange {
    /// All exchanges, with two of the k-way exchange, in the order in which ties are broken.
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

    fn traits(self) -> Traits {
        let plain = Traits {
            name: Name::plain(""),
            pattern: Pattern::Direct,
            chunked: false,
            runs: |_| true,
            suits: |_| true,
            flight: |costs, _| costs.direct,
        };
        match self {
            Self::Shared => Traits {
                name: Name::plain("shared"),
                pattern: Pattern::Read,
                chunked: true,
                runs: |setting| setting.on_hosts,
                ..plain
            },
            Self::Hosts => Traits {
                name: Name::plain("hosts"),
                pattern: Pattern::Bundled,
                chunked: true,
                runs: |setting| {
                    setting.on_hosts && setting.shares_hosts && setting.memory == Memory::Ample
                },
                suits: |setting| setting.hosts > 1,
                ..plain
            },
            Self::P2p => Traits { name: Name::plain("p2p"), ..plain },
            Self::Pipelined => Traits {
                name: Name::plain("pipelined"),
                chunked: true,
                // Otherwise it is the same as sharing.
                suits: |setting| setting.shares_hosts,
                ..plain
            },
            Self::Alltoallv => Traits {
                name: Name::plain("alltoallv"),
                pattern: Pattern::Collective,
                flight: |costs, _| costs.direct + costs.collected,
                ..plain
            },
            Self::KWay(k) => Traits {
                name: Name::numbered("kway", k, 2..=255),
                pattern: Pattern::Forwarded,
                suits: |setting| setting.message_bytes < SMALL,
                flight: kway_flight,
                ..plain
            },
            Self::Ring(epochs) => Traits {
                name: Name::plain(match epochs {
                    Epochs::Fence => "ring",
                    Epochs::Flush => "ring-flush",
                }),
                pattern: Pattern::Put,
                chunked: true,
                // A window is memory of the host.
                runs: |setting| setting.on_hosts,
                suits: |setting| setting.can_put && setting.hosts > 1,
                flight: ring_flight,
            },
        }
    }

    /// How messages reach their receivers.
    pub fn pattern(self) -> Pattern {
        self.traits().pattern
    }

    /// Whether data is always cut in chunks, so that one is packed while others are in flight.
    pub fn is_chunked(self) -> bool {
        self.traits().chunked
    }

    /// Whether ranks of a host read each other's memory instead of messages.
    pub fn reads_peers(self) -> bool {
        self.pattern() == Pattern::Read
    }

    /// The exchanges that suit a setting, in the order in which ties are broken; the first is the
    /// fallback.
    pub(crate) fn suited(setting: &Setting) -> Vec<Self> {
        if setting.ranks == 1 {
            return vec![Self::default()];
        }
        let suits = |exchange: &Self| {
            let Traits { name, runs, suits, .. } = exchange.traits();
            let fits = name.number.is_none_or(|number| usize::from(number.value) < setting.ranks);
            *exchange == Self::default() || fits && runs(setting) && suits(setting)
        };
        Self::ALL.into_iter().chain([Self::KWay(8)]).filter(suits).collect()
    }

    /// The exchange that runs instead of this one.
    pub(crate) fn executed(self, setting: &Setting) -> Self {
        if (self.traits().runs)(setting) { self } else { Self::Pipelined }
    }

    /// Seconds of the messages of a reshape.
    pub(crate) fn flight(self, costs: &FlightCosts<'_>) -> f64 {
        (self.traits().flight)(costs, self)
    }
}

/// ⌈log_k P⌉ rounds forward (k-1)/k of the messages to all other ranks.
fn kway_flight(costs: &FlightCosts<'_>, exchange: Exchange) -> f64 {
    let (Exchange::KWay(k), true) = (exchange, costs.packed > 0.0) else { return costs.direct };
    let (k, ranks) = (f64::from(k), costs.ranks);
    let rounds = (ranks.ln() / k.ln() - 1e-9).ceil().max(1.0);
    let each = costs.packed * ranks / (ranks - 1.0) * (k - 1.0) / k;
    rounds * ((costs.send)(2.0 * (k - 1.0), each) + (costs.memory)(2.0 * each))
}

/// All ranks synchronize before and after each round.
fn ring_flight(costs: &FlightCosts<'_>, _: Exchange) -> f64 {
    if costs.packed == 0.0 {
        return costs.direct;
    }
    costs.direct + costs.rounds * costs.latency * (1.0 + costs.ranks.log2())
}

impl Named for Exchange {
    const WHAT: &'static str = "exchange";

    fn all() -> &'static [Self] {
        &Self::ALL
    }

    fn full_name(self) -> Name {
        self.traits().name
    }

    fn with_number(self, number: u8) -> Self {
        match self {
            Self::KWay(_) => Self::KWay(number),
            other => other,
        }
    }
}

text!(Exchange);
