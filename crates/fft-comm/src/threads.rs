//! Threads of one process as ranks.
//!
//! Messages are not copied: the sender's slot moves to the receiver, who reads it and sends it back. All
//! waiting for messages is on condition variables, so that more ranks than cores do no harm. A rank that ends, or panics,
//! while others need it wakes them with an error.

mod flight;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use fft_core::{Comm, Error, Flight, NodeMemory, Part, Parts, Reduce, Slot};

use crate::exchange::pairwise;
use crate::node_memory::node_memory::{HostNodeMemory, Process, SyncFlags};

use flight::ThreadFlight;

/// Runs `body` once per rank, each on a thread of its own, and returns what they return in order of ranks.
///
/// ```
/// use fft_core::{Comm, Reduce};
/// let sums = fft_comm::threads(3, |comm| {
///     let mut value = [comm.rank() as f64];
///     comm.allreduce(Reduce::Sum, &mut value).unwrap();
///     value[0]
/// });
/// assert_eq!(sums, [3.0; 3]);
/// ```
///
/// # Panics
/// If `ranks` is 0, or with the panic of the first rank that panicked, once all have ended.
pub fn threads<R: Send>(ranks: usize, body: impl Fn(ThreadComm) -> R + Sync) -> Vec<R> {
    threads_on(&vec![0; ranks], body)
}

