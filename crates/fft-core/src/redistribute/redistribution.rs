//! The boxes that one rank moves in a reshape.

use std::iter::once;
use std::ops::Range;

use super::axis_order::TransposedWhenRead;
use super::spill::{BufferOffset, BufferSplit};
use crate::base::cache_sizes::CHUNK_RUN_BYTES;
use crate::geometry::{DIMS, Placed, View};
use crate::geometry::{DynBrick, PerAxis, Transfer};
use crate::problem::Chunking;
use crate::problem::Link;
use crate::recipe::Node;
use crate::redistribute::send_order;

/// The boxes that one rank sends, receives and copies.
///
/// A message holds the points common to the sender's old brick and the receiver's new one. It is
/// dense, batches first, in the receiver's order of axes or in the sender's
/// ([`TransposedWhenRead`]).
pub struct Redistribution {
    /// The rank.
    pub rank: usize,
    /// Real numbers per element.
    pub width: usize,
    before: Placed,
    after: Placed,
    /// The messages in the sender's order of axes.
    transposed: Option<TransposedWhenRead>,
    splits: [BufferSplit; 2],
    /// The receiver of each box. Ranks begin with different receivers (`send_order.rs`).
    pub sends: Vec<(usize, DynBrick)>,
    /// The sender of each box, beginning with the rank before this one.
    pub recvs: Vec<(usize, DynBrick)>,
    /// Boxes read from local memory, this rank's first.
    pub local_reads: Vec<LocalRead>,
    pub(crate) chunks: Vec<DynBrick>,
    /// The chunk of every message to be sent; each piece of the receiver's buffer counts.
    pub chunk_of: Vec<usize>,
    /// The sender's chunk of every message to be received.
    pub theirs: Vec<usize>,
    /// The maximum number of chunks of any rank.
    pub most_chunks: usize,
}

/// The chunks of a rank's brick in sending order, cut along the outermost axis that is not in
/// `whole`. Fine chunks are cut along further axes.
///
/// The first chunk is the one after the rank's own brick `after` the reshape, because otherwise all
/// ranks would send their first chunks to the same few receivers. If no chunk comes after it, the
/// order is the order of memory.
pub(crate) fn chunks(
    brick: DynBrick,
    after: DynBrick,
    order: PerAxis<usize>,
    whole: &[usize],
    bytes: usize,
    most: Chunking,
) -> Vec<DynBrick> {
    let mut axes = order.into_iter().filter(|axis| brick.len(*axis) > 1 && !whole.contains(axis));
    let Some(outer) = axes.next() else { return vec![brick] };
    let cut = |brick: DynBrick, axis: usize| {
        let range = brick.range(axis);
        // Adjacent elements stay together.
        let least = if axis == order.contiguous() { CHUNK_RUN_BYTES.div_ceil(bytes) } else { 1 };
        let plane = (brick.points() / brick.len(axis).max(1) * bytes).max(1);
        let step = (most.bytes / plane).max(least);
        let chunk = move |lo: usize| brick.with_range(axis, lo..range.end.min(lo + step));
        brick.range(axis).step_by(step).map(chunk)
    };
    let mut chunks: Vec<_> = cut(brick, outer).collect();
    let behind = chunks.iter().position(|chunk| chunk.lo[outer] >= after.hi[outer]);
    chunks.rotate_left(behind.unwrap_or(0));
    for axis in axes.filter(|_| most.fine) {
        chunks = chunks.into_iter().flat_map(|chunk| cut(chunk, axis)).collect();
    }
    chunks
}

/// A part of a brick in memory, at an offset in elements.
struct Held {
    placed: Placed,
    first: usize,
}

impl Held {
    fn read(&self, part: &DynBrick, batches: Range<usize>, to: &Placed) -> Transfer {
        Transfer::new(part, batches, &self.placed, to).behind(self.first, 0)
    }
}

/// A box in readable memory.
#[derive(Clone, Copy)]
pub struct LocalRead {
    /// The rank whose memory holds it.
    pub owner: usize,
    pub(crate) part: DynBrick,
    before: Placed,
}

