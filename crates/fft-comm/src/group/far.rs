//! The group behind a communicator, if its ranks are on several hosts or exchange data of devices
//! by it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use fft_core::{Arrival, DeviceBuffer, Error, Parts, Slot, SlotPool, locked};

use super::board::Board;
use super::process_group::{GroupError, Messages, ProcessGroup, Request};

/// The group, shared by a communicator and its duplicates.
pub(super) struct Far {
    group: Mutex<Box<dyn ProcessGroup>>,
    pub(super) rank: usize,
    pub(super) size: usize,
    pub(super) has_messages: bool,
    pub(super) has_device_messages: bool,
    /// The tag of the next flight. Flights are made by all ranks in the same order.
    tag: AtomicU32,
    /// The first failure, which all later calls return.
    failure: OnceLock<Error>,
    /// The first board of this host, once there is one, through which others learn of the failure.
    board: OnceLock<Arc<Board>>,
}

impl Far {
    pub(super) fn new(group: Box<dyn ProcessGroup>) -> Self {
        let (rank, size) = (group.rank(), group.size());
        let has_messages = group.messages().is_some();
        let has_device_messages = group.device_messages().is_some();
        let (group, tag) = (Mutex::new(group), AtomicU32::new(0));
        let (failure, board) = Default::default();
        Self { group, rank, size, has_messages, has_device_messages, tag, failure, board }
    }

    fn group(&self) -> MutexGuard<'_, Box<dyn ProcessGroup>> {
        locked(&self.group)
    }

    pub(super) fn host(&self) -> String {
        self.group().host()
    }

    /// Calls the group, unless an earlier call has failed, because then ranks are no longer in
    /// step.
    fn call(
        &self,
        name: &'static str,
        call: impl FnOnce(&dyn ProcessGroup) -> Result<(), GroupError>,
    ) -> Result<(), Error> {
        if let Some(failure) = self.failure.get() {
            return Err(failure.clone());
        }
        let group = self.group();
        call(group.as_ref()).map_err(|why| {
            let error = failure(group.as_ref(), name, &why);
            group.abandon();
            if let Some(board) = self.board.get() {
                board.fail(match error {
                    Error::Left { gone } => Some(gone),
                    _ => None,
                });
            }
            self.failure.get_or_init(|| error).clone()
        })
    }

    /// Tells the ranks at this board of a failure to come.
    pub(super) fn warn_at(&self, board: &Arc<Board>) {
        self.board.get_or_init(|| board.clone());
    }

    pub(super) fn allgather(&self, mine: &[u8], all: &mut [u8]) -> Result<(), Error> {
        self.call("allgather", |group| group.allgather(mine, all))
    }

    pub(super) fn alltoallv(
        &self,
        send: Parts<'_, &[u8]>,
        recv: Parts<'_, &mut [u8]>,
    ) -> Result<(), Error> {
        self.call("alltoallv", |group| group.alltoallv(send, recv))
    }

    pub(super) fn device_alltoallv(
        &self,
        send: Parts<'_, &DeviceBuffer>,
        recv: Parts<'_, &DeviceBuffer>,
    ) -> Result<(), Error> {
        self.call("alltoallv of devices", |group| {
            let messages = group.device_messages().expect("every rank's group has them");
            messages.alltoallv(send, recv)
        })
    }

    pub(super) fn abandon(&self) {
        self.group().abandon();
    }
}

/// The error of a failed call, with the rank that has ended, if it is known.
pub(super) fn failure(group: &dyn ProcessGroup, call: &'static str, why: &GroupError) -> Error {
    match group.lost() {
        Some(gone) => Error::Left { gone },
        None => Error::Transport { rank: group.rank(), call, text: why.to_string() },
    }
}

/// Messages between hosts that are under way, with a tag of their own.
pub(super) struct Pending {
    far: Arc<Far>,
    tag: u32,
    sends: Vec<Request>,
    /// By sender, in the order in which its messages arrive. Only the first receive of each sender
    /// is tested, so that a group may return any message that has arrived for the requested one.
    receives: Vec<VecDeque<Receive>>,
}

#[derive(Clone, Copy)]
struct Receive {
    request: Request,
    number: usize,
}

/// Keeps the first error.
fn keep(failure: &mut Result<(), Error>, error: Error) {
    if failure.is_ok() {
        *failure = Err(error);
    }
}

/// A message that will not come.
fn lost(number: usize) -> Arrival {
    Arrival { number, message: Slot::new(0, 0).expect("a slot without bytes") }
}

impl Pending {
    /// Collective.
    pub(super) fn new(far: &Arc<Far>) -> Self {
        let tag = far.tag.fetch_add(1, Ordering::Relaxed);
        let receives = (0..far.size).map(|_| VecDeque::new()).collect();
        Self { far: far.clone(), tag, sends: Vec::new(), receives }
    }

    pub(super) fn reserve(&mut self, sends: usize, receives: usize) {
        self.sends.reserve(sends);
        self.receives.iter_mut().for_each(|queue| queue.reserve(receives));
    }

    /// Messages that have not left yet.
    pub(super) fn sends(&self) -> usize {
        self.sends.len()
    }

    /// Calls the group's messages.
    fn call<R>(
        &self,
        name: &'static str,
        call: impl FnOnce(&dyn Messages) -> Result<R, GroupError>,
    ) -> Result<R, Error> {
        let group = self.far.group();
        let messages = group.messages().expect("flights are made where there are messages");
        call(messages).map_err(|why| failure(group.as_ref(), name, &why))
    }

