//! A plan whose types and number of axes are values: a recipe bound to a communicator and buffers.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use fft_comm::tuner::{Candidate, Report, Source};
use fft_core::{
    Algorithm, Comm, Direction, DynBrick, Error, HostExecutor, Precision, Recipe, Reduce,
    SharedMemory, Timings, WireError, agree,
};

use crate::array::DynArray;
use crate::pool::Pool;
use crate::tune::Decision;
use crate::{DynTransform, wisdom};

/// A [`Plan`](crate::Plan) whose transform, precision and number of axes are run-time values.
/// It is for programs that learn these when they run.
///
/// Arrays are bytes: of real or complex numbers of the plan's precision, aligned as these are.
/// Everything else is as for a plan.
/// Made by [`DynDraft::build`](crate::DynDraft::build), which has an example.
pub struct DynPlan {
    /// Given back before the executor's node_memory is dropped.
    pool: Pool<Box<dyn SharedMemory>>,
    executor: HostExecutor,
    recipe: Recipe,
    report: Report,
    /// What wisdom calls the problem, where a draft knows.
    key: Option<String>,
}

/// Whether every rank has this recipe, by a hash of all that it says.
fn same_on_all(comm: &dyn Comm, recipe: &Recipe) -> Result<(), Error> {
    let mut hasher = DefaultHasher::new();
    recipe.to_string().hash(&mut hasher);
    recipe.nodes().iter().for_each(|node| node.layout.bricks().hash(&mut hasher));
    let problem = recipe.problem();
    (problem.chunk, problem.memory, problem.shared_arrays, &problem.hosts).hash(&mut hasher);
    [Direction::Forward, Direction::Inverse]
        .map(|direction| problem.factor(direction).to_bits())
        .hash(&mut hasher);
    let mine = hasher.finish().to_ne_bytes();
    let mut all = vec![0; mine.len() * comm.size()];
    comm.allgather(&mine, &mut all)?;
    let first = &all[..mine.len()];
    match all.chunks_exact(mine.len()).position(|other| other != first) {
        None => Ok(()),
        Some(rank_b) => Err(Error::Disagreement {
            what: "recipe".into(),
            rank_a: 0,
            a: "one".into(),
            rank_b,
            b: "another".into(),
        }),
    }
}

/// Whether a recipe is for these types and ranks, and the same on all. Collective.
pub(crate) fn check_recipe(
    comm: &dyn Comm,
    recipe: &Recipe,
    (transform, precision): (DynTransform, Precision),
) -> Result<(), Error> {
    let problem = recipe.problem();
    let types = (problem.complex, problem.complex_spectrum(), problem.precision);
    let mine = (transform.is_complex(), transform.has_complex_spectrum(), precision);
    let fits = if types != mine {
        Err(Error::argument("recipe for this plan's types", recipe, "another"))
    } else if problem.input.ranks() != comm.size() {
        Err(Error::rank_count(problem.input.ranks(), comm.size()))
    } else {
        Ok(())
    };
    agree(comm, fits)?;
    same_on_all(comm, recipe)
}

impl DynPlan {
    /// Binds a recipe made by [`DynDraft::recipe`](crate::DynDraft::recipe) on the same
    /// communicator. Collective.
    ///
    /// # Errors
    /// Those of [`Plan::bind`](crate::Plan::bind).
    pub fn bind(comm: &dyn Comm, recipe: Recipe) -> Result<Self, Error> {
        let types = types_of(&recipe);
        Self::bind_typed(comm, recipe, types)
    }

    /// The same of a recipe that must be for these types.
    pub(crate) fn bind_typed(
        comm: &dyn Comm,
        recipe: Recipe,
        types: (DynTransform, Precision),
    ) -> Result<Self, Error> {
        let candidate = Candidate::of(recipe);
        let report = Report::untimed(Source::Recipe, std::slice::from_ref(&candidate), 0);
        Self::bind_reported(comm, candidate.recipe, report, None, types)
    }

    /// The same with what it was chosen from.
    pub(crate) fn bind_chosen(comm: &dyn Comm, chosen: Decision) -> Result<Self, Error> {
        let types = types_of(&chosen.recipe);
        Self::bind_reported(comm, chosen.recipe, chosen.report, Some(chosen.key), types)
    }

