//! Messages between threads: slots move to the receiver, and back when they have been read.
//! Messages of other processes are received into slots of the receiver.

use std::sync::Arc;

use fft_core::{Arrival, Error, Flight, PinnedMemory, Slot, SlotPool};

use super::world::{Member, State};

pub(crate) struct ThreadFlight {
    member: Arc<Member>,
    pool: SlotPool,
    /// The sender of each posted receive, and whether its message has arrived, or never will.
    expected: Vec<(usize, bool)>,
    /// The receivers of slots that have not come back.
    lent: Vec<usize>,
    /// The first rank that was missing, reported at the end.
    gone: Option<usize>,
}

impl ThreadFlight {
    pub(crate) fn new(member: Arc<Member>) -> Self {
        let (expected, lent) = (Vec::new(), Vec::new());
        Self { member, pool: SlotPool::default(), expected, lent, gone: None }
    }

    /// Takes back slots until at most `most` are lent; returns true then. With `read`, returns
    /// false as soon as an expected message has arrived.
    fn recover(&mut self, most: usize, read: bool) -> bool {
        let Self { member, pool, expected, lent, gone } = self;
        let Member { world, rank } = &**member;
        world.wait(*rank, |state| {
            for (reader, slot) in state.returned[*rank].drain(..) {
                pool.put(slot);
                if let Some(place) = lent.iter().position(|to| *to == reader) {
                    lent.swap_remove(place);
                }
            }
            let is_gone = |peer: usize| world.thread_of(peer).is_some_and(|it| state.gone[it]);
            if let Some(reader) = lent.iter().copied().find(|&to| is_gone(to)) {
                gone.get_or_insert(reader);
                lent.retain(|&to| !is_gone(to));
            }
            let there =
                |from: usize| is_gone(from) || !state.mail[*rank * world.size + from].is_empty();
            let any = || {
                let any = |&(from, came): &(usize, bool)| !came && there(from);
                !state.received[*rank].is_empty() || expected.iter().any(any)
            };
            if lent.len() <= most { Some(true) } else { (read && any()).then_some(false) }
        })
    }
}

/// The next expected message that has arrived; an empty one for a sender that has gone.
fn next(
    expected: &mut [(usize, bool)],
    missed: &mut Option<usize>,
    member: &Member,
    state: &mut State,
) -> Option<Result<Arrival, Error>> {
    let Member { world, rank } = member;
    if let Some((number, message)) = state.received[*rank].pop_front() {
        expected[number].1 = true;
        return Some(Ok(Arrival { number, message }));
    }
    for number in 0..expected.len() {
        let (from, came) = expected[number];
        if came {
            continue;
        }
        // Messages of one sender arrive in the order of receives.
        if let Some(message) = state.mail[*rank * world.size + from].pop_front() {
            expected[number].1 = true;
            return Some(Ok(Arrival { number, message }));
        }
        if world.thread_of(from).is_some_and(|thread| state.gone[thread]) {
            expected[number].1 = true;
            missed.get_or_insert(from);
            return Some(
                Slot::new(0, world.rank_of(*rank)).map(|message| Arrival { number, message }),
            );
        }
    }
    None
}

impl Flight for ThreadFlight {
    fn pin(&mut self, pins: Arc<dyn PinnedMemory>) {
        self.pool.pin(pins);
    }

    fn reserve(&mut self, sends: &[usize], recvs: &[usize]) -> Result<(), Error> {
        self.expected.reserve(recvs.len());
        self.lent.reserve(sends.len());
        let Member { world, rank } = &*self.member;
        let mut state = world.state();
        let from = world.rank_of(*rank);
        for to in state.mail.chunks_exact_mut(world.size) {
            to[from].reserve(sends.len());
        }
        state.returned[*rank].reserve(sends.len());
        state.received[*rank].reserve(recvs.len());
        drop(state);
        if world.remote.is_some() {
            let all: Vec<_> = sends.iter().chain(recvs).copied().collect();
            return self.pool.reserve(&all, from);
        }
        // Receivers need no memory, because they get the sender's slots.
        self.pool.reserve(sends, from)
    }

