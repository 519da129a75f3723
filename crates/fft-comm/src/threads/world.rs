//! The state that the ranks of a communicator share.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use fft_core::{Error, Slot, locked};

use crate::node_memory::SyncFlags;

/// A thread as a member of a world. `rank` is its index among the threads. When the last clone is
/// dropped, the other threads see that this one has left.
pub(crate) struct Member {
    pub(crate) world: Arc<World>,
    pub(crate) rank: usize,
}

impl Drop for Member {
    fn drop(&mut self) {
        self.world.flags[self.rank].gone.store(true, Ordering::Release);
        let mut state = self.world.state();
        state.gone[self.rank] = true;
        // Their senders wait until these slots are dropped.
        let (size, rank) = (self.world.size, self.rank);
        state.mail[rank * size..(rank + 1) * size].iter_mut().for_each(VecDeque::clear);
        state.received[rank].clear();
        state.returned[rank].clear();
        drop(state);
        self.world.wake_all();
    }
}

/// The flags of a communicator, which live as long as any rank of it.
pub(crate) struct FlagsOf(pub(super) Arc<Member>);

impl AsRef<[SyncFlags]> for FlagsOf {
    fn as_ref(&self) -> &[SyncFlags] {
        &self.0.world.flags
    }
}

/// Messages between threads of this process and ranks of other processes.
pub(crate) trait Remote: Send + Sync {
    /// Sends the slot of a thread to a rank, which expects at most `bound` bytes. It
    /// [comes back](World::put_back).
    fn send(&self, thread: usize, to: usize, bound: usize, slot: Slot);

    /// Receives the next message of a rank into the slot of a thread, which
    /// [gets it](World::complete) with this number.
    fn receive(&self, thread: usize, from: usize, number: usize, slot: Slot);

    /// Ends the job, because other ranks wait for the call that failed here and would wait forever.
    fn abort(&self, why: Error) -> !;
}

/// The most bytes that a rank contributes to a reduction at once. Gatherings have room for them
/// from the beginning, because transforms reduce but allocate nothing.
pub(super) const REDUCED_BYTES: usize = 256;

/// Threads that exchange messages: all ranks of a communicator, or the ranks of this process.
pub(crate) struct World {
    /// All ranks.
    pub(super) size: usize,
    /// The rank of the first thread; the other threads have the next ranks.
    first: usize,
    /// A number for the host of each thread, which may be simulated.
    pub(super) hosts: Vec<usize>,
    state: Mutex<State>,
    /// One per thread, so that a message wakes only its receiver.
    wake: Vec<Condvar>,
    flags: Vec<SyncFlags>,
    /// Where not all ranks are threads of this process.
    pub(super) remote: Option<Box<dyn Remote>>,
}

pub(super) struct State {
    /// Messages under way to a thread, at `to * size + from`.
    pub(super) mail: Vec<VecDeque<Slot>>,
    /// Messages of other processes to a thread, each with the number of its receive.
    pub(super) received: Vec<VecDeque<(usize, Slot)>>,
    /// Slots that return to the thread that sent them, each with the rank of its reader.
    pub(super) returned: Vec<Vec<(usize, Slot)>>,
    pub(super) gone: Vec<bool>,
    /// The first failure of messages to other processes, for each thread.
    pub(super) failed: Vec<Option<Error>>,
    gathering: Gathering,
    /// Communicators that a split is making, by color.
    pub(super) born: Vec<(usize, Arc<World>)>,
}

/// A collective in progress: each rank contributes bytes, and once all have, each reads all of
/// them.
struct Gathering {
    contributions: Vec<Vec<u8>>,
    has_contributed: Vec<bool>,
    open: bool,
    /// The ranks that have read the contributions, while it is open.
    has_read: Vec<bool>,
}

impl World {
    /// A world whose ranks are all threads of this process.
    pub(super) fn new(hosts: Vec<usize>) -> Self {
        Self::of(hosts.len(), 0, hosts, None)
    }

    /// A world of `size` ranks, in which these threads are consecutive ones.
    #[cfg(feature = "mpi")]
    pub(crate) fn with_remote(
        size: usize,
        threads: std::ops::Range<usize>,
        remote: Box<dyn Remote>,
    ) -> Self {
        Self::of(size, threads.start, vec![0; threads.len()], Some(remote))
    }

