//! Bricks that do not fit into the output: most of a brick is in the output, and the remainder in
//! another buffer.
//!
//! Data alternates between the output and one buffer of the plan. Intermediate data may be larger
//! than the result: half a spectrum has n + 2 numbers for n. Then bricks are cut in two, across an
//! axis that is not transformed meanwhile; each half is dense. The plan allocates only the second
//! half.

use std::sync::Arc;

use crate::geometry::DynBrick;
use crate::recipe::Node;

/// The cut of all ranks' bricks between two reshapes.
#[derive(Clone, Debug)]
pub(crate) struct Spill {
    axis: usize,
    /// The start of each rank's second half.
    at: Arc<[usize]>,
    /// Whether the halves are in two buffers. Otherwise the second follows the first in one buffer.
    apart: bool,
}

/// A buffer and an offset in real numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BufferOffset {
    pub(crate) piece: usize,
    pub(crate) first: usize,
}

impl Spill {
    /// Cuts bricks across an axis not in `whole`; first halves have at most `room(rank)` numbers.
    pub(crate) fn new(
        node: &Node,
        batch: usize,
        whole: &[usize],
        room: impl Fn(usize) -> usize,
    ) -> Option<Self> {
        let axis = node.layout.order().into_iter().find(|axis| !whole.contains(axis))?;
        let bricks = node.layout.bricks().iter().enumerate();
        let at = bricks.map(|(rank, brick)| {
            let plane = brick.points() / brick.len(axis).max(1) * batch * node.width();
            brick.lo[axis] + room(rank).checked_div(plane).unwrap_or(0).min(brick.len(axis))
        });
        Some(Self { axis, at: at.collect(), apart: true })
    }

    /// The same halves in two buffers, or in one.
    pub(crate) fn apart(self, apart: bool) -> Self {
        Self { apart, ..self }
    }

    pub(crate) fn of(&self, rank: usize, brick: DynBrick) -> [DynBrick; 2] {
        let (all, at) = (brick.range(self.axis), self.at[rank]);
        [all.start..at, at..all.end].map(|range| brick.with_range(self.axis, range))
    }

    /// The half that contains a part.
    fn half(&self, rank: usize, part: &DynBrick) -> usize {
        usize::from(part.lo[self.axis] >= self.at[rank])
    }
}

/// The storage of bricks at a node: in halves, or in one buffer.
#[derive(Clone, Debug, Default)]
pub(crate) struct BufferSplit(pub(crate) Option<Spill>);

impl BufferSplit {
    /// The dense parts of a rank's brick: one or two. At most one is empty unless the brick is.
    pub(crate) fn parts(&self, rank: usize, brick: DynBrick) -> Vec<DynBrick> {
        self.0.as_ref().map_or(vec![brick], |halves| halves.of(rank, brick).to_vec())
    }

    pub(crate) fn count(&self) -> usize {
        if self.0.is_some() { 2 } else { 1 }
    }

    /// The part of a rank's brick with this box.
    pub(crate) fn part(&self, rank: usize, within: &DynBrick) -> usize {
        self.0.as_ref().map_or(0, |halves| halves.half(rank, within))
    }

    /// The buffer and offset of a part, for `point` real numbers per point.
    pub(crate) fn offset(
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

    /// Real numbers of a rank's brick in each buffer.
    pub(crate) fn reals(&self, rank: usize, brick: DynBrick, point: usize) -> [usize; 2] {
        match &self.0 {
            Some(halves) if halves.apart => {
                halves.of(rank, brick).map(|half| half.points() * point)
            }
            _ => [brick.points() * point, 0],
        }
    }

    pub(crate) fn is_apart(&self) -> bool {
        self.0.as_ref().is_some_and(|halves| halves.apart)
    }
}
