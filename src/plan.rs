//! A plan: a recipe bound to a communicator and buffers.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use fft_comm::tuner::{Candidate, Report, Source};
use fft_core::{
    Algorithm, Brick, Clock, Comm, Complex, Cpu, Direction, Element, Error, Executor, Grid, Host,
    Real, Recipe, Reduce, SharedMemory, WireError, agree,
};

use crate::array::Array;
use crate::field::{Field, Physical, Spectral};
use crate::part::Part;
use crate::spare::Spare;
use crate::tune::Decision;
use crate::{C2c, Draft, R2c, R2r, Transform, wisdom};

/// A distributed transform, ready to run any number of times in both directions.
///
/// Made by [`Plan::c2c`], [`Plan::r2c`] or [`Plan::r2r`], options, and [`Draft::build`]. Data is this rank's
/// brick of the grid, row-major unless ordered otherwise, one array after the other for batches. Forward uses
/// `exp(-2πi jk/n)` and is unscaled, inverse divides by the number of points, unless told otherwise.
/// Frequencies are in natural order: 0, 1, ..., -2, -1.
///
/// Executing is collective, allocates nothing, and returns the same `Ok` or error on every rank. Dropping a plan is
/// collective, too, where ranks are MPI processes: communicators and windows are freed by all of them together. `K` is
/// [`C2c`], [`R2c`] or [`R2r`]; `D` the number of axes.
pub struct Plan<K: Transform = R2c, const D: usize = 3> {
    /// Given back before the executor's commons is dropped.
    spare: Spare<Box<dyn SharedMemory>>,
    executor: Executor<K::Real, Host<Cpu<K::Real>>>,
    recipe: Recipe<D>,
    report: Report,
    /// What wisdom calls the problem, where a draft knows.
    key: Option<String>,
}

impl<T: Real, const D: usize> Plan<C2c<T>, D>
where
    Complex<T>: Element<Real = T>,
{
    /// Drafts a complex transform of the grid over the ranks of `comm`.
    pub fn c2c(comm: &dyn Comm, grid: Grid<D>) -> Draft<'_, C2c<T>, D> {
        Draft::new(comm, grid)
    }
}

impl<T: Real, const D: usize> Plan<R2c<T>, D>
where
    Complex<T>: Element<Real = T>,
{
    /// Drafts a transform of real data: the last axis is halved to its `n/2 + 1` non-negative frequencies.
    /// [`Draft::kinds`] chooses another.
    pub fn r2c(comm: &dyn Comm, grid: Grid<D>) -> Draft<'_, R2c<T>, D> {
        Draft::new(comm, grid)
    }
}

impl<T: Real, const D: usize> Plan<R2r<T>, D> {
    /// Drafts a cosine transform (II) along every axis. [`Draft::kinds`] chooses others.
    pub fn r2r(comm: &dyn Comm, grid: Grid<D>) -> Draft<'_, R2r<T>, D> {
        Draft::new(comm, grid)
    }
}

