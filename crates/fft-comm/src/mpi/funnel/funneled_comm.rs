//! The communicator of a thread.

use std::cell::RefCell;
use std::sync::Arc;

use fft_core::{
    Comm, Error, FailureDetector, Flight, MessageSlots, NodeMemory, Part, Parts, Reduce,
    SharesMemory,
};

use super::operation::{Collective, Operation, ProcessComm};
use super::queue::{Queue, Request};
use crate::exchange::{pairwise, reserve_pairwise};
use crate::node_memory::{HostMessageSlots, HostNodeMemory, OneProcess};
use crate::threads::{FlagsOf, Member, ThreadComm, ThreadFlight};

/// A communicator whose ranks are threads of several MPI processes: see
/// [`threads`](super::threads).
///
/// A rank's host is its process.
pub struct FunneledComm {
    /// The threads of this process.
    local: ThreadComm,
    process: Arc<ProcessComm>,
    queue: Arc<Queue>,
    /// The flight of the all-to-all, which consists of messages. A duplicate has it from the
    /// beginning, so that its buffers can be reserved.
    flight: RefCell<Option<ThreadFlight>>,
}

impl FunneledComm {
    pub(super) fn new(local: ThreadComm, process: Arc<ProcessComm>, queue: Arc<Queue>) -> Self {
        Self { local, process, queue, flight: RefCell::new(None) }
    }

    fn first(&self) -> usize {
        self.process.ranks.own().start
    }

    /// An error of the threads of this process, with ranks instead.
    fn with_ranks(&self, error: Error) -> Error {
        match error {
            Error::Left { gone } => Error::Left { gone: self.first() + gone },
            error => error,
        }
    }

    /// An operation of all ranks: the threads meet with `mine`, the first one passes what all have
    /// brought to `ask`, and each reads the result.
    fn operate<R>(
        &self,
        collective: Collective,
        mine: &[u8],
        ask: impl FnOnce(&mut Operation, &[Vec<u8>]),
        read: impl FnOnce(&mut Operation) -> R,
    ) -> Result<R, Error> {
        let leads = self.local.rank() == 0;
        let asks = |brought: &[Vec<u8>]| {
            if leads {
                let operation = &mut *self.process.operation();
                (operation.collective, operation.result) = (collective, None);
                ask(operation, brought);
            }
        };
        self.local.rendezvous(mine, asks).map_err(|error| self.with_ranks(error))?;
        if leads {
            self.queue.push(Request::Operation(self.process.clone()));
            self.process.wait();
        }
        self.local.barrier().map_err(|error| self.with_ranks(error))?;
        let operation = &mut *self.process.operation();
        operation.result.clone().expect("the operation is done")?;
        Ok(read(operation))
    }

    /// Memory of the threads of this process.
    fn memory(&self) -> Result<HostNodeMemory<OneProcess<FlagsOf>>, Error> {
        let memory = self.local.memory_of_ranks(self.process.ranks.own().collect());
        memory.map_err(|error| self.with_ranks(error))
    }

    fn make_flight(&self, most: usize) -> Result<ThreadFlight, Error> {
        let world = |operation: &mut Operation| operation.worlds.pop().expect("one each");
        let world = self.operate(Collective::Flight(most), &[], |_, _| {}, world)?;
        Ok(ThreadFlight::new(Arc::new(Member { world, rank: self.local.rank() })))
    }
}

impl Drop for FunneledComm {
    fn drop(&mut self) {
        let (comm, rank) = (self.process.number, self.rank());
        self.queue.push(Request::Leave { comm, rank });
    }
}

impl Comm for FunneledComm {
    fn rank(&self) -> usize {
        self.first() + self.local.rank()
    }

    fn size(&self) -> usize {
        self.process.ranks.size()
    }

