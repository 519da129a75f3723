//! Plans of one process whose types and number of axes are values.

use std::fmt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fft_comm::ThreadComm;
use fft_core::{
    Direction, DynGrid, Error, Kind, Layout, PerAxis, Precision, ProcGrid, Recipe, Spectrum,
    Timings, WireError,
};

use super::team::Team;
use crate::field::{DynArray, DynTransform};
use crate::plan::{DynDraft, DynPlan, Options};
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
    /// Bytes of each rank's part before and after, of one call of the plans.
    parts: Vec<[usize; 2]>,
    /// Calls of the plans for all arrays of a batch.
    calls: usize,
    howmany: usize,
    /// Of an array before and after.
    grids: [DynGrid; 2],
    recipe: Recipe,
    report: Report,
    spectrum: Spectrum,
    input_order: PerAxis<usize>,
    transform: DynTransform,
    /// The length of the transform along each axis.
    lengths: PerAxis<usize>,
}

/// What a lock guards, also after a panic of another thread.
fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Input and output of a rank.
type Part<'a> = Mutex<(&'a [u8], &'a mut [u8])>;

impl DynLocalPlan {
    /// Makes a plan for whole arrays on so many threads, or on fewer if the slowest axis is
    /// shorter. Bricks, shared arrays and transposed data of the options have no effect.
    ///
    /// # Errors
    /// Those of [`Draft::build`](crate::Draft::build); [`Error::Threads`];
    /// [`Error::Argument`] for no threads, and for orders or kinds of other axes than the grid's.
    pub fn new(
        grid: DynGrid,
        transform: DynTransform,
        precision: Precision,
        options: Options,
        threads: usize,
    ) -> Result<Self, Error> {
        if threads == 0 {
            return Err(Error::argument("threads", threads, "at least 1"));
        }
        if options.howmany == 0 {
            return Err(Error::argument("howmany", 0, "at least 1"));
        }
        options.check_axes(grid)?;
        let grids = [grid, options.spectral_grid(grid)];
        for grid in &grids {
            grid.checked_points(options.howmany)?;
        }
        let (howmany, input_order) = (options.howmany, options.input_order);
        let [lengths, modes] = options.lengths(grid);
        let spectrum = Spectrum {
            kinds: options.kinds,
            modes,
            layout: Layout::even(grids[1], ProcGrid::new(PerAxis::splat(grid.axes(), 1)), 1)
                .ordered(options.output_order)?,
            complex: transform.has_complex_spectrum(),
            precision,
        };
        let Work { grid, options, calls } = Work::new(grid, options, threads);
        let spectral = options.spectral_grid(grid);
        let slowest = [(grid, options.input_order[0]), (spectral, options.output_order[0])];
        // An order without meaning is refused below, whatever the number of threads.
        let most = slowest.map(|(grid, axis)| grid.shape().get(axis).copied().unwrap_or(1));
        // One axis alone is not cut.
        let most = if grid.axes() == 1 { 1 } else { most[0].min(most[1]) };
        let team = Team::new(threads.min(most).max(1))?;
        let ranks = team.ranks();
        let comms = ThreadComm::team(ranks).into_iter().map(|comm| Mutex::new(Some(comm)));
        let comms: Vec<_> = comms.collect();
        let plans = team.run(|rank| {
            let comm = locked(&comms[rank]).take();
            let comm = comm.ok_or(Error::Left { gone: rank })?;
            let [input, output] = slowest.map(|(grid, axis)| {
                let cut = PerAxis::from_fn(grid.axes(), |a| if a == axis { ranks } else { 1 });
                Some(ProcGrid::new(cut).part(&grid, rank))
            });
            let own = Options {
                input,
                output,
                shared_arrays: true,
                transposed_input: false,
                transposed_output: false,
                ..options.clone()
            };
            DynDraft::new(&comm, grid, transform, precision).with(|it| *it = own).build()
        })?;
        let (recipe, report) = (plans[0].recipe().clone(), plans[0].report().clone());
        let parts = plans.iter().map(|plan| [plan.input_bytes(), plan.output_bytes()]).collect();
        let plans = plans.into_iter().map(|plan| Mutex::new(Some(Box::new(plan)))).collect();
        Ok(Self {
            plans,
            team,
            parts,
            calls,
            howmany,
            grids,
            recipe,
            report,
            spectrum,
            input_order,
            transform,
            lengths,
        })
    }

