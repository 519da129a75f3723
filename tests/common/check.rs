//! One transform against the definition, in every way in which it can be called.

use fft_core::{Brick, Element, Real};
use thriffty::planning::{Direction, Exchange, Memory, Problem, ProcGrid, Transform};
use thriffty::{C2c, Comm, Complex, Draft, Error, Grid, Kind, Plan, R2c, R2r, Scale, Tuning};

use super::data::{C64, bound, cut, distance, norm, random, widen};
use super::oracle;
use super::tiling::{Rng, tiling};

/// A transform to be tested.
#[derive(Clone, Debug)]
pub(crate) struct Case<const D: usize> {
    pub(crate) shape: [usize; D],
    pub(crate) kinds: [Kind; D],
    pub(crate) orders: [[usize; D]; 2],
    pub(crate) batch: usize,
    pub(crate) scales: [Scale; 2],
    pub(crate) exchange: Exchange,
    pub(crate) memory: Memory,
    /// Seed of random bricks for input and output; the library's default bricks otherwise.
    pub(crate) tiling: Option<u64>,
    /// Whether the output has the same bricks as the input.
    pub(crate) returns: bool,
    /// Parts along each axis of input and output, instead of those bricks.
    pub(crate) cuts: Option<[[usize; D]; 2]>,
    /// How the recipe is chosen.
    pub(crate) tuning: Tuning,
    pub(crate) reproducible: bool,
}

impl<const D: usize> Case<D> {
    pub(crate) fn new(shape: [usize; D], kinds: [Kind; D]) -> Self {
        Self {
            shape,
            kinds,
            orders: [std::array::from_fn(|axis| axis); 2],
            batch: 1,
            scales: [Scale::None, Scale::Full],
            exchange: Exchange::default(),
            memory: Memory::default(),
            tiling: None,
            returns: false,
            cuts: None,
            tuning: Tuning::Model,
            reproducible: false,
        }
    }

    pub(crate) fn orders(self, input: [usize; D], output: [usize; D]) -> Self {
        Self { orders: [input, output], ..self }
    }

    pub(crate) fn batch(self, batch: usize) -> Self {
        Self { batch, ..self }
    }

    pub(crate) fn scales(self, forward: Scale, inverse: Scale) -> Self {
        Self { scales: [forward, inverse], ..self }
    }

    pub(crate) fn exchange(self, exchange: Exchange) -> Self {
        Self { exchange, ..self }
    }

    pub(crate) fn memory(self, memory: Memory) -> Self {
        Self { memory, ..self }
    }

    pub(crate) fn reproducible(self) -> Self {
        Self { reproducible: true, ..self }
    }

    pub(crate) fn tiling(self, seed: u64) -> Self {
        Self { tiling: Some(seed), ..self }
    }

    pub(crate) fn returning(self, seed: u64) -> Self {
        Self { tiling: Some(seed), returns: true, ..self }
    }

    pub(crate) fn cuts(self, input: [usize; D], output: [usize; D]) -> Self {
        Self { cuts: Some([input, output]), ..self }
    }

    /// By the recipe that prints so.
    pub(crate) fn exactly(self, recipe: String) -> Self {
        Self { tuning: Tuning::Recipe(recipe), ..self }
    }

    pub(crate) fn grids(&self) -> Result<[Grid<D>; 2], Error> {
        let grid = Grid::new(self.shape)?;
        Ok([grid, Problem::spectral_grid(grid, self.kinds).typed()])
    }

    /// Bricks of physical and of spectral data, of all ranks.
    pub(crate) fn bricks(&self, ranks: usize) -> Result<[Vec<Brick<D>>; 2], Error> {
        let even = |grid: Grid<D>| (0..ranks).map(|rank| grid.brick(rank, ranks)).collect();
        let grids = self.grids()?;
        if let Some(cuts) = self.cuts {
            let parts = |side: usize| {
                let brick = |rank| ProcGrid::new(cuts[side]).brick(&grids[side], rank);
                (0..ranks).map(brick).collect()
            };
            return Ok([parts(0), parts(1)]);
        }
        Ok(match self.tiling {
            None => grids.map(even),
            Some(seed) => {
                let mut rng = Rng(seed);
                let [input, output] = grids.map(|grid| tiling(grid, ranks, &mut rng));
                if self.returns { [input.clone(), input] } else { [input, output] }
            }
        })
    }

    pub(crate) fn plan<K: Make>(&self, comm: &dyn Comm) -> Result<Plan<K, D>, Error> {
        self.draft::<K>(comm)?.build()
    }

    pub(crate) fn draft<'a, K: Make>(&self, comm: &'a dyn Comm) -> Result<Draft<'a, K, D>, Error> {
        let [input, output] = self.bricks(comm.size())?;
        Ok(K::draft(comm, self.grids()?[0])
            .kinds(self.kinds)
            .input_brick(input[comm.rank()])
            .output_brick(output[comm.rank()])
            .input_order(self.orders[0])
            .output_order(self.orders[1])
            .batch(self.batch)
            .forward_scale(self.scales[0])
            .inverse_scale(self.scales[1])
            .exchange(self.exchange)
            .tuning(self.tuning.clone())
            .memory(self.memory)
            .reproducible(self.reproducible)
            .one_rank(D == 1))
    }

    /// The factor of results, from the definition of the logical length.
    fn factor(&self, direction: Direction) -> f64 {
        let logical = |axis: usize| match (self.kinds[axis], self.shape[axis] as f64) {
            (Kind::None | Kind::Tridiagonal, _) => 1.0,
            (Kind::C2C | Kind::R2C, n) => n,
            (Kind::Dct1, n) => 2.0 * (n - 1.0),
            (Kind::Dst1, n) => 2.0 * (n + 1.0),
            (_, n) => 2.0 * n,
        };
        let all: f64 = (0..D).map(logical).product();
        match self.scales[direction as usize] {
            Scale::None => 1.0,
            Scale::Full => 1.0 / all,
            Scale::Symmetric => 1.0 / all.sqrt(),
        }
    }

    /// The expected result, by the definition.
    pub(crate) fn expected(&self, direction: Direction, arrays: &[C64]) -> Vec<C64> {
        let factor = self.factor(direction);
        let mut result = oracle::transform(direction, self.shape, self.kinds, arrays);
        result.iter_mut().for_each(|x| *x *= factor);
        result
    }
}

