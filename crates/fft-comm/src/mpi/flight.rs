//! Messages between MPI processes.

use std::time::Duration;

use fft_core::{Arrival, Error, Flight, Slot, SlotPool};

use super::ffi::{RawComm, Requests};
use super::pieces::Done;
use crate::idle::Idle;

/// Messages under way on a communicator of their own.
pub(super) struct MpiFlight {
    // Requests are dropped before the communicator they were made on.
    requests: Requests,
    raw: RawComm,
    pool: SlotPool,
    /// Messages announced, and how many of them have been handed out.
    announced: usize,
    arrived: usize,
    /// The first operation that completed with an error; reported when all are complete.
    failure: Result<(), Error>,
}

impl MpiFlight {
    pub(super) fn new(raw: RawComm, piece: usize) -> Self {
        let (requests, pool) = (Requests::new(piece), SlotPool::default());
        Self { requests, raw, pool, announced: 0, arrived: 0, failure: Ok(()) }
    }

    /// The next message, waiting for it like this, or not at all.
    fn next(&mut self, idle: impl Fn() -> Option<Idle>) -> Result<Option<Arrival>, Error> {
        while self.arrived < self.announced {
            match self.requests.next(&self.raw, &mut self.failure, idle())? {
                Some(Done::Sent(slot)) => self.pool.put(slot),
                Some(Done::Received { number, slot }) => {
                    self.arrived += 1;
                    return Ok(Some(Arrival { number, message: slot }));
                }
                Some(Done::Not) | None => break,
            }
        }
        Ok(None)
    }
}

impl Flight for MpiFlight {
    fn reserve(&mut self, sends: &[usize], recvs: &[usize]) -> Result<(), Error> {
        let all: Vec<_> = sends.iter().chain(recvs).copied().collect();
        self.requests.reserve(all.iter().copied());
        self.pool.reserve(&all, self.raw.rank)
    }

    fn slot(&mut self, bytes: usize) -> Result<Slot, Error> {
        self.pool.take(bytes, self.raw.rank)
    }

    fn expect(&mut self, from: usize, bytes: usize) -> Result<(), Error> {
        let slot = self.pool.take(bytes, self.raw.rank)?;
        self.requests.receive(&self.raw, from, self.announced, slot)?;
        self.announced += 1;
        Ok(())
    }

    fn send(&mut self, to: usize, bound: usize, message: Slot) -> Result<(), Error> {
        self.requests.send(&self.raw, to, bound, message)
    }

    fn poll(&mut self) -> Result<Option<Arrival>, Error> {
        self.next(|| None)
    }

    fn arrival(&mut self) -> Result<Option<Arrival>, Error> {
        self.next(|| Some(Idle::default()))
    }

    fn arrival_asleep(&mut self, nap: Duration) -> Result<Option<Arrival>, Error> {
        self.next(|| Some(Idle::asleep(nap)))
    }

    fn release(&mut self, read: Arrival) {
        self.pool.put(read.message);
    }

    fn finish(&mut self) -> Result<(), Error> {
        let idle = || Some(Idle::default());
        while let Some(done) = self.requests.next(&self.raw, &mut self.failure, idle())? {
            if let Done::Sent(slot) | Done::Received { slot, .. } = done {
                self.pool.put(slot);
            }
        }
        (self.announced, self.arrived) = (0, 0);
        std::mem::replace(&mut self.failure, Ok(()))
    }

    fn memory(&self) -> usize {
        self.pool.memory()
    }
}
