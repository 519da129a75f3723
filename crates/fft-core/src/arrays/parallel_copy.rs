//! Copies between the local arrays of all ranks.

use std::fmt;

use bytemuck::Pod;

use super::arrays_of_rank::{Arrays, copy_elements};
use super::copy_plan::{ArrayRole, CopyMessage, CopyPlan};
use crate::base::Error;
use crate::comm::{Comm, Exchanger, MessageHandler, MessagePlan, Unwinding, agree, matching};

/// Copies bricks of local arrays to bricks of local arrays, of all ranks.
///
/// Each rank has any number of bricks on either side, in any number of arrays. Sources are
/// disjoint. Targets may overlap in the grid; each point of them comes from the source that has it.
/// All data for a peer is one message, packed from the arrays and unpacked to them. Nothing is
/// encoded. A run allocates nothing.
pub struct ParallelCopy {
    /// Dropped first, so that waiting ranks are notified.
    comm: Box<dyn Comm>,
    exchange: Box<dyn Exchanger>,
    message_plan: MessagePlan,
    plan: CopyPlan,
}

impl ParallelCopy {
    /// Binds a plan. Collective. The communicator and the exchange on it are for this copy alone.
    ///
    /// # Errors
    /// On every rank: the errors of the exchange.
    pub fn new(
        comm: Box<dyn Comm>,
        mut exchange: Box<dyn Exchanger>,
        plan: CopyPlan,
    ) -> Result<Self, Error> {
        let message_plan = plan.message_plan(&|_| true);
        matching(comm.as_ref(), [&message_plan])?;
        let reserved = exchange.reserve(&message_plan);
        agree(comm.as_ref(), reserved)?;
        Ok(Self { comm, exchange, message_plan, plan })
    }

    /// Copies from sources to targets. Each array has elements, their numbers, or bytes.
    /// Collective.
    ///
    /// # Errors
    /// On every rank: [`Error::OnRank`] for another number of arrays, for arrays that are too short
    /// or not aligned, and when the transport fails. Targets are then undefined.
    pub fn run<E: Pod>(&mut self, sources: &[&[E]], targets: &mut [&mut [E]]) -> Result<(), Error> {
        self.run_after(Ok(()), sources, targets)
    }

    /// As [`ParallelCopy::run`], with an earlier error of this rank. Collective.
    ///
    /// # Errors
    /// On every rank: the error of the lowest rank that has one; the errors of
    /// [`ParallelCopy::run`].
    pub fn run_after<E: Pod>(
        &mut self,
        mine: Result<(), Error>,
        sources: &[&[E]],
        targets: &mut [&mut [E]],
    ) -> Result<(), Error> {
        let fits = mine
            .and(self.check(ArrayRole::Source, sources.iter().copied()))
            .and(self.check(ArrayRole::Target, targets.iter().map(|array| &**array)));
        self.exchange(fits, Arrays::Apart(sources, targets))
    }

    /// Copies within arrays that are both sources and targets. Collective. In memory, no point of a
    /// target may be a point of a source.
    ///
    /// # Errors
    /// As [`ParallelCopy::run`].
    pub fn run_in_place<E: Pod>(&mut self, arrays: &mut [&mut [E]]) -> Result<(), Error> {
        self.run_in_place_after(Ok(()), arrays)
    }

    /// As [`ParallelCopy::run_in_place`], with an earlier error of this rank. Collective.
    ///
    /// # Errors
    /// As [`ParallelCopy::run_after`].
    pub fn run_in_place_after<E: Pod>(
        &mut self,
        mine: Result<(), Error>,
        arrays: &mut [&mut [E]],
    ) -> Result<(), Error> {
        let fits = mine.and(self.check(ArrayRole::Both, arrays.iter().map(|array| &**array)));
        self.exchange(fits, Arrays::InPlace(arrays))
    }

    /// The plan of the copy.
    pub fn plan(&self) -> &CopyPlan {
        &self.plan
    }

    /// Bytes of memory held.
    pub fn memory(&self) -> usize {
        self.exchange.memory()
    }

    fn check<'a, E: 'a>(
        &self,
        role: ArrayRole,
        arrays: impl ExactSizeIterator<Item = &'a [E]>,
    ) -> Result<(), Error> {
        let arrays = arrays.map(|array| (array.as_ptr().addr(), size_of_val(array)));
        self.plan.check(self.comm.rank(), role, arrays, self.plan.data.bytes.min(8))
    }

    /// Moves the data, if the arrays of all ranks fit.
    fn exchange<E: Pod>(
        &mut self,
        fits: Result<(), Error>,
        arrays: Arrays<'_, '_, E>,
    ) -> Result<(), Error> {
        let Self { comm, exchange, message_plan, plan } = self;
        let _unwinding = Unwinding::watch(comm.as_ref());
        agree(comm.as_ref(), fits)?;
        let mut handler = Handler { plan, rank: comm.rank(), arrays, damage: Ok(()) };
        let sent = exchange.run(message_plan, &mut handler);
        agree(comm.as_ref(), handler.damage.and(sent))
    }
}

impl fmt::Debug for ParallelCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParallelCopy")
            .field("rank", &self.comm.rank())
            .field("data", &self.plan.data)
            .field("messages sent", &self.plan.sends.len())
            .field("bytes sent", &self.plan.bytes_sent())
            .finish_non_exhaustive()
    }
}

struct Handler<'a, 'b, 'c, E> {
    plan: &'a CopyPlan,
    rank: usize,
    arrays: Arrays<'b, 'c, E>,
    /// The first message that is not as long as it should be.
    damage: Result<(), Error>,
}

impl<E: Pod> MessageHandler for Handler<'_, '_, '_, E> {
    fn pack(&mut self, number: usize, message: &mut [u8]) -> usize {
        let CopyMessage { spec, parts } = &self.plan.sends[number];
        for part in parts {
            let source = self.arrays.source(part.array);
            copy_elements(&part.transfer, self.plan.data.bytes, source, message);
        }
        spec.bytes
    }

    fn own(&mut self) {
        self.plan.own.iter().for_each(|own| self.arrays.copy(own, self.plan.data.bytes));
    }

    fn arrived(&mut self, number: usize, message: &[u8]) -> bool {
        let CopyMessage { spec, parts } = &self.plan.recvs[number];
        match spec.received(self.rank, message) {
            Ok(message) => {
                for part in parts {
                    let target = self.arrays.target(part.array);
                    copy_elements(&part.transfer, self.plan.data.bytes, message, target);
                }
            }
            Err(bad) if self.damage.is_ok() => self.damage = Err(bad),
            Err(_) => {}
        }
        true
    }
}
