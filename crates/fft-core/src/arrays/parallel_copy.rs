//! Copies between the local arrays of all ranks.

use std::fmt;

use bytemuck::{Pod, cast_slice};

use super::arrays_of_rank::{Arrays, copy_elements};
use super::matches::{Matches, Piece};
use super::subarray::Subarray;
use crate::base::Error;
use crate::comm::{
    Comm, Exchange, MessageHandler, MessagePlan, MessageSpec, Unwinding, agree, assert_same,
    matching,
};
use crate::geometry::DynGrid;

/// Data on a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GridData {
    /// The grid.
    pub grid: DynGrid,
    /// Bytes of an element: 4, 8 or 16.
    pub bytes: usize,
    /// Arrays in a batch.
    pub howmany: usize,
}

/// Copies bricks of local arrays to bricks of local arrays, of all ranks.
///
/// Each rank has any number of bricks on either side, in any number of arrays. Sources are
/// disjoint. Targets may overlap in the grid; each point of them comes from the source that has it.
/// All data for a peer is one message, packed from the arrays and unpacked to them. Nothing is
/// encoded.
///
/// Planning takes O(B log B) time for B bricks of all ranks, and memory as if each rank had as many
/// bricks as the one with most. A run allocates nothing.
pub struct ParallelCopy {
    /// Dropped first, so that waiting ranks are notified.
    comm: Box<dyn Comm>,
    exchange: Box<dyn Exchange>,
    message_plan: MessagePlan,
    matches: Matches,
    data: GridData,
    /// The elements that each source array and each target array must have.
    least: [Vec<usize>; 2],
}

impl GridData {
    /// One array of these elements.
    pub fn of<E>(grid: impl Into<DynGrid>) -> Self {
        Self { grid: grid.into(), bytes: size_of::<E>(), howmany: 1 }
    }

    /// The same for a batch of so many arrays.
    pub fn howmany(self, howmany: usize) -> Self {
        Self { howmany, ..self }
    }
}

impl ParallelCopy {
    /// Plans the copy of each point from the source that has it to all targets that have it.
    /// Collective. The communicator and the exchange on it are for this copy alone.
    ///
    /// # Errors
    /// On every rank: [`Error::Disagreement`] for data that differs between ranks;
    /// [`Error::OnRank`] for bricks outside the grid, strides without a meaning, sources that
    /// overlap, and points of a target that no source has; those of the exchange.
    pub fn new(
        comm: Box<dyn Comm>,
        exchange: Box<dyn Exchange>,
        data: GridData,
        sources: &[Subarray],
        targets: &[Subarray],
    ) -> Result<Self, Error> {
        let sides = [sources, targets];
        let least = agree_on(comm.as_ref(), data, sides)?;
        let pieces = sides.map(|side| side.iter().map(Piece::whole).collect());
        Self::of_pieces(comm, exchange, data, pieces, least)
    }

    /// The copy between pieces of arrays that have at least so many elements. Collective.
    pub(super) fn of_pieces(
        comm: Box<dyn Comm>,
        mut exchange: Box<dyn Exchange>,
        data: GridData,
        [sources, targets]: [Vec<Piece>; 2],
        least: [Vec<usize>; 2],
    ) -> Result<Self, Error> {
        let own = comm.as_ref();
        let axes = data.grid.axes();
        let matches = Matches::new(own, axes, data.howmany, [&sources, &targets])?;
        let message_plan = message_plan(&matches, data.bytes);
        matching(own, [&message_plan])?;
        let reserved = exchange.reserve(&message_plan);
        agree(own, reserved)?;
        Ok(Self { comm, exchange, message_plan, matches, data, least })
    }

    /// Copies from sources to targets, each an array of elements, of their numbers, or of bytes.
    /// Collective.
    ///
    /// # Errors
    /// On every rank: [`Error::OnRank`] for another number of arrays, for arrays that are too short
    /// or not aligned, and when the transport fails. Targets are then undefined.
    pub fn run<E: Pod>(&mut self, sources: &[&[E]], targets: &mut [&mut [E]]) -> Result<(), Error> {
        self.run_after(Ok(()), sources, targets)
    }

