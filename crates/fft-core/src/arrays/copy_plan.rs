//! The messages and the local copies of a copy, wherever its arrays are.

use super::grid_data::{GridData, grow};
use super::halo::targets;
use super::matches::{Matches, Piece};
use super::{CopyMessage, Ghosts, OwnCopy, Subarray};
use crate::base::Error;
use crate::comm::{Comm, MessagePlan, MessageSpec, agree, assert_same};

/// The messages and the local copies of a copy between the local arrays of all ranks.
///
/// Planning takes O(B log B) time for B bricks of all ranks, and memory as if each rank had as many
/// bricks as the one with most.
#[derive(Debug)]
pub struct CopyPlan {
    /// The data.
    pub data: GridData,
    /// The elements that each source array and each target array must have.
    pub least: [Vec<usize>; 2],
    /// The messages that this rank sends.
    pub sends: Vec<CopyMessage>,
    /// The messages that it receives.
    pub recvs: Vec<CopyMessage>,
    /// Copies within this rank.
    pub own: Vec<OwnCopy>,
}

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
        let sides = [sources, targets];
        let least = agree_on(comm, data, sides)?;
        Self::of(comm, data, sides.map(|side| side.iter().map(Piece::whole).collect()), least)
    }

    /// Plans the exchange that fills the ghost points of arrays, also those of edges and corners,
    /// from the bricks that have them. Collective.
    ///
    /// The bricks of all ranks are disjoint and hold all points that ghost points stand for. Points
    /// of targets and of sources are apart in memory.
    ///
    /// # Errors
    /// Those of [`CopyPlan::new`]; [`Error::OnRank`] for ghost points outside an array.
    pub fn halo(
        comm: &dyn Comm,
        data: GridData,
        ghosts: Ghosts,
        arrays: &[Subarray],
    ) -> Result<Self, Error> {
        let [least, _] = agree_on(comm, data, [arrays, &[]])?;
        assert_same(comm, &[("ghost points", format!("{ghosts:?}"))])?;
        let (targets, reach) = agree(comm, targets(data, &ghosts, arrays))?;
        let sources = arrays.iter().map(Piece::whole).collect();
        Self::of(comm, data, [sources, targets], [least, reach])
    }

    /// The copy between pieces of arrays that have at least so many elements. Collective.
    fn of(
        comm: &dyn Comm,
        data: GridData,
        [sources, targets]: [Vec<Piece>; 2],
        least: [Vec<usize>; 2],
    ) -> Result<Self, Error> {
        let axes = data.grid.axes();
        let Matches { sends, recvs, own } =
            Matches::new(comm, axes, data.batch, [&sources, &targets])?;
        Ok(Self { data, least, sends, recvs, own })
    }

    /// The messages to and from these peers, each of one chunk.
    pub fn message_plan(&self, has_messages: &dyn Fn(usize) -> bool) -> MessagePlan {
        let [sends, recvs] = [&self.sends, &self.recvs].map(|messages| {
            let spec = |message: &CopyMessage| MessageSpec {
                peer: message.peer,
                bytes: message.elements * self.data.bytes,
                chunk: 0,
            };
            messages.iter().filter(|message| has_messages(message.peer)).map(spec).collect()
        });
        MessagePlan { chunks: 1, sends, recvs, ..MessagePlan::default() }
    }

    /// Bytes that this rank sends to others in a run.
    pub fn bytes_sent(&self) -> usize {
        self.sends.iter().map(|message| message.elements * self.data.bytes).sum()
    }

    /// Whether arrays of so many elements are those of a side: 0 for sources, 1 for targets.
    ///
    /// # Errors
    /// [`Error::Argument`] for another number of arrays, [`Error::Length`] for short ones.
    pub fn check(
        &self,
        rank: usize,
        (what, side): (&'static str, usize),
        lens: impl ExactSizeIterator<Item = usize>,
    ) -> Result<(), Error> {
        let least = &self.least[side];
        if lens.len() != least.len() {
            return Err(Error::argument(format!("{what}s of a copy"), lens.len(), least.len()));
        }
        for (found, expected) in lens.zip(least.iter().copied()) {
            if found < expected {
                return Err(Error::Length { what, rank, found, expected });
            }
        }
        Ok(())
    }
}

/// The elements that each array must have, of data that is the same on all ranks. Collective.
fn agree_on(
    comm: &dyn Comm,
    data: GridData,
    sides: [&[Subarray]; 2],
) -> Result<[Vec<usize>; 2], Error> {
    let GridData { grid, bytes, batch } = data;
    let least = |it: &Subarray| {
        if it.brick.axes() != grid.axes() {
            return Err(Error::argument("axes of a brick", it.brick.axes(), grid.axes()));
        }
        if it.brick.intersect(&grid.whole()).points() != it.brick.points() {
            let expected = format!("one inside the grid {grid}");
            return Err(Error::argument("brick of a subarray", it.brick, expected));
        }
        it.least_len(batch)
    };
    let lens = |[sources, targets]: [&[Subarray]; 2]| {
        if ![4, 8, 16].contains(&bytes) {
            return Err(Error::argument("bytes of an element", bytes, "4, 8 or 16"));
        }
        if batch == 0 {
            return Err(Error::argument("batch", batch, "at least 1"));
        }
        let lens = |side: &[Subarray]| {
            let mut lens = Vec::new();
            for it in side {
                grow(&mut lens, it.array, least(it)?, side.len())?;
            }
            Ok(lens)
        };
        Ok([lens(sources)?, lens(targets)?])
    };
    let lens = agree(comm, lens(sides))?;
    let text = format!("{batch} arrays on {grid}, elements of {bytes} bytes");
    assert_same(comm, &[("data of a copy", text)])?;
    Ok(lens)
}