/// A family of transforms whose draft can be made without knowing which one it is.
pub(crate) trait Make: Transform {
    fn draft<const D: usize>(comm: &dyn Comm, grid: Grid<D>) -> Draft<'_, Self, D>
    where
        Self: Sized;
}

impl<T: Real> Make for C2c<T>
where
    Complex<T>: Element<Real = T>,
{
    fn draft<const D: usize>(comm: &dyn Comm, grid: Grid<D>) -> Draft<'_, Self, D> {
        Plan::<Self, D>::c2c(comm, grid)
    }
}

impl<T: Real> Make for R2c<T>
where
    Complex<T>: Element<Real = T>,
{
    fn draft<const D: usize>(comm: &dyn Comm, grid: Grid<D>) -> Draft<'_, Self, D> {
        Plan::<Self, D>::r2c(comm, grid)
    }
}

impl<T: Real> Make for R2r<T> {
    fn draft<const D: usize>(comm: &dyn Comm, grid: Grid<D>) -> Draft<'_, Self, D> {
        Plan::<Self, D>::r2r(comm, grid)
    }
}

/// The expected result of one rank, and the allowed error.
struct Expected<'a> {
    what: &'a str,
    numbers: Vec<C64>,
    /// All ranks' numbers together.
    norm: f64,
    bound: f64,
}

impl Expected<'_> {
    /// The error of one rank's numbers relative to the norm of all.
    fn compare<E: Element>(&self, way: &str, found: &[E]) {
        let error = distance(&widen(found), &self.numbers) / self.norm.max(f64::MIN_POSITIVE);
        let Self { what, bound, .. } = self;
        assert!(error <= *bound, "{way}: error {error:.2e} exceeds {bound:.2e}: {what}");
    }
}

fn bytes<E: Element>(data: &[E]) -> &[u8] {
    bytemuck::cast_slice(data)
}

/// Both directions of a transform against the definition: out of place with the input left as it
/// was, in place, and as fields. The data of the inverse is random too, not the result of the
/// forward transform.
pub(crate) fn check<K: Make, const D: usize>(comm: &dyn Comm, case: &Case<D>) -> Result<(), Error> {
    let (rank, ranks) = (comm.rank(), comm.size());
    let [physical, spectral] = case.grids()?;
    let [input, output] = case.bricks(ranks)?;
    let x: Vec<K::Physical> = random(physical.points() * case.batch, 1);
    let y: Vec<K::Spectral> = random(spectral.points() * case.batch, 2);
    let x_here = cut(&x, physical.shape(), input[rank], case.orders[0]);
    let y_here = cut(&y, spectral.shape(), output[rank], case.orders[1]);
    let what = format!("rank {rank} of {ranks}, {}, {case:?}", std::any::type_name::<K>());
    let expected = |direction, data: &[C64], grid: Grid<D>, brick, order| {
        let all = case.expected(direction, data);
        Expected {
            what: &what,
            norm: norm(&all),
            numbers: cut(&all, grid.shape(), brick, order),
            bound: bound(K::Real::EPSILON, physical.points()),
        }
    };
    let (to, from) = (Direction::Forward, Direction::Inverse);
    let forward = expected(to, &widen(&x), spectral, output[rank], case.orders[1]);
    let inverse = expected(from, &widen(&y), physical, input[rank], case.orders[0]);

    let mut plan = case.plan::<K>(comm)?;
    assert_eq!((plan.input_brick(), plan.output_brick()), (input[rank], output[rank]), "{what}");
    assert_eq!((plan.input_len(), plan.output_len()), (x_here.len(), y_here.len()), "{what}");

    // Results must not depend on the previous contents of their arrays.
    let (source, mut result) = (x_here.clone(), random(y_here.len(), 3));
    plan.forward_into(&source, &mut result)?;
    forward.compare("forward_into", &result);
    assert_eq!(bytes(&source), bytes(&x_here), "forward_into changed its input: {what}");
    let (source, mut result) = (y_here.clone(), random(x_here.len(), 4));
    plan.inverse_into(&source, &mut result)?;
    inverse.compare("inverse_into", &result);
    assert_eq!(bytes(&source), bytes(&y_here), "inverse_into changed its input: {what}");

    let mut data: Vec<K::Spectral> = random(plan.in_place_len(), 5);
    bytemuck::cast_slice_mut(&mut data)[..x_here.len()].copy_from_slice(&x_here);
    plan.forward_in_place(&mut data)?;
    forward.compare("forward_in_place", &data[..y_here.len()]);
    data[..y_here.len()].copy_from_slice(&y_here);
    plan.inverse_in_place(&mut data)?;
    inverse.compare(
        "inverse_in_place",
        &bytemuck::cast_slice::<_, K::Physical>(&data)[..x_here.len()],
    );

    let mut field = plan.input();
    field.as_mut_slice().copy_from_slice(&x_here);
    let mut field = plan.forward(field)?;
    forward.compare("forward of a field", field.as_slice());
    field.as_mut_slice().copy_from_slice(&y_here);
    inverse.compare("inverse of a field", plan.inverse(field)?.as_slice());
    Ok(())
}
