//! A plan whose types and number of axes are values: a recipe bound to a communicator and buffers.

use std::fmt;
use std::ops::Deref;
use std::path::Path;
use std::sync::{Arc, Mutex};

use fft_comm::{bind_copy, checksum};
use fft_core::{
    Comm, Direction, DividedAxis, Error, Exchange, Precision, Problem, Recipe, Spectrum, Timings,
    WireError, agree, assert_same, locked, on_all_ranks,
};
#[cfg(feature = "cuda")]
use fft_gpu::DeviceMemory;

use super::traced::attach_profiler;
#[cfg(feature = "cuda")]
use crate::bound::DeviceQueue;
use crate::bound::{Bound, HostBound};
use crate::field::{Bytes, BytesMut, DynArray, DynTransform, RankArrays};
use crate::spectral::Domain;
use crate::trace::Tracer;
use crate::tuning::{Candidate, Decision, Report, Source, save_wisdom};

/// A [`Plan`](crate::Plan) whose transform, precision, place and number of axes are run-time
/// values.
///
/// Arrays are bytes: real or complex numbers of the plan's precision, aligned for them. Arrays on
/// the host are slices, arrays on a device `DeviceMemory`; [`DynPlan::zeros`] makes arrays for
/// either. [`DynDraft`](super::DynDraft) has an example.
pub struct DynPlan {
    pub(super) bound: Box<dyn Bound>,
    pub(super) recipe: Recipe,
    report: Report,
    /// The key of the problem in wisdom, if the recipe was chosen.
    key: Option<String>,
    arrays: RankArrays,
    divided_axis: Option<Arc<Mutex<DividedAxis>>>,
    pub(super) tracer: Option<Tracer>,
}

/// Binds a checked recipe.
type Bind<'a> = &'a dyn Fn(&Recipe) -> Result<Box<dyn Bound>, Error>;

impl DynPlan {
    /// Binds a recipe made by [`DynDraft::recipe`](super::DynDraft::recipe) on the same
    /// communicator, on the host. Collective.
    ///
    /// # Errors
    /// The errors of [`Plan::bind`](crate::Plan::bind).
    pub fn bind(comm: &dyn Comm, recipe: Recipe) -> Result<Self, Error> {
        let candidate = Candidate::of(recipe);
        let report = Report::given(&candidate);
        Self::bind_on_host(comm, Decision { recipe: candidate.recipe, report, key: None })
    }

    /// Binds a recipe that was chosen, on the host. Collective.
    pub(super) fn bind_on_host(comm: &dyn Comm, chosen: Decision) -> Result<Self, Error> {
        Self::bind_chosen(comm, chosen, &|recipe| Ok(Box::new(HostBound::bind(comm, recipe)?)))
    }

    /// Binds a recipe that was chosen, as `bind` does. Collective.
    pub(super) fn bind_chosen(
        comm: &dyn Comm,
        chosen: Decision,
        bind: Bind<'_>,
    ) -> Result<Self, Error> {
        let Decision { recipe, report, key } = chosen;
        let (ranks, bricks) = (comm.size(), recipe.problem().input.ranks());
        let fits = if bricks == ranks { Ok(()) } else { Err(Error::rank_count(bricks, ranks)) };
        agree(comm, fits)?;
        assert_same(comm, &[("recipe", identity(&recipe))])?;
        let mut bound = bind(&recipe)?;
        attach_profiler(bound.as_mut());
        let arrays = RankArrays::new(recipe.problem().as_given(), comm.rank());
        let divided_axis = divided_axis(comm, arrays.problem())?;
        Ok(Self { bound, recipe, report, key, arrays, divided_axis, tracer: None })
    }

    /// The plan of a process whose threads have plans of their own. Collective.
    pub(crate) fn of_team(
        bound: Box<dyn Bound>,
        recipe: Recipe,
        report: Report,
        arrays: RankArrays,
    ) -> Result<Self, Error> {
        let divided_axis = divided_axis(bound.executor().comm(), arrays.problem())?;
        Ok(Self { bound, recipe, report, key: None, arrays, divided_axis, tracer: None })
    }

    /// Threads of this process that transform; they are the ranks of the recipe.
    pub fn threads(&self) -> usize {
        self.bound.threads()
    }

    /// How the transform is done.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// What each operation of a direction does on the plan's device, as
    /// [`Program`](crate::planning::Program) prints it: passes over memory, with the transforms and
    /// reshapes that each fuses. Empty if threads of this process transform together.
    pub fn operations(&self, direction: Direction) -> &[String] {
        self.bound.executor().texts(direction)
    }

