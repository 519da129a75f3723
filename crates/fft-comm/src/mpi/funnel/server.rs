//! The thread that calls MPI for the others.

use std::sync::{Arc, Weak};

use fft_core::{Comm, Error, Funnel};

use super::funneled_comm::FunneledComm;
use super::messages::{Messages, Requesting};
use super::operation::{Collective, Operation, ProcessComm, Ranks};
use super::queue::{Queue, Request};
use crate::idle::Idle;
use crate::mpi::ffi;
use crate::mpi::mpi_comm::MpiComm;
use crate::threads::{ThreadComm, World};

/// More threads would have tags beyond what every MPI has: 32,767.
const MOST_THREADS: usize = 181;

/// Calls MPI for threads of this process: see [`threads`](super::threads). It runs on a thread that
/// may use the communicator from which it was made.
pub(super) struct Server {
    queue: Arc<Queue>,
    /// Numbers that have been given to communicators and flights.
    numbers: usize,
    comms: ByNumber<Served>,
    flights: ByNumber<Messages>,
    idle: Idle,
}

/// A communicator of processes, and whether threads still have it.
struct Served {
    comm: MpiComm,
    threads: Weak<ProcessComm>,
}

/// Items with ascending numbers. Numbers are not used again: requests may come late.
struct ByNumber<T>(Vec<(usize, T)>);

impl<T> ByNumber<T> {
    fn get_mut(&mut self, number: usize) -> Option<&mut T> {
        let place = self.0.binary_search_by_key(&number, |(other, _)| *other).ok()?;
        Some(&mut self.0[place].1)
    }
}

impl Server {
    /// The communicators of `threads` threads, and the server that calls MPI for them. Collective
    /// over processes, which may have different numbers of threads.
    ///
    /// # Errors
    /// The errors of [`threads`](super::threads).
    pub(super) fn new(comm: &MpiComm, threads: usize) -> Result<(Self, Vec<FunneledComm>), Error> {
        comm.raw.all(Self::check(threads))?;
        let all = comm.raw.numbers(threads)?;
        let mut first = vec![0];
        first.extend(all.iter().scan(0, |sum, threads| {
            *sum += threads;
            Some(*sum)
        }));
        let ranks = Arc::new(Ranks { process: comm.rank(), first });
        let queue = Arc::new(Queue::default());
        let (comms, flights) = (ByNumber(Vec::new()), ByNumber(Vec::new()));
        let mut server = Self { queue, numbers: 0, comms, flights, idle: Idle::default() };
        let process = server.add(comm.duplicate()?, ranks);
        let comms = ThreadComm::team(threads).into_iter();
        let comms = comms
            .map(|local| FunneledComm::new(local, process.clone(), server.queue.clone()))
            .collect();
        Ok((server, comms))
    }

    /// # Errors
    /// [`Error::Argument`] for a number of threads that there cannot be.
    pub(super) fn check(threads: usize) -> Result<(), Error> {
        match threads {
            1..=MOST_THREADS => Ok(()),
            _ => Err(Error::argument("threads", threads, "1 to 181")),
        }
    }

    fn add(&mut self, comm: MpiComm, ranks: Arc<Ranks>) -> Arc<ProcessComm> {
        let number = self.number();
        comm.set_rank(ranks.own().start);
        let process = Arc::new(ProcessComm::new(number, ranks));
        self.comms.0.push((number, Served { comm, threads: Arc::downgrade(&process) }));
        process
    }

    fn number(&mut self) -> usize {
        self.numbers += 1;
        self.numbers
    }

    fn start(&mut self, request: Request) -> Result<(), Error> {
        match request {
            Request::Send { ends, bound, slot } => match self.flights.get_mut(ends.flight) {
                Some(messages) => messages.send(ends, bound, slot),
                None => Ok(()),
            },
            Request::Receive { ends, number, slot } => match self.flights.get_mut(ends.flight) {
                Some(messages) => messages.receive(ends, number, slot),
                None => Ok(()),
            },
            Request::Operation(process) => {
                let result = self.perform(&process, &mut process.operation());
                process.finish(result);
                Ok(())
            }
            Request::Leave { comm, rank } => {
                self.comms.get_mut(comm).into_iter().for_each(|served| served.comm.leave(rank));
                Ok(())
            }
            Request::Abort(Some(why)) => ffi::awaited(why),
            Request::Abort(None) => ffi::abort(101),
        }
    }

    /// Performs an operation, which all threads of the process wait for.
    fn perform(&mut self, process: &ProcessComm, operation: &mut Operation) -> Result<(), Error> {
        self.forget_dropped();
        let number = self.number();
        let served = self.comms.get_mut(process.number).expect("threads have it");
        let (comm, ranks) = (&served.comm, &process.ranks);
        let threads = ranks.own().len();
        match operation.collective {
            Collective::Dup => {
                let dup = comm.duplicate()?;
                operation.processes = vec![self.add(dup, ranks.clone()); threads];
            }
            Collective::Flight(most) => {
                let raw = comm.raw.all(comm.raw.dup())?;
                let most = most.min(comm.piece);
                let remote = Box::new(Requesting { flight: number, queue: self.queue.clone() });
                let world = Arc::new(World::with_remote(ranks.size(), ranks.own(), remote));
                let messages = Messages::new(raw, ranks.clone(), &world, most);
                self.flights.0.push((number, messages));
                operation.worlds = vec![world; threads];
            }
            _ => operation.perform(comm, ranks)?,
        }
        Ok(())
    }

    /// Frees objects that all threads have dropped.
    fn forget_dropped(&mut self) {
        self.flights.0.retain(|(_, messages)| !messages.is_over());
        self.comms.0.retain(|(_, served)| served.threads.strong_count() > 0);
    }
}

impl Funnel for Server {
    fn working(&self) -> Box<dyn Send> {
        Box::new(self.queue.working())
    }

    fn serve(&mut self) {
        // Others wait for messages that would not come.
        let unwinding = EndsJob;
        let mut requests = std::collections::VecDeque::new();
        loop {
            let working = {
                let state = &mut *self.queue.state();
                std::mem::swap(&mut state.requests, &mut requests);
                state.working > 0
            };
            if requests.is_empty() && !working {
                break;
            }
            let mut moved = !requests.is_empty();
            for request in requests.drain(..) {
                self.start(request).unwrap_or_else(|error| ffi::awaited(error));
            }
            let mut is_active = false;
            for (_, messages) in &mut self.flights.0 {
                moved |= messages.test().unwrap_or_else(|error| ffi::awaited(error));
                is_active |= messages.is_active;
            }
            match (moved, is_active) {
                (true, _) => self.idle = Idle::default(),
                (false, true) => self.idle.wait_with(|nap| self.queue.wait(Some(nap))),
                (false, false) => self.queue.wait(None),
            }
        }
        std::mem::forget(unwinding);
        self.forget_dropped();
    }
}

/// Ends the job when it is dropped.
struct EndsJob;

impl Drop for EndsJob {
    fn drop(&mut self) {
        ffi::abort(101);
    }
}
