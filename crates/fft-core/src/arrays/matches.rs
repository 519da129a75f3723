//! Which points of which arrays go to which rank.
//!
//! ```text
//! all ranks gather the sources and targets of all ranks
//! for each own source, for each target that intersects it: a box to send
//! for each own target, for each source that intersects it: a box to receive
//! the boxes of a pair of ranks are one message: by target, then by source
//! a box is dense in a message, in the order of memory of its target
//! ```

use super::subarray::Subarray;
use crate::base::Error;
use crate::comm::{Comm, agree};
use crate::geometry::{BrickIndex, DIMS, DynBrick, MAX_AXES, PerAxis, Transfer, View};

/// A box of the grid in a local array.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// The number of the array.
    pub(super) array: usize,
    pub(super) brick: DynBrick,
    /// Where its points are: batches first, then axes.
    pub(super) view: View,
}

/// A part of a message.
#[derive(Debug)]
pub struct CopyPart {
    /// The number of the array on this side of it.
    pub array: usize,
    /// Between the array and the message.
    pub transfer: Transfer,
}

/// A message to or from a peer.
#[derive(Debug)]
pub struct CopyMessage {
    /// The rank.
    pub peer: usize,
    /// Its length in elements.
    pub elements: usize,
    /// Its parts, which are dense.
    pub parts: Vec<CopyPart>,
}

/// A copy from one array of this rank to another, or within one.
#[derive(Debug)]
pub struct OwnCopy {
    /// The number of the source array.
    pub from: usize,
    /// The number of the target array.
    pub to: usize,
    /// From one to the other.
    pub transfer: Transfer,
}

/// All copies of a rank.
#[derive(Debug)]
pub(super) struct Matches {
    pub(super) sends: Vec<CopyMessage>,
    pub(super) recvs: Vec<CopyMessage>,
    pub(super) own: Vec<OwnCopy>,
}

/// The dimensions of a view in memory, slowest first: batches are the one before the axes.
type Order = [usize; DIMS];

/// What other ranks know of a piece.
#[derive(Clone, Copy)]
struct Known {
    rank: usize,
    brick: DynBrick,
    order: Order,
}

/// Words of a piece: its bounds and its order.
const WORDS: usize = 2 * MAX_AXES + 1;

impl Piece {
    /// The brick of a subarray.
    pub(super) fn whole(subarray: &Subarray) -> Self {
        Self { array: subarray.array, brick: subarray.brick, view: subarray.view() }
    }

    fn order(&self) -> Order {
        let mut order: Order = std::array::from_fn(|dim| dim);
        order.sort_by_key(|dim| std::cmp::Reverse(self.view.stride[*dim]));
        order
    }

    fn words(&self) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        for axis in 0..self.brick.axes() {
            words[axis] = self.brick.lo[axis] as u64;
            words[MAX_AXES + axis] = self.brick.hi[axis] as u64;
        }
        words[WORDS - 1] = self.order().into_iter().fold(0, |word, dim| word << 3 | dim as u64);
        words
    }

    /// The place of a part of the brick.
    fn part(&self, part: &DynBrick) -> View {
        let mut view = self.view;
        let first = DIMS - part.axes();
        for axis in 0..part.axes() {
            view.offset += (part.lo[axis] - self.brick.lo[axis]) * view.stride[first + axis];
        }
        view
    }
}

impl Known {
    fn new(rank: usize, axes: usize, words: &[u64; WORDS]) -> Self {
        let bound = |first: usize| PerAxis::from_fn(axes, |axis| words[first + axis] as usize);
        let brick = DynBrick::new(bound(0), bound(MAX_AXES));
        let place = |dim: usize| (words[WORDS - 1] >> (3 * (DIMS - 1 - dim)) & 7) as usize;
        Self { rank, brick, order: std::array::from_fn(place) }
    }
}

/// The shape of a box, axes in this order.
fn shape(brick: &DynBrick, batch: usize, order: Order) -> [usize; DIMS] {
    let first = DIMS - brick.axes();
    order.map(|dim| match dim.checked_sub(first) {
        Some(axis) => brick.len(axis),
        None if dim + 1 == first => batch,
        None => 1,
    })
}

fn ordered(view: View, order: Order) -> View {
    View { offset: view.offset, stride: order.map(|dim| view.stride[dim]) }
}

fn dense(offset: usize, shape: [usize; DIMS]) -> View {
    let mut stride = [1; DIMS];
    for dim in (0..DIMS - 1).rev() {
        stride[dim] = stride[dim + 1] * shape[dim + 1];
    }
    View { offset, stride }
}

/// A box that two ranks have in common. Sorted, boxes are in the order of messages.
struct Common {
    peer: usize,
    /// The numbers of the target and of the source on their ranks.
    target: usize,
    source: usize,
    part: DynBrick,
    /// The order of the target's memory.
    order: Order,
}

/// The pieces of all ranks, and where those of each rank begin.
struct All {
    known: Vec<Known>,
    first: Vec<usize>,
    index: BrickIndex,
}

impl All {
    fn new(known: Vec<Known>, ranks: usize) -> Self {
        let first = (0..ranks).map(|rank| known.partition_point(|it| it.rank < rank)).collect();
        let bricks: Vec<_> = known.iter().map(|it| it.brick).collect();
        Self { known, first, index: BrickIndex::new(&bricks) }
    }

    /// Calls `found` with the rank of each piece that intersects a box, its number there, and the
    /// common part.
    fn intersections(&self, part: &DynBrick, mut found: impl FnMut(&Known, usize, DynBrick)) {
        self.index.intersections(part, |number, common| {
            let known = &self.known[number];
            found(known, number - self.first[known.rank], common);
        });
    }
}

