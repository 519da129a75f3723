//! The plans of a process's threads, which are one plan of the process.

use std::path::Path;
use std::sync::Mutex;

use fft_core::{
    Access, AnyExecutor, Comm, Direction, DynBrick, DynGrid, Error, Exchange, Kind, Precision,
    Recipe, Recorder, Reduce, Timings, Unwinding, WireError, agree, locked, on_any_rank,
};

use super::dyn_draft::DynDraft;
use super::dyn_plan::DynPlan;
use crate::bound::{Bound, check_on_host};
use crate::field::{Bytes, BytesMut, DynArray, DynTransform, RankArrays};
use crate::options::Options;
use crate::team::{self, Team, Work};
use crate::tuning::Report;

/// The plans of a process's threads, each for a part of the process's arrays.
pub(super) struct TeamPlans {
    /// One for each rank; `None` if the rank has panicked.
    plans: Vec<Mutex<Option<Box<DynPlan>>>>,
    team: Team,
    /// The communicator of the processes.
    comm: Box<dyn Comm>,
    precision: Precision,
    /// Bytes of this process's arrays, before and after.
    bytes: [usize; 2],
    /// Bytes of each rank's part before and after, for one call of the plans.
    parts: Vec<[usize; 2]>,
    /// Whether data in place is copied first, because one part would overwrite another one.
    copies_in_place: bool,
    /// Calls of the plans for all arrays of a batch.
    calls: usize,
}

fn refuse_transposed(options: &Options) -> Result<(), Error> {
    if options.transposed_input || options.transposed_output {
        return Err(Error::argument("transposed data", "several threads", "one a process"));
    }
    if options.input_cyclic.is_some() || options.output_cyclic.is_some() {
        return Err(Error::argument("cyclic data", "several threads", "one a process"));
    }
    Ok(())
}