    fn of(size: usize, first: usize, hosts: Vec<usize>, remote: Option<Box<dyn Remote>>) -> Self {
        let threads = hosts.len();
        // Few of the many ranks of other processes send to any one thread.
        let room = if remote.is_some() { 0 } else { 4 };
        let queue = |_| VecDeque::with_capacity(room);
        let state = State {
            mail: (0..threads * size).map(queue).collect(),
            received: (0..threads).map(|_| VecDeque::new()).collect(),
            // At most one from each peer at a time: returning allocates nothing.
            returned: (0..threads).map(|_| Vec::with_capacity(size)).collect(),
            gone: vec![false; threads],
            failed: vec![None; threads],
            gathering: Gathering {
                contributions: (0..threads).map(|_| Vec::with_capacity(REDUCED_BYTES)).collect(),
                has_contributed: vec![false; threads],
                open: false,
                has_read: vec![false; threads],
            },
            born: Vec::new(),
        };
        let wake = (0..threads).map(|_| Condvar::new()).collect();
        let flags = (0..threads).map(|_| SyncFlags::default()).collect();
        Self { size, first, hosts, state: Mutex::new(state), wake, flags, remote }
    }

    /// The rank of a thread.
    pub(super) fn rank_of(&self, thread: usize) -> usize {
        self.first + thread
    }

    /// The thread that is a rank, if it is one of this process.
    pub(super) fn thread_of(&self, rank: usize) -> Option<usize> {
        rank.checked_sub(self.first).filter(|thread| *thread < self.wake.len())
    }

    pub(super) fn wake(&self, thread: usize) {
        self.wake[thread].notify_all();
    }

    /// A message of a thread to another.
    pub(super) fn deliver(&self, thread: usize, from: usize, message: Slot) {
        let mut state = self.state();
        if !state.gone[thread] {
            state.mail[thread * self.size + from].push_back(message);
        }
        drop(state);
        self.wake(thread);
    }

    /// A message of another process to a thread, by the number of its receive.
    #[cfg(feature = "mpi")]
    pub(crate) fn complete(&self, thread: usize, number: usize, message: Slot) {
        self.state().received[thread].push_back((number, message));
        self.wake(thread);
    }

    /// A slot that a thread has sent, which its reader no longer needs.
    pub(crate) fn put_back(&self, thread: usize, reader: usize, slot: Slot) {
        self.state().returned[thread].push((reader, slot));
        self.wake(thread);
    }

    /// Records that one of a thread's messages from or to another process has failed, before the
    /// thread gets the message's slot. Ranks agree on the error later.
    #[cfg(feature = "mpi")]
    pub(crate) fn fail(&self, thread: usize, error: Error) {
        self.state().failed[thread].get_or_insert(error);
    }

    /// The shared state. No rank panics while it holds the lock, so that poisoning is ignored.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    pub(super) fn wait<R>(&self, rank: usize, mut ready: impl FnMut(&mut State) -> Option<R>) -> R {
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

    /// Contributes bytes to a gathering of all ranks, and reads the bytes of all, which must be
    /// equally many.
    pub(super) fn rendezvous<R>(
        &self,
        rank: usize,
        mine: &[u8],
        look: impl FnOnce(&[Vec<u8>]) -> R,
    ) -> Result<R, Error> {
        if self.size == 1 {
            // There is nobody to wake. The buffer is kept, so that nothing is allocated.
            let contributions = &mut self.state().gathering.contributions;
            contributions[0].clear();
            contributions[0].extend_from_slice(mine);
            return Ok(look(contributions));
        }
        let missing = |gone: &[bool], there: &[bool]| {
            let gone = (0..gone.len()).find(|&r| gone[r] && !there[r])?;
            Some(Err(Error::Left { gone }))
        };
        // All must have left the gathering before this one.
        self.wait(rank, |state| {
            if state.gathering.open {
                missing(&state.gone, &state.gathering.has_read)
            } else {
                Some(Ok(()))
            }
        })?;
        let all_came = {
            let gathering = &mut self.state().gathering;
            gathering.contributions[rank].clear();
            gathering.contributions[rank].extend_from_slice(mine);
            gathering.has_contributed[rank] = true;
            gathering.open =
                gathering.has_contributed.iter().all(|has_contributed| *has_contributed);
            gathering.open
        };
        if all_came {
            self.wake_all();
        }
        self.wait(rank, |state| {
            if state.gathering.open {
                Some(Ok(()))
            } else {
                missing(&state.gone, &state.gathering.has_contributed)
            }
        })?;
        let mut state = self.state();
        let gathering = &mut state.gathering;
        let seen = match gathering.contributions.iter().position(|bytes| bytes.len() != mine.len())
        {
            None => Ok(look(&gathering.contributions)),
            Some(from) => {
                let (found, expected) = (gathering.contributions[from].len(), mine.len());
                Err(Error::Message { rank, from, found, expected })
            }
        };
        gathering.has_read[rank] = true;
        if gathering.has_read.iter().all(|has_read| *has_read) {
            gathering.has_contributed.fill(false);
            gathering.has_read.fill(false);
            gathering.open = false;
            drop(state);
            self.wake_all();
        }
        seen
    }
}
