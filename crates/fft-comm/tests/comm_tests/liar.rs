//! A communicator that damages its messages.

use std::cell::Cell;

use fft_comm::ThreadComm;
use fft_core::{
    Arrival, Comm, Error, Flight, MessageSlots, NodeMemory, Part, Parts, Reduce, SharesMemory, Slot,
};

/// The damage that is done to a bundle on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Damage {
    Shorten(usize),
    Flip(usize),
}

thread_local! {
    /// What this rank, which is a thread, does to its bundles.
    pub(crate) static DAMAGE: Cell<Option<Damage>> = const { Cell::new(None) };
}

/// A communicator whose messages are damaged when they leave.
pub(crate) struct Liar(pub(crate) ThreadComm);

struct LyingFlight(Box<dyn Flight>);

impl Flight for LyingFlight {
    fn reserve(&mut self, sends: &[usize], recvs: &[usize]) -> Result<(), Error> {
        self.0.reserve(sends, recvs)
    }
    fn slot(&mut self, bytes: usize) -> Result<Slot, Error> {
        self.0.slot(bytes)
    }
    fn wait_until_in_flight(&mut self, most: usize) -> Result<bool, Error> {
        self.0.wait_until_in_flight(most)
    }
    fn post_recv(&mut self, from: usize, bytes: usize) -> Result<(), Error> {
        self.0.post_recv(from, bytes)
    }
    fn send(&mut self, to: usize, bound: usize, mut message: Slot) -> Result<(), Error> {
        match DAMAGE.get() {
            Some(Damage::Shorten(by)) => message.set_len(message.len().saturating_sub(by)),
            Some(Damage::Flip(bit)) => message.bytes_mut()[bit / 8] ^= 1 << (bit % 8),
            None => {}
        }
        self.0.send(to, bound, message)
    }
    fn test_any(&mut self) -> Result<Option<Arrival>, Error> {
        self.0.test_any()
    }
    fn wait_any(&mut self) -> Result<Option<Arrival>, Error> {
        self.0.wait_any()
    }
    fn recycle(&mut self, read: Arrival) {
        self.0.recycle(read);
    }
    fn wait_all(&mut self) -> Result<(), Error> {
        self.0.wait_all()
    }
    fn memory(&self) -> usize {
        self.0.memory()
    }
}

impl Comm for Liar {
    fn rank(&self) -> usize {
        self.0.rank()
    }
    fn size(&self) -> usize {
        self.0.size()
    }

    fn name(&self) -> &'static str {
        "liar"
    }
    fn barrier(&self) -> Result<(), Error> {
        self.0.barrier()
    }
    fn allgather(&self, mine: &[u8], all: &mut [u8]) -> Result<(), Error> {
        self.0.allgather(mine, all)
    }
    fn allreduce(&self, how: Reduce, values: &mut [f64]) -> Result<(), Error> {
        self.0.allreduce(how, values)
    }
    fn alltoallv(&self, send: Parts<'_, &[u8]>, recv: Parts<'_, &mut [u8]>) -> Result<(), Error> {
        self.0.alltoallv(send, recv)
    }
    fn reserve_alltoallv(&self, send: &[Part], recv: &[Part]) -> Result<usize, Error> {
        self.0.reserve_alltoallv(send, recv)
    }
    fn flight(&self, piece: Option<usize>) -> Result<Box<dyn Flight>, Error> {
        Ok(Box::new(LyingFlight(self.0.flight(piece)?)))
    }
    fn dup(&self) -> Result<Box<dyn Comm>, Error> {
        self.0.dup()
    }
}

impl SharesMemory for Liar {
    fn host(&self, rank: usize) -> usize {
        self.0.host(rank)
    }
    fn node_memory(&self) -> Result<Option<Box<dyn NodeMemory>>, Error> {
        Ok(None)
    }
    fn message_slots(&self) -> Result<Option<Box<dyn MessageSlots>>, Error> {
        self.0.message_slots()
    }
}
