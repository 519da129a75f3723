//! The requests of threads to the thread that calls MPI.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use fft_core::{Error, Slot, locked};

use super::operation::ProcessComm;

/// One end of a message: the thread of this process, and the rank at the other end.
#[derive(Clone, Copy)]
pub(super) struct Ends {
    pub(super) flight: usize,
    pub(super) thread: usize,
    pub(super) peer: usize,
}

pub(super) enum Request {
    /// To send a slot to a peer that expects at most `bound` bytes.
    Send { ends: Ends, bound: usize, slot: Slot },
    /// To receive into a slot, with a number of the thread's.
    Receive { ends: Ends, number: usize, slot: Slot },
    /// The operation of a communicator, which all threads wait for.
    Operation(Arc<ProcessComm>),
    /// A rank has dropped the communicator of this number.
    Leave { comm: usize, rank: usize },
    /// To end the job.
    Abort(Option<Error>),
}

/// Requests in order, and the number of threads that may make more.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) requests: VecDeque<Request>,
    pub(super) working: usize,
}

/// A thread that may make requests, until it is dropped.
pub(super) struct Working(Arc<Queue>);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.state().working -= 1;
        self.0.wake.notify_all();
    }
}

impl Queue {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    pub(super) fn push(&self, request: Request) {
        self.state().requests.push_back(request);
        self.wake.notify_all();
    }

    pub(super) fn working(self: &Arc<Self>) -> Working {
        self.state().working += 1;
        Working(self.clone())
    }

    /// Waits for a request or for the end of a thread, but not longer than `most`.
    pub(super) fn wait(&self, most: Option<Duration>) {
        let state = self.state();
        let idle = |state: &mut State| state.requests.is_empty() && state.working > 0;
        match most {
            Some(most) => drop(self.wake.wait_timeout_while(state, most, idle)),
            None => drop(self.wake.wait_while(state, idle)),
        }
    }
}