impl LocalRead {
    /// The part of it with these indices along an axis.
    pub fn within(&self, axis: usize, range: Range<usize>) -> Self {
        Self { part: self.part.intersect(&self.part.with_range(axis, range)), ..*self }
    }
}

/// A box of the new brick that is read from local memory.
pub struct LocalReadBox {
    /// The rank whose memory holds it.
    pub owner: usize,
    /// Its ranges in the new brick: batches, then axes from the slowest.
    pub ranges: [Range<usize>; DIMS],
    /// Its place in the source, along the same axes.
    pub source: View,
}

impl Redistribution {
    /// The redistribution of this rank between two nodes, for these links to other ranks.
    ///
    /// Costs O(log P + messages) once the layouts are indexed.
    pub fn new(
        rank: usize,
        link: &dyn Fn(usize) -> Link,
        from: &Node,
        to: &Node,
        batch: usize,
    ) -> Self {
        let place = |node: &Node, rank| Placed {
            brick: node.layout.brick(rank),
            order: node.layout.order(),
            batch,
        };
        let (before, after) = (place(from, rank), place(to, rank));
        let mut sends = send_order::sends(rank, &from.layout, &to.layout);
        let mut recvs = Vec::new();
        from.layout.intersections(&after.brick, |peer, common| recvs.push((peer, common)));
        let ranks = from.layout.ranks();
        sends.retain(|(peer, _)| link(*peer) == Link::Remote);
        recvs.sort_unstable_by_key(|(peer, _)| (rank + ranks - peer) % ranks);
        let (recvs, local_reads): (Vec<_>, Vec<_>) =
            recvs.into_iter().partition(|(peer, _)| link(*peer) == Link::Remote);
        let local_reads = local_reads.into_iter();
        let local_reads = local_reads
            .map(|(owner, part)| LocalRead { owner, part, before: place(from, owner) })
            .collect();
        let (chunks, chunk_of) = (vec![before.brick], vec![0; sends.len()]);
        let theirs = vec![0; recvs.len()];
        let (width, most_chunks) = (from.width(), 1);
        Self {
            rank,
            width,
            before,
            after,
            transposed: None,
            splits: Default::default(),
            sends,
            recvs,
            local_reads,
            chunks,
            chunk_of,
            theirs,
            most_chunks,
        }
    }

    /// The same with some messages in the sender's order of axes, so that the receiver transposes
    /// them.
    pub fn transposed_when_read(self, which: TransposedWhenRead) -> Self {
        Self { transposed: Some(which), ..self }
    }

    /// Cuts messages and local reads so that each is from one piece to one piece of split buffers.
    pub(crate) fn split_by(mut self, splits: [&BufferSplit; 2], [from, to]: [&Node; 2]) -> Self {
        self.splits = splits.map(BufferSplit::clone);
        let [before, after] = splits;
        let cut = |(sender, receiver): (usize, usize), part: &DynBrick| -> Vec<DynBrick> {
            let befores = before.parts(sender, from.layout.brick(sender));
            let afters = after.parts(receiver, to.layout.brick(receiver));
            let both = befores.iter().flat_map(|a| afters.iter().map(|b| a.intersect(b)));
            both.map(|both| both.intersect(part)).filter(|part| !part.is_empty()).collect()
        };
        let rank = self.rank;
        let out = |(peer, part): (usize, DynBrick)| {
            cut((rank, peer), &part).into_iter().map(move |part| (peer, part))
        };
        let come = |(peer, part): (usize, DynBrick)| {
            cut((peer, rank), &part).into_iter().map(move |part| (peer, part))
        };
        self.sends = self.sends.into_iter().flat_map(out).collect();
        self.recvs = self.recvs.into_iter().flat_map(come).collect();
        let cut_read = |read: LocalRead| {
            let parts = cut((read.owner, rank), &read.part).into_iter();
            parts.map(move |part| LocalRead { part, ..read })
        };
        self.local_reads = self.local_reads.into_iter().flat_map(cut_read).collect();
        self
    }