    /// The candidates for the recipe, with predicted times and, after
    /// [`Tuning::Measure`](crate::Tuning::Measure), measured ones. The same on all ranks.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The domain under this plan's spectrum, a box with these lengths.
    ///
    /// # Errors
    /// On this rank: [`Error::Argument`] for lengths that are not positive, or of other axes than
    /// the grid's; on a device also when the driver fails.
    pub fn domain(&self, lengths: impl AsRef<[f64]>) -> Result<Domain, Error> {
        self.domain_of(lengths.as_ref(), false)
    }

    /// As [`DynPlan::domain`], with the components of vectors in reverse: the first along the last
    /// axis, as Fortran numbers them.
    ///
    /// # Errors
    /// As [`DynPlan::domain`].
    pub fn reversed_domain(&self, lengths: impl AsRef<[f64]>) -> Result<Domain, Error> {
        self.domain_of(lengths.as_ref(), true)
    }

    /// Whether ranks divide the axis of tridiagonal systems, so that operators are collective.
    pub fn divides_systems(&self) -> bool {
        self.divided_axis.is_some()
    }

    fn domain_of(&self, lengths: &[f64], reversed: bool) -> Result<Domain, Error> {
        let spectrum = Spectrum::of(self.problem());
        let domain = Domain::new(spectrum, self.comm().rank(), lengths, reversed)?;
        #[cfg(feature = "cuda")]
        if let Some(on_device) = self.bound.on_device() {
            return domain.on(&on_device.queue.gpu, &on_device.queue.stream);
        }
        Ok(match &self.divided_axis {
            Some(divided) => domain.with_divided_axis(divided.clone()),
            None => domain,
        })
    }

    /// Saves the measurements for [`Tuning::Wisdom`](crate::Tuning::Wisdom). Collective.
    ///
    /// The entry is added to the file, or replaces an entry for the same transform on the same
    /// machine. The file is replaced as a whole, and several jobs may save to it at the same time.
    ///
    /// # Errors
    /// On every rank: [`Error::Argument`] when nothing was measured for this plan;
    /// [`Error::OnRank`] when the file cannot be locked or written, or is not one of wisdom.
    pub fn save_wisdom(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        if let Some(saved) = self.bound.save_wisdom(path.as_ref()) {
            return saved;
        }
        match &self.key {
            Some(key) if self.report.source == Source::Measured => {
                save_wisdom(self.comm(), path.as_ref(), key, &self.report)
            }
            _ => Err(Error::argument(
                "wisdom of a plan",
                format!("{:?}", self.report.source),
                format!("{:?}", Source::Measured),
            )),
        }
    }

    /// The communicator, a duplicate of the one the plan was made with.
    pub fn comm(&self) -> &dyn Comm {
        self.bound.executor().comm()
    }

    /// The error that encoded messages caused in the last transform, the same on all ranks; `None`
    /// if no wire is lossy, or no transform has run.
    pub fn wire_error(&self) -> Option<WireError> {
        self.bound.executor().lost()
    }

    /// The exchange of the plan: the recipe's, or its replacement if the communicator lacks the
    /// one-sided messages that [`Exchange::Ring`] needs.
    pub fn exchange(&self) -> Exchange {
        self.bound.executor().exchange(self.problem().options.exchange)
    }

    /// Bytes of memory that the plan holds besides input and output: on its device, and on the
    /// host.
    pub fn workspace_bytes(&self) -> usize {
        let of_divided = |axis: &Arc<Mutex<DividedAxis>>| locked(axis).memory();
        self.bound.executor().memory() + self.divided_axis.as_ref().map_or(0, of_divided)
    }

    /// Where this rank's time went since the last [`DynPlan::clear_timings`]. If the rank has
    /// several threads, these are the times of the first.
    pub fn timings(&self) -> Timings {
        self.bound.executor().timings()
    }

    /// Sets all times to zero.
    pub fn clear_timings(&mut self) {
        self.bound.executor_mut().clear_timings();
    }

    /// Transforms from one array of the host to another. Collective.
    ///
    /// # Errors
    /// As [`Plan::forward_into`](crate::Plan::forward_into); [`Error::OnRank`] for an array that is
    /// not aligned, or when the plan's data is on a device.
    pub fn run(
        &mut self,
        direction: Direction,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), Error> {
        self.run_between(direction, Bytes::Host(input), BytesMut::Host(output))
    }

    /// Transforms within one array of [`RankArrays::in_place_bytes`] bytes: input and output both
    /// begin at its start. Collective.
    ///
    /// # Errors
    /// As [`DynPlan::run`].
    pub fn run_in_place(&mut self, direction: Direction, data: &mut [u8]) -> Result<(), Error> {
        self.run_within(direction, BytesMut::Host(data))
    }