    /// The domain under this plan's spectrum, as [`DynPlan::domain`]. Operators run on the calling
    /// thread.
    ///
    /// # Errors
    /// [`Error::Argument`] for lengths that are not positive, or of other axes than the grid's.
    pub fn domain(&self, lengths: impl AsRef<[f64]>) -> Result<Domain, Error> {
        Domain::new(self.spectrum.clone(), 0, lengths.as_ref(), false)
    }

    /// As [`DynPlan::reversed_domain`].
    ///
    /// # Errors
    /// As [`DynLocalPlan::domain`].
    pub fn reversed_domain(&self, lengths: impl AsRef<[f64]>) -> Result<Domain, Error> {
        Domain::new(self.spectrum.clone(), 0, lengths.as_ref(), true)
    }

    /// The transform of Green's function in open space, as [`DynPlan::green_function`], on the
    /// calling thread.
    ///
    /// # Errors
    /// Those of [`DynPlan::green_function`].
    pub fn green_function(&self, spacing: impl AsRef<[f64]>) -> Result<DynArray, Error> {
        if self.howmany != 1 {
            return Err(Error::argument("howmany in open space", self.howmany, 1));
        }
        let (alone, spectrum) = (fft_comm::alone(), &self.spectrum);
        let draft = DynDraft::new(&alone, self.grids[0], self.transform, spectrum.precision);
        let plan = draft.with(|options| {
            options.kinds = spectrum.kinds;
            (options.transform, options.modes) = (Some(self.lengths), Some(spectrum.modes));
            options.output_order = spectrum.layout.order();
        });
        plan.build()?.green_function(spacing)
    }

    /// The order of axes in memory of physical data, slowest first.
    pub fn input_order(&self) -> PerAxis<usize> {
        self.input_order
    }

