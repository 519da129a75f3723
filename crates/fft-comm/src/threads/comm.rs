//! The communicator, and the functions that start ranks.

use std::cell::RefCell;
use std::sync::{Arc, MutexGuard, PoisonError, RwLock};
use std::thread::Builder;

use fft_core::{
    Comm, Error, Flight, MessageSlots, NodeMemory, Part, Parts, Reduce, SharesMemory, TeamComms,
    Teams,
};

use super::flight::ThreadFlight;
use super::world::{FlagsOf, Member, REDUCED_BYTES, State, World};
use crate::exchange::{pairwise, reserve_pairwise};
use crate::node_memory::{HostMessageSlots, HostNodeMemory, OneProcess};

/// Runs `body` once per rank, each on a thread of its own, and returns the results in order of
/// ranks.
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
/// If `ranks` is 0 or the threads cannot be started, or with the panic of the lowest rank that
/// panicked, once all have ended.
pub fn threads<R: Send>(ranks: usize, body: impl Fn(ThreadComm) -> R + Sync) -> Vec<R> {
    threads_on(&vec![0; ranks], body)
}

/// As [`threads`], with an error if the threads cannot be started because of limits on processes or
/// memory. Then no rank has run.
///
/// # Errors
/// [`Error::Threads`], with the number of threads that could be started.
///
/// # Panics
/// If `ranks` is 0, or with the panic of the lowest rank that panicked.
pub fn try_threads<R: Send>(
    ranks: usize,
    body: impl Fn(ThreadComm) -> R + Sync,
) -> Result<Vec<R>, Error> {
    start(&vec![0; ranks], body)
}

/// As [`threads`], pretending that ranks are on these hosts: one number for each rank. For tests.
#[doc(hidden)]
pub fn threads_on<R: Send>(hosts: &[usize], body: impl Fn(ThreadComm) -> R + Sync) -> Vec<R> {
    start(hosts, body).unwrap_or_else(|error| panic!("{error}"))
}

fn start<R: Send>(hosts: &[usize], body: impl Fn(ThreadComm) -> R + Sync) -> Result<Vec<R>, Error> {
    let ranks = hosts.len();
    assert!(ranks > 0, "at least one rank is needed");
    // Empty if a thread is missing: ranks would wait for it. Locked until all have started.
    let world = RwLock::new(None);
    let on_thread = |rank| {
        let world = world.read().unwrap_or_else(PoisonError::into_inner).clone()?;
        Some(body(ThreadComm::new(world, rank)))
    };
    let on_thread = &on_thread;
    std::thread::scope(|scope| {
        let mut place = world.write().unwrap_or_else(PoisonError::into_inner);
        let spawn = |rank| Builder::new().spawn_scoped(scope, move || on_thread(rank));
        let mut running = Vec::new();
        let started = (0..ranks).try_for_each(|rank| spawn(rank).map(|it| running.push(it)));
        let found = running.len();
        if started.is_ok() {
            *place = Some(Arc::new(World::new(hosts.to_vec())));
        }
        drop(place);
        let ended: Vec<_> = running.into_iter().map(|thread| thread.join()).collect();
        started.map_err(|why| Error::Threads {
            found: Some(found),
            wanted: ranks,
            why: why.to_string(),
        })?;
        let result: Result<Option<Vec<R>>, _> = ended.into_iter().collect();
        let result = result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok(result.expect("all have started"))
    })
}

/// A communicator of one rank.
pub fn alone() -> ThreadComm {
    ThreadComm::new(Arc::new(World::new(vec![0])), 0)
}

/// A communicator whose ranks are threads.
pub struct ThreadComm {
    member: Arc<Member>,
    /// The flight of the all-to-all, which consists of messages.
    flight: RefCell<ThreadFlight>,
}

impl ThreadComm {
    /// The communicators of `ranks` ranks, in order, for threads that the caller has.
    pub fn team(ranks: usize) -> Vec<Self> {
        let world = Arc::new(World::new(vec![0; ranks]));
        (0..ranks).map(|rank| Self::new(world.clone(), rank)).collect()
    }

    fn new(world: Arc<World>, rank: usize) -> Self {
        let member = Arc::new(Member { world, rank });
        Self { member: member.clone(), flight: RefCell::new(ThreadFlight::new(member)) }
    }

    /// Contributes bytes, as many as every other rank, and reads the bytes of all. Collective.
    pub(crate) fn rendezvous<R>(
        &self,
        mine: &[u8],
        look: impl FnOnce(&[Vec<u8>]) -> R,
    ) -> Result<R, Error> {
        self.member.world.rendezvous(self.member.rank, mine, look)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.member.world.state()
    }
}