    /// As [`DynPlan::run`], with arrays on the plan's device. Collective.
    ///
    /// # Errors
    /// As [`DynPlan::run`]; [`Error::OnRank`] when the plan's data is on the host.
    #[cfg(feature = "cuda")]
    pub fn run_on_device(
        &mut self,
        direction: Direction,
        input: &DeviceMemory<u8>,
        output: &mut DeviceMemory<u8>,
    ) -> Result<(), Error> {
        self.run_between(direction, Bytes::Device(input), BytesMut::Device(output))
    }

    /// As [`DynPlan::run_in_place`], with an array on the plan's device. Collective.
    ///
    /// # Errors
    /// As [`DynPlan::run_on_device`].
    #[cfg(feature = "cuda")]
    pub fn run_in_place_on_device(
        &mut self,
        direction: Direction,
        data: &mut DeviceMemory<u8>,
    ) -> Result<(), Error> {
        self.run_within(direction, BytesMut::Device(data))
    }

    /// Transforms from the beginning of one array to the beginning of another, wherever the plan's
    /// data is. Collective.
    ///
    /// # Errors
    /// As [`DynPlan::run`].
    pub fn run_arrays(
        &mut self,
        direction: Direction,
        input: &DynArray,
        output: &mut DynArray,
    ) -> Result<(), Error> {
        let [physical, spectral] = self.arrays.sizes.bytes();
        let (reads, writes) = direction.choose((physical, spectral), (spectral, physical));
        #[cfg(feature = "cuda")]
        if let (Some(from), Some(to)) = (input.device(), output.device_mut())
            && let Some(stream) = self.stream().cloned()
        {
            // The run refuses arrays that are too short, on all ranks.
            let (reads, writes) = (reads.min(from.len()), writes.min(to.len()));
            return from.with(&stream, reads, |from| {
                to.with_mut(&stream, writes, |to| self.run_on_device(direction, from, to))
            });
        }
        self.run(direction, &input.bytes()[..reads], &mut output.bytes_mut()[..writes])
    }

    /// Transforms within an array that this plan, or one for the same problem, made. `mine` is what
    /// this rank has found wrong before. Collective.
    pub(super) fn run_array(
        &mut self,
        direction: Direction,
        mine: Result<(), Error>,
        array: &mut DynArray,
    ) -> Result<(), Error> {
        #[cfg(feature = "cuda")]
        if let Some(on_device) = self.bound.on_device() {
            let DeviceQueue { gpu, stream, .. } = on_device.queue.clone();
            let bytes = self.in_place_bytes();
            let Some(array) = array.device_mut() else {
                return self.agree(mine.and(Err(crate::field::not_there())));
            };
            let same = array.is_on(gpu.context());
            let bytes = bytes.min(array.len());
            return array.with_mut(&stream, bytes, |memory| {
                self.run_seen(direction, mine.and(same), BytesMut::Device(memory))
            });
        }
        self.run_seen(direction, mine, BytesMut::Host(array.bytes_mut()))
    }

    /// Transforms arrays that all ranks have checked.
    fn execute(
        &mut self,
        direction: Direction,
        input: Option<Bytes<'_>>,
        output: BytesMut<'_>,
    ) -> Result<(), Error> {
        let done = self.bound.run(direction, input, output);
        self.record(done.is_err());
        done
    }

    /// Agrees on errors, as every transform does first.
    fn agreed(&mut self, mine: Result<(), Error>) -> Result<(), Error> {
        let agreed = self.bound.executor_mut().agree(mine);
        if agreed.is_err() {
            self.record(true);
        }
        agreed
    }

    fn run_seen(
        &mut self,
        direction: Direction,
        mine: Result<(), Error>,
        data: BytesMut<'_>,
    ) -> Result<(), Error> {
        let seen = mine.and_then(|()| self.check_seen(data.as_bytes()));
        self.agreed(seen)?;
        self.execute(direction, None, data)
    }

    fn run_between(
        &mut self,
        direction: Direction,
        input: Bytes<'_>,
        output: BytesMut<'_>,
    ) -> Result<(), Error> {
        let [from, to] = direction.choose([0, 1], [1, 0]);
        let points = self.arrays.sizes.points;
        let fit = self
            .check("input", input, from, points[from])
            .and_then(|()| self.check("output", output.as_bytes(), to, points[to]))
            .and_then(|()| self.check_seen(input))
            .and_then(|()| self.check_seen(output.as_bytes()));
        self.agreed(fit)?;
        self.execute(direction, Some(input), output)
    }