    /// The order of axes in memory of spectral data, slowest first.
    pub fn output_order(&self) -> PerAxis<usize> {
        self.spectrum.layout.order()
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

    /// The grid of physical data of one array.
    pub fn input_grid(&self) -> DynGrid {
        self.grids[0]
    }

    /// The grid of spectral data of one array.
    pub fn output_grid(&self) -> DynGrid {
        self.grids[1]
    }

    /// Points of physical data, all batches together.
    pub fn input_len(&self) -> usize {
        self.howmany * self.grids[0].points()
    }

    /// Points of spectral data, all batches together.
    pub fn output_len(&self) -> usize {
        self.howmany * self.grids[1].points()
    }

    /// Bytes of physical data.
    pub fn input_bytes(&self) -> usize {
        self.calls * self.bytes()[0]
    }

    /// Bytes of spectral data.
    pub fn output_bytes(&self) -> usize {
        self.calls * self.bytes()[1]
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
    pub fn memory(&self) -> usize {
        self.plans.iter().map(|plan| locked(plan).as_ref().map_or(0, |plan| plan.memory())).sum()
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

    /// What encoded messages lost in the last transform, as [`DynPlan::wire_error`]. Threads send
    /// messages only where the options ignore that they share memory.
    pub fn wire_error(&self) -> Option<WireError> {
        locked(&self.plans[0]).as_ref().and_then(|plan| plan.wire_error())
    }

    /// Bytes of one call of the plans, before and after.
    fn bytes(&self) -> [usize; 2] {
        [0, 1].map(|side| self.parts.iter().map(|part| part[side]).sum())
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
        for (what, found, expected) in
            [("input", input.len(), expected[0]), ("output", output.len(), expected[1])]
        {
            if found != expected {
                return Err(Error::Length { what, rank: 0, found, expected });
            }
        }
        let one = [expected[0] / self.calls, expected[1] / self.calls];
        let (inputs, outputs) = (input.chunks(one[0].max(1)), output.chunks_mut(one[1].max(1)));
        inputs.zip(outputs).try_for_each(|(input, output)| self.call(direction, input, output))
    }

    /// Transforms within one array of [`in_place_bytes`](Self::in_place_bytes): input and output
    /// both begin at its start. Where parts change their length, as those of half a spectrum do,
    /// the input is copied first.
    ///
    /// # Errors
    /// As [`DynLocalPlan::run`]; [`Error::Memory`] for the copy.
    pub fn run_in_place(&mut self, direction: Direction, data: &mut [u8]) -> Result<(), Error> {
        let all = [self.input_bytes(), self.output_bytes()];
        let [from, to] = direction.choose(all, [all[1], all[0]]);
        let (found, expected) = (data.len(), self.in_place_bytes());
        if found != expected {
            return Err(Error::Length { what: "array", rank: 0, found, expected });
        }
        if self.parts.iter().any(|[before, after]| before != after) {
            let mut copy = DynArray::zeros(from, 0)?;
            copy.bytes_mut().copy_from_slice(&data[..from]);
            return self.run(direction, copy.bytes_mut(), &mut data[..to]);
        }
        let one = (to / self.calls).max(1);
        data.chunks_mut(one).try_for_each(|array| {
            let mut rest = array;
            let parts = self.parts.iter().map(|&[bytes, _]| {
                let (part, others) = std::mem::take(&mut rest).split_at_mut(bytes);
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

impl fmt::Debug for DynLocalPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DynLocalPlan({} on {} threads)", self.recipe, self.threads())
    }
}

/// What one call of the plans transforms, and the number of calls.
struct Work {
    grid: DynGrid,
    options: Options,
    calls: usize,
}

impl Work {
    /// Many arrays are one more axis without a transform, so that threads have whole ones. Of a
    /// few, one after the other is cut.
    fn new(grid: DynGrid, options: Options, threads: usize) -> Self {
        let calls = options.howmany;
        let single = Options { howmany: 1, ..options };
        let axes = grid.axes();
        if calls < threads.max(2) || axes == fft_core::MAX_AXES {
            return Self { grid, options: single, calls };
        }
        let shape =
            PerAxis::from_fn(axes + 1, |a| if a == 0 { calls } else { grid.shape()[a - 1] });
        let Ok(grid) = DynGrid::new(shape) else { return Self { grid, options: single, calls } };
        let order = |order: PerAxis<usize>| {
            PerAxis::from_fn(axes + 1, |place| if place == 0 { 0 } else { order[place - 1] + 1 })
        };
        let kinds = single.kinds;
        let longer = |lens: Option<PerAxis<usize>>| {
            lens.map(|lens| {
                PerAxis::from_fn(axes + 1, |a| if a == 0 { calls } else { lens[a - 1] })
            })
        };
        let options = Options {
            kinds: PerAxis::from_fn(
                axes + 1,
                |a| if a == 0 { Kind::Identity } else { kinds[a - 1] },
            ),
            transform: longer(single.transform),
            modes: longer(single.modes),
            input_order: order(single.input_order),
            output_order: order(single.output_order),
            ..single
        };
        Self { grid, options, calls: 1 }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;
    use crate::field::DynTransform;

    /// A panic of a rank before it transforms, on a thread of its own that may wait for ever.
    #[test]
    fn a_panic_of_one_thread_is_an_error_of_all() {
        for ranks in [1, 2, 3] {
            let (done, wait) = mpsc::channel();
            std::thread::spawn(move || {
                let grid = DynGrid::new([6, 5, 4]).unwrap();
                let options = Options::new(DynTransform::C2c, 3);
                let plan =
                    DynLocalPlan::new(grid, DynTransform::C2c, Precision::F64, options, ranks);
                let mut plan = plan.unwrap();
                assert_eq!(plan.threads(), ranks);
                let gone = ranks / 2;
                let data: Vec<_> = (0..ranks).map(|_| Mutex::new(plan.zeros().unwrap())).collect();
                let panics = plan.on_each(|rank, plan| {
                    assert_ne!(rank, gone, "as it should");
                    let mut data = locked(&data[rank]);
                    let bytes = plan.in_place_bytes();
                    plan.run_in_place(Direction::Forward, &mut data.bytes_mut()[..bytes])
                });
                assert_eq!(panics, Err(Error::Left { gone }));
                let (x, mut y) = (vec![0; plan.input_bytes()], vec![0; plan.output_bytes()]);
                let again = plan.run(Direction::Forward, &x, &mut y);
                assert_eq!(again, Err(Error::Left { gone }));
                done.send(()).unwrap();
            });
            wait.recv_timeout(Duration::from_secs(60)).expect("an error in time");
        }
    }
}
