//! Messages of a group: through rings to ranks of this host, and by the group's own messages to
//! others.

use std::collections::VecDeque;
use std::sync::Arc;

use fft_core::{Arrival, Error, Flight, PinnedMemory, Slot, SlotPool};

use super::board::Board;
use super::far::{Far, Pending};
use super::ring::Ring;
use crate::idle::Idle;

/// Bytes of a message's length, which precedes it in a ring.
const HEADER: usize = 8;

/// A message of this rank that is not all in the ring yet.
struct Outgoing {
    message: Slot,
    /// Bytes written, beginning with the header.
    written: usize,
}

/// A posted receive whose message has not arrived.
struct Incoming {
    number: usize,
    room: Slot,
    header: [u8; HEADER],
    /// Bytes read, beginning with the header.
    read: usize,
}

/// The messages from and to a rank of this host.
#[derive(Default)]
struct Near {
    outgoing: VecDeque<Outgoing>,
    incoming: VecDeque<Incoming>,
}

/// Messages under way on a board, and with tags, of this flight alone.
pub(super) struct GroupFlight {
    board: Arc<Board>,
    near: Vec<Near>,
    far: Option<Pending>,
    pool: SlotPool,
    /// Receives posted, and messages handed out.
    posted: usize,
    returned: usize,
    arrivals: VecDeque<Arrival>,
    /// The first error since the last [`Flight::wait_all`].
    failure: Result<(), Error>,
}

impl GroupFlight {
    /// Messages between ranks of the board, and to other ranks if the group has several hosts.
    pub(super) fn new(board: Arc<Board>, far: Option<&Arc<Far>>) -> Self {
        let near = (0..board.len()).map(|_| Near::default()).collect();
        Self {
            board,
            near,
            far: far.map(Pending::new),
            pool: SlotPool::default(),
            posted: 0,
            returned: 0,
            arrivals: VecDeque::new(),
            failure: Ok(()),
        }
    }

    fn rank(&self) -> usize {
        self.board.ranks()[self.board.own()]
    }

    /// The index of a rank on this host.
    fn near(&self, rank: usize) -> Option<usize> {
        self.board.ranks().binary_search(&rank).ok()
    }

    fn fail(&mut self, error: Error) {
        if self.failure.is_ok() {
            self.failure = Err(error);
        }
    }

    fn in_flight(&self) -> usize {
        let near: usize = self.near.iter().map(|near| near.outgoing.len()).sum();
        near + self.far.as_ref().map_or(0, Pending::sends)
    }

    /// Moves all bytes that can be moved; returns whether there were any.
    fn progress(&mut self) -> bool {
        let mut moved = false;
        for i in 0..self.near.len() {
            // Tested before the ring is read, so that messages that a rank sent before it left
            // still arrive.
            let is_gone = self.board.is_gone(i);
            moved |= self.write(i) | self.read(i);
            if is_gone {
                self.give_up(i);
            }
        }
        if let Some(far) = &mut self.far {
            moved |= far.progress(&mut self.pool, &mut self.arrivals, &mut self.failure);
        }
        moved
    }

    /// Writes messages to a ring as far as there is room.
    fn write(&mut self, i: usize) -> bool {
        let Self { board, near, pool, .. } = self;
        let (ring, outgoing) = (board.ring(board.own(), i), &mut near[i].outgoing);
        let mut moved = false;
        while let Some(Outgoing { message, written }) = outgoing.front_mut() {
            let header = message.len().to_le_bytes();
            let rest = if *written < HEADER {
                &header[*written..]
            } else {
                &message.bytes()[*written - HEADER..]
            };
            let bytes = ring.write(rest);
            *written += bytes;
            moved |= bytes > 0;
            if *written == HEADER + message.len() {
                let sent = outgoing.pop_front().expect("the front one");
                pool.put(sent.message);
            } else if bytes == 0 {
                break;
            }
        }
        moved
    }

    /// Reads messages from a ring as far as they have come.
    fn read(&mut self, i: usize) -> bool {
        let (mut moved, from, rank) = (false, self.board.ranks()[i], self.rank());
        let Self { board, near, arrivals, failure, .. } = self;
        let (ring, incoming) = (board.ring(i, board.own()), &mut near[i].incoming);
        while let Some(message) = incoming.front_mut() {
            let bytes = message.read(&ring);
            moved |= bytes > 0;
            if message.is_complete() {
                let Incoming { number, room, header, .. } =
                    incoming.pop_front().expect("the front one");
                let found = usize::from_le_bytes(header);
                let expected = room.len();
                let message = if found > expected { empty(room) } else { cut(room, found) };
                if found > expected && failure.is_ok() {
                    *failure = Err(Error::Message { rank, from, found, expected });
                }
                arrivals.push_back(Arrival { number, message });
            } else if bytes == 0 {
                break;
            }
        }
        moved
    }

    /// Ends the messages from and to a rank that has left. Messages from it arrive empty.
    fn give_up(&mut self, i: usize) {
        let Near { outgoing, incoming } = &mut self.near[i];
        if outgoing.is_empty() && incoming.is_empty() {
            return;
        }
        outgoing.drain(..).for_each(|sent| self.pool.put(sent.message));
        let lost = incoming
            .drain(..)
            .map(|Incoming { number, room, .. }| Arrival { number, message: empty(room) });
        self.arrivals.extend(lost);
        self.fail(Error::Left { gone: self.board.ranks()[i] });
    }

