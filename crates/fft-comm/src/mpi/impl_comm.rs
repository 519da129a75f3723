//! MPI's communicators behind the traits of fft-core.

use std::sync::Once;

use fft_core::{
    Comm, DeviceComm, Error, FailureDetector, Flight, MessageSlots, NodeMemory, OneSided, Part,
    Parts, Reduce, RmaWindow, SharesMemory, TeamComms, Teams,
};

use super::ffi::{Bytes, BytesMut, RawComm};
use super::flight::MpiFlight;
use super::funnel;
use super::host::Host;
use super::library::abort;
use super::mpi_comm::MpiComm;
use super::rma::MpiWindow;
use super::window::Rma;
use crate::node_memory::{HostMessageSlots, HostNodeMemory, on_rank_of};

static NO_PUTS: Once = Once::new();

impl Comm for MpiComm {
    fn rank(&self) -> usize {
        self.raw.rank
    }

    fn size(&self) -> usize {
        self.raw.size
    }

    fn name(&self) -> &'static str {
        "mpi"
    }

    fn barrier(&self) -> Result<(), Error> {
        self.raw.barrier()
    }

    fn allgather(&self, mine: &[u8], all: &mut [u8]) -> Result<(), Error> {
        self.raw.allgather(mine, all)
    }

    fn allreduce(&self, how: Reduce, values: &mut [f64]) -> Result<(), Error> {
        let operands = &mut self.scratch.borrow_mut().operands;
        operands.clear();
        operands.extend_from_slice(values);
        self.raw.allreduce(how, operands, values)
    }

    fn alltoallv(&self, send: Parts<'_, &[u8]>, recv: Parts<'_, &mut [u8]>) -> Result<(), Error> {
        let (send, out) = (Bytes::Host(send.bytes), send.parts);
        self.all_to_all((send, out), (BytesMut::Host(recv.bytes), recv.parts))
    }

    fn reserve_alltoallv(&self, send: &[Part], recv: &[Part]) -> Result<usize, Error> {
        let scratch = &mut *self.scratch.borrow_mut();
        scratch.send.set(send, self.raw.rank)?;
        scratch.recv.set(recv, self.raw.rank)?;
        // The library does not report its own memory.
        Ok(0)
    }

    fn device(&self) -> Option<&dyn DeviceComm> {
        Some(self)
    }

    fn flight(&self, piece: Option<usize>) -> Result<Box<dyn Flight>, Error> {
        let piece = piece.map_or(self.piece, |most| self.piece.min(most));
        Ok(Box::new(MpiFlight::new(self.raw.dup()?, piece)))
    }

    fn dup(&self) -> Result<Box<dyn Comm>, Error> {
        Ok(Box::new(self.duplicate()?))
    }

    fn one_sided(&self) -> Option<&dyn OneSided> {
        Some(self)
    }

    fn teams(&self) -> Option<&dyn Teams> {
        Some(self)
    }

    fn failure_detector(&self) -> Option<&dyn FailureDetector> {
        self.failure_detector.as_ref().map(|detector| detector as _)
    }

    /// Ends the job, because the other ranks cannot be notified.
    fn abandon(&self) {
        if self.raw.size > 1 {
            abort(101);
        }
    }
}

impl SharesMemory for MpiComm {
    fn host(&self, rank: usize) -> usize {
        self.hosts[rank]
    }

    fn node_memory(&self) -> Result<Option<Box<dyn NodeMemory>>, Error> {
        match self.hosts.iter().filter(|host| **host == self.hosts[self.raw.rank]).count() {
            1 => self.host_comm().map(|_| None),
            _ => Ok(Some(Box::new(self.host_memory()?))),
        }
    }

    fn message_slots(&self) -> Result<Option<Box<dyn MessageSlots>>, Error> {
        Ok(Some(Box::new(HostMessageSlots::new(self.host_memory()?))))
    }
}

impl OneSided for MpiComm {
    fn window(&self) -> Result<Option<Box<dyn RmaWindow>>, Error> {
        // All ranks try together, so either all have the result or none has.
        let found = match self.can_put.get() {
            Some(true) => Ok(Rma::known(self)?),
            Some(false) => return Ok(None),
            None => Rma::try_out(self)?,
        };
        let _ = self.can_put.set(found.is_ok());
        let why = match found {
            Ok(rma) => return Ok(Some(Box::new(MpiWindow::new(rma)))),
            Err(why) => why,
        };
        if self.raw.rank == 0 {
            NO_PUTS.call_once(|| {
                log::warn!(
                    "this MPI cannot put into the memory of other ranks ({why}); messages are sent instead.{} \
                     All ranks of a host together may do otherwise, or another MPI",
                    Rma::remedy()
                );
            });
        }
        Ok(None)
    }
}

impl Teams for MpiComm {
    fn team(&self, threads: usize) -> Result<TeamComms, Error> {
        funnel::team(self, threads)
    }
}

impl MpiComm {
    /// The ranks of this host, with messages of two kinds, and their numbers here. Collective.
    fn host_comm(&self) -> Result<(RawComm, Self, Vec<usize>), Error> {
        // Each step is agreed on, so that no rank is left waiting in the next.
        let own = self.hosts[self.raw.rank];
        let host = self.raw.all(self.raw.split(own, self.raw.rank))?;
        let ranks: Vec<_> = (0..self.raw.size).filter(|&rank| self.hosts[rank] == own).collect();
        let dup = self.raw.all(host.dup())?;
        let comm = Self::on(dup, vec![0; host.size].into());
        let comm = self.raw.all(comm.map_err(|error| on_rank_of(error, &ranks)))?;
        Ok((host, comm, ranks))
    }

    /// Memory of the ranks of this host. Collective.
    fn host_memory(&self) -> Result<HostNodeMemory<Host>, Error> {
        let (host, comm, ranks) = self.host_comm()?;
        let host = Host::new(host).map_err(|error| on_rank_of(error, &ranks))?;
        Ok(HostNodeMemory::new(host, Box::new(comm), ranks))
    }
}