    /// Cuts messages by chunks that hold whole lines along some axes. `element` is in bytes.
    pub fn chunked(
        mut self,
        [from, to]: [&Node; 2],
        whole: &[usize],
        element: usize,
        most: Chunking,
    ) -> Self {
        let bytes = element * self.before.batch;
        let order = self.before.order;
        let [before_split, after_split] = self.splits.clone();
        let cut = |rank| -> Vec<DynBrick> {
            let (before, after) = (from.layout.brick(rank), to.layout.brick(rank));
            let parts = before_split.parts(rank, before).into_iter();
            let parts = parts.filter(|part| !part.is_empty() || before.is_empty());
            parts.flat_map(|part| chunks(part, after, order, whole, bytes, most)).collect()
        };
        let halves = after_split.count();
        self.chunks = cut(self.rank);
        let mut sends = Vec::new();
        for (number, chunk) in self.chunks.iter().enumerate() {
            let parts = self.sends.iter().map(|(peer, part)| (*peer, part.intersect(chunk)));
            let number = |(peer, part): (usize, DynBrick)| {
                (halves * number + after_split.part(peer, &part), (peer, part))
            };
            sends.extend(parts.filter(|(_, part)| !part.is_empty()).map(number));
        }
        (self.chunk_of, self.sends) = sends.into_iter().unzip();
        let mut recvs = Vec::new();
        for (peer, part) in &self.recvs {
            let parts = cut(*peer).into_iter().map(|chunk| part.intersect(&chunk));
            let parts = parts.enumerate().filter(|(_, part)| !part.is_empty());
            let half = after_split.part(self.rank, part);
            recvs.extend(parts.map(|(number, part)| (halves * number + half, (*peer, part))));
        }
        recvs.sort_by_key(|(number, _)| *number);
        (self.theirs, self.recvs) = recvs.into_iter().unzip();
        let ranks = 0..from.layout.ranks();
        self.most_chunks = halves * ranks.map(|rank| cut(rank).len()).max().unwrap_or(1);
        self
    }

    /// The chunk of every message to be sent, as an index of [`Redistribution::chunks`].
    pub(crate) fn chunks_sent(&self) -> impl Iterator<Item = usize> {
        let halves = self.splits[1].count();
        self.chunk_of.iter().map(move |number| number / halves)
    }

    /// The piece of memory with a box of the old brick, and the box in it.
    fn held_before(&self, part: &DynBrick) -> (usize, Held) {
        self.held(&self.splits[0], self.rank, &self.before, part)
    }

    /// The piece of memory with a box of the new brick, and the box in it.
    fn held_after(&self, part: &DynBrick) -> (usize, Held) {
        self.held(&self.splits[1], self.rank, &self.after, part)
    }

    fn held(
        &self,
        split: &BufferSplit,
        rank: usize,
        whole: &Placed,
        part: &DynBrick,
    ) -> (usize, Held) {
        let number = split.part(rank, part);
        let BufferOffset { piece, first } = split.offset(number, rank, whole.brick, whole.batch);
        let brick = split.parts(rank, whole.brick)[number];
        (piece, Held { placed: Placed { brick, ..*whole }, first })
    }

    /// The piece of memory that a box of the old brick is read from.
    pub(crate) fn source(&self, part: &DynBrick) -> usize {
        self.held_before(part).0
    }

    /// The piece of memory that a box of the new brick is written to.
    pub(crate) fn destination(&self, part: &DynBrick) -> usize {
        self.held_after(part).0
    }

    /// A whole chunk of the old brick, to a tile.
    pub(crate) fn load(&self, chunk: &DynBrick) -> Transfer {
        self.held_before(chunk).1.read(chunk, self.batches(), &self.tile(chunk))
    }