/// The most threads that have work if one process has the whole grid: as many as the slowest axis
/// has points, on the shorter side, or as there are arrays.
fn most_threads(grid: DynGrid, transform: DynTransform, options: &Options) -> usize {
    let axes = grid.axes();
    let spectral = options.spectral_grid(grid, transform);
    let before = grid.shape()[options.input_order_of(axes)[0]];
    let after = spectral.shape()[options.output_order_of(axes)[0]];
    // A single axis is cut only by its factors. If there are many arrays, threads get whole ones.
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
            brick.map(|brick| team::part(brick, order, team.ranks(), thread))
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

/// Input and output of a rank.
type Part<'a> = Mutex<(&'a [u8], &'a mut [u8])>;

/// Makes the plan of a process whose threads share its bricks, from options that all ranks have
/// agreed on. Collective.
///
/// Uses the draft's number of threads. A single process uses fewer if its axes are short, and does
/// not transpose its data. Errors give the ranks of threads, numbered by process, or the ranks of
/// processes if a process finds an error before its threads start.
pub(super) fn plan(draft: &DynDraft<'_>, options: Options) -> Result<DynPlan, Error> {
    let (team, recipe, report, arrays) = plans(draft, options)?;
    DynPlan::of_team(Box::new(team), recipe, report, arrays)
}

/// The plans of a process's threads, the recipe and report of the first, and the process's arrays.
type Made = (TeamPlans, Recipe, Report, RankArrays);

fn plans(draft: &DynDraft<'_>, mut options: Options) -> Result<Made, Error> {
    let (grid, transform, precision) = (draft.grid, draft.transform, draft.precision);
    let threads = match draft.threads {
        Some(threads) => threads,
        None if draft.is_local() => draft.useful_threads(),
        None => 1,
    };
    let comm: Box<dyn Comm> = if draft.comm().size() == 1 {
        // One process has one brick, so nothing is transposed.
        (options.transposed_input, options.transposed_output) = (false, false);
        Box::new(fft_comm::alone())
    } else {
        refuse_transposed(&options)?;
        draft.comm().dup()?
    };
    let problem = draft.problem(&options, Access::default())?;
    problem.check_systems()?;
    for grid in [problem.input.grid(), problem.output.grid()] {
        grid.checked_points(options.batch)?;
    }
    // One process has all points in order.
    (options.input_cyclic, options.output_cyclic) = (None, None);
    let is_alone = comm.size() == 1;
    let factors = if is_alone { draft.factors(&options, threads) } else { None };
    let sharing = factors.map(|factors| threads.min(factors[0].max(factors[factors.len() - 1])));
    // If there are many arrays, threads get whole ones.
    let sharing = sharing.filter(|threads| options.batch < (*threads).max(2));
    let threads = match sharing {
        Some(threads) => threads,
        None if is_alone => threads.min(most_threads(grid, transform, &options)),
        None => threads,
    };
    // Threads cut the blocks of several processes anywhere.
    options.one_rank |= problem.one_axis.is_some();
    let arrays = RankArrays::new(problem.as_given(), comm.rank());
    // Threads that share a line take the parts that suit its factors.
    let given = |brick: DynBrick| sharing.is_none().then_some(brick);
    let (input, output) = (given(arrays.input_brick()), given(arrays.output_brick()));
    let mut most = [threads as f64];
    comm.allreduce(Reduce::Max, &mut most)?;
    // Threads divide lines that the process has whole, so the team does not solve systems along
    // them.
    let transform_only = |kind: Kind| if kind.is_transform() { kind } else { Kind::None };
    let kinds = options.kinds.map(|kinds| kinds.map(transform_only));
    let options = Options { input, output, kinds, ..options };
    let Work { grid: team_grid, options, calls } =
        Work::new(grid, transform, options, most[0] as usize);
    let (team, comms) = Team::new(comm.as_ref(), threads)?;
    let plans = plans_of_threads(&team, comms, (team_grid, transform, precision), &options)?;
    let (recipe, report) = (plans[0].recipe().clone(), plans[0].report().clone());
    let parts = plans.iter().map(|plan| [plan.input_bytes(), plan.output_bytes()]);
    let parts: Vec<_> = parts.collect();
    let [is_moved] =
        on_any_rank(comm.as_ref(), [parts.iter().any(|[before, after]| before != after)])?;
    let is_one_part = comm.size() == 1 && parts.len() == 1 && calls == 1;
    let made = TeamPlans {
        plans: plans.into_iter().map(|plan| Mutex::new(Some(Box::new(plan)))).collect(),
        team,
        comm,
        precision,
        bytes: [arrays.input_bytes(), arrays.output_bytes()],
        parts,
        copies_in_place: is_moved && !is_one_part,
        calls,
    };
    Ok((made, recipe, report, arrays))
}

impl TeamPlans {
    /// The plan of the first thread; none after a panic.
    fn of_first<R>(&self, of: impl FnOnce(&DynPlan) -> R) -> Option<R> {
        locked(&self.plans[0]).as_deref().map(of)
    }

    /// Transforms from one array to another.
    fn run_between(
        &self,
        direction: Direction,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), Error> {
        // A process without points takes part in every call.
        let [physical, spectral] = self.bytes.map(|bytes| bytes / self.calls);
        let (from, to) = direction.choose((physical, spectral), (spectral, physical));
        (0..self.calls).try_for_each(|call| {
            let (from, to) = (call * from..(call + 1) * from, call * to..(call + 1) * to);
            self.call(direction, &input[from], &mut output[to])
        })
    }

    /// Transforms within one array. The input is copied first if several threads, processes or
    /// transforms of a batch have parts that change their length, as with half a spectrum.
    fn run_within(&self, direction: Direction, data: &mut [u8]) -> Result<(), Error> {
        let [physical, spectral] = self.bytes;
        let (from, to) = direction.choose((physical, spectral), (spectral, physical));
        if self.copies_in_place {
            let copy = DynArray::zeros(from, self.comm.rank());
            let mut copy = agree(self.comm.as_ref(), copy)?;
            copy.bytes_mut().copy_from_slice(&data[..from]);
            return self.run_between(direction, copy.bytes(), &mut data[..to]);
        }
        let one = data.len() / self.calls;
        (0..self.calls).try_for_each(|call| {
            let mut rest = &mut data[call * one..(call + 1) * one];
            let mut parts = Vec::with_capacity(self.parts.len());
            for &[before, after] in &self.parts {
                // The only part may be shorter than the array.
                let bytes = if self.parts.len() == 1 { one } else { before.max(after) };
                let (part, others) = std::mem::take(&mut rest).split_at_mut(bytes);
                rest = others;
                parts.push(Mutex::new(part));
            }
            self.on_each(|rank, plan| {
                let mut part = locked(&parts[rank]);
                plan.run_in_place(direction, &mut part)
            })
        })
    }

    /// Calls `body` with each rank and its plan, at once.
    fn on_each(
        &self,
        body: impl Fn(usize, &mut DynPlan) -> Result<(), Error> + Sync,
    ) -> Result<(), Error> {
        let plans = &self.plans;
        let gone = |rank: &usize| locked(&plans[*rank]).is_none();
        if let Some(gone) = (0..plans.len()).find(gone) {
            return Err(Error::Left { gone });
        }
        self.team.run(|rank| {
            let plan = locked(&plans[rank]).take();
            // A panic drops the plan, so that the ranks that wait for this one get an error.
            let mut plan = plan.ok_or(Error::Left { gone: rank })?;
            let result = body(rank, &mut plan);
            *locked(&plans[rank]) = Some(plan);
            result
        })?;
        Ok(())
    }

    /// Transforms the arrays of one call of the plans.
    fn call(
        &self,
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

/// Properties of the threads' plans, which share memory with no other process.
impl AnyExecutor for TeamPlans {
    fn comm(&self) -> &dyn Comm {
        self.comm.as_ref()
    }

    fn exchange(&self, named: Exchange) -> Exchange {
        self.of_first(DynPlan::exchange).unwrap_or(named)
    }

    fn lost(&self) -> Option<WireError> {
        self.of_first(DynPlan::wire_error).flatten()
    }

    fn memory(&self) -> usize {
        let plans = self.plans.iter().map(locked);
        plans.map(|plan| plan.as_ref().map_or(0, |plan| plan.workspace_bytes())).sum()
    }

    fn timings(&self) -> Timings {
        self.of_first(|plan| plan.timings()).unwrap_or_default()
    }

    fn clear_timings(&mut self) {
        for plan in &self.plans {
            if let Some(plan) = locked(plan).as_mut() {
                plan.clear_timings();
            }
        }
    }

    /// None, because the plans of the threads are traced.
    fn recorder(&mut self) -> Option<&mut Recorder> {
        None
    }

    fn texts(&self, _direction: Direction) -> &[String] {
        &[]
    }

    fn agree(&mut self, mine: Result<(), Error>) -> Result<(), Error> {
        match self.comm.size() {
            1 => mine,
            _ => agree(self.comm.as_ref(), mine),
        }
    }
}

impl Bound for TeamPlans {
    fn executor(&self) -> &dyn AnyExecutor {
        self
    }

    fn executor_mut(&mut self) -> &mut dyn AnyExecutor {
        self
    }

    fn check(&self, what: &'static str, array: Bytes<'_>) -> Result<(), Error> {
        check_on_host(what, array, self.precision)
    }

    fn sees(&self, _array: Bytes<'_>) -> bool {
        true
    }

    fn run(
        &mut self,
        direction: Direction,
        input: Option<Bytes<'_>>,
        output: BytesMut<'_>,
    ) -> Result<(), Error> {
        match input {
            Some(input) => self.run_between(direction, input.on_host(), output.on_host()),
            None => self.run_within(direction, output.on_host()),
        }
    }

    fn zeros(&self, bytes: usize) -> Result<DynArray, Error> {
        DynArray::zeros(bytes, self.comm.rank())
    }

    fn has_spare(&mut self) -> bool {
        true
    }

    fn spare(&mut self, bytes: usize) -> Result<DynArray, Error> {
        self.zeros(bytes)
    }

    fn allocate(&mut self, bytes: usize) -> Result<DynArray, Error> {
        self.zeros(bytes)
    }

    fn threads(&self) -> usize {
        self.team.ranks()
    }

    fn save_wisdom(&self, path: &Path) -> Option<Result<(), Error>> {
        Some(self.on_each(|_, plan| plan.save_wisdom(path)))
    }

    fn trace(&self, path: &Path) -> Option<Result<(), Error>> {
        Some(self.on_each(|_, plan| plan.trace(path)))
    }
}

#[cfg(test)]
mod tests;
