//! The exact messages of a recipe's reshapes on all ranks, which [`crate::Simulator`] simulates.
//!
//! K-way exchanges are listed before forwarding. Lengths that depend on the data are expected
//! values.

mod bundles;

use crate::base::Precision;
use crate::codec::Wire;
use crate::geometry::{DynBrick, Layout, Topology};
use crate::lower::Capabilities;
use crate::planner::volume::Volume;
use crate::problem::{Chunking, Direction, Pattern, Problem};
use crate::recipe::{Node, Recipe, Step};
use crate::redistribute::redistribution::chunks;
use crate::redistribute::send_order;

/// A message of a reshape or of one of its chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The sending rank.
    pub from: u32,
    /// The receiving rank, which is not the sender.
    pub to: u32,
    /// The chunk of the sender's brick.
    pub chunk: u32,
    /// Unencoded bytes.
    pub bytes: u64,
    /// Bytes as encoded, less only between hosts; expected values of variable lengths.
    pub wire: u64,
}

/// The messages of one reshape, by sender, in sending order; and bytes moved without messages.
///
/// ```
/// use fft_core::*;
/// let grid = DynGrid::new([256, 256])?;
/// let rows = Layout::even(grid, ProcGrid::new([4, 1]), 4);
/// let columns = Layout::even(grid, ProcGrid::new([1, 4]), 4);
/// let mut problem = Problem::new([Kind::C2C; 2], true, Precision::F64, rows, columns)?;
/// problem.options.exchange = Exchange::P2p;
/// problem.hosts = vec![0, 0, 1, 1];
/// let (_, schedule) = Schedule::of(&Recipe::new(problem)?).remove(0);
/// let to: Vec<_> = schedule.of_rank(2).iter().map(|message| message.to).collect();
/// assert_eq!(to, [3, 0, 1]);
/// let each = 64 * 64 * 16;
/// assert!(schedule.messages().iter().all(|message| message.bytes == each));
/// let summary = schedule.summary();
/// assert_eq!((summary.own, summary.near, summary.far), (4 * each, 4 * each, 8 * each));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// The host of each rank, from 0 on.
    host_of: Vec<u32>,
    hosts: usize,
    messages: Vec<Message>,
    /// The start of each rank's messages, and the end of the last's.
    first: Vec<usize>,
    /// Bytes that stay with each rank.
    own: Vec<u64>,
    /// Bytes that each rank reads from peers of its host.
    read: Vec<u64>,
    /// Whether messages within hosts go through slots in memory that their ranks share.
    slots: bool,
}

/// A summary of a reshape. Bytes of messages are as encoded. Messages that go through slots count
/// only as bytes, not as messages.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// Messages of all ranks.
    pub messages: usize,
    /// Bytes of the smallest message.
    pub min: u64,
    /// Bytes of the upper median.
    pub median: u64,
    /// Bytes of the largest message.
    pub max: u64,
    /// Maximum receivers of one rank.
    pub peers: usize,
    /// Bytes that the busiest rank sends and receives.
    pub rank_most: u64,
    /// Bytes that stay with their ranks.
    pub own: u64,
    /// Bytes read from peers of the same host.
    pub read: u64,
    /// Bytes sent to ranks of the same host, also through slots.
    pub near: u64,
    /// Bytes sent to other hosts.
    pub far: u64,
    /// Bytes that the busiest host sends to, or receives from, other hosts.
    pub host_most: u64,
    /// Bytes that the average host sends to other hosts.
    pub host_mean: f64,
    /// Maximum messages to one rank in the same step. Step i is the i-th message of every rank.
    pub incast: usize,
    /// Maximum messages from other hosts to one host in the same step.
    pub host_incast: usize,
}

struct Sizes {
    element: usize,
    reals: usize,
    width: usize,
    wire: Wire,
    precision: Precision,
    /// Encoded bits per bit in memory, for variable lengths.
    share: f64,
}

const HEADER: f64 = 8.0;

impl Sizes {
    fn new(problem: &Problem, from: &Node, wire: Wire) -> Self {
        let (precision, width) = (problem.precision, from.width());
        let reals = width * problem.batch;
        let share = wire.share(precision, problem.options.tolerance);
        Self { element: reals * precision.bytes(), reals, width, wire, precision, share }
    }

