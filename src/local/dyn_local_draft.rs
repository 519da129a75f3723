//! Plans of one process in the making, whose types and number of axes are values.

use fft_core::{Comm, Direction, Error, MAX_AXES, PerAxis, Precision};

use super::cache;
use super::default_threads;
use super::dyn_local_plan::DynLocalPlan;
use crate::field::DynTransform;
use crate::plan::Options;

/// Below this number of points a transform takes less time than to wake other threads for it.
const POINTS_FOR_THREADS: usize = 1 << 14;

/// A [`LocalDraft`](super::LocalDraft) whose transform, precision and number of axes are run-time
/// values.
///
/// ```
/// use bytemuck::{cast_slice, cast_slice_mut};
/// use thriffty::planning::{Direction, DynTransform, Precision};
/// use thriffty::local::DynLocalDraft;
/// let draft = DynLocalDraft::new([4, 6], DynTransform::R2c, Precision::F64);
/// let (x, mut spectrum) = ([1.0; 24], [[0.0; 2]; 16]);
/// draft.run(Direction::Forward, cast_slice(&x), cast_slice_mut(&mut spectrum))?;
/// assert_eq!(spectrum[0], [24.0, 0.0]);
/// # Ok::<(), thriffty::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct DynLocalDraft {
    /// Points of physical data along each axis.
    pub shape: PerAxis<usize>,
    /// What is transformed.
    pub transform: DynTransform,
    /// The precision of all numbers.
    pub precision: Precision,
    /// Bricks must be the whole grid, unless there are [other
    /// processes](DynLocalDraft::build_over). Shared arrays and transposed data have no effect.
    pub options: Options,
    /// The most threads; [`default_threads`] if there are none.
    pub threads: Option<usize>,
}

impl DynLocalDraft {
    /// Drafts a transform with the usual options.
    ///
    /// # Panics
    /// If there are not 1 to 4 axes.
    pub fn new(
        shape: impl Into<PerAxis<usize>>,
        transform: DynTransform,
        precision: Precision,
    ) -> Self {
        let shape = shape.into();
        let options = Options::new(transform, shape.len());
        Self { shape, transform, precision, options, threads: None }
    }

    /// Makes the plan, on fewer threads than it may have if the slowest axis is shorter.
    ///
    /// # Errors
    /// Those of [`DynLocalDraft::build_over`] on one process.
    pub fn build(&self) -> Result<DynLocalPlan, Error> {
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
    pub fn build_over(&self, comm: &dyn Comm) -> Result<DynLocalPlan, Error> {
        cache::with_room(comm, || DynLocalPlan::new(comm, self))
    }

    /// Transforms from one array to another, by a plan that later calls with an equal draft use
    /// again. Several threads may do this at the same time.
    ///
    /// Small arrays are transformed on the calling thread. Plans are kept while they hold at most
    /// 256 MiB together, not counting the last one; those that were not used for the longest time
    /// are given up first. [`clear_plans`](super::clear_plans) gives up all of them.
    ///
    /// # Errors
    /// Those of [`DynLocalDraft::build`] and [`DynLocalPlan::run`].
    pub fn run(&self, direction: Direction, input: &[u8], output: &mut [u8]) -> Result<(), Error> {
        cache::with_plan(self.with_threads(), |plan| plan.run(direction, input, output))
    }

    /// Transforms within one array as [`DynLocalDraft::run`] does from one to another.
    ///
    /// # Errors
    /// Those of [`DynLocalDraft::build`] and [`DynLocalPlan::run_in_place`].
    pub fn run_in_place(&self, direction: Direction, data: &mut [u8]) -> Result<(), Error> {
        cache::with_plan(self.with_threads(), |plan| plan.run_in_place(direction, data))
    }

    /// The same draft, with the number of threads that pay.
    fn with_threads(&self) -> Self {
        // Of four axes, the transforms of a batch are done one after the other.
        let at_once = if self.shape.len() == MAX_AXES { 1 } else { self.options.howmany };
        let points = self.shape.iter().fold(at_once, |all, n| all.saturating_mul(*n));
        let threads = if points < POINTS_FOR_THREADS {
            1
        } else {
            self.threads.unwrap_or_else(default_threads)
        };
        Self { threads: Some(threads), ..self.clone() }
    }
}
