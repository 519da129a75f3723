//! Operations of all threads of a process, which MPI does once for all of them.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use fft_core::{Comm, Error, Reduce, locked};

use crate::mpi::mpi_comm::MpiComm;
use crate::node_memory::on_rank_of;
use crate::threads::World;

/// The ranks of a communicator whose processes have several threads.
pub(super) struct Ranks {
    pub(super) process: usize,
    /// The first rank of each process, and the number of all.
    pub(super) first: Vec<usize>,
}

impl Ranks {
    pub(super) fn size(&self) -> usize {
        *self.first.last().expect("the number of all")
    }

    /// The ranks of this process.
    pub(super) fn own(&self) -> std::ops::Range<usize> {
        self.first[self.process]..self.first[self.process + 1]
    }

    /// The process of a rank, and its thread there.
    pub(super) fn place(&self, rank: usize) -> (usize, usize) {
        let process = self.first.partition_point(|first| *first <= rank) - 1;
        (process, rank - self.first[process])
    }

    pub(super) fn most_threads(&self) -> usize {
        self.first.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0)
    }
}

/// An operation, with the input and the results of the threads.
#[derive(Clone, Copy, Debug)]
pub(super) enum Collective {
    Barrier,
    /// Gathers `bytes` of all processes, as many for each rank.
    Allgather,
    /// Reduces `values`.
    Allreduce(Reduce),
    /// Whether all processes have `succeeded`.
    Sync,
    /// Makes `processes`.
    Dup,
    /// Makes `worlds`, with messages in pieces of at most this number of bytes.
    Flight(usize),
}

pub(super) struct Operation {
    pub(super) collective: Collective,
    pub(super) bytes: Vec<u8>,
    pub(super) values: Vec<f64>,
    pub(super) succeeded: bool,
    /// One for each thread.
    pub(super) processes: Vec<Arc<ProcessComm>>,
    pub(super) worlds: Vec<Arc<World>>,
    /// Empty until it is done.
    pub(super) result: Option<Result<(), Error>>,
}

/// The state of a communicator that the threads of a process share.
pub(super) struct ProcessComm {
    /// The number of the communicator that the serving thread has.
    pub(super) number: usize,
    pub(super) ranks: Arc<Ranks>,
    operation: Mutex<Operation>,
    done: Condvar,
}

impl ProcessComm {
    pub(super) fn new(number: usize, ranks: Arc<Ranks>) -> Self {
        let operation = Operation {
            collective: Collective::Barrier,
            bytes: Vec::new(),
            values: Vec::new(),
            succeeded: false,
            processes: Vec::new(),
            worlds: Vec::new(),
            result: None,
        };
        Self { number, ranks, operation: Mutex::new(operation), done: Condvar::new() }
    }

    /// Poisoning is ignored: threads that panic do not hold the lock.
    pub(super) fn operation(&self) -> MutexGuard<'_, Operation> {
        locked(&self.operation)
    }

    /// Waits until the operation is done, whose result was emptied before.
    pub(super) fn wait(&self) {
        let waits = |operation: &mut Operation| operation.result.is_none();
        drop(self.done.wait_while(self.operation(), waits));
    }

    /// Tells the threads the result.
    pub(super) fn finish(&self, result: Result<(), Error>) {
        self.operation().result = Some(result.map_err(|error| self.with_ranks(error)));
        self.done.notify_all();
    }

    /// An error of the communicator of processes, with ranks instead of these.
    fn with_ranks(&self, error: Error) -> Error {
        on_rank_of(error, &self.ranks.first)
    }
}

impl Operation {
    /// Performs operations that make no new object.
    pub(super) fn perform(&mut self, comm: &MpiComm, ranks: &Ranks) -> Result<(), Error> {
        match self.collective {
            Collective::Allgather => self.gather(comm, ranks),
            Collective::Allreduce(how) => comm.allreduce(how, &mut self.values),
            Collective::Sync => {
                if let Some(detector) = comm.failure_detector() {
                    self.succeeded = detector.sync(self.succeeded)?;
                }
                Ok(())
            }
            Collective::Barrier | Collective::Dup | Collective::Flight(_) => comm.barrier(),
        }
    }

    /// Gathers bytes in order of ranks. The bytes of a process with fewer threads are padded.
    fn gather(&mut self, comm: &MpiComm, ranks: &Ranks) -> Result<(), Error> {
        let one = self.bytes.len() / ranks.own().len();
        let most = one * ranks.most_threads();
        self.bytes.resize(most, 0);
        let mut all = vec![0; most * comm.size()];
        comm.allgather(&self.bytes, &mut all)?;
        self.bytes.clear();
        for (padded, pair) in all.chunks_exact(most.max(1)).zip(ranks.first.windows(2)) {
            self.bytes.extend_from_slice(&padded[..one * (pair[1] - pair[0])]);
        }
        Ok(())
    }
}