    fn reserve_message_buffers(&mut self, _sends: &[usize], recvs: &[usize]) -> Result<(), Error> {
        self.expected.reserve(recvs.len());
        Ok(())
    }

    fn slot(&mut self, bytes: usize) -> Result<Slot, Error> {
        self.pool.take(bytes, self.member.world.rank_of(self.member.rank))
    }

    fn wait_until_in_flight(&mut self, most: usize) -> Result<bool, Error> {
        Ok(self.recover(most, true))
    }

    fn post_recv(&mut self, from: usize, bytes: usize) -> Result<(), Error> {
        let member = self.member.clone();
        match &member.world.remote {
            Some(remote) if member.world.thread_of(from).is_none() => {
                // Its sender waits until it can be received.
                let slot = self.slot(bytes).unwrap_or_else(|lacks| remote.abort(lacks));
                self.post_recv_into(from, slot)
            }
            _ => {
                self.expected.push((from, false));
                Ok(())
            }
        }
    }

    fn receives_into_slots(&self) -> bool {
        self.member.world.remote.is_some()
    }

    fn post_recv_into(&mut self, from: usize, slot: Slot) -> Result<(), Error> {
        let Member { world, rank } = &*self.member;
        let remote = world.remote.as_ref().filter(|_| world.thread_of(from).is_none());
        let refused = || Error::argument("sender of a slot's message", from, "another process");
        let remote = remote.ok_or_else(refused)?;
        remote.receive(*rank, from, self.expected.len(), slot);
        self.expected.push((from, false));
        Ok(())
    }

    fn send(&mut self, to: usize, bound: usize, message: Slot) -> Result<(), Error> {
        self.lent.push(to);
        let Member { world, rank } = &*self.member;
        match (world.thread_of(to), &world.remote) {
            (Some(thread), _) => world.deliver(thread, world.rank_of(*rank), message),
            (None, Some(remote)) => remote.send(*rank, to, bound, message),
            (None, None) => unreachable!("without remote ranks all are threads"),
        }
        Ok(())
    }

    fn test_any(&mut self) -> Result<Option<Arrival>, Error> {
        let Self { member, expected, gone, .. } = self;
        next(expected, gone, member, &mut member.world.state()).transpose()
    }

    fn wait_any(&mut self) -> Result<Option<Arrival>, Error> {
        let Self { member, expected, gone, .. } = self;
        if expected.iter().all(|(_, came)| *came) {
            return Ok(None);
        }
        member.world.wait(member.rank, |state| next(expected, gone, member, state)).map(Some)
    }

    fn recycle(&mut self, read: Arrival) {
        let owner = self.expected[read.number].0;
        let Member { world, rank } = &*self.member;
        match world.thread_of(owner) {
            Some(thread) => world.put_back(thread, world.rank_of(*rank), read.message),
            None => self.pool.put(read.message),
        }
    }

    fn wait_all(&mut self) -> Result<(), Error> {
        self.recover(0, false);
        // Messages that other processes have sent are still received, because they would be taken
        // for later ones.
        let Self { member, expected, pool, .. } = self;
        let of_remote = |from: usize| member.world.thread_of(from).is_none();
        while expected.iter().any(|&(from, came)| !came && of_remote(from)) {
            let receive = |state: &mut State| state.received[member.rank].pop_front();
            let (number, message) = member.world.wait(member.rank, receive);
            expected[number].1 = true;
            pool.put(message);
        }
        self.expected.clear();
        let failed = self.member.world.state().failed[self.member.rank].take();
        match (self.gone.take(), failed) {
            (Some(gone), _) => Err(Error::Left { gone }),
            (None, Some(failed)) => Err(failed),
            (None, None) => Ok(()),
        }
    }

    fn memory(&self) -> usize {
        self.pool.memory()
    }
}
