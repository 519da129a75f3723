//! The communicator of a group behind the trait of fft-core.

use std::sync::Arc;

use fft_core::{
    Comm, DeviceBuffer, DeviceComm, Error, Flight, MessageSlots, NodeMemory, Part, Parts, Reduce,
    SharesMemory,
};

use super::board::reduced;
use super::flight::GroupFlight;
use super::group_comm::GroupComm;
use crate::exchange::{pairwise, reserve_pairwise};
use crate::node_memory::HostMessageSlots;

type Result<T, E = Error> = std::result::Result<T, E>;

impl Comm for GroupComm {
    fn rank(&self) -> usize {
        self.far.as_ref().map_or(self.board.own(), |far| far.rank)
    }

    fn size(&self) -> usize {
        self.hosts.len()
    }

    fn name(&self) -> &'static str {
        "group"
    }

    fn has_messages(&self) -> bool {
        self.far.as_ref().is_none_or(|far| far.has_messages)
    }

    fn barrier(&self) -> Result<()> {
        match &self.far {
            None => self.board.barrier(),
            // Not all groups gather nothing.
            Some(far) => far.allgather(&[0], &mut vec![0; far.size]),
        }
    }

    fn allgather(&self, mine: &[u8], all: &mut [u8]) -> Result<()> {
        assert_eq!(all.len(), mine.len() * self.size(), "room for every rank's bytes");
        match &self.far {
            None => self.board.allgather(mine, all),
            Some(_) if mine.is_empty() => Ok(()),
            Some(far) => far.allgather(mine, all),
        }
    }

    fn allreduce(&self, how: Reduce, values: &mut [f64]) -> Result<()> {
        let Some(far) = &self.far else { return self.board.allreduce(how, values) };
        let (all, len) = (&mut *self.scratch.borrow_mut(), values.len());
        all.resize(len * far.size, 0.0);
        self.allgather(bytemuck::cast_slice(values), bytemuck::cast_slice_mut(all))?;
        for (at, value) in values.iter_mut().enumerate() {
            *value = reduced(how, all[at..].iter().step_by(len).copied());
        }
        Ok(())
    }

    fn alltoallv(&self, send: Parts<'_, &[u8]>, recv: Parts<'_, &mut [u8]>) -> Result<()> {
        match &self.far {
            None => pairwise(self.board.own(), &mut *self.flight.borrow_mut(), send, recv),
            Some(far) => far.alltoallv(send, recv),
        }
    }

    fn reserve_alltoallv(&self, send: &[Part], recv: &[Part]) -> Result<usize> {
        match &self.far {
            None => reserve_pairwise(self.board.own(), &mut *self.flight.borrow_mut(), send, recv),
            Some(_) => Ok(0),
        }
    }

    fn flight(&self, _piece: Option<usize>) -> Result<Box<dyn Flight>> {
        if !self.has_messages() {
            let (found, expected) = ("a process group without isend and irecv", "one with both");
            return Err(Error::argument("messages between hosts", found, expected));
        }
        let board = Arc::new(self.another_board()?);
        Ok(Box::new(GroupFlight::new(board, self.far.as_ref())))
    }

    fn device(&self) -> Option<&dyn DeviceComm> {
        self.device.is_some().then_some(self)
    }

    fn dup(&self) -> Result<Box<dyn Comm>> {
        let board = self.another_board()?;
        let mut comm = Self::on(board, self.far.clone(), self.hosts.clone());
        comm.device.clone_from(&self.device);
        Ok(Box::new(comm))
    }

    fn abandon(&self) {
        self.board.leave();
        if let Some(group) = self.far.as_ref().or(self.device.as_ref()) {
            group.abandon();
        }
    }
}

impl SharesMemory for GroupComm {
    fn host(&self, rank: usize) -> usize {
        self.hosts[rank]
    }

    fn node_memory(&self) -> Result<Option<Box<dyn NodeMemory>>> {
        match self.board.len() {
            1 => Ok(None),
            _ => Ok(Some(Box::new(self.host_memory()?))),
        }
    }

    fn message_slots(&self) -> Result<Option<Box<dyn MessageSlots>>> {
        Ok(Some(Box::new(HostMessageSlots::new(self.host_memory()?))))
    }
}

impl DeviceComm for GroupComm {
    fn reaches(&self, _memory: &DeviceBuffer) -> Result<bool> {
        Ok(self.device.is_some())
    }

    fn has_flights(&self) -> bool {
        false
    }

    fn alltoallv(
        &self,
        send: Parts<'_, &DeviceBuffer>,
        recv: Parts<'_, &DeviceBuffer>,
    ) -> Result<()> {
        self.board.check()?;
        let group = self.device.as_ref().expect("a group with messages of devices");
        group.device_alltoallv(send, recv)
    }
}