    fn encoded(&self, points: usize) -> u64 {
        let elements = points * self.reals / self.width;
        let fixed = match self.precision {
            Precision::F32 => self.wire.codec::<f32>().fixed(elements, self.width),
            Precision::F64 => self.wire.codec::<f64>().fixed(elements, self.width),
        };
        let bytes = (points * self.element) as f64;
        fixed.map_or((HEADER + bytes * self.share).ceil() as u64, |bytes| bytes as u64)
    }
}

struct Listing<'a> {
    problem: &'a Problem,
    hosts: &'a Topology,
    from: &'a Node,
    to: &'a Node,
    pattern: Pattern,
    /// Whether messages to other hosts are encoded.
    encoded: bool,
    /// Whether ranks of a host read each other's memory.
    direct: bool,
    /// Axes that chunks hold whole.
    whole: &'a [usize],
    chunking: Option<Chunking>,
    sizes: Sizes,
}

impl Listing<'_> {
    fn messages(&self) -> Schedule {
        let ranks = self.from.layout.ranks();
        let mut made = Schedule::empty(self.hosts, ranks);
        let mut sends: Vec<(usize, DynBrick)> = Vec::new();
        for rank in 0..ranks {
            sends.clear();
            for (peer, common) in send_order::sends(rank, &self.from.layout, &self.to.layout) {
                let bytes = (common.points() * self.sizes.element) as u64;
                match self.direct && self.problem.near(rank, peer) {
                    _ if peer == rank => made.own[rank] += bytes,
                    true => made.read[peer] += bytes,
                    false => sends.push((peer, common)),
                }
            }
            for (chunk, part) in self.chunks(rank, &sends).iter().enumerate() {
                self.of_chunk(rank, chunk, part, &sends, &mut made.messages);
            }
            made.first.push(made.messages.len());
        }
        made
    }

    /// The chunks of a rank's brick, if it sends any.
    fn chunks(&self, rank: usize, sends: &[(usize, DynBrick)]) -> Vec<DynBrick> {
        let (from, to) = (&self.from.layout, &self.to.layout);
        let brick = from.brick(rank);
        match self.chunking.filter(|_| !sends.is_empty()) {
            Some(chunking) => {
                let element = self.sizes.element;
                chunks(brick, to.brick(rank), from.order(), self.whole, element, chunking)
            }
            None => vec![brick],
        }
    }

    /// Adds the messages of a chunk, in their order.
    fn of_chunk(
        &self,
        rank: usize,
        chunk: usize,
        brick: &DynBrick,
        sends: &[(usize, DynBrick)],
        messages: &mut Vec<Message>,
    ) {
        let parts = sends.iter().map(|(peer, part)| (*peer, part.intersect(brick).points()));
        let parts = parts.filter(|(_, points)| *points > 0);
        let home = self.hosts.host_of(rank);
        let place = [home, self.hosts.ranks_of(home).partition_point(|other| *other < rank)];
        let parts: Vec<_> = if self.pattern == Pattern::Put {
            let host = |peer| self.hosts.host_of(peer);
            send_order::by_host(parts, |part| part.0, host, place).collect()
        } else {
            parts.collect()
        };
        for (peer, points) in parts {
            let bytes = (points * self.sizes.element) as u64;
            let encoded = self.encoded && !self.problem.is_raw_link(rank, peer);
            let wire = if encoded { self.sizes.encoded(points) } else { bytes };
            let (from, to, chunk) = (number(rank), number(peer), number(chunk));
            messages.push(Message { from, to, chunk, bytes, wire });
        }
    }
}

impl Schedule {
    /// The reshapes of a recipe and the numbers of their steps in the forward transform. Shared
    /// passes count as reads. Cost: O(messages) time and memory.
    ///
    /// # Panics
    /// If there are 2³² ranks or more.
    pub fn of(recipe: &Recipe) -> Vec<(usize, Self)> {
        let problem = recipe.problem();
        let hosts = Topology::new(&problem.hosts, problem.input.ranks());
        let capabilities = Capabilities::of_threads(problem);
        let program = recipe.lower(Direction::Forward, capabilities);
        let pattern = program.policy.exchange.pattern();
        let reshape = |(number, step): (usize, &Step)| {
            let Step::Reshape { wire, .. } = *step else { return None };
            let [from, to] = program.ends(number);
            let pass = program.exchange(number);
            let list = Listing {
                problem,
                hosts: &hosts,
                from,
                to,
                pattern,
                encoded: wire != Wire::Raw,
                // Without an exchange, transforms read from peers.
                direct: pass.is_none_or(|pass| pass.direct),
                whole: pass.map_or(&[], |pass| &pass.whole),
                chunking: program.policy.chunking,
                sizes: Sizes::new(problem, from, wire),
            };
            let all = list.messages();
            Some((number, if pattern == Pattern::Bundled { all.bundled(&hosts) } else { all }))
        };
        recipe.steps().iter().enumerate().filter_map(reshape).collect()
    }

