//! Messages between threads and other processes, on a communicator of their own.

use std::sync::{Arc, Weak};

use fft_core::{Error, Slot};

use super::operation::Ranks;
use super::queue::{Ends, Queue, Request};
use crate::mpi::ffi::{RawComm, Requests};
use crate::mpi::pieces::{Done, Peer};
use crate::threads::{Remote, World};

/// The side of the threads.
pub(super) struct Requesting {
    pub(super) flight: usize,
    pub(super) queue: Arc<Queue>,
}

impl Remote for Requesting {
    fn send(&self, thread: usize, to: usize, bound: usize, slot: Slot) {
        let ends = Ends { flight: self.flight, thread, peer: to };
        self.queue.push(Request::Send { ends, bound, slot });
    }

    fn receive(&self, thread: usize, from: usize, number: usize, slot: Slot) {
        let ends = Ends { flight: self.flight, thread, peer: from };
        self.queue.push(Request::Receive { ends, number, slot });
    }

    fn abort(&self, why: Error) -> ! {
        self.queue.push(Request::Abort(Some(why)));
        loop {
            std::thread::park();
        }
    }
}

/// The side of the thread that calls MPI.
pub(super) struct Messages {
    // Dropped before the communicator that requests were made on.
    requests: Requests,
    raw: RawComm,
    ranks: Arc<Ranks>,
    /// Gone when all threads have dropped the flight.
    world: Weak<World>,
    failure: Result<(), Error>,
    pub(super) is_active: bool,
}

impl Messages {
    pub(super) fn new(raw: RawComm, ranks: Arc<Ranks>, world: &Arc<World>, most: usize) -> Self {
        Self {
            requests: Requests::new(most),
            raw,
            ranks,
            world: Arc::downgrade(world),
            failure: Ok(()),
            is_active: false,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.world.strong_count() == 0
    }

    /// The process of a peer, and the tag of messages from one thread to another.
    fn peer(&self, ends: Ends, is_sent: bool) -> Peer {
        let (rank, peer) = self.ranks.place(ends.peer);
        let [from, to] = if is_sent { [ends.thread, peer] } else { [peer, ends.thread] };
        let tag = from * self.ranks.most_threads() + to;
        Peer { rank, tag: tag.try_into().expect("tags of at most 181 threads") }
    }

    pub(super) fn send(&mut self, ends: Ends, bound: usize, slot: Slot) -> Result<(), Error> {
        self.is_active = true;
        let peer = self.peer(ends, true);
        self.requests.send(&self.raw, peer, (ends.thread, ends.peer), bound, slot)
    }

    pub(super) fn receive(&mut self, ends: Ends, number: usize, slot: Slot) -> Result<(), Error> {
        self.is_active = true;
        let peer = self.peer(ends, false);
        self.requests.receive(&self.raw, peer, (ends.thread, number), slot)
    }

    /// Hands out completed messages. Returns whether there were any.
    pub(super) fn test(&mut self) -> Result<bool, Error> {
        let mut moved = false;
        while self.is_active {
            let done = self.requests.next(&self.raw, &mut self.failure, None)?;
            let world = self.world.upgrade();
            if let Some(
                Done::Sent { name: (thread, _), .. } | Done::Received { name: (thread, _), .. },
            ) = &done
                && let Some(world) = &world
                && let Err(error) = std::mem::replace(&mut self.failure, Ok(()))
            {
                world.fail(*thread, error);
            }
            match (done, world) {
                (Some(Done::Not), _) => break,
                (None, _) => self.is_active = false,
                (Some(_), None) => moved = true,
                (Some(Done::Sent { name: (thread, to), slot }), Some(world)) => {
                    world.put_back(thread, to, slot);
                    moved = true;
                }
                (Some(Done::Received { name: (thread, number), slot }), Some(world)) => {
                    world.complete(thread, number, slot);
                    moved = true;
                }
            }
        }
        Ok(moved)
    }
}