/// Whether every rank has this recipe, by a hash of all that it says.
fn same_on_all<const D: usize>(comm: &dyn Comm, recipe: &Recipe<D>) -> Result<(), Error> {
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

/// What an array is called, its length, and that which it must have.
pub(crate) type Len = (&'static str, usize, usize);

/// Whether every array has the length it must have.
pub(crate) fn lengths(rank: usize, lens: &[Len]) -> Result<(), Error> {
    match lens.iter().find(|(_, found, expected)| found != expected) {
        None => Ok(()),
        Some(&(what, found, expected)) => Err(Error::Length { what, rank, found, expected }),
    }
}

/// Whether a recipe is for these types and ranks, and the same on all. Collective.
pub(crate) fn check_recipe<K: Transform, const D: usize>(
    comm: &dyn Comm,
    recipe: &Recipe<D>,
) -> Result<(), Error> {
    let problem = recipe.problem();
    let types = (problem.complex, problem.complex_spectrum(), problem.precision);
    let mine = (K::Physical::WIDTH == 2, K::Spectral::WIDTH == 2, K::Real::PRECISION);
    let fits = if types != mine {
        Err(Error::argument("recipe for this plan's types", recipe, "another"))
    } else if problem.input.ranks() != comm.size() {
        Err(Error::RankCount { bricks: problem.input.ranks(), ranks: comm.size() })
    } else {
        Ok(())
    };
    agree(comm, fits)?;
    same_on_all(comm, recipe)
}

impl<K: Transform, const D: usize> Plan<K, D> {
    /// Binds a recipe made by [`Draft::recipe`] on the same communicator. Collective.
    ///
    /// # Errors
    /// The same on every rank: [`Error::Disagreement`] when the ranks have different recipes; [`Error::OnRank`]
    /// when the recipe is not for these types or this number of ranks, a rank lacks memory, or the transport
    /// fails.
    pub fn bind(comm: &dyn Comm, recipe: Recipe<D>) -> Result<Self, Error> {
        let candidate = Candidate::of(recipe);
        let report = Report::untimed(Source::Exact, std::slice::from_ref(&candidate), 0);
        Self::bind_reported(comm, candidate.recipe, report, None)
    }

    /// The same with what it was chosen from.
    pub(crate) fn bind_chosen(comm: &dyn Comm, chosen: Decision<D>) -> Result<Self, Error> {
        Self::bind_reported(comm, chosen.recipe, chosen.report, Some(chosen.key))
    }

    fn bind_reported(
        comm: &dyn Comm,
        recipe: Recipe<D>,
        report: Report,
        key: Option<String>,
    ) -> Result<Self, Error> {
        check_recipe::<K, D>(comm, &recipe)?;
        let own = agree(comm, comm.dup())?;
        let memory = recipe.problem().memory;
        let exchanges = fft_comm::exchange_in(memory);
        let executor = Executor::bind(&recipe, own, Host(Cpu::new(memory)), exchanges)?;
        Ok(Self { spare: Spare::default(), executor, recipe, report, key })
    }

    /// How it is done.
    pub fn recipe(&self) -> &Recipe<D> {
        &self.recipe
    }

    /// What the recipe was chosen from: what the model expects of each candidate and, with
    /// [`Tune::Measure`](crate::Tune::Measure), the times of those that were run. The same on all ranks.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Remembers what was measured, for [`Tune::Wisdom`](crate::Tune::Wisdom): adds it to this file, or replaces what the
    /// file has of the same transform on the same machine. The file is replaced as a whole; one that cannot be read is
    /// begun anew, with a warning. Collective.
    ///
    /// # Errors
    /// On every rank: [`Error::Argument`] when nothing was measured for this plan; [`Error::OnRank`] when the file cannot be
    /// written.
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

    /// The communicator, a duplicate of the one the plan was made with.
    pub fn comm(&self) -> &dyn Comm {
        self.executor.comm()
    }

    /// What the last transform lost on the wire, the same on all ranks; `None` when no wire loses anything, or none has
    /// run.
    pub fn last_error(&self) -> Option<WireError> {
        self.executor.lost()
    }

    /// How messages travel: the recipe's exchange, but for [`Algorithm::Ring`] where ranks
    /// cannot put.
    pub fn exchange(&self) -> Algorithm {
        self.executor.exchange(self.recipe.problem().exchange)
    }

    /// This rank's part of physical data.
    pub fn input_brick(&self) -> Brick<D> {
        self.recipe.problem().input.brick(self.comm().rank())
    }

    /// This rank's part of spectral data.
    pub fn output_brick(&self) -> Brick<D> {
        self.recipe.problem().output.brick(self.comm().rank())
    }

    /// Points of physical data on this rank, all batches together.
    pub fn input_len(&self) -> usize {
        self.input_brick().points() * self.recipe.problem().howmany
    }

    /// Points of spectral data on this rank, all batches together.
    pub fn output_len(&self) -> usize {
        self.output_brick().points() * self.recipe.problem().howmany
    }

    /// Spectral points that an array must have room for to be transformed in place.
    pub fn in_place_len(&self) -> usize {
        let reals = self.input_len() * K::Physical::WIDTH;
        self.output_len().max(reals.div_ceil(K::Spectral::WIDTH))
    }

    /// Bytes of memory that the plan holds beside input and output.
    pub fn memory(&self) -> usize {
        self.executor.memory()
    }

    /// Where time went since the last [`Plan::clear_clock`], on this rank.
    pub fn clock(&self) -> Clock {
        self.executor.clock()
    }

    /// Sets all times to zero.
    pub fn clear_clock(&mut self) {
        self.executor.clear_clock();
    }

    /// Transforms physical to spectral data. Collective.
    ///
    /// # Errors
    /// On every rank: [`Error::OnRank`] when a slice has the wrong length on any or, with [`Draft::shared_arrays`], is none
    /// that others see (nothing is sent then), a message is damaged, or the transport fails; [`Error::Left`] when another rank
    /// is a thread that ended, or a process that dropped its plan.
    pub fn forward_into(
        &mut self,
        input: &[K::Physical],
        output: &mut [K::Spectral],
    ) -> Result<(), Error> {
        let lens =
            [("input", input.len(), self.input_len()), ("output", output.len(), self.output_len())];
        self.check(&lens, &[bytemuck::cast_slice(input), bytemuck::cast_slice(output)])?;
        let (src, dst) = (bytemuck::cast_slice(input), bytemuck::cast_slice_mut(output));
        self.executor.run(Direction::Forward, Some(src), dst)
    }

    /// Transforms spectral to physical data. Collective. Of a spectrum that cannot come from real data, a
    /// real transform takes the part that can, as NumPy does.
    ///
    /// # Errors
    /// As [`Plan::forward_into`].
    pub fn inverse_into(
        &mut self,
        input: &[K::Spectral],
        output: &mut [K::Physical],
    ) -> Result<(), Error> {
        let lens =
            [("input", input.len(), self.output_len()), ("output", output.len(), self.input_len())];
        self.check(&lens, &[bytemuck::cast_slice(input), bytemuck::cast_slice(output)])?;
        let (src, dst) = (bytemuck::cast_slice(input), bytemuck::cast_slice_mut(output));
        self.executor.run(Direction::Inverse, Some(src), dst)
    }

    /// Transforms physical to spectral data in one array of [`Plan::in_place_len`] points: input and output
    /// both begin at its start, without padding. Collective.
    ///
    /// # Errors
    /// As [`Plan::forward_into`].
    pub fn forward_in_place(&mut self, data: &mut [K::Spectral]) -> Result<(), Error> {
        self.in_place(Direction::Forward, data)
    }

    /// Transforms spectral to physical data in one array, as [`Plan::forward_in_place`]. Collective.
    ///
    /// # Errors
    /// As [`Plan::forward_into`].
    pub fn inverse_in_place(&mut self, data: &mut [K::Spectral]) -> Result<(), Error> {
        self.in_place(Direction::Inverse, data)
    }

    fn in_place(&mut self, direction: Direction, data: &mut [K::Spectral]) -> Result<(), Error> {
        let len = ("array in place", data.len(), self.in_place_len());
        self.check(&[len], &[bytemuck::cast_slice(data)])?;
        self.executor.run(direction, None, bytemuck::cast_slice_mut(data))
    }

    /// What every transform begins with: `mine` where all ranks of the plan have `Ok`, otherwise on every rank the error of the
    /// lowest failing one. Collective, in the place of a transform: a rank that finds before it calls one that it cannot go on, as
    /// its arrays are none, says so here.
    ///
    /// # Errors
    /// [`Error::OnRank`] with that of the lowest failing rank; [`Error::Left`] as [`Plan::forward_into`].
    pub fn agree<R>(&mut self, mine: Result<R, Error>) -> Result<R, Error> {
        self.executor.agree(mine)
    }

    /// A field of zeros to be filled with physical data; with [`Draft::shared_arrays`] see [`Plan::shared_input`].
    pub fn input(&self) -> Field<Physical, K, D> {
        Field::new(self.part(), Array::zeros(self.in_place_len()))
    }

    /// A field of zeros to be filled with spectral data.
    pub fn output(&self) -> Field<Spectral, K, D> {
        Field::new(self.part(), Array::zeros(self.in_place_len()))
    }

    /// As [`Plan::input`], in memory that the ranks of a host share, as [`Draft::shared_arrays`] wants it. Collective.
    ///
    /// When the field is dropped, its memory is the plan's, for the next; [`Plan::memory`] does not count it. One that is
    /// left on any rank when the plan is dropped keeps all such memory of its host until the processes end, and the plan's
    /// own window with it. Processes may use it as long as MPI runs: afterwards to look at it panics.
    ///
    /// # Errors
    /// On every rank: [`Error::OnRank`] when one does not get the memory, or its host has too little to share.
    pub fn shared_input(&mut self) -> Result<Field<Physical, K, D>, Error> {
        Ok(Field::new(self.part(), self.shared()?))
    }

    /// As [`Plan::output`], in memory that the ranks of a host share: see [`Plan::shared_input`]. Collective.
    ///
    /// # Errors
    /// As [`Plan::shared_input`].
    pub fn shared_output(&mut self) -> Result<Field<Spectral, K, D>, Error> {
        Ok(Field::new(self.part(), self.shared()?))
    }

    /// Zeros that the ranks of this host can see. Collective.
    fn shared(&mut self) -> Result<Array<K::Spectral>, Error> {
        let len = self.in_place_len();
        self.executor.agree(Ok(()))?;
        // All ranks make new memory, or none.
        let ready = !self.spare.is_empty() || !self.executor.has_neighbours();
        let mut all = [if ready { 1.0 } else { 0.0 }];
        self.comm().allreduce(Reduce::Min, &mut all)?;
        let lent = match all[0] > 0.0 {
            true => Ok(self.spare.take().map(|mut lent| {
                lent.bytes_mut().fill(0);
                lent
            })),
            false => {
                let made = self.executor.allocate(len * size_of::<K::Spectral>());
                // What one host got and another did not is spare then.
                made.map(|memory| memory.map(|memory| self.spare.lend(memory)))
            }
        };
        // A rank that is alone on its host has memory like any other.
        let own = || Array::try_zeros(len, self.comm().rank());
        let array = lent.and_then(|lent| lent.map_or_else(own, |lent| Ok(Array::Shared(lent))));
        agree(self.comm(), array)
    }

    fn part<S>(&self) -> Part<S, D> {
        Part::new(self.recipe.problem(), self.comm().rank())
    }

    /// Transforms a field; its storage is used again. Collective.
    ///
    /// # Errors
    /// As [`Plan::forward_into`]; the field is lost then. Also when it was made by a plan with other bricks.
    pub fn forward(
        &mut self,
        field: Field<Physical, K, D>,
    ) -> Result<Field<Spectral, K, D>, Error> {
        self.owns(&field)?;
        field.transformed(|data| self.executor.run(Direction::Forward, None, data))
    }

    /// Transforms a field back; its storage is used again. Collective.
    ///
    /// # Errors
    /// As [`Plan::forward`].
    pub fn inverse(
        &mut self,
        field: Field<Spectral, K, D>,
    ) -> Result<Field<Physical, K, D>, Error> {
        self.owns(&field)?;
        field.transformed(|data| self.executor.run(Direction::Inverse, None, data))
    }

    /// Agrees that a field fits this plan.
    fn owns<S>(&mut self, field: &Field<S, K, D>) -> Result<(), Error> {
        let fits = field.part().fits(self.recipe.problem(), self.comm().rank());
        let fits = fits.and_then(|()| self.sees(field.bytes()));
        self.executor.agree(fits)
    }

    /// Agrees that arrays are as they must be.
    fn check(&mut self, lens: &[Len], arrays: &[&[u8]]) -> Result<(), Error> {
        let seen = || arrays.iter().try_for_each(|array| self.sees(array));
        let fit = lengths(self.comm().rank(), lens).and_then(|()| seen());
        self.executor.agree(fit)
    }

    /// Whether an array is where it must be.
    fn sees(&self, array: &[u8]) -> Result<(), Error> {
        if !self.recipe.problem().shared_arrays || self.executor.is_seen(array) {
            return Ok(());
        }
        let expected = "one made by Plan::shared_input or shared_output, thriffty_allocate";
        Err(Error::argument("array", "one that other ranks do not see", expected))
    }
}