/// Gathers the pieces of all ranks. Collective.
fn gather(comm: &dyn Comm, axes: usize, sides: [&[Piece]; 2]) -> Result<[All; 2], Error> {
    let ranks = comm.size();
    let mut counts = vec![[0u64; 2]; ranks];
    let mine = sides.map(|pieces| pieces.len() as u64);
    comm.allgather(bytemuck::bytes_of(&mine), bytemuck::cast_slice_mut(&mut counts))?;
    let most = counts.iter().map(|[sources, targets]| sources + targets).max().unwrap_or(0);
    let mut words: Vec<_> = sides.into_iter().flatten().map(Piece::words).collect();
    words.resize(most as usize, [0; WORDS]);
    let mut all = vec![[0; WORDS]; most as usize * ranks];
    comm.allgather(bytemuck::cast_slice(&words), bytemuck::cast_slice_mut(&mut all))?;
    let mut known = [Vec::new(), Vec::new()];
    for (rank, [sources, targets]) in counts.into_iter().enumerate() {
        let mut of_rank = all[rank * most as usize..].iter();
        for (known, count) in known.iter_mut().zip([sources, targets]) {
            let pieces = of_rank.by_ref().take(count as usize);
            known.extend(pieces.map(|words| Known::new(rank, axes, words)));
        }
    }
    Ok(known.map(|known| All::new(known, ranks)))
}

/// Each point of the targets must be in one source, and in no second one.
fn check(rank: usize, sources: &All, mine: [&[Piece]; 2]) -> Result<(), Error> {
    for (number, piece) in mine[0].iter().enumerate() {
        let mut other = None;
        sources.intersections(&piece.brick, |known, found, _| {
            if (known.rank, found) != (rank, number) {
                other = Some((known.brick, known.rank));
            }
        });
        if let Some((brick, of)) = other {
            let found = format!("{} of rank {rank} and {brick} of rank {of}", piece.brick);
            return Err(Error::argument("sources of a copy", found, "disjoint bricks"));
        }
    }
    for piece in mine[1] {
        let mut points = 0;
        sources.intersections(&piece.brick, |_, _, common| points += common.points());
        if points < piece.brick.points() {
            let found = format!("{points} points of {} of rank {rank}", piece.brick);
            let expected = format!("all {}", piece.brick.points());
            return Err(Error::argument("sources of a copy", found, expected));
        }
    }
    Ok(())
}

impl Matches {
    /// The copies of this rank from sources to targets. Collective: all ranks pass pieces of as
    /// many axes, and the same number of batches.
    ///
    /// # Errors
    /// On every rank: [`Error::OnRank`] for sources that overlap, and targets that are not covered.
    pub(super) fn new(
        comm: &dyn Comm,
        axes: usize,
        batch: usize,
        [sources, targets]: [&[Piece]; 2],
    ) -> Result<Self, Error> {
        let (rank, ranks) = (comm.rank(), comm.size());
        let [all_sources, all_targets] = gather(comm, axes, [sources, targets])?;
        agree(comm, check(rank, &all_sources, [sources, targets]))?;
        let (mut sent, mut received) = (Vec::new(), Vec::new());
        for (source, piece) in sources.iter().enumerate() {
            all_targets.intersections(&piece.brick, |known, target, part| {
                let (peer, order) = (known.rank, known.order);
                sent.push(Common { peer, target, source, part, order });
            });
        }
        for (target, piece) in targets.iter().enumerate() {
            all_sources.intersections(&piece.brick, |known, source, part| {
                let (peer, order) = (known.rank, piece.order());
                received.push(Common { peer, target, source, part, order });
            });
        }
        let own = received.iter().filter(|it| it.peer == rank).map(|it| {
            let (from, to) = (&sources[it.source], &targets[it.target]);
            let views = [from, to].map(|piece| ordered(piece.part(&it.part), it.order));
            let transfer = Transfer::between(shape(&it.part, batch, it.order), views);
            OwnCopy { from: from.array, to: to.array, transfer }
        });
        let own = own.collect();
        // Each rank begins with the next one.
        let after = |peer: usize| (peer + ranks - rank) % ranks;
        let sends = messages(sent, batch, after, |it, message| {
            let piece = &sources[it.source];
            (piece.array, [ordered(piece.part(&it.part), it.order), message])
        });
        let before = |peer: usize| (rank + ranks - peer) % ranks;
        let recvs = messages(received, batch, before, |it, message| {
            let piece = &targets[it.target];
            (piece.array, [message, ordered(piece.part(&it.part), it.order)])
        });
        Ok(Self { sends, recvs, own })
    }
}

/// The messages of one direction, nearest peers first. `ends` tells the array of a box, and its
/// source and destination, of which one is this place in a message.
fn messages(
    mut boxes: Vec<Common>,
    batch: usize,
    distance: impl Fn(usize) -> usize,
    ends: impl Fn(&Common, View) -> (usize, [View; 2]),
) -> Vec<CopyMessage> {
    boxes.retain(|it| distance(it.peer) > 0);
    boxes.sort_unstable_by_key(|it| (distance(it.peer), it.target, it.source));
    let of_peer = boxes.chunk_by(|a, b| a.peer == b.peer);
    let message = |boxes: &[Common]| {
        let mut elements = 0;
        let part = |it: &Common| {
            let shape = shape(&it.part, batch, it.order);
            let (array, views) = ends(it, dense(elements, shape));
            elements += shape.iter().product::<usize>();
            CopyPart { array, transfer: Transfer::between(shape, views) }
        };
        let parts = boxes.iter().map(part).collect();
        CopyMessage { peer: boxes[0].peer, elements, parts }
    };
    of_peer.map(message).collect()
}
