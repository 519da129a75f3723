//! Plans of a process with several threads, whose types and number of axes are values.

use std::fmt;
use std::ops::Deref;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fft_core::{
    Access, Comm, Direction, DynBrick, DynGrid, Error, Precision, Recipe, Reduce, Spectrum,
    Timings, Unwinding, WireError, agree,
};

use super::dyn_local_draft::DynLocalDraft;
use super::team::Team;
use super::work::{self, Work};
use crate::field::{DynArray, DynTransform, RankArrays};
use crate::options::Options;
use crate::plan::{DynDraft, DynPlan, green_function};
use crate::spectral::Domain;
use crate::tuning::Report;

/// A [`LocalPlan`](super::LocalPlan) whose transform, precision and number of axes are run-time
/// values.
///
/// Arrays are bytes: real or complex numbers of the plan's precision, aligned for them.
pub struct DynLocalPlan {
    /// One for each rank; none where a rank has panicked.
    plans: Vec<Mutex<Option<Box<DynPlan>>>>,
    team: Team,
    /// Of the processes.
    comm: Box<dyn Comm>,
    /// Bytes of each rank's part before and after, of one call of the plans.
    parts: Vec<[usize; 2]>,
    /// Whether data in place is copied first, because one part would overwrite another one.
    copies_in_place: bool,
    /// Calls of the plans for all arrays of a batch.
    calls: usize,
    recipe: Recipe,
    report: Report,
    /// Of this process.
    arrays: RankArrays,
}

fn refuse_transposed(options: &Options) -> Result<(), Error> {
    match options.transposed_input || options.transposed_output {
        true => Err(Error::argument("transposed data", "several threads", "one a process")),
        false => Ok(()),
    }
}

/// The most threads that have work where one process has the whole grid: as many as the slowest
/// axis has points, on the shorter side, or as there are arrays.
fn most_threads(grid: DynGrid, transform: DynTransform, options: &Options) -> usize {
    let axes = grid.axes();
    let spectral = options.spectral_grid(grid, transform);
    let before = grid.shape()[options.input_order_of(axes)[0]];
    let after = spectral.shape()[options.output_order_of(axes)[0]];
    // One axis alone is not cut. Of many arrays threads have whole ones.
    let cut = if axes == 1 { 1 } else { before.min(after) };
    cut.max(options.batch)
}

/// The plans of a process's threads, each for its part of the process's bricks.
fn plans_of_threads(
    team: &Team,
    comms: Vec<Box<dyn Comm>>,
    (grid, transform, precision): (DynGrid, DynTransform, Precision),
    options: &Options,
) -> Result<Vec<DynPlan>, Error> {
    let axes = grid.axes();
    let comms: Vec<_> = comms.into_iter().map(|comm| Mutex::new(Some(comm))).collect();
    team.run(|thread| {
        let comm = locked(&comms[thread]).take();
        let comm = comm.ok_or(Error::Left { gone: thread })?;
        // Other processes would wait for a thread that panics while it plans.
        let _unwinding = Unwinding::watch(comm.as_ref());
        let part = |brick: Option<DynBrick>, order| {
            brick.map(|brick| work::part(brick, order, team.ranks(), thread))
        };
        let own = Options {
            input: part(options.input, options.input_order_of(axes)),
            output: part(options.output, options.output_order_of(axes)),
            shared_arrays: true,
            ..options.clone()
        };
        DynDraft::new(comm.as_ref(), grid, transform, precision).with(|it| *it = own).build()
    })
}

/// What a lock guards, also after a panic of another thread.
fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Input and output of a rank.
type Part<'a> = Mutex<(&'a [u8], &'a mut [u8])>;