    pub(super) fn send(&mut self, to: usize, message: Slot, failure: &mut Result<(), Error>) {
        match self.call("isend", |messages| messages.isend(to, self.tag, message)) {
            Ok(request) => self.sends.push(request),
            Err(error) => keep(failure, error),
        }
    }

    pub(super) fn receive(
        &mut self,
        from: usize,
        number: usize,
        room: Slot,
        arrivals: &mut VecDeque<Arrival>,
        failure: &mut Result<(), Error>,
    ) {
        match self.call("irecv", |messages| messages.irecv(from, self.tag, room)) {
            Ok(request) => self.receives[from].push_back(Receive { request, number }),
            Err(error) => {
                keep(failure, error);
                arrivals.push_back(lost(number));
            }
        }
    }

    /// Tests all messages; whether one has completed.
    pub(super) fn progress(
        &mut self,
        pool: &mut SlotPool,
        arrivals: &mut VecDeque<Arrival>,
        failure: &mut Result<(), Error>,
    ) -> bool {
        let before = self.under_way();
        if let Some(error) = self.far.failure.get()
            && before > 0
        {
            keep(failure, error.clone());
            self.sends.clear();
            (0..self.receives.len()).for_each(|from| self.give_up(from, arrivals));
        }
        let mut at = 0;
        while at < self.sends.len() {
            match self.call("test", |messages| messages.test(self.sends[at])) {
                Ok(None) => {
                    at += 1;
                    continue;
                }
                Ok(Some(slot)) => pool.put(slot),
                Err(error) => keep(failure, error),
            }
            self.sends.swap_remove(at);
        }
        for from in 0..self.receives.len() {
            while let Some(Receive { request, number }) = self.receives[from].front().copied() {
                match self.call("test", |messages| messages.test(request)) {
                    Ok(None) => break,
                    Ok(Some(message)) => arrivals.push_back(Arrival { number, message }),
                    Err(error) => {
                        keep(failure, error);
                        arrivals.push_back(lost(number));
                    }
                }
                self.receives[from].pop_front();
            }
        }
        self.under_way() < before
    }

    fn under_way(&self) -> usize {
        self.sends.len() + self.receives.iter().map(VecDeque::len).sum::<usize>()
    }

    /// Messages from a rank will not come.
    fn give_up(&mut self, from: usize, arrivals: &mut VecDeque<Arrival>) {
        arrivals.extend(self.receives[from].drain(..).map(|receive| lost(receive.number)));
    }

    /// Gives up messages from a rank that the group has lost.
    pub(super) fn watch(
        &mut self,
        arrivals: &mut VecDeque<Arrival>,
        failure: &mut Result<(), Error>,
    ) {
        let Some(gone) = self.far.group().lost() else { return };
        if self.receives.get(gone).is_some_and(|receives| !receives.is_empty()) {
            self.give_up(gone, arrivals);
            keep(failure, Error::Left { gone });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::collections::HashSet;

    /// A group of two that treats requests alike: the message that arrived first is returned for
    /// the request that is tested, except when it is tested for the first time.
    #[derive(Default)]
    struct AnyRequest {
        asked: RefCell<Vec<Slot>>,
        tested: RefCell<HashSet<Request>>,
        arrived: RefCell<VecDeque<u8>>,
    }

    impl ProcessGroup for AnyRequest {
        fn rank(&self) -> usize {
            0
        }

        fn size(&self) -> usize {
            2
        }

        fn allgather(&self, _: &[u8], _: &mut [u8]) -> Result<(), GroupError> {
            Err("not called".into())
        }

        fn alltoallv(
            &self,
            _: Parts<'_, &[u8]>,
            _: Parts<'_, &mut [u8]>,
        ) -> Result<(), GroupError> {
            Err("not called".into())
        }

        fn messages(&self) -> Option<&dyn Messages> {
            Some(self)
        }
    }

    impl Messages for AnyRequest {
        fn isend(&self, _: usize, _: u32, _: Slot) -> Result<Request, GroupError> {
            Err("not called".into())
        }

        fn irecv(&self, _: usize, _: u32, room: Slot) -> Result<Request, GroupError> {
            self.asked.borrow_mut().push(room);
            Ok(self.asked.borrow().len() as Request)
        }

        fn test(&self, request: Request) -> Result<Option<Slot>, GroupError> {
            if self.tested.borrow_mut().insert(request) {
                return Ok(None);
            }
            let mut room = self.asked.borrow_mut().pop().ok_or("no room")?;
            room.bytes_mut()[0] = self.arrived.borrow_mut().pop_front().ok_or("no message")?;
            Ok(Some(room))
        }
    }

    #[test]
    fn messages_go_to_receives_in_their_order() {
        let group = AnyRequest { arrived: RefCell::new((0..4).collect()), ..Default::default() };
        let mut pending = Pending::new(&Arc::new(Far::new(Box::new(group))));
        let (mut arrivals, mut failure, mut pool) = (VecDeque::new(), Ok(()), SlotPool::default());
        for number in 0..4 {
            let room = Slot::new(1, 0).expect("a byte");
            pending.receive(1, number, room, &mut arrivals, &mut failure);
        }
        while pending.under_way() > 0 {
            pending.progress(&mut pool, &mut arrivals, &mut failure);
        }
        assert_eq!(failure, Ok(()));
        let found: Vec<_> = arrivals.iter().map(|it| (it.number, it.message.bytes()[0])).collect();
        assert_eq!(found, [(0, 0), (1, 1), (2, 2), (3, 3)]);
    }
}
