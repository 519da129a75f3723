//! Two plans of one transform, one of which encodes its messages, and fields that show the
//! difference.

use thriffty::planning::{Direction, Exchange, Memory, Real, Reduce, Step, Transform, WireError};
use thriffty::{Comm, Draft, Error, Kind, Plan, R2c, Tolerance, Tuning, Wire};

use super::check::{Case, Make};
use super::data::{C64, random, widen};

/// The same transform with every bit, and with messages encoded.
pub(crate) struct Pair<K: Transform, const D: usize> {
    pub(crate) plain: Plan<K, D>,
    pub(crate) coded: Plan<K, D>,
    direction: Direction,
}

impl<K: Make, const D: usize> Pair<K, D> {
    pub(crate) fn new(
        comm: &dyn Comm,
        case: &Case<D>,
        direction: Direction,
        options: impl for<'a> Fn(Draft<'a, K, D>) -> Draft<'a, K, D>,
    ) -> Result<Self, Error> {
        let coded = options(case.draft::<K>(comm)?.ignore_shared_memory(true)).build()?;
        // With the same steps, so that rounding is the same.
        let mut text = coded.recipe().to_string();
        if let Some(tolerance) = coded.recipe().problem().options.tolerance {
            text = text.replace(&format!(" tolerance={tolerance}"), "");
        }
        for step in coded.recipe().steps() {
            if let Step::Reshape { wire, .. } = step {
                text = text.replace(&format!(" {wire})"), " raw)");
            }
        }
        let plain = case
            .draft::<K>(comm)?
            .ignore_shared_memory(true)
            .tuning(Tuning::Recipe(text))
            .build()?;
        Ok(Self { plain, coded, direction })
    }

    /// Transforms random numbers in -1..1, which a function changes depending on their place on the
    /// rank. Returns the true error and the reported one.
    pub(crate) fn lost(
        &mut self,
        seed: u64,
        f: impl Fn(usize, f64) -> f64,
    ) -> Result<(f64, WireError), Error> {
        let Self { plain, coded, direction } = self;
        let comm = plain.comm().dup()?;
        let seed = seed + 1000 * comm.rank() as u64;
        let [exact, found] = match direction {
            Direction::Forward => {
                let x: Vec<K::Physical> = made(plain.input_len(), seed, &f);
                let mut results = [(); 2].map(|()| random::<K::Spectral>(plain.output_len(), 1));
                plain.forward_into(&x, &mut results[0])?;
                coded.forward_into(&x, &mut results[1])?;
                results.map(|result| widen(&result))
            }
            Direction::Inverse => {
                let mut y: Vec<K::Spectral> = made(plain.output_len(), seed, &f);
                if plain.recipe().problem().kinds.contains(&Kind::R2C) {
                    // Half of any numbers is not half a spectrum of real ones.
                    let x: Vec<K::Physical> = made(plain.input_len(), seed, f);
                    plain.forward_into(&x, &mut y)?;
                }
                let mut results = [(); 2].map(|()| random::<K::Physical>(plain.input_len(), 1));
                plain.inverse_into(&y, &mut results[0])?;
                coded.inverse_into(&y, &mut results[1])?;
                results.map(|result| widen(&result))
            }
        };
        // One rank has nothing to send.
        let reported = coded.wire_error().unwrap_or_default();
        Ok((relative(comm.as_ref(), &weights(plain, *direction), &found, &exact)?, reported))
    }
}

fn made<E: fft_core::Element>(len: usize, seed: u64, f: impl Fn(usize, f64) -> f64) -> Vec<E> {
    let mut numbers: Vec<E> = random(len, seed);
    let reals: &mut [E::Real] = bytemuck::cast_slice_mut(&mut numbers);
    for (at, real) in reals.iter_mut().enumerate() {
        *real = E::Real::of(f(at, real.as_f64()));
    }
    numbers
}

