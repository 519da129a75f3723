//! A communicator that records the calls of its collectives.

use std::sync::{Arc, Mutex};

use fft_core::{Flight, MessageSlots, NodeMemory, OneSided, Part, Parts, SharesMemory};
use thriffty::planning::Reduce;
use thriffty::{Comm, Error};

/// A call: its name, and for messages of several sizes the bytes to and from each rank.
pub(crate) type Call = (&'static str, [Vec<usize>; 2]);

/// Its duplicates write into the same record.
pub(crate) struct Recorded {
    comm: Box<dyn Comm>,
    record: Arc<Mutex<Vec<Call>>>,
}

impl Recorded {
    pub(crate) fn new(comm: &dyn Comm) -> Result<Self, Error> {
        Ok(Self { comm: comm.dup()?, record: Arc::default() })
    }

    /// The calls since the last call of this function.
    pub(crate) fn take(&self) -> Vec<Call> {
        std::mem::take(&mut self.record.lock().unwrap())
    }

    fn add(&self, name: &'static str, bytes: [Vec<usize>; 2]) {
        self.record.lock().unwrap().push((name, bytes));
    }
}

impl Comm for Recorded {
    fn rank(&self) -> usize {
        self.comm.rank()
    }

    fn size(&self) -> usize {
        self.comm.size()
    }

    fn name(&self) -> &'static str {
        self.comm.name()
    }

    fn barrier(&self) -> Result<(), Error> {
        self.add("barrier", Default::default());
        self.comm.barrier()
    }

    fn allgather(&self, mine: &[u8], all: &mut [u8]) -> Result<(), Error> {
        self.add("allgather", Default::default());
        self.comm.allgather(mine, all)
    }

    fn allreduce(&self, how: Reduce, values: &mut [f64]) -> Result<(), Error> {
        self.add("allreduce", Default::default());
        self.comm.allreduce(how, values)
    }

    fn alltoallv(&self, send: Parts<'_, &[u8]>, recv: Parts<'_, &mut [u8]>) -> Result<(), Error> {
        let bytes = |parts: &[Part]| parts.iter().map(|(_, bytes)| *bytes).collect();
        self.add("alltoallv", [bytes(send.parts), bytes(recv.parts)]);
        self.comm.alltoallv(send, recv)
    }

    fn reserve_alltoallv(&self, send: &[Part], recv: &[Part]) -> Result<usize, Error> {
        self.comm.reserve_alltoallv(send, recv)
    }

    fn flight(&self, piece: Option<usize>) -> Result<Box<dyn Flight>, Error> {
        self.comm.flight(piece)
    }

    fn dup(&self) -> Result<Box<dyn Comm>, Error> {
        Ok(Box::new(Self { comm: self.comm.dup()?, record: self.record.clone() }))
    }

    fn one_sided(&self) -> Option<&dyn OneSided> {
        self.comm.one_sided()
    }
}

impl SharesMemory for Recorded {
    fn host(&self, rank: usize) -> usize {
        self.comm.host(rank)
    }

    fn node_memory(&self) -> Result<Option<Box<dyn NodeMemory>>, Error> {
        self.comm.node_memory()
    }

    fn message_slots(&self) -> Result<Option<Box<dyn MessageSlots>>, Error> {
        self.comm.message_slots()
    }
}