impl Comm for ThreadComm {
    fn rank(&self) -> usize {
        self.member.rank
    }

    fn size(&self) -> usize {
        self.member.world.size
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
        let mut bytes = [0; REDUCED_BYTES];
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
        pairwise(self.member.rank, &mut *self.flight.borrow_mut(), send, recv)
    }

    fn reserve_alltoallv(&self, send: &[Part], recv: &[Part]) -> Result<usize, Error> {
        reserve_pairwise(self.member.rank, &mut *self.flight.borrow_mut(), send, recv)
    }

    fn flight(&self, _piece: Option<usize>) -> Result<Box<dyn Flight>, Error> {
        // Each flight has a world of its own, because its messages must not match those of another.
        Ok(Box::new(ThreadFlight::new(self.split(0, self.member.rank)?.member)))
    }

    fn dup(&self) -> Result<Box<dyn Comm>, Error> {
        Ok(Box::new(self.split(0, self.member.rank)?))
    }

    fn teams(&self) -> Option<&dyn Teams> {
        Some(self)
    }
}

impl SharesMemory for ThreadComm {
    fn host(&self, rank: usize) -> usize {
        self.member.world.hosts[rank]
    }

    fn node_memory(&self) -> Result<Option<Box<dyn NodeMemory>>, Error> {
        let (memory, ranks) = self.host_memory()?;
        Ok(if ranks > 1 { Some(Box::new(memory)) } else { None })
    }

    fn message_slots(&self) -> Result<Option<Box<dyn MessageSlots>>, Error> {
        Ok(Some(Box::new(HostMessageSlots::new(self.host_memory()?.0))))
    }
}

impl Teams for ThreadComm {
    fn team(&self, threads: usize) -> Result<TeamComms, Error> {
        if threads == 0 {
            return Err(Error::argument("threads", threads, "at least 1"));
        }
        if self.size() > 1 {
            return Err(Error::argument("threads of a rank", threads, "MPI, or one rank"));
        }
        let comms = Self::team(threads).into_iter().map(|comm| Box::new(comm) as Box<dyn Comm>);
        Ok(TeamComms { comms: comms.collect(), funnel: None })
    }
}

impl ThreadComm {
    /// Memory of the ranks of this host, and their number. Collective.
    fn host_memory(&self) -> Result<(HostNodeMemory<OneProcess<FlagsOf>>, usize), Error> {
        let host = self.host(self.rank());
        let comm = self.split(host, self.rank())?;
        let (size, space) = (comm.size(), OneProcess(FlagsOf(comm.member.clone())));
        let ranks = (0..self.size()).filter(|&rank| self.host(rank) == host).collect();
        Ok((HostNodeMemory::new(space, Box::new(comm), ranks), size))
    }

    /// Memory of all threads, which are these ranks of another communicator. Collective.
    #[cfg(feature = "mpi")]
    pub(crate) fn memory_of_ranks(
        &self,
        ranks: Vec<usize>,
    ) -> Result<HostNodeMemory<OneProcess<FlagsOf>>, Error> {
        let comm = self.split(0, self.rank())?;
        let space = OneProcess(FlagsOf(comm.member.clone()));
        Ok(HostNodeMemory::new(space, Box::new(comm), ranks))
    }

    /// Communicators of the ranks with equal `color`, ordered by `key` and then by rank here.
    /// Collective.
    ///
    /// # Errors
    /// When a rank has gone.
    ///
    /// # Panics
    /// Never: each rank brings two words.
    pub fn split(&self, color: usize, key: usize) -> Result<Self, Error> {
        let mine: Vec<u8> = [color, key].iter().flat_map(|x| x.to_ne_bytes()).collect();
        let hosts = &self.member.world.hosts;
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
            let place = group.iter().position(|(_, rank)| *rank == self.member.rank);
            let hosts: Vec<_> = group.iter().map(|(_, rank)| hosts[*rank]).collect();
            (place.expect("this rank is in its own group"), group[0].1, hosts)
        })?;
        if leader == self.member.rank {
            self.state().born.push((color, Arc::new(World::new(hosts))));
        }
        self.barrier()?;
        let born = {
            let state = self.state();
            let born = state.born.iter().find(|(c, _)| *c == color);
            born.expect("the leader came before the barrier").1.clone()
        };
        self.barrier()?;
        if leader == self.member.rank {
            self.state().born.retain(|(c, _)| *c != color);
        }
        Ok(Self::new(born, rank))
    }
}