/// How often each point of a result is in the whole of it: half a spectrum stands for all.
fn weights<K: Transform, const D: usize>(plan: &Plan<K, D>, direction: Direction) -> Vec<f64> {
    let problem = plan.recipe().problem();
    let halved = problem.kinds.iter().position(|kind| *kind == Kind::R2C);
    let (axis, brick) = match (direction, halved) {
        (Direction::Forward, Some(axis)) => (axis, plan.output_brick()),
        (Direction::Forward, None) => return vec![1.0; plan.output_len()],
        (Direction::Inverse, _) => return vec![1.0; plan.input_len()],
    };
    let inside = problem.output.order().into_iter().rev().take_while(|other| *other != axis);
    let inner: usize = inside.map(|other| brick.len(other)).product();
    let index = |at: usize| brick.range(axis).start + at / inner % brick.len(axis);
    let weight =
        |at| if [0, problem.grid().len(axis)].contains(&(2 * index(at))) { 1.0 } else { 2.0 };
    (0..plan.output_len()).map(weight).collect()
}

/// The relative l2 distance of two results, all ranks together.
pub(crate) fn relative(
    comm: &dyn Comm,
    weights: &[f64],
    found: &[C64],
    exact: &[C64],
) -> Result<f64, Error> {
    // Numbers whose squares are out of range are brought near 1.
    let mut largest = [exact.iter().map(|x| x.re.abs().max(x.im.abs())).fold(0.0, f64::max)];
    comm.allreduce(Reduce::Max, &mut largest)?;
    let unit = if largest[0] > 0.0 { largest[0] } else { 1.0 };
    let mut sums = [0.0; 2];
    for ((found, exact), weight) in found.iter().zip(exact).zip(weights) {
        sums[0] += weight * (found / unit - exact / unit).norm_sqr();
        sums[1] += weight * (exact / unit).norm_sqr();
    }
    comm.allreduce(Reduce::Sum, &mut sums)?;
    Ok(if sums[0] == 0.0 { 0.0 } else { (sums[0] / sums[1]).sqrt() })
}

pub(crate) const DIRECTIONS: [Direction; 2] = [Direction::Forward, Direction::Inverse];

/// The value at a place of a rank, made from a random number.
pub(crate) type Field = fn(usize, f64) -> f64;

/// Fields that are not like noise. Each is the same whatever came before it.
pub(crate) const FIELDS: [(&str, Field); 9] = [
    ("noise", |_, x| x),
    ("constant", |_, _| 3.25),
    ("one spike in zeros", |at, _| if at == 3 { 1e12 } else { 0.0 }),
    ("signs that alternate", |at, _| if at % 2 == 0 { 1.0 } else { -1.0 }),
    ("large and tiny by turns", |at, x| if at % 2 == 0 { 1e300 * x } else { 1e-300 * x }),
    ("subnormal", |_, x| 1e-310 * x),
    ("decaying", |at, x| x * 0.5f64.powi(at as i32 % 40)),
    ("steps of its own", |_, x| (x * 4.0).round()),
    ("mostly zeros", |at, x| if at % 17 == 0 { x } else { 0.0 }),
];

/// On any communicator: wires of all sorts, with every exchange, over bricks at random.
pub(crate) fn all(comm: &dyn Comm, memory: Memory) -> Result<(), Error> {
    let wires = [Wire::F32, Wire::Bits(11), Wire::Tolerance, Wire::Lossless];
    for (seed, exchange) in Exchange::ALL.into_iter().enumerate() {
        let tolerance = Tolerance::relative(1e-5)?.strict();
        for wire in wires {
            let kinds = [Kind::C2C, Kind::C2C, Kind::R2C];
            let case = Case::new([14, 9, 16], kinds).tiling(seed as u64).exchange(exchange);
            let case = case.memory(memory);
            for direction in DIRECTIONS {
                let mut pair = Pair::<R2c, 3>::new(comm, &case, direction, |draft| {
                    let draft = draft.wire(wire);
                    if wire == Wire::Tolerance { draft.tolerance(tolerance) } else { draft }
                })?;
                for seed in 0..3 {
                    let (error, reported) = pair.lost(seed, |_, x| x)?;
                    let what = format!("{wire} {exchange} {direction:?}: {error:e}, {reported:?}");
                    let allowed = match wire {
                        Wire::Lossless => 0.0,
                        Wire::Tolerance => tolerance.value(),
                        _ => reported.bound,
                    };
                    assert!(error <= allowed, "{what}");
                }
            }
        }
    }
    Ok(())
}