    /// From a tile with a chunk of the old brick into a message of the points in `part`.
    pub(crate) fn gather_from(&self, chunk: &DynBrick, part: &DynBrick) -> Transfer {
        Transfer::new(part, self.batches(), &self.tile(chunk), &self.message(part))
    }

    /// From a tile with a chunk of the old brick into the new one, by piece of memory.
    pub(crate) fn keep_from(&self, chunk: &DynBrick) -> Vec<(usize, Transfer)> {
        let tile = Held { placed: self.tile(chunk), first: 0 };
        let own = self.local_reads.iter().filter(|read| read.owner == self.rank);
        let parts = own.map(|read| read.part.intersect(chunk));
        let keep =
            |part| Some((self.destination(&part), self.arriving(&part, &tile, &self.all())?));
        let mut kept: Vec<_> = parts.filter(|part| !part.is_empty()).filter_map(keep).collect();
        kept.shrink_to_fit();
        kept
    }

    fn tile(&self, chunk: &DynBrick) -> Placed {
        Placed { brick: *chunk, ..self.before }
    }

    pub(crate) fn order(&self) -> PerAxis<usize> {
        self.before.order
    }

    pub(crate) fn batch(&self) -> usize {
        self.before.batch
    }

    /// From the old brick into a message of the points in `part`.
    pub fn gather(&self, part: &DynBrick) -> Transfer {
        self.held_before(part).1.read(part, self.batches(), &self.message(part))
    }

    /// From a message of `part` into the new brick, within `wanted`, in the order of the message.
    pub fn scatter(&self, part: &DynBrick, wanted: &Chunk) -> Option<Transfer> {
        let message = Held { placed: self.message(part), first: 0 };
        self.transfer_into(&part.intersect(&wanted.brick), &message, wanted, Transfer::as_read)
    }

    /// From readable memory into the new brick, restricted to `wanted`.
    pub fn take(&self, read: &LocalRead, wanted: &Chunk) -> Option<Transfer> {
        let (_, held) = self.held(&self.splits[0], read.owner, &read.before, &read.part);
        self.arriving(&read.part.intersect(&wanted.brick), &held, wanted)
    }

    /// The boxes read from local memory.
    pub fn pieces(&self) -> Vec<LocalReadBox> {
        let Placed { brick, order, batch } = self.after;
        let piece = |read: &LocalRead| {
            let mut ranges = std::array::from_fn(|_| 0..1);
            let first_axis = DIMS - order.len();
            ranges[first_axis - 1] = 0..batch;
            for (place, &axis) in order.iter().enumerate() {
                let first = brick.lo[axis];
                ranges[first_axis + place] = read.part.lo[axis] - first..read.part.hi[axis] - first;
            }
            LocalReadBox {
                owner: read.owner,
                ranges,
                source: read.before.view(&read.part, 0, order),
            }
        };
        self.local_reads.iter().map(piece).collect()
    }

    fn arriving(&self, part: &DynBrick, from: &Held, wanted: &Chunk) -> Option<Transfer> {
        self.transfer_into(part, from, wanted, Transfer::new)
    }

    /// Into the new brick, by one of two orders of a transfer.
    fn transfer_into(
        &self,
        part: &DynBrick,
        from: &Held,
        wanted: &Chunk,
        order: fn(&DynBrick, Range<usize>, &Placed, &Placed) -> Transfer,
    ) -> Option<Transfer> {
        let transfer = || {
            let (_, to) = self.held_after(part);
            let transfer = order(part, wanted.batches.clone(), &from.placed, &to.placed);
            transfer.behind(from.first, to.first)
        };
        (!part.is_empty()).then(transfer)
    }

    fn message(&self, part: &DynBrick) -> Placed {
        let (sent, received) = (self.before.order, self.after.order);
        let order = self.transposed.map_or(received, |which| which.order(part, sent, received));
        Placed { brick: *part, order, ..self.after }
    }

    fn batches(&self) -> Range<usize> {
        0..self.after.batch
    }

    /// The whole new brick.
    pub fn all(&self) -> Chunk {
        Chunk { brick: self.after.brick, batches: self.batches() }
    }

