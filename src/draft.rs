//! Options of a plan that is still to be made.

use std::marker::PhantomData;

use fft_core::{
    Algorithm, Brick, Comm, Element, Error, Grid, Kind, Layout, Problem, Real, Recipe, Scale,
};

use crate::{Plan, Transform};

/// A plan in the making: options, nothing checked, nothing sent. [`Draft::build`] makes the plan.
///
/// Every rank drafts the same transform, each with its own bricks.
///
/// ```
/// use thriffty::{Grid, Plan, R2c};
/// thriffty::threads(2, |world| {
///     let draft = Plan::r2c(&world, Grid::new([8, 8])?);
///     let mut plan: Plan<R2c, 2> = draft.build()?;
///     plan.forward_into(&[1.0; 32], &mut vec![Default::default(); plan.output_len()])
/// })?;
/// # Ok::<(), thriffty::Error>(())
/// ```
/// A draft cannot be executed:
/// ```compile_fail
/// use thriffty::{Grid, Plan, R2c};
/// thriffty::threads(2, |world| {
///     let draft = Plan::<R2c, 2>::r2c(&world, Grid::new([8, 8])?);
///     draft.forward_into(&[1.0; 32], &mut vec![Default::default(); 20])
/// })?;
/// # Ok::<(), thriffty::Error>(())
/// ```
#[must_use = "a draft does nothing until it is built"]
pub struct Draft<'a, K: Transform, const D: usize> {
    comm: &'a dyn Comm,
    grid: Grid<D>,
    kinds: [Kind; D],
    input: Option<Brick<D>>,
    output: Option<Brick<D>>,
    orders: [[usize; D]; 2],
    howmany: usize,
    scales: [Scale; 2],
    exchange: Algorithm,
    transform: PhantomData<K>,
}

impl<'a, K: Transform, const D: usize> Draft<'a, K, D> {
    pub(crate) fn new(comm: &'a dyn Comm, grid: Grid<D>) -> Self {
        Self {
            comm,
            grid,
            kinds: K::kinds(),
            input: None,
            output: None,
            orders: [std::array::from_fn(|axis| axis); 2],
            howmany: 1,
            scales: [Scale::None, Scale::Full],
            exchange: Algorithm::default(),
            transform: PhantomData,
        }
    }

    /// The part of physical data that this rank holds; [`Grid::brick`] by default. The bricks of all ranks
    /// must tile the grid; [`Brick::EMPTY`] is to hold nothing.
    pub fn input_brick(mut self, brick: Brick<D>) -> Self {
        self.input = Some(brick);
        self
    }

    /// The part of spectral data that this rank gets; [`Grid::brick`] of [`Draft::spectral_grid`] by
    /// default.
    pub fn output_brick(mut self, brick: Brick<D>) -> Self {
        self.output = Some(brick);
        self
    }

    /// The order of axes in memory of physical data, slowest first; row-major by default.
    pub fn input_order(mut self, order: [usize; D]) -> Self {
        self.orders[0] = order;
        self
    }

    /// The order of axes in memory of spectral data, slowest first; row-major by default.
    pub fn output_order(mut self, order: [usize; D]) -> Self {
        self.orders[1] = order;
        self
    }

    /// What is done along each axis.
    pub fn kinds(mut self, kinds: [Kind; D]) -> Self {
        self.kinds = kinds;
        self
    }

    /// So many equal transforms at once, their arrays one after the other in memory; they share messages.
    pub fn howmany(mut self, howmany: usize) -> Self {
        self.howmany = howmany;
        self
    }

    /// What results are multiplied by; [`Scale::None`] forward and [`Scale::Full`] inverse by default.
    pub fn scale(mut self, forward: Scale, inverse: Scale) -> Self {
        self.scales = [forward, inverse];
        self
    }

    /// How data travels; [`Algorithm::Shared`] by default.
    pub fn exchange(mut self, exchange: Algorithm) -> Self {
        self.exchange = exchange;
        self
    }

    /// The grid of spectral data: the axis of kind R2C has `n/2 + 1` points.
    pub fn spectral_grid(&self) -> Grid<D> {
        Problem::spectral_grid(self.grid, self.kinds)
    }

