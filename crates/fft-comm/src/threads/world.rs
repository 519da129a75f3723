//! The state that the ranks of a communicator share.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use fft_core::{Error, Slot};

use crate::node_memory::SyncFlags;

/// A rank of a communicator. The last drop tells the others that it has gone.
pub(super) struct Seat {
    pub(super) world: Arc<World>,
    pub(super) rank: usize,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.world.flags[self.rank].gone.store(true, Ordering::Release);
        let mut state = self.world.state();
        state.gone[self.rank] = true;
        // Their senders wait until these slots are dropped.
        let (size, rank) = (self.world.size, self.rank);
        state.mail[rank * size..(rank + 1) * size].iter_mut().for_each(VecDeque::clear);
        state.returned[rank].clear();
        drop(state);
        self.world.wake_all();
    }
}

/// The flags of a communicator, which live as long as any rank of it.
pub(super) struct FlagsOf(pub(super) Arc<Seat>);

impl AsRef<[SyncFlags]> for FlagsOf {
    fn as_ref(&self) -> &[SyncFlags] {
        &self.0.world.flags
    }
}

pub(super) struct World {
    pub(super) size: usize,
    /// A number for the host of each rank, which may be pretended.
    pub(super) hosts: Vec<usize>,
    state: Mutex<State>,
    /// One per rank, so that a message wakes only its receiver.
    pub(super) wake: Vec<Condvar>,
    flags: Vec<SyncFlags>,
}

pub(super) struct State {
    /// Messages under way, at `to * size + from`.
    pub(super) mail: Vec<VecDeque<Slot>>,
    /// Slots that return to their sender, each with its reader.
    pub(super) returned: Vec<Vec<(usize, Slot)>>,
    pub(super) gone: Vec<bool>,
    meeting: Meeting,
    /// Communicators in the making by a split, by color.
    pub(super) born: Vec<(usize, Arc<World>)>,
}

/// A collective in progress: each rank brings bytes, and when all have come each looks at all of
/// them.
struct Meeting {
    brought: Vec<Vec<u8>>,
    came: Vec<bool>,
    open: bool,
    /// The ranks that have looked, while it is open.
    looked: Vec<bool>,
}

impl World {
    pub(super) fn new(hosts: Vec<usize>) -> Self {
        let size = hosts.len();
        let queue = |_| VecDeque::with_capacity(4);
        let state = State {
            mail: (0..size * size).map(queue).collect(),
            // At most one from each peer at a time: returning allocates nothing.
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

    /// The shared state. No rank panics while it holds the lock, so that poisoning is ignored.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Brings bytes to a meeting of all ranks, and looks at those of all, which must be equally
    /// many.
    pub(super) fn rendezvous<R>(
        &self,
        rank: usize,
        mine: &[u8],
        look: impl FnOnce(&[Vec<u8>]) -> R,
    ) -> Result<R, Error> {
        let missing = |gone: &[bool], there: &[bool]| {
            let gone = (0..self.size).find(|&r| gone[r] && !there[r])?;
            Some(Err(Error::Left { gone }))
        };
        // All must have left the meeting before this one.
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
