//! From a draft to a plan, or to a result at once.

use fft_core::{Comm, Direction, Error};

use super::dyn_local_draft::DynLocalDraft;
use super::{cache, team_plans};
use crate::plan::DynPlan;

impl DynLocalDraft {
    /// Makes the plan, on fewer threads than it may have if the slowest axis is shorter.
    ///
    /// # Errors
    /// Those of [`DynLocalDraft::build_over`] on one process.
    pub fn build(&self) -> Result<DynPlan, Error> {
        self.build_over(&fft_comm::alone())
    }

    /// Makes the plan of this process among those of a communicator: threads of each transform its
    /// bricks. Collective, as are later transforms; processes may have different numbers of
    /// threads. Ranks in errors are those of threads, numbered by process, or of processes where a
    /// process finds an error before its threads start.
    ///
    /// The calling thread alone communicates. Later calls are made on the same thread, unless MPI
    /// has `MPI_THREAD_MULTIPLE`, or `MPI_THREAD_SERIALIZED` and a communicator that
    /// `MpiComm::from_raw` made.
    ///
    /// The only process of a communicator communicates with nobody, and has
    /// [fewer threads](DynLocalDraft::build) for short axes. Its data is not transposed.
    ///
    /// # Errors
    /// The same on every process: those of [`Draft::build`](crate::Draft::build);
    /// [`Error::Threads`]; [`Error::Argument`] for no threads, for several on a communicator that
    /// has none, and for transposed data of several processes.
    pub fn build_over(&self, comm: &dyn Comm) -> Result<DynPlan, Error> {
        cache::with_room(comm, || team_plans::plan(comm, self))
    }

    fn with_useful_threads(&self) -> Self {
        Self { threads: Some(self.useful_threads()), ..self.clone() }
    }

    /// Transforms from one array to another, by a plan that later calls with an equal draft use
    /// again. Several threads may do this at the same time.
    ///
    /// Small arrays are transformed on the calling thread. Plans are kept while they hold at most
    /// 256 MiB together, not counting the last one; those that were not used for the longest time
    /// are given up first. [`clear_plans`](super::clear_plans) gives up all of them.
    ///
    /// # Errors
    /// Those of [`DynLocalDraft::build`] and [`DynPlan::run`].
    pub fn run(&self, direction: Direction, input: &[u8], output: &mut [u8]) -> Result<(), Error> {
        cache::with_plan(self.with_useful_threads(), |plan| plan.run(direction, input, output))
    }

    /// Transforms within one array as [`DynLocalDraft::run`] does from one to another.
    ///
    /// # Errors
    /// Those of [`DynLocalDraft::build`] and [`DynPlan::run_in_place`].
    pub fn run_in_place(&self, direction: Direction, data: &mut [u8]) -> Result<(), Error> {
        cache::with_plan(self.with_useful_threads(), |plan| plan.run_in_place(direction, data))
    }
}