    /// Waits until something is true.
    fn wait(&mut self, is_true: impl Fn(&Self) -> bool) {
        let mut idle = Idle::default();
        loop {
            let moved = self.progress();
            if is_true(self) {
                return;
            }
            if moved {
                idle = Idle::default();
                continue;
            }
            if self.board.processes().watch()
                && let Some(far) = &mut self.far
            {
                far.watch(&mut self.arrivals, &mut self.failure);
            }
            idle.wait();
        }
    }

    fn next(&mut self) -> Option<Arrival> {
        let arrival = self.arrivals.pop_front();
        self.returned += usize::from(arrival.is_some());
        arrival
    }
}

impl Incoming {
    /// Reads the header, or bytes of the message. Bytes without room are dropped.
    fn read(&mut self, ring: &Ring<'_>) -> usize {
        let Self { room, header, read, .. } = self;
        let bytes = if *read < HEADER {
            ring.read(&mut header[*read..])
        } else {
            let (at, len) = (*read - HEADER, usize::from_le_bytes(*header));
            let room = &mut room.bytes_mut()[..];
            if at < room.len().min(len) {
                let end = room.len().min(len);
                ring.read(&mut room[at..end])
            } else {
                let bytes = ring.filled().min(len - at);
                ring.skip(bytes);
                bytes
            }
        };
        *read += bytes;
        bytes
    }

    fn is_complete(&self) -> bool {
        self.read >= HEADER && self.read == HEADER + usize::from_le_bytes(self.header)
    }
}

/// A slot with a shorter message.
fn cut(mut slot: Slot, bytes: usize) -> Slot {
    slot.set_len(bytes);
    slot
}

fn empty(slot: Slot) -> Slot {
    cut(slot, 0)
}

impl Flight for GroupFlight {
    fn pin(&mut self, pins: Arc<dyn PinnedMemory>) {
        self.pool.pin(pins);
    }

    fn reserve(&mut self, sends: &[usize], recvs: &[usize]) -> Result<(), Error> {
        self.arrivals.reserve(recvs.len());
        for near in &mut self.near {
            near.outgoing.reserve(sends.len());
            near.incoming.reserve(recvs.len());
        }
        if let Some(far) = &mut self.far {
            far.reserve(sends.len(), recvs.len());
        }
        let all: Vec<_> = sends.iter().chain(recvs).copied().collect();
        self.pool.reserve(&all, self.rank())
    }

    fn slot(&mut self, bytes: usize) -> Result<Slot, Error> {
        let rank = self.rank();
        self.pool.take(bytes, rank)
    }

    fn wait_until_in_flight(&mut self, most: usize) -> Result<bool, Error> {
        self.wait(|flight| flight.in_flight() <= most || !flight.arrivals.is_empty());
        Ok(self.arrivals.is_empty())
    }

    fn post_recv(&mut self, from: usize, bytes: usize) -> Result<(), Error> {
        let (rank, number) = (self.rank(), self.posted);
        // A message without room is received and dropped, because its sender waits.
        let room = match self.pool.take(bytes, rank) {
            Ok(room) => room,
            Err(error) => {
                self.fail(error);
                Slot::new(0, rank)?
            }
        };
        self.posted += 1;
        match self.near(from) {
            Some(i) => {
                let header = [0; HEADER];
                self.near[i].incoming.push_back(Incoming { number, room, header, read: 0 });
            }
            None => {
                let Self { far, arrivals, failure, .. } = self;
                pending(far).receive(from, number, room, arrivals, failure);
            }
        }
        Ok(())
    }

    fn send(&mut self, to: usize, _bound: usize, message: Slot) -> Result<(), Error> {
        let message = if message.is_opaque() {
            // Memory that others share or that this process cannot address.
            let mut own = self.slot(message.len())?;
            message.copy_to(own.bytes_mut())?;
            own
        } else {
            message
        };
        match self.near(to) {
            Some(i) => {
                self.near[i].outgoing.push_back(Outgoing { message, written: 0 });
                self.write(i);
            }
            None => {
                let Self { far, failure, .. } = self;
                pending(far).send(to, message, failure);
            }
        }
        Ok(())
    }

    fn test_any(&mut self) -> Result<Option<Arrival>, Error> {
        self.progress();
        Ok(self.next())
    }

    fn wait_any(&mut self) -> Result<Option<Arrival>, Error> {
        if self.returned == self.posted {
            return Ok(None);
        }
        self.wait(|flight| !flight.arrivals.is_empty());
        Ok(self.next())
    }

    fn recycle(&mut self, read: Arrival) {
        self.pool.put(read.message);
    }

    fn wait_all(&mut self) -> Result<(), Error> {
        self.wait(|flight| {
            flight.in_flight() == 0 && flight.returned + flight.arrivals.len() == flight.posted
        });
        self.arrivals.drain(..).for_each(|arrival| self.pool.put(arrival.message));
        (self.posted, self.returned) = (0, 0);
        std::mem::replace(&mut self.failure, Ok(()))
    }

    fn memory(&self) -> usize {
        self.pool.memory()
    }
}

fn pending(far: &mut Option<Pending>) -> &mut Pending {
    far.as_mut().expect("a rank that is not on this host is on another")
}