    fn name(&self) -> &'static str {
        "mpi+threads"
    }

    fn barrier(&self) -> Result<(), Error> {
        self.operate(Collective::Barrier, &[], |_, _| {}, |_| ())
    }

    fn allgather(&self, mine: &[u8], all: &mut [u8]) -> Result<(), Error> {
        assert_eq!(all.len(), mine.len() * self.size(), "room for every rank's bytes");
        let ask = |operation: &mut Operation, brought: &[Vec<u8>]| {
            operation.bytes.clear();
            brought.iter().for_each(|bytes| operation.bytes.extend_from_slice(bytes));
        };
        self.operate(Collective::Allgather, mine, ask, |operation| {
            all.copy_from_slice(&operation.bytes)
        })
    }

    fn allreduce(&self, how: Reduce, values: &mut [f64]) -> Result<(), Error> {
        self.local.allreduce(how, values).map_err(|error| self.with_ranks(error))?;
        let mine = values.to_vec();
        let ask = |operation: &mut Operation, _: &[Vec<u8>]| {
            operation.values.clear();
            operation.values.extend_from_slice(&mine);
        };
        let read = |operation: &mut Operation| values.copy_from_slice(&operation.values);
        self.operate(Collective::Allreduce(how), &[], ask, read)
    }

    fn alltoallv(&self, send: Parts<'_, &[u8]>, recv: Parts<'_, &mut [u8]>) -> Result<(), Error> {
        let mut flight = self.flight.borrow_mut();
        let flight = match &mut *flight {
            Some(flight) => flight,
            none => none.insert(self.make_flight(usize::MAX)?),
        };
        pairwise(self.rank(), flight, send, recv)
    }

    fn reserve_alltoallv(&self, send: &[Part], recv: &[Part]) -> Result<usize, Error> {
        match &mut *self.flight.borrow_mut() {
            Some(flight) => reserve_pairwise(self.rank(), flight, send, recv),
            None => Ok(0),
        }
    }

    fn flight(&self, piece: Option<usize>) -> Result<Box<dyn Flight>, Error> {
        Ok(Box::new(self.make_flight(piece.unwrap_or(usize::MAX))?))
    }

    fn dup(&self) -> Result<Box<dyn Comm>, Error> {
        let local = self.local.split(0, self.local.rank());
        let local = local.map_err(|error| self.with_ranks(error))?;
        let process = |operation: &mut Operation| operation.processes.pop().expect("one each");
        let process = self.operate(Collective::Dup, &[], |_, _| {}, process)?;
        let dup = Self::new(local, process, self.queue.clone());
        let flight = dup.make_flight(usize::MAX)?;
        dup.flight.replace(Some(flight));
        Ok(Box::new(dup))
    }

    fn failure_detector(&self) -> Option<&dyn FailureDetector> {
        Some(self)
    }

    /// Ends the job, because ranks of other processes cannot be notified.
    fn abandon(&self) {
        if self.process.ranks.own().len() < self.size() {
            self.queue.push(Request::Abort(None));
            loop {
                std::thread::park();
            }
        }
    }
}

impl SharesMemory for FunneledComm {
    fn host(&self, rank: usize) -> usize {
        let ranks = &self.process.ranks;
        ranks.first[ranks.place(rank).0]
    }

    fn node_memory(&self) -> Result<Option<Box<dyn NodeMemory>>, Error> {
        let memory = self.memory()?;
        Ok(if self.local.size() > 1 { Some(Box::new(memory)) } else { None })
    }

    fn message_slots(&self) -> Result<Option<Box<dyn MessageSlots>>, Error> {
        Ok(Some(Box::new(HostMessageSlots::new(self.memory()?))))
    }
}

impl FailureDetector for FunneledComm {
    fn sync(&self, succeeded: bool) -> Result<bool, Error> {
        let ask = |operation: &mut Operation, brought: &[Vec<u8>]| {
            operation.succeeded = brought.iter().all(|mine| *mine == [1]);
        };
        let mine = [u8::from(succeeded)];
        self.operate(Collective::Sync, &mine, ask, |operation| operation.succeeded)
    }
}