    /// The recipe that [`Draft::build`] would bind. Collective: every rank gets the same.
    ///
    /// # Errors
    /// The same on every rank: [`Error::Disagreement`] when they were given different options;
    /// [`Error::Overlap`], [`Error::Gap`], [`Error::OutOfRange`] when the bricks do not tile the grids;
    /// [`Error::Order`], [`Error::Argument`] or [`Error::TooLarge`].
    pub fn recipe(&self) -> Result<Recipe<D>, Error> {
        let drafts = self.gather()?;
        self.compare(&drafts)?;
        let layout = |grid, side: usize| {
            let brick = |draft: &Words| brick_of(&draft[OPTIONS + 2 * MAX_AXES * side..]);
            let bricks = drafts.iter().map(brick).collect();
            Layout::new(grid, bricks, self.comm.size())?.ordered(self.orders[side])
        };
        let (input, output) = (layout(self.grid, 0)?, layout(self.spectral_grid(), 1)?);
        let complex = K::Physical::WIDTH == 2;
        let complex_spectrum = K::Spectral::WIDTH == 2;
        let precision = K::Real::PRECISION;
        let mut problem = Problem::new(self.kinds, complex, precision, input, output)?;
        if problem.complex_spectrum() != complex_spectrum {
            let list = self.kinds.map(Kind::name).join(", ");
            let expected = if complex_spectrum { "one axis of kind r2c" } else { "no r2c" };
            return Err(Error::argument("kinds", list, expected));
        }
        if self.howmany == 0 {
            return Err(Error::argument("howmany", 0, "at least 1"));
        }
        problem.howmany = self.howmany;
        [problem.forward, problem.inverse] = self.scales;
        problem.exchange = self.exchange;
        problem.hosts = (0..self.comm.size()).map(|rank| self.comm.host(rank)).collect();
        Recipe::new(problem)
    }

    /// Makes the plan. Collective; the same `Ok` or error on every rank.
    ///
    /// # Errors
    /// Those of [`Draft::recipe`], and [`Error::OnRank`] when a rank lacks memory or the transport fails.
    pub fn build(self) -> Result<Plan<K, D>, Error> {
        Plan::bind(self.comm, self.recipe()?)
    }

    /// Everything that must be equal, in words, with names; all options but bricks.
    fn options(&self) -> [(&'static str, Vec<u64>); 10] {
        let words = |list: &[usize]| list.iter().map(|&x| x as u64).collect();
        [
            ("number of axes", vec![D as u64]),
            ("precision in bytes", vec![K::Real::PRECISION.bytes() as u64]),
            ("numbers per point", words(&[K::Physical::WIDTH, K::Spectral::WIDTH])),
            ("grid", words(&self.grid.shape())),
            ("kinds", self.kinds.map(|kind| kind as u64).to_vec()),
            ("input order", words(&self.orders[0])),
            ("output order", words(&self.orders[1])),
            ("howmany", words(&[self.howmany])),
            ("scales", self.scales.map(|scale| scale as u64).to_vec()),
            ("exchange", vec![self.exchange.code()]),
        ]
    }

    /// What every rank was given.
    fn gather(&self) -> Result<Vec<Words>, Error> {
        let (rank, ranks) = (self.comm.rank(), self.comm.size());
        let input = self.input.unwrap_or_else(|| self.grid.brick(rank, ranks));
        let output = self.output.unwrap_or_else(|| self.spectral_grid().brick(rank, ranks));
        let mut mine: Words = [0; WORDS];
        let options = self.options().into_iter().flat_map(|(_, words)| words);
        mine.iter_mut().zip(options).for_each(|(place, word)| *place = word);
        for (side, brick) in [input, output].iter().enumerate() {
            for axis in 0..D {
                let place = OPTIONS + 2 * MAX_AXES * side + 2 * axis;
                mine[place] = brick.lo[axis] as u64;
                mine[place + 1] = brick.hi[axis] as u64;
            }
        }
        let mut all = vec![[0; WORDS]; ranks];
        self.comm.allgather(bytemuck::bytes_of(&mine), bytemuck::cast_slice_mut(&mut all))?;
        Ok(all)
    }

    /// Whether all ranks were given the same options; the same answer on each.
    fn compare(&self, drafts: &[Words]) -> Result<(), Error> {
        let first = &drafts[0];
        let differs = |draft: &Words| draft[..OPTIONS] != first[..OPTIONS];
        let Some(rank_b) = drafts.iter().position(differs) else { return Ok(()) };
        // Both drafts are cut up as this rank's own is: as long as the number of axes is equal, so are the
        // places of everything else.
        let mut place = 0;
        for (what, words) in self.options() {
            let at = place..place + words.len();
            place = at.end;
            let (a, b) = (&first[at.clone()], &drafts[rank_b][at]);
            if a != b {
                let text = |words: &[u64]| words.iter().map(u64::to_string).collect::<Vec<_>>();
                let (a, b) = (text(a).join(", "), text(b).join(", "));
                return Err(Error::Disagreement { what: what.into(), rank_a: 0, a, rank_b, b });
            }
        }
        unreachable!("options that differ were found to differ");
    }
}

/// Axes that there can be at most.
const MAX_AXES: usize = 4;
/// Room for all options, in words.
const OPTIONS: usize = 24;
/// Room for options and two bricks.
const WORDS: usize = OPTIONS + 4 * MAX_AXES;
/// A draft as it travels: as long whatever the number of axes, so that even ranks that disagree on that can
/// compare.
type Words = [u64; WORDS];

fn brick_of<const D: usize>(words: &[u64]) -> Brick<D> {
    Brick {
        lo: std::array::from_fn(|axis| words[2 * axis] as usize),
        hi: std::array::from_fn(|axis| words[2 * axis + 1] as usize),
    }
}
