//! Messages between MPI processes.

use std::collections::VecDeque;
use std::sync::Arc;

use fft_core::{Arrival, Error, Flight, PinnedMemory, Slot, SlotPool};

use super::ffi::{self, RawComm, Requests};
use super::pieces::{Done, Peer};
use crate::idle::Idle;

/// Bytes that may be under way out of this rank: enough to keep any network busy.
const AHEAD: usize = 1 << 23;
/// Pieces that may be.
const AHEAD_PIECES: usize = 16;
/// Messages that may be under way however long they are.
const LEAST: usize = 2;

/// A rank: messages of a communicator of their own need no other tag.
fn peer(rank: usize) -> Peer {
    Peer { rank, tag: ffi::TAG }
}

enum Step {
    Left,
    Came(Arrival),
    None,
}

/// Messages under way on a communicator of their own. A panic while some are under way ends the
/// job.
pub(super) struct MpiFlight {
    // Dropped before the communicator that requests were made on.
    requests: Requests,
    raw: RawComm,
    pool: SlotPool,
    /// Messages whose receives are posted, and how many have been handed out.
    announced: usize,
    arrived: usize,
    /// Messages of this rank that are under way, and whether not all have slots at the same time.
    leaving: usize,
    some: bool,
    /// Bytes that may be under way out of this rank.
    ahead: usize,
    /// Messages that arrived while this rank waited for a slot.
    early: VecDeque<Arrival>,
    /// The first error of an operation, returned when all are complete.
    failure: Result<(), Error>,
}

impl MpiFlight {
    pub(super) fn new(raw: RawComm, piece: usize) -> Self {
        let (requests, pool) = (Requests::new(piece), SlotPool::default());
        Self {
            requests,
            raw,
            pool,
            announced: 0,
            arrived: 0,
            leaving: 0,
            some: false,
            ahead: AHEAD.min(piece.saturating_mul(AHEAD_PIECES)),
            early: VecDeque::new(),
            failure: Ok(()),
        }
    }

    /// Waits for the next operation to complete, or only tests. Slots that were sent return to the
    /// pool.
    fn step(&mut self, idle: Option<Idle>) -> Result<Step, Error> {
        Ok(match self.requests.next(&self.raw, &mut self.failure, idle)? {
            Some(Done::Sent { slot, .. }) => {
                self.leaving -= 1;
                self.pool.put(slot);
                Step::Left
            }
            Some(Done::Received { name: (number, _), slot }) => {
                Step::Came(Arrival { number, message: slot })
            }
            Some(Done::Not) | None => Step::None,
        })
    }

    /// The next message; `idle` says how to wait, if at all.
    fn next(&mut self, idle: impl Fn() -> Option<Idle>) -> Result<Option<Arrival>, Error> {
        while self.arrived < self.announced {
            let step = match self.early.pop_front() {
                Some(arrival) => Step::Came(arrival),
                None => self.step(idle())?,
            };
            match step {
                Step::Left => {}
                Step::Came(arrival) => {
                    self.arrived += 1;
                    return Ok(Some(arrival));
                }
                Step::None => break,
            }
        }
        Ok(None)
    }
}

impl Drop for MpiFlight {
    fn drop(&mut self) {
        // Others wait for messages that will not come, and there is no other way to stop them.
        if std::thread::panicking() && self.announced + self.leaving > 0 {
            ffi::abort(101);
        }
    }
}

impl Flight for MpiFlight {
    fn pin(&mut self, pins: Arc<dyn PinnedMemory>) {
        self.pool.pin(pins);
    }

    fn reserve(&mut self, sends: &[usize], recvs: &[usize]) -> Result<(), Error> {
        self.requests.reserve(sends.iter().chain(recvs).copied());
        self.early.reserve(recvs.len());
        let mut all = sends.to_vec();
        all.sort_unstable_by(|a, b| b.cmp(a));
        let (ahead, mut held) = (self.ahead, 0);
        let mut fits = |bytes: &usize| {
            held += bytes;
            held <= ahead
        };
        let at_once = all.iter().take_while(|bytes| fits(bytes)).count().max(LEAST);
        self.some |= at_once < all.len();
        all.truncate(at_once);
        all.extend_from_slice(recvs);
        self.pool.reserve(&all, self.raw.rank)
    }

    fn reserve_message_buffers(&mut self, sends: &[usize], recvs: &[usize]) -> Result<(), Error> {
        self.requests.reserve(sends.iter().chain(recvs).copied());
        self.early.reserve(recvs.len());
        Ok(())
    }

    fn slot(&mut self, bytes: usize) -> Result<Slot, Error> {
        while self.some && self.leaving > 0 && !self.pool.has(bytes) {
            match self.step(Some(Idle::default()))? {
                Step::Came(arrival) => self.early.push_back(arrival),
                Step::Left => {}
                Step::None => break,
            }
        }
        self.pool.take(bytes, self.raw.rank)
    }

    fn wait_until_in_flight(&mut self, most: usize) -> Result<bool, Error> {
        while self.leaving > most && self.early.is_empty() {
            match self.step(Some(Idle::default()))? {
                Step::Came(arrival) => self.early.push_back(arrival),
                Step::Left => {}
                Step::None => break,
            }
        }
        Ok(self.early.is_empty())
    }

    fn has_slot(&self, bytes: usize) -> bool {
        !self.some || self.pool.has(bytes)
    }

    fn post_recv(&mut self, from: usize, bytes: usize) -> Result<(), Error> {
        // Its sender waits until it can be received. A shorter slot is no help: Open MPI 4.1.4
        // damages the heap then.
        let slot = self.pool.take(bytes, self.raw.rank).unwrap_or_else(|lacks| ffi::awaited(lacks));
        self.post_recv_into(from, slot)
    }

    fn receives_into_slots(&self) -> bool {
        true
    }

    fn post_recv_into(&mut self, from: usize, slot: Slot) -> Result<(), Error> {
        self.requests.receive(&self.raw, peer(from), (self.announced, 0), slot)?;
        self.announced += 1;
        Ok(())
    }

    fn send(&mut self, to: usize, bound: usize, message: Slot) -> Result<(), Error> {
        self.requests.send(&self.raw, peer(to), (0, 0), bound, message)?;
        self.leaving += 1;
        Ok(())
    }

    fn test_any(&mut self) -> Result<Option<Arrival>, Error> {
        if self.arrived == self.announced && self.leaving > 0 {
            // Only sends are left, which proceed only in calls.
            self.step(None)?;
        }
        self.next(|| None)
    }

    fn wait_any(&mut self) -> Result<Option<Arrival>, Error> {
        self.next(|| Some(Idle::default()))
    }

    fn recycle(&mut self, read: Arrival) {
        self.pool.put(read.message);
    }

    fn wait_all(&mut self) -> Result<(), Error> {
        let idle = || Some(Idle::default());
        while let Some(done) = self.requests.next(&self.raw, &mut self.failure, idle())? {
            if let Done::Sent { slot, .. } | Done::Received { slot, .. } = done {
                self.pool.put(slot);
            }
        }
        self.early.drain(..).for_each(|arrival| self.pool.put(arrival.message));
        (self.announced, self.arrived, self.leaving) = (0, 0, 0);
        std::mem::replace(&mut self.failure, Ok(()))
    }

    fn memory(&self) -> usize {
        self.pool.memory()
    }
}