    fn bind_reported(
        comm: &dyn Comm,
        recipe: Recipe,
        report: Report,
        key: Option<String>,
        types: (DynTransform, Precision),
    ) -> Result<Self, Error> {
        check_recipe(comm, &recipe, types)?;
        let own = agree(comm, comm.dup())?;
        let exchanges = fft_comm::exchange_in(recipe.problem().memory);
        let executor = HostExecutor::bind(&recipe, own, exchanges)?;
        Ok(Self { pool: Pool::default(), executor, recipe, report, key })
    }

    /// As [`Plan::recipe`](crate::Plan::recipe).
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// As [`Plan::report`](crate::Plan::report).
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// As [`Plan::save_wisdom`](crate::Plan::save_wisdom). Collective.
    ///
    /// # Errors
    /// As there.
    pub fn save_wisdom(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        match &self.key {
            Some(key) if self.report.source == Source::Measured => {
                wisdom::save(self.comm(), path.as_ref(), key, &self.report)
            }
            _ => Err(Error::argument(
                "wisdom of a plan",
                format!("{:?}", self.report.source),
                format!("{:?}", Source::Measured),
            )),
        }
    }

    /// As [`Plan::comm`](crate::Plan::comm).
    pub fn comm(&self) -> &dyn Comm {
        self.executor.comm()
    }

    /// As [`Plan::wire_error`](crate::Plan::wire_error).
    pub fn wire_error(&self) -> Option<WireError> {
        self.executor.lost()
    }

    /// As [`Plan::exchange`](crate::Plan::exchange).
    pub fn exchange(&self) -> Algorithm {
        self.executor.exchange(self.recipe.problem().exchange)
    }

    /// As [`Plan::input_brick`](crate::Plan::input_brick).
    pub fn input_brick(&self) -> DynBrick {
        self.recipe.problem().input.brick(self.comm().rank())
    }

    /// As [`Plan::output_brick`](crate::Plan::output_brick).
    pub fn output_brick(&self) -> DynBrick {
        self.recipe.problem().output.brick(self.comm().rank())
    }

    /// As [`Plan::input_len`](crate::Plan::input_len).
    pub fn input_len(&self) -> usize {
        self.input_brick().points() * self.recipe.problem().howmany
    }

    /// As [`Plan::output_len`](crate::Plan::output_len).
    pub fn output_len(&self) -> usize {
        self.output_brick().points() * self.recipe.problem().howmany
    }

    /// Bytes of a point of physical data.
    pub fn physical_bytes(&self) -> usize {
        let problem = self.recipe.problem();
        problem.precision.bytes() * problem.widths()[0]
    }

    /// Bytes of a point of spectral data.
    pub fn spectral_bytes(&self) -> usize {
        let problem = self.recipe.problem();
        problem.precision.bytes() * problem.widths()[1]
    }

    /// As [`Plan::in_place_len`](crate::Plan::in_place_len).
    pub fn in_place_len(&self) -> usize {
        let bytes = self.input_len() * self.physical_bytes();
        self.output_len().max(bytes.div_ceil(self.spectral_bytes()))
    }

    /// As [`Plan::memory`](crate::Plan::memory).
    pub fn memory(&self) -> usize {
        self.executor.memory()
    }

    /// As [`Plan::timings`](crate::Plan::timings).
    pub fn timings(&self) -> Timings {
        self.executor.timings()
    }

    /// As [`Plan::clear_timings`](crate::Plan::clear_timings).
    pub fn clear_timings(&mut self) {
        self.executor.clear_timings();
    }

    /// Transforms from one array to another. Collective.
    ///
    /// # Errors
    /// As [`Plan::forward_into`](crate::Plan::forward_into); [`Error::OnRank`] for an array that
    /// is not aligned.
    pub fn run(
        &mut self,
        direction: Direction,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), Error> {
        let physical = (self.physical_bytes(), self.input_len());
        let spectral = (self.spectral_bytes(), self.output_len());
        let (src, dst) = direction.choose((physical, spectral), (spectral, physical));
        self.check(&[("input", input, src), ("output", output, dst)])?;
        self.executor.run(direction, Some(input), output)
    }

