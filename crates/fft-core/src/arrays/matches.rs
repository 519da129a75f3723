//! Which points of which arrays are sent to which rank.
//!
//! ```text
//! all ranks gather the sources and targets of all ranks
//! for each own source, for each target that intersects it: a box to send
//! for each own target, for each source that intersects it: a box to receive
//! the boxes of a pair of ranks are one message: by target, then by source
//! a box is dense in a message, in the order of memory of its target
//! ```

use super::copy_plan::{CopyMessage, CopyPart, CopyPlan, OwnCopy};
use super::grid_data::GridData;
use super::halo::Ghosts;
use super::subarray::{Order, Subarray};
use crate::base::Error;
use crate::comm::{Comm, MessageSpec, agree, assert_same, gather_lists};
use crate::geometry::{BrickIndex, DIMS, DynBrick, PerAxis, Transfer, View};

impl CopyPlan {
    /// Plans the copy of each point from the source that has it to all targets that have it.
    /// Collective.
    ///
    /// # Errors
    /// On every rank: [`Error::Disagreement`] for data that differs between ranks;
    /// [`Error::OnRank`] for bricks outside the grid, strides without a meaning, sources that
    /// overlap, and points of a target that no source has.
    pub fn new(
        comm: &dyn Comm,
        data: GridData,
        sources: &[Subarray],
        targets: &[Subarray],
    ) -> Result<Self, Error> {
        let least = agree_on(comm, data, sources, targets)?;
        let GridData { grid, batch, .. } = data;
        let [sources, targets] = [sources, targets].map(|side| -> Vec<_> {
            side.iter().copied().filter(|array| !array.brick.is_empty()).collect()
        });
        let (rank, ranks) = (comm.rank(), comm.size());
        let all_sources = Side::gather(comm, grid.axes(), &sources)?;
        let all_targets = Side::gather(comm, grid.axes(), &targets)?;
        agree(comm, check(rank, &all_sources, [&sources, &targets]))?;
        let mut sent = Vec::new();
        for (source, array) in sources.iter().enumerate() {
            all_targets.intersections(&array.brick, |known, part| {
                let Known { rank: peer, number: target, order, .. } = *known;
                sent.push(Common { peer, target, source, part, order });
            });
        }
        let mut received = Vec::new();
        for (target, array) in targets.iter().enumerate() {
            all_sources.intersections(&array.brick, |known, part| {
                let (peer, source, order) = (known.rank, known.number, array.order());
                received.push(Common { peer, target, source, part, order });
            });
        }
        let own = received.iter().filter(|it| it.peer == rank).map(|it| {
            let (from, to) = (&sources[it.source], &targets[it.target]);
            let transfer = Transfer::between(it.shape(batch), [it.view_in(from), it.view_in(to)]);
            OwnCopy { from: from.array, to: to.array, transfer }
        });
        let own = own.collect();
        // Each rank begins with the next one.
        let after = |peer: usize| (peer + ranks - rank) % ranks;
        let sends = messages(sent, data, after, |it, message| {
            let source = &sources[it.source];
            (source.array, [it.view_in(source), message])
        });
        let before = |peer: usize| (rank + ranks - peer) % ranks;
        let recvs = messages(received, data, before, |it, message| {
            let target = &targets[it.target];
            (target.array, [message, it.view_in(target)])
        });
        Ok(Self { data, least, sends, recvs, own })
    }

    /// Plans the exchange that fills the ghost points of arrays, also at edges and corners, from
    /// the bricks that have them: a copy from the bricks to their ghost points. Collective.
    ///
    /// The bricks of all ranks are disjoint and hold all points that ghost points stand for. Points
    /// of targets and of sources are apart in memory.
    ///
    /// # Errors
    /// The errors of [`CopyPlan::new`]; [`Error::OnRank`] for ghost points outside an array.
    pub fn halo(
        comm: &dyn Comm,
        data: GridData,
        ghosts: Ghosts,
        arrays: &[Subarray],
    ) -> Result<Self, Error> {
        assert_same(comm, &[("ghost points", format!("{ghosts:?}"))])?;
        let targets = agree(comm, ghosts.targets(data, arrays))?;
        Self::new(comm, data, arrays, &targets)
    }
}

/// The elements that arrays must have, by role, of data that is the same on all ranks. Collective.
fn agree_on(
    comm: &dyn Comm,
    data: GridData,
    sources: &[Subarray],
    targets: &[Subarray],
) -> Result<[Vec<usize>; 3], Error> {
    let least = || {
        data.check()?;
        let both = [sources, targets].concat();
        Ok([data.least_lens(sources)?, data.least_lens(targets)?, data.least_lens(&both)?])
    };
    let least = agree(comm, least())?;
    let GridData { grid, bytes, batch } = data;
    let text = format!("{batch} arrays on {grid}, elements of {bytes} bytes");
    assert_same(comm, &[("data of a copy", text)])?;
    Ok(least)
}

/// The properties of a subarray that all ranks receive.
#[derive(Clone, Copy)]
struct Known {
    rank: usize,
    /// Its number on that rank.
    number: usize,
    brick: DynBrick,
    order: Order,
}

