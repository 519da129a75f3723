//! A plan in the making whose types and number of axes are values.

use std::cell::OnceCell;
use std::fmt;
use std::rc::Rc;

use fft_comm::ThreadComm;
use fft_core::{Comm, Direction, DynGrid, Error, MAX_AXES, Precision};

use super::kept_plans;
#[cfg(feature = "cuda")]
use crate::bound::DeviceOptions;
use crate::field::DynTransform;
use crate::options::Options;
use crate::team::default_threads;
use crate::tuning::Progress;

/// A [`Draft`](crate::Draft) whose transform, precision and number of axes are run-time values.
///
/// ```
/// use bytemuck::{cast_slice, cast_slice_mut};
/// use thriffty::planning::{Direction, DynDraft, DynGrid, DynTransform, Precision};
/// let spectrum = thriffty::threads(2, |world| {
///     let grid = DynGrid::new([8, 8])?;
///     let mut plan = DynDraft::new(&world, grid, DynTransform::R2c, Precision::F64).build()?;
///     let (input, mut output) = (vec![1.0; plan.input_len()], vec![[0.0; 2]; plan.output_len()]);
///     plan.run(Direction::Forward, cast_slice(&input), cast_slice_mut(&mut output))?;
///     Ok::<_, thriffty::Error>(output)
/// })?;
/// assert_eq!(spectrum[0][0], [64.0, 0.0]); // the sum over all points
/// # Ok::<(), thriffty::Error>(())
/// ```
#[derive(Clone)]
#[must_use = "a draft does nothing until it is built"]
pub struct DynDraft<'a> {
    ranks: Ranks<'a>,
    pub(super) grid: DynGrid,
    /// The error of an invalid grid.
    pub(super) error: Option<Error>,
    pub(super) transform: DynTransform,
    pub(super) precision: Precision,
    /// The options of this rank.
    pub options: Options,
    /// The most threads of this rank. Without a number, a draft of [this process
    /// alone](DynDraft::local) has [as many as are worth it](DynDraft::useful_threads), and each
    /// rank of a communicator has one.
    pub threads: Option<usize>,
    pub(super) watch: Option<Rc<dyn Fn(Progress) + 'a>>,
    #[cfg(feature = "cuda")]
    pub(super) device: Option<DeviceOptions>,
}

/// The ranks of the plan.
enum Ranks<'a> {
    Of(&'a dyn Comm),
    /// This process as the only rank of a communicator, which is made when it is needed.
    ThisProcess(OnceCell<ThreadComm>),
}

impl Clone for Ranks<'_> {
    fn clone(&self) -> Self {
        match self {
            Self::Of(comm) => Self::Of(*comm),
            Self::ThisProcess(_) => Self::ThisProcess(OnceCell::new()),
        }
    }
}

/// Everything that determines which plan a draft makes, on one rank.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Key {
    pub(super) grid: DynGrid,
    pub(super) transform: DynTransform,
    pub(super) precision: Precision,
    pub(super) options: Options,
    pub(super) threads: Option<usize>,
}

/// Below this number of points a transform takes less time than to wake other threads for it.
const POINTS_FOR_THREADS: usize = 1 << 14;

impl<'a> DynDraft<'a> {
    /// Drafts a transform of the grid over the ranks of `comm`, with default options.
    pub fn new(
        comm: &'a dyn Comm,
        grid: impl Into<DynGrid>,
        transform: DynTransform,
        precision: Precision,
    ) -> Self {
        Self::of(Ranks::Of(comm), grid.into(), transform, precision)
    }