    /// As [`ParallelCopy::run`], with what this rank has found wrong before. Collective.
    ///
    /// # Errors
    /// On every rank: that of the lowest rank that has one; those of [`ParallelCopy::run`].
    pub fn run_after<E: Pod>(
        &mut self,
        mine: Result<(), Error>,
        sources: &[&[E]],
        targets: &mut [&mut [E]],
    ) -> Result<(), Error> {
        let [read, written] = &self.least;
        let fits = mine.and(self.fits("source", read, sources.iter().map(|it| cast_slice(it))));
        let fits = fits.and(self.fits("target", written, targets.iter().map(|it| cast_slice(it))));
        self.exchange(fits, Arrays::Apart(sources, targets))
    }

    /// Copies within arrays that are both sources and targets. Collective. No point of a target is
    /// one of a source in memory.
    ///
    /// # Errors
    /// As [`ParallelCopy::run`].
    pub fn run_in_place<E: Pod>(&mut self, arrays: &mut [&mut [E]]) -> Result<(), Error> {
        self.run_in_place_after(Ok(()), arrays)
    }

    /// As [`ParallelCopy::run_in_place`], with what this rank has found wrong before. Collective.
    ///
    /// # Errors
    /// As [`ParallelCopy::run_after`].
    pub fn run_in_place_after<E: Pod>(
        &mut self,
        mine: Result<(), Error>,
        arrays: &mut [&mut [E]],
    ) -> Result<(), Error> {
        let [read, written] = &self.least;
        let found = || arrays.iter().map(|it| cast_slice(it));
        let fits =
            mine.and(self.fits("array", read, found())).and(self.fits("array", written, found()));
        self.exchange(fits, Arrays::InPlace(arrays))
    }

    /// The elements that each source array and each target array must have.
    pub fn least_lens(&self) -> [&[usize]; 2] {
        [&self.least[0], &self.least[1]]
    }

    /// The data.
    pub fn data(&self) -> GridData {
        self.data
    }

    /// Bytes that this rank sends in a run.
    pub fn bytes_sent(&self) -> usize {
        self.message_plan.sends.iter().map(|spec| spec.bytes).sum()
    }

    /// Messages that this rank sends in a run.
    pub fn messages_sent(&self) -> usize {
        self.message_plan.sends.len()
    }

    /// Bytes of memory held.
    pub fn memory(&self) -> usize {
        self.exchange.memory()
    }

    /// Whether the arrays are those of the plan.
    fn fits<'a>(
        &self,
        what: &'static str,
        least: &[usize],
        arrays: impl ExactSizeIterator<Item = &'a [u8]>,
    ) -> Result<(), Error> {
        if arrays.len() != least.len() {
            return Err(Error::argument(format!("{what}s of a copy"), arrays.len(), least.len()));
        }
        let (bytes, align) = (self.data.bytes, self.data.bytes.min(8));
        for (array, least) in arrays.zip(least) {
            let (found, expected) = (array.len() / bytes, *least);
            if found < expected {
                return Err(Error::Length { what, rank: self.comm.rank(), found, expected });
            }
            if expected > 0 && array.as_ptr().align_offset(align) != 0 {
                let (what, found) = (format!("address of a {what}"), format!("{:p}", array));
                return Err(Error::argument(what, found, format!("a multiple of {align}")));
            }
        }
        Ok(())
    }

    /// Moves the data, if the arrays of all ranks fit.
    fn exchange<E: Pod>(
        &mut self,
        fits: Result<(), Error>,
        arrays: Arrays<'_, '_, E>,
    ) -> Result<(), Error> {
        let Self { comm, exchange, message_plan, matches, data, .. } = self;
        let _unwinding = Unwinding::watch(comm.as_ref());
        agree(comm.as_ref(), fits)?;
        let (rank, bytes) = (comm.rank(), data.bytes);
        let mut handler = Handler { matches, rank, bytes, arrays, damage: Ok(()) };
        let sent = exchange.run(message_plan, &mut handler);
        agree(comm.as_ref(), handler.damage.and(sent))
    }
}