impl Known {
    fn words(array: &Subarray) -> impl Iterator<Item = u64> {
        let DynBrick { lo, hi } = array.brick;
        lo.into_iter().chain(hi).chain(array.order()).map(|word| word as u64)
    }

    fn new(rank: usize, number: usize, words: &[u64]) -> Self {
        let axes = (words.len() - DIMS) / 2;
        let word = |at: usize| words[at] as usize;
        let bound = |first: usize| PerAxis::from_fn(axes, |axis| word(first + axis));
        let brick = DynBrick::new(bound(0), bound(axes));
        Self { rank, number, brick, order: std::array::from_fn(|dim| word(2 * axes + dim)) }
    }
}

/// The sources or the targets of all ranks.
struct Side {
    known: Vec<Known>,
    index: BrickIndex,
}

impl Side {
    /// Gathers the subarrays of all ranks. Collective.
    fn gather(comm: &dyn Comm, axes: usize, mine: &[Subarray]) -> Result<Self, Error> {
        let words: Vec<_> = mine.iter().flat_map(Known::words).collect();
        let mut known = Vec::new();
        for (rank, words) in gather_lists(comm, &words)?.iter().enumerate() {
            let arrays = words.chunks_exact(2 * axes + DIMS).enumerate();
            known.extend(arrays.map(|(number, words)| Known::new(rank, number, words)));
        }
        let bricks: Vec<_> = known.iter().map(|it| it.brick).collect();
        Ok(Self { known, index: BrickIndex::new(&bricks) })
    }

    /// Calls `found` with each subarray that intersects a box, and the common part.
    fn intersections(&self, part: &DynBrick, mut found: impl FnMut(&Known, DynBrick)) {
        self.index.intersections(part, |at, common| found(&self.known[at], common));
    }
}

/// Each point of the targets must be in one source, and in no second one.
fn check(rank: usize, sources: &Side, mine: [&[Subarray]; 2]) -> Result<(), Error> {
    for (number, Subarray { brick, .. }) in mine[0].iter().enumerate() {
        let mut other = None;
        sources.intersections(brick, |known, _| {
            if (known.rank, known.number) != (rank, number) {
                other = Some(*known);
            }
        });
        if let Some(other) = other {
            let found =
                format!("{brick} of rank {rank} and {} of rank {}", other.brick, other.rank);
            return Err(Error::argument("sources of a copy", found, "disjoint bricks"));
        }
    }
    for Subarray { brick, .. } in mine[1] {
        let mut points = 0;
        sources.intersections(brick, |_, common| points += common.points());
        if points < brick.points() {
            let found = format!("{points} points of {brick} of rank {rank}");
            let expected = format!("all {}", brick.points());
            return Err(Error::argument("sources of a copy", found, expected));
        }
    }
    Ok(())
}

/// A box that two ranks have in common.
struct Common {
    peer: usize,
    /// The numbers of the target and of the source on their ranks.
    target: usize,
    source: usize,
    part: DynBrick,
    /// The order of the target's memory.
    order: Order,
}

impl Common {
    /// Its lengths in that order.
    fn shape(&self, batch: usize) -> [usize; DIMS] {
        let first = DIMS - self.part.axes();
        self.order.map(|dim| match dim.checked_sub(first) {
            Some(axis) => self.part.len(axis),
            None if dim + 1 == first => batch,
            None => 1,
        })
    }

    /// Its place in an array, in that order.
    fn view_in(&self, array: &Subarray) -> View {
        let View { offset, stride } = array.view(&self.part);
        View { offset, stride: self.order.map(|dim| stride[dim]) }
    }
}

/// The messages of one direction, nearest peers first. `ends` returns the array of a box, with its
/// source and destination; one of the two is this place in a message.
fn messages(
    mut boxes: Vec<Common>,
    data: GridData,
    distance: impl Fn(usize) -> usize,
    ends: impl Fn(&Common, View) -> (usize, [View; 2]),
) -> Vec<CopyMessage> {
    boxes.retain(|it| distance(it.peer) > 0);
    boxes.sort_unstable_by_key(|it| (distance(it.peer), it.target, it.source));
    let message = |boxes: &[Common]| {
        let mut elements = 0;
        let part = |it: &Common| {
            let shape = it.shape(data.batch);
            let mut message = View { offset: elements, stride: [1; DIMS] };
            for dim in (0..DIMS - 1).rev() {
                message.stride[dim] = message.stride[dim + 1] * shape[dim + 1];
            }
            elements += shape.iter().product::<usize>();
            let (array, views) = ends(it, message);
            CopyPart { array, transfer: Transfer::between(shape, views) }
        };
        let parts = boxes.iter().map(part).collect();
        let spec = MessageSpec { peer: boxes[0].peer, bytes: elements * data.bytes, chunk: 0 };
        CopyMessage { spec, parts }
    };
    boxes.chunk_by(|a, b| a.peer == b.peer).map(message).collect()
}
