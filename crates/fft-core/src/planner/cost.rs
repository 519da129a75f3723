//! The cost model: pure functions of a [`Machine`] and of sizes, in seconds.
//!
//! Every rank computes equal numbers by equal arithmetic. A **pass** reads data once and writes it
//! once. Ranks of a host share its cores and memory, so more ranks than cores slow each other down.

use super::peer_read_order;
use super::volume::Volume;
use crate::base::cache_sizes::MESSAGE_BYTES;
use crate::codec::Wire;
use crate::geometry::Topology;
pub use crate::lower::device_chunks;
use crate::problem::{Exchange, FlightCosts, Machine, Messages, Pattern};

/// Bytes of the numbers whose transforms [`Machine::flops`] describes.
const COMPLEX_BYTES: f64 = 16.0;
/// Bytes copied in the time to locate another run of memory.
const FOUND_BYTES: f64 = 192.0;
/// The time that kernels take to load over a link, relative to copy engines.
const LOADS: f64 = 1.2;

/// A machine with ranks on it.
#[derive(Clone, Copy, Debug)]
pub struct Model<'a> {
    machine: &'a Machine,
    hosts: usize,
    ranks_per_host: f64,
    ranks: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Order {
    pub(crate) load: Volume,
    pub(crate) element: f64,
    /// Encoded bytes per byte in memory, for messages to other hosts.
    pub(crate) share: f64,
    pub(crate) wire: Wire,
    pub(crate) exchange: Exchange,
    /// Bytes of a chunk, if chunked.
    pub(crate) chunk: Option<f64>,
    pub(crate) rounds: f64,
}

/// The time of a reshape on the busiest rank, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    /// Reading, encoding and writing messages to be sent.
    pub pack: f64,
    /// Message transfer.
    pub flight: f64,
    /// Reading, decoding and writing received messages and local data.
    pub unpack: f64,
    /// Number of pieces; packing the first and unpacking the last do not overlap with transfer.
    pub pieces: f64,
}

impl Spent {
    /// The total, with packing overlapped with transfer.
    pub fn seconds(&self) -> f64 {
        self.with(0.0)
    }

    /// The total if each piece is also transformed before packing.
    pub fn with(&self, before: f64) -> f64 {
        let pack = self.pack + before;
        let overlapped = pack.max(self.flight) + pack.min(self.flight) / self.pieces;
        overlapped + self.unpack
    }
}

impl Machine {
    /// Whether copy engines that move chunks while transforms run take less time than transforms
    /// that load their input over the links. For GPUs of one host, each with `bytes`.
    pub fn prefers_chunks(&self, bytes: usize, ranks: usize) -> bool {
        let (chunks, bytes) = (device_chunks(bytes, ranks), bytes as f64);
        let pass = Model::new(self, 1, ranks, ranks).pass(bytes);
        let others = (ranks - 1) as f64 / ranks as f64;
        let link = self.near.latency.value + bytes * others / self.near.bandwidth.value;
        // Each overlaps with one pass: of the transforms before it, or after it.
        chunks > 1 && hidden(link, pass, 1.0 / chunks as f64) < hidden(LOADS * link, pass, 0.0)
    }
}

impl<'a> Model<'a> {
    /// A model of `hosts` hosts, with at most `ranks_per_host` of the `ranks` ranks on one.
    pub fn new(machine: &'a Machine, hosts: usize, ranks_per_host: usize, ranks: usize) -> Self {
        Self { machine, hosts, ranks_per_host: ranks_per_host as f64, ranks }
    }

    pub(crate) fn of(machine: &'a Machine, hosts: &Topology, ranks: usize) -> Self {
        Self::new(machine, hosts.hosts(), hosts.ranks_per_host(), ranks)
    }

    /// Whether the machine's processors are GPUs that were measured.
    pub(crate) fn is_of_gpus(&self) -> bool {
        self.machine.gpu.is_some()
    }

    /// The seconds that a reshape of a rank's `bytes` between GPUs adds to the `transforms` before
    /// it, if copy engines move a chunk while later ones are transformed: within a host whose ranks
    /// have GPUs of their own. Transforms and copies share the memory's bandwidth.
    pub(crate) fn chunked(&self, bytes: f64, chunks: f64, reshape: f64, transforms: f64) -> f64 {
        if self.hosts > 1 || self.oversubscription() > 1.0 {
            return reshape;
        }
        let copies = self.memory(2.0 * bytes);
        let added = (reshape - transforms).max(copies) + reshape.min(transforms) / chunks;
        added.min(reshape)
    }