impl fmt::Debug for ParallelCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParallelCopy")
            .field("rank", &self.comm.rank())
            .field("data", &self.data)
            .field("messages sent", &self.messages_sent())
            .field("bytes sent", &self.bytes_sent())
            .finish_non_exhaustive()
    }
}

/// The elements that each array must have, of data that is the same on all ranks. Collective.
pub(super) fn agree_on(
    comm: &dyn Comm,
    data: GridData,
    sides: [&[Subarray]; 2],
) -> Result<[Vec<usize>; 2], Error> {
    let GridData { grid, bytes, howmany } = data;
    let least = |it: &Subarray| {
        if it.brick.axes() != grid.axes() {
            return Err(Error::argument("axes of a brick", it.brick.axes(), grid.axes()));
        }
        if it.brick.intersect(&grid.whole()).points() != it.brick.points() {
            let expected = format!("one inside the grid {grid}");
            return Err(Error::argument("brick of a subarray", it.brick, expected));
        }
        it.least_len(howmany)
    };
    let lens = |[sources, targets]: [&[Subarray]; 2]| {
        if ![4, 8, 16].contains(&bytes) {
            return Err(Error::argument("bytes of an element", bytes, "4, 8 or 16"));
        }
        if howmany == 0 {
            return Err(Error::argument("howmany", howmany, "at least 1"));
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
    let text = format!("{howmany} arrays on {grid}, elements of {bytes} bytes");
    assert_same(comm, &[("data of a copy", text)])?;
    Ok(lens)
}

/// Makes an array of at least so many elements. There are at most as many arrays as bricks.
pub(super) fn grow(
    lens: &mut Vec<usize>,
    array: usize,
    least: usize,
    bricks: usize,
) -> Result<(), Error> {
    if array >= bricks {
        let expected = format!("below {bricks}, the number of bricks");
        return Err(Error::argument("array of a subarray", array, expected));
    }
    if array >= lens.len() {
        lens.resize(array + 1, 0);
    }
    lens[array] = lens[array].max(least);
    Ok(())
}

fn message_plan(matches: &Matches, bytes: usize) -> MessagePlan {
    let Matches { sends, recvs, .. } = matches;
    let [sends, recvs] = [sends, recvs].map(|messages| {
        let spec = messages.iter().map(|message| MessageSpec {
            peer: message.peer,
            bytes: message.elements * bytes,
            chunk: 0,
        });
        spec.collect()
    });
    MessagePlan { chunks: 1, sends, recvs, ..MessagePlan::default() }
}

struct Handler<'a, 'b, 'c, E> {
    matches: &'a Matches,
    rank: usize,
    bytes: usize,
    arrays: Arrays<'b, 'c, E>,
    /// The first message that is not as long as it should be.
    damage: Result<(), Error>,
}

impl<E: Pod> MessageHandler for Handler<'_, '_, '_, E> {
    fn pack(&mut self, number: usize, message: &mut [u8]) -> usize {
        let sent = &self.matches.sends[number];
        for part in &sent.parts {
            copy_elements(&part.transfer, self.bytes, self.arrays.source(part.array), message);
        }
        sent.elements * self.bytes
    }

    fn own(&mut self) {
        self.matches.own.iter().for_each(|own| self.arrays.copy(own, self.bytes));
    }

    fn arrived(&mut self, number: usize, message: &[u8]) -> bool {
        let Self { matches, rank, bytes, arrays, damage } = self;
        let sent = &matches.recvs[number];
        let (found, expected) = (message.len(), sent.elements * *bytes);
        if found < expected {
            let bad = Error::Message { rank: *rank, from: sent.peer, found, expected };
            *damage = damage.clone().and(Err(bad));
            return true;
        }
        for part in &sent.parts {
            copy_elements(&part.transfer, *bytes, message, arrays.target(part.array));
        }
        true
    }

    fn finish<'m>(&mut self, _: &dyn Fn(usize) -> &'m [u8]) {}
}