impl DynLocalPlan {
    /// See [`DynLocalDraft::build_over`](super::DynLocalDraft::build_over). Collective.
    pub(super) fn new(comm: &dyn Comm, draft: &DynLocalDraft) -> Result<Self, Error> {
        let grid = agree(comm, DynGrid::new(draft.shape))?;
        let (transform, precision) = (draft.transform, draft.precision);
        let options = draft.options.clone();
        let threads = match draft.threads {
            Some(threads) => threads,
            None if comm.size() == 1 => draft.useful_threads(),
            None => 1,
        };
        let comm: Box<dyn Comm> = match comm.size() {
            1 => Box::new(fft_comm::alone()),
            _ => agree(comm, refuse_transposed(&options)).and_then(|()| comm.dup())?,
        };
        // One process has one brick, so that nothing is transposed.
        let options = Options { transposed_input: false, transposed_output: false, ..options };
        let draft = DynDraft::new(comm.as_ref(), grid, transform, precision);
        let draft = draft.with(|it| *it = options);
        let options = draft.settle()?;
        let problem = draft.problem(&options, Access::default())?;
        drop(draft);
        for grid in [problem.input.grid(), problem.output.grid()] {
            grid.checked_points(options.batch)?;
        }
        let threads = match comm.size() {
            1 => threads.min(most_threads(grid, transform, &options)),
            _ => threads,
        };
        let arrays = RankArrays::new(problem, comm.rank());
        let (input, output) = (Some(arrays.input_brick()), Some(arrays.output_brick()));
        let mut most = [threads as f64];
        comm.allreduce(Reduce::Max, &mut most)?;
        let options = Options { input, output, ..options };
        let Work { grid: one, options, calls } =
            Work::new(grid, transform, options, most[0] as usize);
        let (team, comms) = Team::new(comm.as_ref(), threads)?;
        let plans = plans_of_threads(&team, comms, (one, transform, precision), &options)?;
        let (recipe, report) = (plans[0].recipe().clone(), plans[0].report().clone());
        let parts = plans.iter().map(|plan| [plan.input_bytes(), plan.output_bytes()]);
        let parts: Vec<_> = parts.collect();
        let mut moved = [f64::from(parts.iter().any(|[before, after]| before != after))];
        comm.allreduce(Reduce::Max, &mut moved)?;
        let longer = arrays.input_bytes().max(arrays.output_bytes());
        let is_one_part =
            comm.size() == 1 && parts.len() == 1 && calls == 1 && arrays.in_place_bytes() == longer;
        let plans = plans.into_iter().map(|plan| Mutex::new(Some(Box::new(plan)))).collect();
        Ok(Self {
            plans,
            team,
            comm,
            parts,
            copies_in_place: moved != [0.0] && !is_one_part,
            calls,
            recipe,
            report,
            arrays,
        })
    }

    /// The domain under this plan's spectrum, as [`DynPlan::domain`]. Operators run on the calling
    /// thread.
    ///
    /// # Errors
    /// [`Error::Argument`] for lengths that are not positive, or of other axes than the grid's.
    pub fn domain(&self, lengths: impl AsRef<[f64]>) -> Result<Domain, Error> {
        Domain::new(Spectrum::of(self.problem()), self.comm.rank(), lengths.as_ref(), false)
    }

    /// As [`DynPlan::reversed_domain`].
    ///
    /// # Errors
    /// As [`DynLocalPlan::domain`].
    pub fn reversed_domain(&self, lengths: impl AsRef<[f64]>) -> Result<Domain, Error> {
        Domain::new(Spectrum::of(self.problem()), self.comm.rank(), lengths.as_ref(), true)
    }

    /// The transform of Green's function in open space, as [`DynPlan::green_function`], on the
    /// calling thread.
    ///
    /// # Errors
    /// Those of [`DynPlan::green_function`].
    pub fn green_function(&self, spacing: impl AsRef<[f64]>) -> Result<DynArray, Error> {
        green_function(self.comm(), self.problem(), spacing.as_ref())
    }

    /// Threads that transform.
    pub fn threads(&self) -> usize {
        self.team.ranks()
    }

    /// How each array is transformed, with threads as ranks.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// The candidates for the recipe, as [`DynPlan::report`].
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The communicator of the processes.
    pub fn comm(&self) -> &dyn Comm {
        self.comm.as_ref()
    }

    /// Makes a result equal on all processes, as [`DynPlan::agree`]. Collective.
    ///
    /// # Errors
    /// That of the lowest failing process.
    pub fn agree<R>(&self, mine: Result<R, Error>) -> Result<R, Error> {
        match self.comm.size() {
            1 => mine,
            _ => agree(self.comm.as_ref(), mine),
        }
    }

    /// Bytes that an array must have to be transformed in place.
    pub fn in_place_bytes(&self) -> usize {
        self.input_bytes().max(self.output_bytes())
    }