    fn run_within(&mut self, direction: Direction, data: BytesMut<'_>) -> Result<(), Error> {
        let fit = self
            .check("array in place", data.as_bytes(), 1, self.in_place_len())
            .and_then(|()| self.check_seen(data.as_bytes()));
        self.agreed(fit)?;
        self.execute(direction, None, data)
    }

    /// Checks that an array has this number of points of physical (0) or spectral data (1), and is
    /// where the plan's data is.
    fn check(
        &self,
        what: &'static str,
        array: Bytes<'_>,
        side: usize,
        expected: usize,
    ) -> Result<(), Error> {
        let (point, bytes) = (self.arrays.sizes.point_bytes[side], array.len());
        if bytes != expected * point {
            // A fraction of a point does not make a short array long enough.
            let whole = bytes / point;
            let found = if whole < expected { whole } else { bytes.div_ceil(point) };
            return Err(Error::Length { what, rank: self.comm().rank(), found, expected });
        }
        self.bound.check(what, array)
    }

    /// Checks that other ranks can access an array, if they read it.
    fn check_seen(&self, array: Bytes<'_>) -> Result<(), Error> {
        if !self.problem().options.shared_arrays || self.bound.sees(array) {
            return Ok(());
        }
        Err(Error::argument("array", "one that other ranks do not see", "one that this plan made"))
    }

    /// Agrees on errors, as every transform does first: returns `mine` if all ranks have `Ok`,
    /// otherwise the error of the lowest failing rank, on every rank. Collective, in place of a
    /// transform.
    ///
    /// Call it on a rank that cannot transform, for example because it has no arrays.
    ///
    /// # Errors
    /// [`Error::OnRank`] with the error of the lowest failing rank; [`Error::Left`] as
    /// [`Plan::forward_into`](crate::Plan::forward_into).
    pub fn agree<R>(&mut self, mine: Result<R, Error>) -> Result<R, Error> {
        self.bound.executor_mut().agree(mine.as_ref().map(drop).map_err(Clone::clone))?;
        mine
    }

    /// Zeros to be transformed in place, where the plan's data is.
    ///
    /// # Errors
    /// On this rank, when there is no memory for them.
    pub fn zeros(&self) -> Result<DynArray, Error> {
        self.bound.zeros(self.in_place_bytes())
    }

    /// The same in memory that the ranks of a host share: see
    /// [`Plan::shared_input`](crate::Plan::shared_input). Collective.
    ///
    /// # Errors
    /// The errors of [`Plan::shared_input`](crate::Plan::shared_input).
    pub fn shared_zeros(&mut self) -> Result<DynArray, Error> {
        let bytes = self.in_place_bytes();
        self.bound.executor_mut().agree(Ok(()))?;
        // All ranks make new memory, or none.
        let has_spare = self.bound.has_spare();
        let array = if on_all_ranks(self.comm(), [has_spare])? == [true] {
            self.bound.spare(bytes)
        } else {
            self.bound.allocate(bytes)
        };
        agree(self.comm(), array)
    }
}

/// The arrays of this rank.
impl Deref for DynPlan {
    type Target = RankArrays;

    fn deref(&self) -> &RankArrays {
        &self.arrays
    }
}

impl fmt::Debug for DynPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynPlan")
            .field("rank", &self.comm().rank())
            .field("recipe", &self.recipe.to_string())
            .field("sizes", &self.arrays.sizes)
            .finish_non_exhaustive()
    }
}

/// A text that is the same for two recipes only if they send the same messages.
fn identity(recipe: &Recipe) -> String {
    let problem = recipe.problem();
    let layouts: Vec<_> = recipe.nodes().iter().map(|node| node.layout.bricks()).collect();
    let factors = [Direction::Forward, Direction::Inverse]
        .map(|direction| problem.factor(direction).to_bits());
    let rest = format!("{layouts:?} {:?} {:?} {factors:?}", problem.options, problem.hosts);
    format!("{:016x} {recipe}", checksum(rest.as_bytes()))
}

/// The types of data that a problem is for.
pub(super) fn types_of(problem: &Problem) -> (DynTransform, Precision) {
    let transform = match (problem.complex, problem.complex_spectrum()) {
        (true, _) => DynTransform::C2c,
        (false, true) => DynTransform::R2c,
        (false, false) => DynTransform::R2r,
    };
    (transform, problem.precision)
}

/// What operators need of other ranks if they divide the axis of tridiagonal systems. Collective.
fn divided_axis(
    comm: &dyn Comm,
    problem: &Problem,
) -> Result<Option<Arc<Mutex<DividedAxis>>>, Error> {
    let divided = DividedAxis::new(comm, &Spectrum::of(problem), &|plan| bind_copy(comm, plan))?;
    Ok(divided.map(|divided| Arc::new(Mutex::new(divided))))
}
