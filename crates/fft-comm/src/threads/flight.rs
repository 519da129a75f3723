//! Messages between threads: slots move to the receiver, and back when they have been read.

use std::sync::Arc;

use fft_core::{Arrival, Error, Flight, PinnedMemory, Slot, SlotPool};

use super::world::{Seat, State};

pub(super) struct ThreadFlight {
    seat: Arc<Seat>,
    pool: SlotPool,
    /// The sender of each posted receive, and whether its message has arrived, or never will.
    expected: Vec<(usize, bool)>,
    /// The receivers of slots that have not come back.
    lent: Vec<usize>,
    /// The first rank that was missing, reported at the end.
    gone: Option<usize>,
}

impl ThreadFlight {
    pub(super) fn new(seat: Arc<Seat>) -> Self {
        let (expected, lent) = (Vec::new(), Vec::new());
        Self { seat, pool: SlotPool::default(), expected, lent, gone: None }
    }

    /// Takes back slots until at most `most` are lent; returns true then. With `read`, returns
    /// false as soon as an expected message has arrived.
    fn recover(&mut self, most: usize, read: bool) -> bool {
        let Self { seat, pool, expected, lent, gone } = self;
        let Seat { world, rank } = &**seat;
        world.wait(*rank, |state| {
            for (reader, slot) in state.returned[*rank].drain(..) {
                pool.put(slot);
                if let Some(place) = lent.iter().position(|to| *to == reader) {
                    lent.swap_remove(place);
                }
            }
            if let Some(reader) = lent.iter().copied().find(|&to| state.gone[to]) {
                gone.get_or_insert(reader);
                lent.retain(|&to| !state.gone[to]);
            }
            let there =
                |from: usize| state.gone[from] || !state.mail[*rank * world.size + from].is_empty();
            match lent.len() <= most {
                true => Some(true),
                false if !read => None,
                false => expected.iter().any(|&(from, came)| !came && there(from)).then_some(false),
            }
        })
    }
}

/// The next expected message that has arrived; an empty one for a sender that has gone.
fn next(
    expected: &mut [(usize, bool)],
    missed: &mut Option<usize>,
    seat: &Seat,
    state: &mut State,
) -> Option<Result<Arrival, Error>> {
    let Seat { world, rank } = seat;
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
        if state.gone[from] {
            expected[number].1 = true;
            missed.get_or_insert(from);
            return Some(Slot::new(0, *rank).map(|message| Arrival { number, message }));
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
        let Seat { world, rank } = &*self.seat;
        let mut state = world.state();
        for to in 0..world.size {
            state.mail[to * world.size + rank].reserve(sends.len());
        }
        state.returned[*rank].reserve(sends.len());
        drop(state);
        // Receivers need no memory, as they get the sender's slots.
        self.pool.reserve(sends, self.seat.rank)
    }

    fn reserve_message_buffers(&mut self, _sends: &[usize], recvs: &[usize]) -> Result<(), Error> {
        self.expected.reserve(recvs.len());
        Ok(())
    }

    fn slot(&mut self, bytes: usize) -> Result<Slot, Error> {
        self.pool.take(bytes, self.seat.rank)
    }

    fn wait_until_in_flight(&mut self, most: usize) -> Result<bool, Error> {
        Ok(self.recover(most, true))
    }

    fn post_recv(&mut self, from: usize, _bytes: usize) -> Result<(), Error> {
        self.expected.push((from, false));
        Ok(())
    }

    fn send(&mut self, to: usize, _bound: usize, message: Slot) -> Result<(), Error> {
        self.lent.push(to);
        let Seat { world, rank } = &*self.seat;
        let mut state = world.state();
        if !state.gone[to] {
            state.mail[to * world.size + rank].push_back(message);
        }
        drop(state);
        world.wake[to].notify_all();
        Ok(())
    }

    fn test_any(&mut self) -> Result<Option<Arrival>, Error> {
        let Self { seat, expected, gone, .. } = self;
        next(expected, gone, seat, &mut seat.world.state()).transpose()
    }

    fn wait_any(&mut self) -> Result<Option<Arrival>, Error> {
        let Self { seat, expected, gone, .. } = self;
        if expected.iter().all(|(_, came)| *came) {
            return Ok(None);
        }
        seat.world.wait(seat.rank, |state| next(expected, gone, seat, state)).map(Some)
    }

    fn recycle(&mut self, read: Arrival) {
        let owner = self.expected[read.number].0;
        self.seat.world.state().returned[owner].push((self.seat.rank, read.message));
        self.seat.world.wake[owner].notify_all();
    }

    fn wait_all(&mut self) -> Result<(), Error> {
        self.recover(0, false);
        self.expected.clear();
        match self.gone.take() {
            None => Ok(()),
            Some(gone) => Err(Error::Left { gone }),
        }
    }

    fn memory(&self) -> usize {
        self.pool.memory()
    }
}