    /// Transforms within one array of [`DynPlan::in_place_len`] spectral points: input and output
    /// both begin at its start.
    /// Collective.
    ///
    /// # Errors
    /// As [`DynPlan::run`].
    pub fn run_in_place(&mut self, direction: Direction, data: &mut [u8]) -> Result<(), Error> {
        let points = (self.spectral_bytes(), self.in_place_len());
        self.check(&[("array in place", data, points)])?;
        self.executor.run(direction, None, data)
    }

    /// Transforms within an array that is known to fit. Collective.
    pub(crate) fn run_checked(
        &mut self,
        direction: Direction,
        data: &mut [u8],
    ) -> Result<(), Error> {
        self.executor.run(direction, None, data)
    }

    /// As [`Plan::agree`](crate::Plan::agree). Collective.
    ///
    /// # Errors
    /// As there.
    pub fn agree<R>(&mut self, mine: Result<R, Error>) -> Result<R, Error> {
        self.executor.agree(mine)
    }

    /// Zeros to be transformed in place: as many bytes as that takes.
    ///
    /// # Panics
    /// If there is no memory for them.
    pub fn zeros(&self) -> DynArray {
        let bytes = self.in_place_len() * self.spectral_bytes();
        DynArray::zeros(bytes, self.comm().rank()).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The same in memory that the ranks of a host share: see
    /// [`Plan::shared_input`](crate::Plan::shared_input). Collective.
    ///
    /// # Errors
    /// As there.
    pub fn shared_zeros(&mut self) -> Result<DynArray, Error> {
        let bytes = self.in_place_len() * self.spectral_bytes();
        self.executor.agree(Ok(()))?;
        // All ranks make new memory, or none.
        let ready = !self.pool.is_empty() || !self.executor.has_neighbours();
        let mut all = [if ready { 1.0 } else { 0.0 }];
        self.comm().allreduce(Reduce::Min, &mut all)?;
        let lent = match all[0] > 0.0 {
            true => Ok(self.pool.take().map(|mut lent| {
                lent.bytes_mut().fill(0);
                lent
            })),
            false => {
                let made = self.executor.allocate(bytes);
                // What one host got and another did not is pool then.
                made.map(|memory| memory.map(|memory| self.pool.lend(memory)))
            }
        };
        // A rank that is alone on its host has memory like any other.
        let own = || DynArray::zeros(bytes, self.comm().rank());
        let array = lent.and_then(|lent| lent.map_or_else(own, |lent| Ok(DynArray::lent(lent))));
        agree(self.comm(), array)
    }

    /// Agrees that arrays, with the bytes and the number of their points, are as they must be.
    fn check(&mut self, arrays: &[(&'static str, &[u8], (usize, usize))]) -> Result<(), Error> {
        let rank = self.comm().rank();
        let fits = |&(what, array, (point, expected)): &(&'static str, &[u8], (usize, usize))| {
            if array.len() != expected * point {
                // A part of a point makes an array longer, but does not make a short one long
                // enough.
                let whole = array.len() / point;
                let found = if whole < expected { whole } else { array.len().div_ceil(point) };
                return Err(Error::Length { what, rank, found, expected });
            }
            let align = self.recipe.problem().precision.bytes();
            if !array.is_empty() && array.as_ptr().align_offset(align) != 0 {
                let found = format!("{:p}", array.as_ptr());
                let expected = format!("a multiple of {align}");
                return Err(Error::argument(format!("address of the {what}"), found, expected));
            }
            Ok(())
        };
        let fit = arrays.iter().try_for_each(fits);
        let fit = fit.and_then(|()| arrays.iter().try_for_each(|(_, array, _)| self.sees(array)));
        self.executor.agree(fit)
    }

    /// Whether an array is where it must be.
    pub(crate) fn sees(&self, array: &[u8]) -> Result<(), Error> {
        if !self.recipe.problem().shared_arrays || self.executor.is_seen(array) {
            return Ok(());
        }
        let expected = "one made by Plan::shared_input or shared_output, thriffty_allocate";
        Err(Error::argument("array", "one that other ranks do not see", expected))
    }
}

/// The types of data that a recipe is for.
fn types_of(recipe: &Recipe) -> (DynTransform, Precision) {
    let problem = recipe.problem();
    let transform = match (problem.complex, problem.complex_spectrum()) {
        (true, _) => DynTransform::C2c,
        (false, true) => DynTransform::R2c,
        (false, false) => DynTransform::R2r,
    };
    (transform, problem.precision)
}
