//! Where a brick that does not fit into the output is kept all the same: most of it there, and the rest beside it.
//!
//! Data goes back and forth between the output and one piece of memory of the plan's own. On its way it may be more than at
//! the end: half a spectrum has n + 2 numbers for n. Then the bricks of a node are cut in two, across an axis that is not
//! transformed while they are there; each half is dense. The second is all that a plan has memory for.

use std::sync::Arc;

use crate::geometry::DynBrick;
use crate::recipe::Node;

/// How all ranks cut their bricks, between two reshapes.
#[derive(Clone, Debug)]
pub(crate) struct Spill {
    axis: usize,
    /// By rank, where the second half begins.
    at: Arc<[usize]>,
    /// Whether the second half is apart from the first, which is in the output. Otherwise it follows in the same memory.
    pub(crate) apart: bool,
}

/// One of two pieces of memory, and real numbers there before what is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BufferOffset {
    pub(crate) piece: usize,
    pub(crate) first: usize,
}

impl Spill {
    /// Cuts what ranks hold at a node so that each one's first half has no more real numbers than `room(rank)`, across the
    /// slowest axis that is not among `whole`. `None` where there is no such axis.
    pub(crate) fn new(
        node: &Node,
        howmany: usize,
        whole: &[usize],
        room: impl Fn(usize) -> usize,
    ) -> Option<Self> {
        let axis = node.layout.order().into_iter().find(|axis| !whole.contains(axis))?;
        let bricks = node.layout.bricks().iter().enumerate();
        let at = bricks.map(|(rank, brick)| {
            let plane = brick.points() / brick.len(axis).max(1) * howmany * node.width();
            brick.lo[axis] + room(rank).checked_div(plane).unwrap_or(0).min(brick.len(axis))
        });
        Some(Self { axis, at: at.collect(), apart: true })
    }

    /// The halves of a rank's brick.
    pub(crate) fn of(&self, rank: usize, brick: DynBrick) -> [DynBrick; 2] {
        let (all, at) = (brick.range(self.axis), self.at[rank]);
        [all.start..at, at..all.end].map(|range| brick.with_range(self.axis, range))
    }

    /// In which half of a rank's brick a part is that is not in both.
    fn half(&self, rank: usize, part: &DynBrick) -> usize {
        usize::from(part.lo[self.axis] >= self.at[rank])
    }
}

/// How ranks keep what they hold at a node: in halves, or in one.
#[derive(Clone, Debug, Default)]
pub(crate) struct BufferSplit(pub(crate) Option<Spill>);

impl BufferSplit {
    /// The parts of a rank's brick that are dense: one or two, of which one at most is empty unless the brick is.
    pub(crate) fn parts(&self, rank: usize, brick: DynBrick) -> Vec<DynBrick> {
        self.0.as_ref().map_or(vec![brick], |halves| halves.of(rank, brick).to_vec())
    }

    /// How many parts.
    pub(crate) fn count(&self) -> usize {
        if self.0.is_some() { 2 } else { 1 }
    }

    /// In which part of a rank's brick a box is.
    pub(crate) fn part(&self, rank: usize, within: &DynBrick) -> usize {
        self.0.as_ref().map_or(0, |halves| halves.half(rank, within))
    }

    /// Where a part of a rank's brick is, of so many real numbers for each point.
    pub(crate) fn spot(
        &self,
        part: usize,
        rank: usize,
        brick: DynBrick,
        point: usize,
    ) -> BufferOffset {
        match &self.0 {
            Some(halves) if part == 1 && halves.apart => BufferOffset { piece: 1, first: 0 },
            Some(halves) if part == 1 => {
                BufferOffset { piece: 0, first: halves.of(rank, brick)[0].points() * point }
            }
            _ => BufferOffset::default(),
        }
    }

    /// Real numbers of a rank's brick in the first piece of memory and in the second.
    pub(crate) fn reals(&self, rank: usize, brick: DynBrick, point: usize) -> [usize; 2] {
        match &self.0 {
            Some(halves) if halves.apart => {
                halves.of(rank, brick).map(|half| half.points() * point)
            }
            _ => [brick.points() * point, 0],
        }
    }

    /// The same halves in one piece of memory if they are in two, and the other way round.
    pub(crate) fn transposed(mut self) -> Self {
        self.0.iter_mut().for_each(|halves| halves.apart = !halves.apart);
        self
    }

    pub(crate) fn is_apart(&self) -> bool {
        self.0.as_ref().is_some_and(|halves| halves.apart)
    }
}
