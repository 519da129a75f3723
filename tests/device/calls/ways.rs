//! The paths of messages, and how often the host waits in each.

use std::collections::BTreeSet;

use fft_core::{Chunking, Link, Recipe, Redistribution, Step};
use thriffty::gpu::GpuTransport;
use thriffty::planning::{Direction, Exchange, Transform};
use thriffty::{Draft, Error, Tolerance, Wire};

/// A path of messages, and the host's waits in one direction, summed over ranks.
pub(super) struct Way {
    pub(super) name: &'static str,
    pub(super) apart: bool,
    pub(super) transport: GpuTransport,
    pub(super) exchange: Exchange,
    pub(super) wire: Option<Wire>,
    pub(super) waits: fn(MessagePlan) -> u64,
}

impl Way {
    /// A draft whose messages take this path.
    pub(super) fn draft<'a, K: Transform, const D: usize>(
        &self,
        draft: Draft<'a, K, D>,
    ) -> Result<Draft<'a, K, D>, Error> {
        let draft = draft.exchange(self.exchange);
        Ok(match self.wire {
            None => draft,
            Some(Wire::Tolerance) => draft
                .tolerance(Tolerance::relative(1e-6)?)
                .wire(Wire::Tolerance)
                .ignore_shared_memory(true),
            Some(wire) => draft.wire(wire).ignore_shared_memory(true),
        })
    }
}

/// The work of a direction, summed over ranks.
#[derive(Clone, Copy)]
pub(super) struct MessagePlan {
    pub(super) ranks: u64,
    pub(super) reshapes: u64,
    /// Chunks in which ranks have messages, out and in.
    pub(super) out: u64,
    pub(super) come: u64,
    /// Incoming messages. The messages of a chunk may arrive one by one.
    pub(super) arrivals: u64,
}

impl MessagePlan {
    /// The same if each message arrives alone.
    pub(super) fn one_by_one(self) -> Self {
        Self { come: self.arrivals, ..self }
    }
}

pub(super) const P2P: Exchange = Exchange::P2p;

/// Raw data between ranks that reach each other: kernels read in place, and nobody waits.
pub(super) const NEAR: Way = Way {
    name: "as it is",
    apart: false,
    transport: GpuTransport::PeerToPeer,
    exchange: P2P,
    wire: None,
    waits: |_| 0,
};

/// Once for the outgoing messages of each chunk, and once for messages that arrive together.
pub(super) const FAR: Way =
    Way { name: "as it is through the host", apart: true, waits: |t| t.out + t.come, ..NEAR };

const BITS: Option<Wire> = Some(Wire::Bits(16));

/// Small data, in messages of one chunk.
pub(super) const WAYS: [Way; 7] = [
    NEAR,
    // At the end, for the norm of the input and the squared error.
    Way {
        name: "bits:16 in windows",
        wire: BITS,
        waits: |t| if t.out > 0 { t.ranks } else { 0 },
        ..NEAR
    },
    // For the norm, in each reshape for lengths of messages, twice if they are packed again, and at
    // the end.
    Way {
        name: "tolerance in windows",
        wire: Some(Wire::Tolerance),
        waits: |t| t.ranks * (2 + 2 * t.reshapes),
        ..NEAR
    },
    FAR,
    Way { name: "as it is through the host by alltoallv", exchange: Exchange::Alltoallv, ..FAR },
    // And at the end.
    Way {
        name: "bits:16 through the host",
        wire: BITS,
        waits: |t| t.out + t.come + if t.out > 0 { t.ranks } else { 0 },
        ..FAR
    },
    // And for the norm, and for lengths, twice if messages are packed again.
    Way {
        name: "tolerance through the host",
        wire: Some(Wire::Tolerance),
        waits: |t| 3 * t.out + t.come + 2 * t.ranks,
        ..FAR
    },
];

/// Data in several chunks.
pub(super) const LARGE_WAYS: [Way; 3] = [
    Way { name: "in chunks through the host", exchange: Exchange::Pipelined, ..FAR },
    Way { name: "in chunks of bits:16 through the host", exchange: Exchange::Pipelined, ..WAYS[5] },
    Way {
        name: "in chunks of tolerance through the host",
        exchange: Exchange::Pipelined,
        ..WAYS[6]
    },
];

/// From device memory: until earlier messages have been read, and until each chunk is packed.
#[cfg(feature = "mpi")]
const DEVICE: Way = Way {
    name: "as it is on the device",
    transport: GpuTransport::GpuDirect,
    waits: |t| t.ranks * t.reshapes + t.out,
    ..NEAR
};

#[cfg(feature = "mpi")]
pub(super) const DEVICE_WAYS: [Way; 3] = [
    DEVICE,
    // And at the end.
    Way {
        name: "bits:16 on the device",
        wire: BITS,
        waits: |t| t.ranks * (1 + t.reshapes) + t.out,
        ..DEVICE
    },
    // And for the norm, and for chunks that are packed again.
    Way {
        name: "tolerance on the device",
        wire: Some(Wire::Tolerance),
        waits: |t| t.ranks * (2 + t.reshapes) + 2 * t.out,
        ..DEVICE
    },
];

#[cfg(feature = "mpi")]
pub(super) const LARGE_DEVICE_WAYS: [Way; 2] = [
    Way { name: "in chunks on the device", exchange: Exchange::Pipelined, ..DEVICE },
    Way {
        name: "in chunks of bits:16 on the device",
        exchange: Exchange::Pipelined,
        ..DEVICE_WAYS[1]
    },
];

/// Bytes of chunks through the host; from device memory chunks have an eighth of the data, or this.
const CHUNK: usize = 8 << 20;

/// Messages are the intersections of bricks, in double precision.
pub(super) fn message_plan(recipe: &Recipe, direction: Direction, way: &Way) -> MessagePlan {
    let ranks = recipe.problem().input.ranks();
    let mut found = MessagePlan { ranks: ranks as u64, reshapes: 0, out: 0, come: 0, arrivals: 0 };
    for (from, step, to) in recipe.walk(direction) {
        if !matches!(step, Step::Reshape { .. }) {
            continue;
        }
        found.reshapes += 1;
        let element = from.width() * size_of::<f64>();
        let most = match (way.exchange, way.transport) {
            (Exchange::Alltoallv, _) | (Exchange::P2p, GpuTransport::GpuDirect) => None,
            (_, GpuTransport::GpuDirect) => {
                let points = (0..ranks).map(|rank| from.layout.brick(rank).points());
                Some((points.max().unwrap_or(0) * element / 8).max(CHUNK))
            }
            _ => Some(CHUNK),
        };
        for rank in 0..ranks {
            let link = |peer| if peer == rank { Link::Own } else { Link::Remote };
            let moves = Redistribution::new(rank, &link, from, to, 1);
            let moves = match most {
                Some(bytes) => {
                    let most = Chunking { bytes, fine: false };
                    moves.chunked([from, to], &[], element, most)
                }
                None => moves,
            };
            let different = |chunks: &[usize]| chunks.iter().collect::<BTreeSet<_>>().len() as u64;
            found.out += different(&moves.chunk_of);
            found.come += different(&moves.theirs);
            found.arrivals += moves.theirs.len() as u64;
        }
    }
    found
}