    /// Zeros with room for the input or the output.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn zeros(&self) -> Result<DynArray, Error> {
        DynArray::zeros(self.in_place_bytes(), 0)
    }

    /// Bytes of memory that the plan holds beside input and output.
    pub fn workspace_bytes(&self) -> usize {
        self.plans
            .iter()
            .map(|plan| locked(plan).as_ref().map_or(0, |plan| plan.workspace_bytes()))
            .sum()
    }

    /// Where the time of the first thread went since the last [`DynLocalPlan::clear_timings`].
    pub fn timings(&self) -> Timings {
        locked(&self.plans[0]).as_ref().map_or_else(Timings::default, |plan| plan.timings())
    }

    /// Sets all times to zero.
    pub fn clear_timings(&mut self) {
        for plan in &mut self.plans {
            if let Some(plan) = plan.get_mut().unwrap_or_else(PoisonError::into_inner) {
                plan.clear_timings();
            }
        }
    }

    /// What encoded messages lost in the last transform, as [`DynPlan::wire_error`]. Threads of
    /// one process send messages only where the options ignore that they share memory.
    pub fn wire_error(&self) -> Option<WireError> {
        locked(&self.plans[0]).as_ref().and_then(|plan| plan.wire_error())
    }

    /// Transforms from one array to another.
    ///
    /// # Errors
    /// [`Error::Length`] for an array of another length; [`Error::Argument`] for one that is not
    /// aligned; [`Error::Left`] when a thread panics, and from then on.
    pub fn run(
        &mut self,
        direction: Direction,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), Error> {
        let all = [self.input_bytes(), self.output_bytes()];
        let expected = direction.choose(all, [all[1], all[0]]);
        let found = [("input", input.len()), ("output", output.len())];
        self.agree(
            found
                .into_iter()
                .zip(expected)
                .try_for_each(|(found, expected)| self.check_len(found, expected)),
        )?;
        // A process without points takes part in every call.
        let one = expected.map(|bytes| bytes / self.calls);
        (0..self.calls).try_for_each(|call| {
            let [from, to] = one.map(|bytes| call * bytes..(call + 1) * bytes);
            self.call(direction, &input[from], &mut output[to])
        })
    }

    /// Transforms within one array of [`in_place_bytes`](Self::in_place_bytes): input and output
    /// both begin at its start. Where several threads, processes or transforms of a batch have
    /// parts that change their length, as those of half a spectrum do, the input is copied first.
    ///
    /// # Errors
    /// As [`DynLocalPlan::run`]; [`Error::Memory`] for the copy.
    pub fn run_in_place(&mut self, direction: Direction, data: &mut [u8]) -> Result<(), Error> {
        let all = [self.input_bytes(), self.output_bytes()];
        let [from, to] = direction.choose(all, [all[1], all[0]]);
        self.agree(self.check_len(("array", data.len()), self.in_place_bytes()))?;
        if self.copies_in_place {
            let mut copy = self.agree(DynArray::zeros(from, 0))?;
            copy.bytes_mut().copy_from_slice(&data[..from]);
            return self.run(direction, copy.bytes_mut(), &mut data[..to]);
        }
        let one = self.in_place_bytes() / self.calls;
        (0..self.calls).try_for_each(|call| {
            let mut rest = &mut data[call * one..(call + 1) * one];
            let parts = self.parts.iter().map(|&[before, after]| {
                let (part, others) = std::mem::take(&mut rest).split_at_mut(before.max(after));
                rest = others;
                Mutex::new(part)
            });
            let parts: Vec<_> = parts.collect();
            self.on_each(|rank, plan| {
                let mut part = locked(&parts[rank]);
                plan.run_in_place(direction, &mut part)
            })
        })
    }

    fn check_len(
        &self,
        (what, found): (&'static str, usize),
        expected: usize,
    ) -> Result<(), Error> {
        match found == expected {
            true => Ok(()),
            false => Err(Error::Length { what, rank: self.comm.rank(), found, expected }),
        }
    }

    /// Saves what was measured, as [`DynPlan::save_wisdom`].
    ///
    /// # Errors
    /// Those of [`DynPlan::save_wisdom`].
    pub fn save_wisdom(&mut self, path: &Path) -> Result<(), Error> {
        self.on_each(|_, plan| plan.save_wisdom(path))
    }

    /// Calls `body` with each rank and its plan, at once.
    fn on_each(
        &mut self,
        body: impl Fn(usize, &mut DynPlan) -> Result<(), Error> + Sync,
    ) -> Result<(), Error> {
        let gone = |rank: &usize| locked(&self.plans[*rank]).is_none();
        if let Some(gone) = (0..self.plans.len()).find(gone) {
            return Err(Error::Left { gone });
        }
        self.team.run(|rank| {
            let plan = locked(&self.plans[rank]).take();
            // A panic drops the plan, which tells the ranks that wait for this one.
            let mut plan = plan.ok_or(Error::Left { gone: rank })?;
            let result = body(rank, &mut plan);
            *locked(&self.plans[rank]) = Some(plan);
            result
        })?;
        Ok(())
    }

    /// Transforms what the plans transform in one call.
    fn call(
        &mut self,
        direction: Direction,
        mut input: &[u8],
        mut output: &mut [u8],
    ) -> Result<(), Error> {
        let mut parts: Vec<Part<'_>> = Vec::with_capacity(self.parts.len());
        for &[physical, spectral] in &self.parts {
            let [from, to] = direction.choose([physical, spectral], [spectral, physical]);
            let (mine, rest) = input.split_at(from);
            let (place, others) = std::mem::take(&mut output).split_at_mut(to);
            parts.push(Mutex::new((mine, place)));
            (input, output) = (rest, others);
        }
        self.on_each(|rank, plan| {
            let mut part = locked(&parts[rank]);
            let (input, output) = &mut *part;
            plan.run(direction, input, output)
        })
    }
}

/// The arrays of this process: the whole grid, if there is one process.
impl Deref for DynLocalPlan {
    type Target = RankArrays;

    fn deref(&self) -> &RankArrays {
        &self.arrays
    }
}

impl fmt::Debug for DynLocalPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DynLocalPlan({} on {} threads)", self.recipe, self.threads())
    }
}

#[cfg(test)]
mod tests;