    /// The number of messages and of reads of all reshapes, estimated from the busiest ranks. Cost:
    /// O(ranks) for each step.
    pub fn estimate(recipe: &Recipe) -> f64 {
        let problem = recipe.problem();
        let ranks = problem.input.ranks();
        let policy = problem.policy();
        let hosts = Topology::new(&problem.hosts, ranks);
        let reals = problem.batch * problem.precision.bytes();
        let of = |(step, nodes): (&Step, &[Node])| {
            let [from, to] = nodes else { return 0.0 };
            let Step::Reshape { .. } = step else { return 0.0 };
            let bytes = (from.layout.most_points() * from.width() * reals) as f64;
            let chunks = policy.chunking.map_or(1.0, |chunking| {
                let chunk = chunking.bytes as f64;
                // Chunks that end at several axes are shorter than this.
                if chunking.fine { 2.0 * bytes / chunk } else { bytes / chunk }
            });
            let Volume { near_messages, far_messages, .. } =
                Volume::new(&from.layout, &to.layout, &hosts, Layout::count);
            let peers = (near_messages + far_messages) / 2.0;
            // Reads of shared memory have no chunks.
            let chunks = if policy.all_near { 1.0 } else { chunks.ceil().max(1.0) };
            peers * chunks * ranks as f64
        };
        recipe.steps().iter().zip(recipe.nodes().windows(2)).map(of).sum()
    }

    fn empty(hosts: &Topology, ranks: usize) -> Self {
        Self {
            host_of: (0..ranks).map(|rank| number(hosts.host_of(rank))).collect(),
            hosts: hosts.hosts(),
            messages: Vec::new(),
            first: vec![0],
            own: vec![0; ranks],
            read: vec![0; ranks],
            slots: false,
        }
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.own.len()
    }

    /// Number of hosts.
    pub fn hosts(&self) -> usize {
        self.hosts
    }

    /// The host of a rank below [`Schedule::ranks`], numbered in the order of first ranks.
    pub fn host(&self, rank: usize) -> usize {
        self.host_of[rank] as usize
    }

    /// All messages, by sender, in sending order, with those that go through slots.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The messages of a sender below [`Schedule::ranks`], in order.
    pub fn of_rank(&self, rank: usize) -> &[Message] {
        &self.messages[self.places(rank)]
    }

    /// The range of a sender's messages.
    pub(crate) fn places(&self, rank: usize) -> std::ops::Range<usize> {
        self.first[rank]..self.first[rank + 1]
    }

    /// Bytes that stay with a rank below [`Schedule::ranks`].
    pub fn own(&self, rank: usize) -> u64 {
        self.own[rank]
    }

    /// Bytes that a rank below [`Schedule::ranks`] reads from peers of its host.
    pub fn read(&self, rank: usize) -> u64 {
        self.read[rank]
    }

    /// Whether a message leaves its host.
    pub fn is_far(&self, message: &Message) -> bool {
        self.host_of[message.from as usize] != self.host_of[message.to as usize]
    }

    /// Whether a message goes through a slot in memory that the ranks of its host share: one packs
    /// it there, and the other unpacks it.
    pub fn is_in_slot(&self, message: &Message) -> bool {
        self.slots && !self.is_far(message)
    }

    /// The messages of a sender without those that go through slots, in order.
    fn sent_by(&self, rank: usize) -> impl Iterator<Item = &Message> {
        self.of_rank(rank).iter().filter(|message| !self.is_in_slot(message))
    }