    /// Boxes of a part of the new brick, each filled and then transformed in cache.
    ///
    /// Memory divides evenly into `blocks`, and every box is a number of whole blocks. A box covers
    /// `run` points of the axis that is contiguous in the old brick, so that reads are whole cache
    /// lines. It extends along inner axes up to `most` elements.
    pub(crate) fn boxes(
        &self,
        part: DynBrick,
        blocks: usize,
        run: Range<usize>,
        most: usize,
    ) -> Vec<(Chunk, Blocks)> {
        let Placed { order, batch, .. } = self.after;
        let all = Chunk { brick: part, batches: self.batches() };
        let brick = part;
        let mut lens = vec![batch];
        lens.extend(order.into_iter().map(|axis| brick.len(axis)));
        // The loops around a block, outermost first.
        let around = |depth: &usize| lens[..*depth].iter().product::<usize>() == blocks;
        let depth = (0..=lens.len()).find(around).expect("blocks are whole inner axes");
        let lens = &lens[..depth];
        let mut step = vec![1; depth];
        let block = all.points() / blocks;
        let contiguous = self.before.order.contiguous();
        if let Some(axis) = (1..depth).find(|&d| order[d - 1] == contiguous) {
            step[axis] = (most / block).clamp(run.start, run.end).min(lens[axis]);
        }
        for d in (0..depth).rev() {
            let now = block * step.iter().product::<usize>();
            step[d] = (step[d] * (most / now).max(1)).min(lens[d]);
        }
        let first =
            |at: &[usize]| -> Vec<usize> { at.iter().zip(&step).map(|(i, s)| i * s).collect() };
        let counts: Vec<_> = lens.iter().zip(&step).map(|(n, s)| n.div_ceil(*s)).collect();
        let boxed = |at: Vec<usize>| {
            let from = first(&at);
            let to: Vec<_> = (0..depth).map(|d| lens[d].min(from[d] + step[d])).collect();
            let mut chunk = all.clone();
            for d in 0..depth {
                match d.checked_sub(1) {
                    None => chunk.batches = from[d]..to[d],
                    Some(place) => {
                        let (axis, lo) = (order[place], brick.lo[order[place]]);
                        chunk.brick = chunk.brick.with_range(axis, lo + from[d]..lo + to[d]);
                    }
                }
            }
            (chunk, runs(lens, &from, &to))
        };
        odometer(&counts).map(boxed).collect()
    }
}

/// The blocks of a box, as runs of adjacent blocks in memory.
pub(crate) type Blocks = Vec<Range<usize>>;

/// The runs of `from..to` in an array of these lengths.
fn runs(lens: &[usize], from: &[usize], to: &[usize]) -> Blocks {
    let Some(last) = lens.len().checked_sub(1) else { return once(0..1).collect() };
    let counts: Vec<_> = (0..last).map(|d| to[d] - from[d]).collect();
    let run = |at: Vec<usize>| {
        let row = (0..last).fold(0, |row, d| row * lens[d] + from[d] + at[d]);
        row * lens[last] + from[last]..row * lens[last] + to[last]
    };
    odometer(&counts).map(run).collect()
}

/// Every index of an array of these lengths, in order.
fn odometer(lens: &[usize]) -> impl Iterator<Item = Vec<usize>> {
    (0..lens.iter().product()).map(move |mut rest: usize| {
        let mut at = vec![0; lens.len()];
        for d in (0..lens.len()).rev() {
            (at[d], rest) = (rest % lens[d], rest / lens[d]);
        }
        at
    })
}

/// Part of a brick, and of a batch of bricks.
#[derive(Clone, Debug)]
pub struct Chunk {
    /// The part.
    pub brick: DynBrick,
    /// The batches.
    pub batches: Range<usize>,
}

impl Chunk {
    pub(crate) fn points(&self) -> usize {
        self.brick.points() * self.batches.len()
    }
}

#[cfg(test)]
mod tests;