    /// The chunks in which copy engines move a rank's `bytes`.
    pub(crate) fn device_chunks(&self, bytes: f64) -> f64 {
        device_chunks(bytes as usize, self.ranks) as f64
    }

    /// The seconds that a reshape between GPUs adds to the transforms after it, which load their
    /// input from other ranks.
    pub(crate) fn fetched(&self, reshape: f64, transforms: f64) -> f64 {
        hidden(reshape, transforms, peer_read_order::SHARE)
    }

    /// The slowdown of a rank that shares cores with others.
    pub(crate) fn oversubscription(&self) -> f64 {
        (self.ranks_per_host / self.machine.cores.value).max(1.0)
    }

    /// Time of memory accesses of this many bytes on every rank.
    pub fn memory(&self, bytes: f64) -> f64 {
        let Machine { memory, host_memory, .. } = self.machine;
        (bytes * self.oversubscription() / memory.value)
            .max(bytes * self.ranks_per_host / host_memory.value)
    }

    /// One pass over this many bytes.
    pub fn pass(&self, bytes: f64) -> f64 {
        self.memory(2.0 * bytes) + self.machine.launch.value
    }

    pub(crate) fn launch(&self) -> f64 {
        self.machine.launch.value
    }

    /// Arithmetic of transforms of length `n` on a rank with this many `bytes` before them. Real
    /// and single-precision numbers fill half as many SIMD lanes as complex double-precision ones.
    pub fn flops(&self, n: usize, bytes: f64) -> f64 {
        let points = bytes / COMPLEX_BYTES;
        let flops = 5.0 * points * (n.max(2) as f64).log2();
        flops * self.oversubscription() / self.machine.flops_of(n)
    }

    /// Arithmetic and memory of transforms of length `n`. Their lines may be `longer` than the
    /// lines of the data by this factor, or `gathered` with a stride.
    pub(crate) fn transform(&self, n: usize, bytes: f64, longer: f64, gathered: bool) -> [f64; 2] {
        let strided = if gathered { self.strided() } else { 1.0 };
        [self.flops(n, longer * bytes), self.memory(2.0 * bytes) * strided + self.launch()]
    }

    /// The copies of shared data to local memory and back, if lines change their length.
    pub(crate) fn copies_of_shared(&self, bytes: f64) -> f64 {
        2.0 * self.pass(bytes)
    }

    /// The slowdown of memory with this many adjacent bytes.
    pub(crate) fn scattered(&self, side: f64) -> f64 {
        1.0 + FOUND_BYTES / side
    }

    /// The slowdown of memory for strided lines.
    pub fn strided(&self) -> f64 {
        self.machine.strided.value
    }

    /// A barrier among ranks of a host.
    pub fn barrier(&self) -> f64 {
        self.machine.barrier.value * self.oversubscription()
    }

    /// An agreement of all ranks.
    pub(crate) fn agreement(&self) -> f64 {
        let rounds = (self.hosts as f64).log2().ceil();
        self.barrier() + rounds * self.machine.far.latency.value
    }

    /// Transfer of this many bytes from every rank to other hosts.
    pub(crate) fn network(&self, bytes: f64) -> f64 {
        let rank = bytes / self.machine.far.bandwidth.value;
        rank.max(bytes * self.ranks_per_host / self.machine.host_rate(self.hosts))
    }

    /// Encoding and decoding of this many unencoded bytes.
    pub(crate) fn codec(&self, wire: Wire, bytes: f64) -> [f64; 2] {
        [&self.machine.encode, &self.machine.decode].map(|codecs| {
            let Some(rate) = wire.rate() else { return 0.0 };
            let rate = codecs.of(rate);
            bytes * self.oversubscription() / rate.value
        })
    }

    /// The additional copy of a collective call between ranks of a host.
    pub(crate) fn collected(&self, near: f64) -> f64 {
        if near > 0.0 { self.pass(near) } else { 0.0 }
    }