/// As [`threads`], on as many hosts as there are different numbers, one per rank: ranks of different hosts do not look
/// at each other's memory. For tests.
#[doc(hidden)]
pub fn threads_on<R: Send>(hosts: &[usize], body: impl Fn(ThreadComm) -> R + Sync) -> Vec<R> {
    let ranks = hosts.len();
    assert!(ranks > 0, "at least one rank is needed");
    let world = Arc::new(World::new(hosts.to_vec()));
    std::thread::scope(|scope| {
        let start = |rank| {
            let (comm, body) = (ThreadComm::new(world.clone(), rank), &body);
            scope.spawn(move || body(comm))
        };
        let running: Vec<_> = (0..ranks).map(start).collect();
        let ended: Vec<_> = running.into_iter().map(|thread| thread.join()).collect();
        let result: Result<Vec<R>, _> = ended.into_iter().collect();
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The communicator of one rank, which is whoever uses it.
///
/// ```
/// use fft_core::Comm;
/// assert_eq!(fft_comm::alone().size(), 1);
/// ```
pub fn alone() -> ThreadComm {
    ThreadComm::new(Arc::new(World::new(vec![0])), 0)
}

/// A communicator whose ranks are threads.
pub struct ThreadComm {
    seat: Arc<Seat>,
    /// For the collective that is made of messages.
    flight: RefCell<ThreadFlight>,
}

/// A rank's place in a communicator. When the last holder drops it, the others know that it is gone.
struct Seat {
    world: Arc<World>,
    rank: usize,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.world.flags[self.rank].gone.store(true, Ordering::Release);
        self.world.state().gone[self.rank] = true;
        self.world.wake_all();
    }
}

/// The flags of a rank's world. They live as long as any rank of it.
struct Stations(Arc<Seat>);

impl AsRef<[SyncFlags]> for Stations {
    fn as_ref(&self) -> &[SyncFlags] {
        &self.0.world.flags
    }
}

/// What the ranks of one communicator share.
struct World {
    size: usize,
    /// For every rank a number for the host that it is on, or plays to be on.
    hosts: Vec<usize>,
    state: Mutex<State>,
    /// One per rank, so that a message wakes only who waits for it.
    wake: Vec<Condvar>,
    /// Where ranks say what memory they show.
    flags: Vec<SyncFlags>,
}

struct State {
    /// Messages under way, at `to * size + from`.
    mail: Vec<VecDeque<Slot>>,
    /// Slots that come back to who sent them, with who read them.
    returned: Vec<Vec<(usize, Slot)>>,
    gone: Vec<bool>,
    meeting: Meeting,
    /// Communicators being born in a split, by color.
    born: Vec<(usize, Arc<World>)>,
}

/// A collective in progress: everyone brings bytes, and when all are there everyone looks at all of them.
struct Meeting {
    brought: Vec<Vec<u8>>,
    came: Vec<bool>,
    open: bool,
    /// Who has looked, while it is open.
    looked: Vec<bool>,
}

impl World {
    fn new(hosts: Vec<usize>) -> Self {
        let size = hosts.len();
        let queue = |_| VecDeque::with_capacity(4);
        let state = State {
            mail: (0..size * size).map(queue).collect(),
            // At most one from each peer at a time: giving back allocates nothing.
            returned: (0..size).map(|_| Vec::with_capacity(size)).collect(),
            gone: vec![false; size],
            meeting: Meeting {
                brought: vec![Vec::new(); size],
                came: vec![false; size],
                open: false,
                looked: vec![false; size],
            },
            born: Vec::new(),
        };
        let wake = (0..size).map(|_| Condvar::new()).collect();
        let flags = (0..size).map(|_| SyncFlags::default()).collect();
        Self { size, hosts, state: Mutex::new(state), wake, flags }
    }

    /// The shared state. A rank that panicked does so outside of the few lines that hold the lock, so that
    /// a poisoned lock guards nothing half done.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps until `ready` gives a result.
    fn wait<R>(&self, rank: usize, mut ready: impl FnMut(&mut State) -> Option<R>) -> R {
        let mut state = self.state();
        loop {
            if let Some(result) = ready(&mut state) {
                return result;
            }
            state = self.wake[rank].wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn wake_all(&self) {
        self.wake.iter().for_each(Condvar::notify_all);
    }

    /// Brings bytes to a meeting of all ranks and looks at what everyone brought, which must be equally much.
    fn rendezvous<R>(
        &self,
        rank: usize,
        mine: &[u8],
        look: impl FnOnce(&[Vec<u8>]) -> R,
    ) -> Result<R, Error> {
        let missing = |gone: &[bool], there: &[bool]| {
            let gone = (0..self.size).find(|&r| gone[r] && !there[r])?;
            Some(Err(Error::Left { gone }))
        };
        // The meeting before this one must have been left by all.
        self.wait(rank, |state| match state.meeting.open {
            true => missing(&state.gone, &state.meeting.looked),
            false => Some(Ok(())),
        })?;
        let all_came = {
            let meeting = &mut self.state().meeting;
            meeting.brought[rank].clear();
            meeting.brought[rank].extend_from_slice(mine);
            meeting.came[rank] = true;
            meeting.open = meeting.came.iter().all(|came| *came);
            meeting.open
        };
        if all_came {
            self.wake_all();
        }
        self.wait(rank, |state| match state.meeting.open {
            true => Some(Ok(())),
            false => missing(&state.gone, &state.meeting.came),
        })?;
        let mut state = self.state();
        let meeting = &mut state.meeting;
        let seen = match meeting.brought.iter().position(|bytes| bytes.len() != mine.len()) {
            None => Ok(look(&meeting.brought)),
            Some(from) => {
                let (found, expected) = (meeting.brought[from].len(), mine.len());
                Err(Error::Message { rank, from, found, expected })
            }
        };
        meeting.looked[rank] = true;
        if meeting.looked.iter().all(|looked| *looked) {
            meeting.came.fill(false);
            meeting.looked.fill(false);
            meeting.open = false;
            drop(state);
            self.wake_all();
        }
        seen
    }
}

impl ThreadComm {
    fn new(world: Arc<World>, rank: usize) -> Self {
        let seat = Arc::new(Seat { world, rank });
        Self { seat: seat.clone(), flight: RefCell::new(ThreadFlight::new(seat)) }
    }

    fn rendezvous<R>(&self, mine: &[u8], look: impl FnOnce(&[Vec<u8>]) -> R) -> Result<R, Error> {
        self.seat.world.rendezvous(self.seat.rank, mine, look)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.seat.world.state()
    }
}

impl Comm for ThreadComm {
    fn rank(&self) -> usize {
        self.seat.rank
    }

    fn size(&self) -> usize {
        self.seat.world.size
    }

    fn name(&self) -> &'static str {
        "threads"
    }

    fn barrier(&self) -> Result<(), Error> {
        self.rendezvous(&[], |_| ())
    }

    fn allgather(&self, mine: &[u8], all: &mut [u8]) -> Result<(), Error> {
        assert_eq!(all.len(), mine.len() * self.size(), "room for every rank's bytes");
        self.rendezvous(mine, |brought| {
            for (place, bytes) in all.chunks_mut(mine.len().max(1)).zip(brought) {
                place.copy_from_slice(bytes);
            }
        })
    }

    fn allreduce(&self, how: Reduce, values: &mut [f64]) -> Result<(), Error> {
        let mut bytes = [0; 256];
        for values in values.chunks_mut(bytes.len() / size_of::<f64>()) {
            let mine = &mut bytes[..size_of_val(values)];
            for (place, value) in mine.chunks_exact_mut(8).zip(values.iter()) {
                place.copy_from_slice(&value.to_ne_bytes());
            }
            self.rendezvous(mine, |brought| {
                for (i, value) in values.iter_mut().enumerate() {
                    let of = |bytes: &Vec<u8>| {
                        f64::from_ne_bytes(bytes[8 * i..][..8].try_into().expect("8 bytes"))
                    };
                    let all = brought.iter().map(of);
                    *value = match how {
                        Reduce::Min => all.fold(f64::INFINITY, f64::min),
                        Reduce::Max => all.fold(f64::NEG_INFINITY, f64::max),
                        Reduce::Sum => all.sum(),
                    };
                }
            })?;
        }
        Ok(())
    }

    fn alltoallv(&self, send: Parts<'_, &[u8]>, recv: Parts<'_, &mut [u8]>) -> Result<(), Error> {
        pairwise(self.seat.rank, &mut *self.flight.borrow_mut(), send, recv)
    }

    fn reserve_alltoallv(&self, send: &[Part], recv: &[Part]) -> Result<(), Error> {
        let others = |parts: &[Part]| -> Vec<usize> {
            let there = |(rank, part): (usize, &Part)| (rank != self.rank()).then_some(part.1);
            parts.iter().enumerate().filter_map(there).filter(|&bytes| bytes > 0).collect()
        };
        self.flight.borrow_mut().reserve(&others(send), &others(recv))
    }

    fn flight(&self) -> Result<Box<dyn Flight>, Error> {
        // Messages of a flight must not meet those of another: each has a world of its own.
        Ok(Box::new(ThreadFlight::new(self.split_into(0, self.seat.rank)?.seat)))
    }

    fn host(&self, rank: usize) -> usize {
        self.seat.world.hosts[rank]
    }

    fn node_memory(&self) -> Result<Option<Box<dyn NodeMemory>>, Error> {
        let host = self.host(self.rank());
        let comm = self.split_into(host, self.rank())?;
        if comm.size() == 1 {
            return Ok(None);
        }
        let ground = Process(Stations(comm.seat.clone()));
        let ranks = (0..self.size()).filter(|&rank| self.host(rank) == host).collect();
        Ok(Some(Box::new(HostNodeMemory::new(ground, Box::new(comm), ranks))))
    }

    fn dup(&self) -> Result<Box<dyn Comm>, Error> {
        Ok(Box::new(self.split_into(0, self.seat.rank)?))
    }

    fn split(&self, color: usize, key: usize) -> Result<Box<dyn Comm>, Error> {
        Ok(Box::new(self.split_into(color, key)?))
    }
}

impl ThreadComm {
    fn split_into(&self, color: usize, key: usize) -> Result<Self, Error> {
        let mine: Vec<u8> = [color, key].iter().flat_map(|x| x.to_ne_bytes()).collect();
        let hosts = &self.seat.world.hosts;
        let (rank, leader, hosts) = self.rendezvous(&mine, |brought| {
            let pair = |bytes: &[u8]| {
                let word = |i| usize::from_ne_bytes(bytes[i..i + 8].try_into().expect("8 bytes"));
                (word(0), word(8))
            };
            let mut group: Vec<_> = (brought.iter().map(|bytes| pair(bytes)).enumerate())
                .filter(|(_, (c, _))| *c == color)
                .map(|(rank, (_, key))| (key, rank))
                .collect();
            group.sort_unstable();
            let place = group.iter().position(|(_, rank)| *rank == self.seat.rank);
            let hosts: Vec<_> = group.iter().map(|(_, rank)| hosts[*rank]).collect();
            (place.expect("this rank is in its own group"), group[0].1, hosts)
        })?;
        if leader == self.seat.rank {
            self.state().born.push((color, Arc::new(World::new(hosts))));
        }
        self.barrier()?;
        let born = {
            let state = self.state();
            let born = state.born.iter().find(|(c, _)| *c == color);
            born.expect("the leader came before the barrier").1.clone()
        };
        self.barrier()?;
        if leader == self.seat.rank {
            self.state().born.retain(|(c, _)| *c != color);
        }
        Ok(Self::new(born, rank))
    }
}