    /// A summary. Cost: O(messages log messages).
    pub fn summary(&self) -> Summary {
        let sent = self.messages.iter().filter(|message| !self.is_in_slot(message));
        let mut sizes: Vec<_> = sent.map(|message| message.wire).collect();
        sizes.sort_unstable();
        let peers = |rank| {
            let mut peers: Vec<_> = self.sent_by(rank).map(|message| message.to).collect();
            peers.sort_unstable();
            peers.dedup();
            peers.len()
        };
        let (mut out, mut back) = (vec![0; self.hosts], vec![0; self.hosts]);
        let (mut near, mut far) = (0, 0);
        let mut of_rank = vec![0; self.ranks()];
        for message in &self.messages {
            of_rank[message.from as usize] += message.wire;
            of_rank[message.to as usize] += message.wire;
            if self.is_far(message) {
                far += message.wire;
                out[self.host(message.from as usize)] += message.wire;
                back[self.host(message.to as usize)] += message.wire;
            } else {
                near += message.wire;
            }
        }
        let [incast, host_incast] = self.incast();
        Summary {
            messages: sizes.len(),
            min: sizes.first().copied().unwrap_or(0),
            median: sizes.get(sizes.len() / 2).copied().unwrap_or(0),
            max: sizes.last().copied().unwrap_or(0),
            peers: (0..self.ranks()).map(peers).max().unwrap_or(0),
            rank_most: of_rank.into_iter().max().unwrap_or(0),
            own: self.own.iter().sum(),
            read: self.read.iter().sum(),
            near,
            far,
            host_most: out.iter().chain(&back).copied().max().unwrap_or(0),
            host_mean: far as f64 / self.hosts.max(1) as f64,
            incast,
            host_incast,
        }
    }

    /// Maximum messages to one rank, and from other hosts to one host, in the same step.
    fn incast(&self) -> [usize; 2] {
        let mut rest: Vec<_> = (0..self.ranks()).map(|rank| self.sent_by(rank)).collect();
        let mut at_rank = vec![0; self.ranks()];
        let mut at_host = vec![0; self.hosts];
        let mut most = [0; 2];
        loop {
            at_rank.fill(0);
            at_host.fill(0);
            for message in rest.iter_mut().filter_map(Iterator::next) {
                let to = message.to as usize;
                at_rank[to] += 1;
                at_host[self.host(to)] += usize::from(self.is_far(message));
            }
            let largest = |counts: &[usize]| counts.iter().copied().max().unwrap_or(0);
            most = [most[0].max(largest(&at_rank)), most[1].max(largest(&at_host))];
            if largest(&at_rank) == 0 {
                return most;
            }
        }
    }

    /// At most one message between two ranks, in the order of [`Order::Pairwise`](crate::Order).
    pub(crate) fn matched(&self) -> Self {
        let mut made = Self {
            host_of: self.host_of.clone(),
            hosts: self.hosts,
            messages: Vec::new(),
            first: vec![0],
            own: self.own.clone(),
            read: self.read.clone(),
            slots: self.slots,
        };
        for rank in 0..self.ranks() {
            let mut list = self.of_rank(rank).to_vec();
            let distance = |peer: u32| (peer as usize + self.ranks() - rank) % self.ranks();
            list.sort_by_key(|message| distance(message.to));
            list.dedup_by(|next, first| {
                let same = next.to == first.to;
                if same {
                    (first.bytes, first.wire) = (first.bytes + next.bytes, first.wire + next.wire);
                }
                same
            });
            made.messages.extend(list.into_iter().map(|message| Message { chunk: 0, ..message }));
            made.first.push(made.messages.len());
        }
        made
    }

    /// Messages of a test, by sender: `(from, to, bytes)`.
    #[cfg(test)]
    pub(crate) fn of_messages(hosts: &[usize], list: &[(u32, u32, u64)]) -> Self {
        let mut made = Self::empty(&Topology::new(hosts, hosts.len()), hosts.len());
        for rank in 0..hosts.len() as u32 {
            for &(from, to, bytes) in list.iter().filter(|(from, ..)| *from == rank) {
                made.messages.push(Message { from, to, chunk: 0, bytes, wire: bytes });
            }
            made.first.push(made.messages.len());
        }
        made
    }
}

fn number(index: usize) -> u32 {
    u32::try_from(index).expect("fewer than 2³² ranks and chunks")
}