    pub(crate) fn reshape(&self, order: &Order) -> Spent {
        let Order { load, wire, exchange, .. } = *order;
        let traffic = Traffic::new(order);
        let Traffic { far, near, read, packed, .. } = traffic;
        let [encode, decode] = self.codec(wire, far);
        let pattern = exchange.pattern();
        let pieces = match order.chunk {
            None if pattern != Pattern::Collective => {
                ((load.near_messages + load.far_messages) / 2.0).max(1.0)
            }
            _ => traffic.chunks / traffic.waits,
        };
        let flight = self.flight(order, &traffic);
        if self.is_of_gpus() && far == 0.0 {
            // While the links are busy, a kernel copies the data that stays on the rank.
            let own = if read > 0.0 { self.pass(read) } else { 0.0 };
            let pieces = self.device_chunks(load.held * order.element);
            return Spent { pack: 0.0, flight: flight.max(own), unpack: 0.0, pieces };
        }
        let mut pack = if packed > 0.0 { self.memory(near + far + packed) + encode } else { 0.0 };
        let mut unpack = self.pass(read) * self.strided();
        unpack += if packed > 0.0 { self.memory(near + far + packed) + decode } else { 0.0 };
        let meets = match pattern {
            Pattern::Read => load.near > 0.0,
            // Leaders wait for the ranks of their host, and these wait for the leaders.
            Pattern::Bundled => load.near + load.far > 0.0,
            _ => false,
        };
        if meets {
            unpack += 2.0 * self.barrier();
        }
        if packed > 0.0 {
            pack += self.launch();
        }
        Spent { pack, flight, unpack, pieces }
    }

    fn flight(&self, order: &Order, traffic: &Traffic) -> f64 {
        let Order { load, share, exchange, .. } = *order;
        let Traffic { far, near, packed, near_messages, rounds, .. } = *traffic;
        let machine = self.machine;
        let bundled = exchange.pattern() == Pattern::Bundled;
        // Bundles are read where they were packed.
        let within_hosts =
            if bundled { 0.0 } else { self.over(&machine.near, near_messages, near, traffic) };
        let out_of_host = load.host * order.element * share / machine.host_rate(self.hosts);
        let far_messages =
            if bundled { self.bundles(load.far_messages) } else { load.far_messages };
        let abroad = self.over(&machine.far, far_messages, far * share, traffic);
        let near_only = load.far == 0.0;
        let link = if near_only { &machine.near } else { &machine.far };
        let send = |messages: f64, bytes: f64| {
            let host = bytes * self.ranks_per_host / machine.host_rate(self.hosts);
            self.over(link, messages, bytes, traffic).max(if near_only { 0.0 } else { host })
        };
        exchange.flight(&FlightCosts {
            ranks: self.ranks as f64,
            packed,
            rounds,
            direct: within_hosts + abroad.max(out_of_host),
            collected: self.collected(near),
            latency: link.latency.value,
            send: &send,
            memory: &|bytes| self.memory(bytes),
        })
    }

    /// Bundles to and from other hosts for each rank, which replace this number of messages.
    fn bundles(&self, far_messages: f64) -> f64 {
        let hosts = (self.hosts as f64 - 1.0).min(far_messages / 2.0);
        (2.0 * hosts / self.ranks_per_host).max(if far_messages > 0.0 { 1.0 } else { 0.0 })
    }

    /// Transfer over a link; both directions overlap, messages occupy a rank in turn.
    fn over(&self, link: &Messages, messages: f64, bytes: f64, traffic: &Traffic) -> f64 {
        // Chunks are large enough for messages of some size to all peers.
        let most = 2.0 * bytes / MESSAGE_BYTES as f64;
        let count = (messages * traffic.chunks).min(most).max(messages);
        let overhead = count * link.overhead.value * self.oversubscription();
        let latency = if messages > 0.0 { traffic.waits * link.latency.value } else { 0.0 };
        latency + overhead + bytes / link.bandwidth.value
    }
}

/// The time that a reshape adds to transforms that run at the same time: the excess and a share of
/// the shorter one.
fn hidden(reshape: f64, transforms: f64, share: f64) -> f64 {
    (reshape - transforms).max(0.0) + share * reshape.min(transforms)
}

/// The traffic of a reshape on the busiest rank, in bytes before encoding.
struct Traffic {
    far: f64,
    /// To ranks of the host by messages, and their number.
    near: f64,
    near_messages: f64,
    /// Copied or read from shared memory.
    read: f64,
    /// All messages as encoded.
    packed: f64,
    chunks: f64,
    rounds: f64,
    /// Rounds that wait for the messages of the one before.
    waits: f64,
}