    /// Drafts a transform of the whole grid by this process alone, with default options.
    ///
    /// ```
    /// use bytemuck::{cast_slice, cast_slice_mut};
    /// use thriffty::planning::{Direction, DynDraft, DynGrid, DynTransform, Precision};
    /// let draft = DynDraft::local(DynGrid::new([4, 6])?, DynTransform::R2c, Precision::F64);
    /// let (x, mut spectrum) = ([1.0; 24], [[0.0; 2]; 16]);
    /// draft.run_once(Direction::Forward, cast_slice(&x), cast_slice_mut(&mut spectrum))?;
    /// assert_eq!(spectrum[0], [24.0, 0.0]);
    /// # Ok::<(), thriffty::Error>(())
    /// ```
    pub fn local(
        grid: impl Into<DynGrid>,
        transform: DynTransform,
        precision: Precision,
    ) -> DynDraft<'static> {
        let ranks = Ranks::ThisProcess(OnceCell::new());
        DynDraft::of(ranks, grid.into(), transform, precision)
    }

    /// A draft over a communicator, or of this process alone, for a shape that may be wrong:
    /// [`DynDraft::build`] reports it on all ranks.
    pub(super) fn of_shape<const D: usize>(
        comm: Option<&'a dyn Comm>,
        shape: [usize; D],
        transform: DynTransform,
        precision: Precision,
    ) -> Self {
        let ranks = match comm {
            Some(comm) => Ranks::Of(comm),
            None => Ranks::ThisProcess(OnceCell::new()),
        };
        let (grid, error) = match DynGrid::new(shape) {
            Ok(grid) => (grid, None),
            Err(error) => (DynGrid::new([1; D]).expect("a grid of one point"), Some(error)),
        };
        Self { error, ..Self::of(ranks, grid, transform, precision) }
    }

    fn of(ranks: Ranks<'a>, grid: DynGrid, transform: DynTransform, precision: Precision) -> Self {
        Self {
            ranks,
            grid,
            error: None,
            transform,
            precision,
            options: Options::default(),
            threads: None,
            watch: None,
            #[cfg(feature = "cuda")]
            device: None,
        }
    }

    /// The ranks of the plan.
    pub(super) fn comm(&self) -> &dyn Comm {
        match &self.ranks {
            Ranks::Of(comm) => *comm,
            Ranks::ThisProcess(comm) => comm.get_or_init(fft_comm::alone),
        }
    }

    pub(super) fn with_precision(self, precision: Precision) -> Self {
        Self { precision, ..self }
    }

    /// The same draft with other options.
    pub fn with(mut self, change: impl FnOnce(&mut Options)) -> Self {
        change(&mut self.options);
        self
    }

    /// Calls this on every rank before each turn of [`Tuning::Measure`](crate::Tuning::Measure), if
    /// ranks have one thread.
    pub fn watch(mut self, news: impl Fn(Progress) + 'a) -> Self {
        self.watch = Some(Rc::new(news));
        self
    }

    /// Puts the plan's data on this rank's device.
    #[cfg(feature = "cuda")]
    pub fn on(mut self, device: impl Into<DeviceOptions>) -> Self {
        self.device = Some(device.into());
        self
    }

    /// The options of the device that was chosen.
    #[cfg(feature = "cuda")]
    pub(super) fn device_mut(&mut self) -> Option<&mut DeviceOptions> {
        self.device.as_mut()
    }

    /// The grid of spectral data: the axis of kind R2C has `n/2 + 1` points, of n modes.
    ///
    /// # Panics
    /// If there are more kinds than axes.
    pub fn spectral_grid(&self) -> DynGrid {
        self.options.spectral_grid(self.grid, self.transform)
    }

    /// The number of threads of one process that are worth it: one for few points, otherwise
    /// [`DynDraft::threads`] or [`default_threads`].
    pub fn useful_threads(&self) -> usize {
        // With four axes, the transforms of a batch are done one after the other.
        let at_once = if self.grid.axes() == MAX_AXES { 1 } else { self.options.batch };
        let points = self.grid.shape().iter().fold(at_once, |all, n| all.saturating_mul(*n));
        if points < POINTS_FOR_THREADS {
            return 1;
        }
        self.threads.unwrap_or_else(default_threads)
    }

    /// Transforms from one array to another, by a plan that later calls with an equal draft use
    /// again. Several threads may do this at the same time.
    ///
    /// Small arrays are transformed on the calling thread. Plans are kept while they hold at most
    /// 256 MiB together, not counting the last one; the least recently used ones are dropped first.
    /// [`clear_plans`](crate::local::clear_plans) drops all of them.
    ///
    /// # Errors
    /// The errors of [`DynDraft::build`] and [`DynPlan::run`](super::DynPlan::run);
    /// [`Error::Argument`] for a draft that is not of [this process alone](DynDraft::local).
    pub fn run_once(
        &self,
        direction: Direction,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), Error> {
        kept_plans::with_plan(self, |plan| plan.run(direction, input, output))
    }

    /// Transforms within one array as [`DynDraft::run_once`] does from one to another.
    ///
    /// # Errors
    /// The errors of [`DynDraft::run_once`] and
    /// [`DynPlan::run_in_place`](super::DynPlan::run_in_place).
    pub fn run_once_in_place(&self, direction: Direction, data: &mut [u8]) -> Result<(), Error> {
        kept_plans::with_plan(self, |plan| plan.run_in_place(direction, data))
    }

    /// Whether the plan is of this process alone.
    pub(super) fn is_local(&self) -> bool {
        matches!(self.ranks, Ranks::ThisProcess(_))
    }

    pub(super) fn is_on_host(&self) -> bool {
        #[cfg(feature = "cuda")]
        return self.device.is_none();
        #[cfg(not(feature = "cuda"))]
        true
    }

    /// What distinguishes this draft from others over the same ranks.
    ///
    /// # Errors
    /// On this rank: when the draft is invalid, or its data is on a device.
    pub(super) fn key(&self) -> Result<Key, Error> {
        self.check()?;
        if !self.is_on_host() {
            return Err(Error::argument("plan in a cache", "one on a device", "one on the host"));
        }
        let Self { grid, transform, precision, threads, .. } = *self;
        Ok(Key { grid, transform, precision, options: self.options.clone(), threads })
    }
}

impl fmt::Debug for DynDraft<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynDraft")
            .field("grid", &self.grid)
            .field("transform", &self.transform)
            .field("precision", &self.precision)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