impl Traffic {
    fn new(order: &Order) -> Self {
        let Order { load, element, share, exchange, chunk, rounds, .. } = *order;
        let direct = exchange.reads_peers();
        let bytes = |points: f64| points * element;
        let (far, near) = (bytes(load.far), if direct { 0.0 } else { bytes(load.near) });
        let read = bytes(load.own) + if direct { bytes(load.near) } else { 0.0 };
        let chunks = chunk.map_or(1.0, |chunk| (bytes(load.held) / chunk).ceil().max(1.0));
        let rounds = rounds.min(chunks);
        // Puts of a round complete independently; other exchanges wait for each round.
        let waits = if exchange.pattern() == Pattern::Put { 1.0 } else { rounds };
        let near_messages = if direct { 0.0 } else { load.near_messages };
        Self { far, near, near_messages, read, packed: near + far * share, chunks, rounds, waits }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{DynGrid, Layout, ProcGrid};

    /// Seconds of moving slabs along the first axis to slabs along the second.
    fn slabs(machine: &Machine) -> (Spent, f64) {
        let grid = DynGrid::new([64, 64, 64]).unwrap();
        let layout = |ranks: [usize; 3]| {
            let ranks = ProcGrid::new(ranks);
            let bricks: Vec<_> = (0..4).map(|rank| ranks.part(&grid, rank)).collect();
            Layout::new(grid, bricks, 4).unwrap()
        };
        let (from, to) = (layout([4, 1, 1]), layout([1, 4, 1]));
        let hosts = Topology::new(&[0; 4], 4);
        let model = Model::of(machine, &hosts, 4);
        let order = Order {
            load: Volume::new(&from, &to, &hosts, Layout::count),
            element: 16.0,
            share: 1.0,
            wire: Wire::Raw,
            exchange: Exchange::P2p,
            chunk: None,
            rounds: 1.0,
        };
        (model.reshape(&order), model.pass(16.0 * 65536.0))
    }

    #[test]
    fn links_between_gpus_include_packing() {
        let host = Machine::default();
        let gpu = Machine { gpu: Some("a GPU".into()), ..host.clone() };
        let ((packed, _), (direct, pass)) = (slabs(&host), slabs(&gpu));
        let seconds = [direct, packed].map(|spent| spent.seconds());
        assert!(seconds[0] < seconds[1] - pass, "{seconds:?} {pass}");
        assert_eq!((direct.flight, direct.unpack), (packed.flight, 0.0));
    }

    /// Large arrays have the most chunks, small ones are not divided.
    #[test]
    fn chunks_have_a_least_size() {
        let counts = |ranks: usize| {
            [0, 31, 32, 255, 256, 768, 4096].map(|mib| device_chunks(mib << 20, ranks))
        };
        assert_eq!(counts(2), [1, 1, 1, 7, 8, 16, 16]);
        assert_eq!(counts(3), [1, 1, 1, 1, 1, 3, 4]);
        assert_eq!(counts(64), counts(3));
    }

    #[test]
    fn gpus_hide_the_shorter_of_reshapes_and_transforms() {
        let machine = Machine { gpu: Some("a GPU".into()), ..Machine::default() };
        let large = (1u64 << 30) as f64;
        let two = Model::new(&machine, 1, 2, 2);
        let copies = two.memory(2.0 * large);
        assert!(copies < 1.6, "{copies}");
        assert_eq!(two.chunked(large, 16.0, 3.2, 1.6), 1.6 + 0.1);
        assert_eq!(two.chunked(large, 16.0, 1.6, 3.2), copies + 0.1, "memory limits both");
        assert_eq!(two.chunked(large, 16.0, 0.1 * copies, 3.2), 0.1 * copies, "never more");
        assert_eq!(two.chunked(large, 1.0, 1.6, 3.2), 1.6, "at once");
        let four = Model::new(&machine, 1, 4, 4);
        assert_eq!(four.fetched(3.0, 0.0), 3.0);
        assert!(four.fetched(1.0, 2.0) < 1.0);
        // Ranks of one GPU transform and copy in turn.
        let mut shared = machine.clone();
        shared.cores.value = 1.0;
        assert_eq!(Model::new(&shared, 1, 4, 4).chunked(large, 4.0, 3.2, 1.6), 3.2);
    }

    #[test]
    fn machines_prefer_chunks_of_large_arrays() {
        let mut machine = Machine { gpu: Some("a GPU".into()), ..Machine::default() };
        (machine.memory.value, machine.host_memory.value) = (3e12, 6e12);
        machine.near.bandwidth.value = 1e11;
        let prefers = |mib: usize, ranks| machine.prefers_chunks(mib << 20, ranks);
        assert_eq!([32, 64].map(|mib| prefers(mib, 2)), [false, true]);
        assert_eq!([256, 512].map(|mib| prefers(mib, 4)), [false, true]);
    }
}
