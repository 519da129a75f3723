//! Complex transforms of a single axis that ranks share.

use fft_core::Element;
use thriffty::planning::{Division, Exchange, Factors, Memory, Transform};
use thriffty::{Brick, C2c, Comm, Draft, Error, Grid, Plan};

use super::check::Make;
use super::data::{bound, distance, norm, random, widen};
use super::same_result::suits;
use super::tiling::Rng;

/// One side of a random transform.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Layout {
    /// The plan's blocks.
    Blocks,
    /// Blocks of these multiples, as uneven as they come.
    Given(usize),
    Transposed,
    Cyclic(usize),
}

impl Layout {
    fn random(rng: &mut Rng, n: usize, ranks: usize) -> Self {
        let divisors: Vec<_> = (2..=n).filter(|divisor| n.is_multiple_of(*divisor)).collect();
        match rng.below(6) {
            0 => Self::Transposed,
            1 if n.is_multiple_of(ranks) => Self::Cyclic(ranks),
            2 => Self::Cyclic(divisors[rng.below(divisors.len())]),
            3 => Self::Given(n / divisors[rng.below(divisors.len())]),
            _ => Self::Blocks,
        }
    }

    fn division(self, ranks: usize) -> Division {
        match self {
            Self::Blocks => Division::BLOCKS,
            Self::Given(multiple) => Division { multiple, ..Division::BLOCKS },
            Self::Transposed => Division::STRIDED,
            Self::Cyclic(stride) => Division::cyclic(stride, ranks),
        }
    }

    /// The blocks of a rank, if they are given. One begins at the smallest multiple, so that
    /// `multiple` is the greatest common divisor.
    fn brick(self, n: usize, comm: &dyn Comm, seed: u64) -> Option<Brick<1>> {
        let Self::Given(multiple) = self else { return None };
        let (ranks, parts) = (comm.size(), n / multiple);
        let mut rng = Rng(seed);
        let mut ends: Vec<_> = (1..ranks).map(|_| rng.below(parts + 1)).collect();
        ends[0] = 1;
        ends.sort_unstable();
        ends.insert(0, 0);
        ends.push(parts);
        let [lo, hi] = [0, 1].map(|end| [multiple * ends[comm.rank() + end]]);
        Some(Brick { lo, hi })
    }
}

/// A transform of all points, as one rank computes it, and the plan's part of it.
fn expected<K>(forward: bool, n: usize, all: &[K::Physical]) -> Result<Vec<K::Physical>, Error>
where
    K: Make + Transform<Spectral = <K as Transform>::Physical>,
{
    let alone = fft_comm::alone();
    let mut plan = K::draft(&alone, Grid::new([n])?).batch(all.len() / n).build()?;
    let mut result = all.to_vec();
    if forward {
        plan.forward_in_place(&mut result)?;
    } else {
        plan.inverse_in_place(&mut result)?;
    }
    Ok(result)
}

/// This rank's part of all arrays.
fn part<E: Copy>(all: &[E], n: usize, indices: &[usize]) -> Vec<E> {
    all.chunks(n).flat_map(|array| indices.iter().map(|index| array[*index])).collect()
}

fn close<E: Element>(found: &[E], expected: &[E], n: usize, what: &str) {
    let [found, expected] = [found, expected].map(widen);
    let epsilon = if size_of::<E::Real>() == 4 { f64::from(f32::EPSILON) } else { f64::EPSILON };
    let largest = norm(&expected).max(f64::MIN_POSITIVE);
    // Each rank has a part, whose norm may be a little below its share.
    let error = distance(&found, &expected) / largest;
    assert!(error < 4.0 * bound(epsilon, n), "{what}: {error:e}");
}

fn compare<K>(plan: &mut Plan<K, 1>, n: usize, batch: usize, what: &str) -> Result<(), Error>
where
    K: Make + Transform<Spectral = <K as Transform>::Physical>,
{
    let x: Vec<K::Physical> = random(n * batch, 7);
    let [from, to] =
        [plan.input_indices(0).collect::<Vec<_>>(), plan.output_indices(0).collect::<Vec<_>>()];
    let there = part(&expected::<K>(true, n, &x)?, n, &to);
    let back = part(&expected::<K>(false, n, &x)?, n, &from);
    let (given, spectrum) = (part(&x, n, &from), part(&x, n, &to));
    let (mut forward, mut inverse) = (random(to.len() * batch, 8), random(from.len() * batch, 9));
    plan.forward_into(&given, &mut forward)?;
    plan.inverse_into(&spectrum, &mut inverse)?;
    close(&forward, &there, n, what);
    close(&inverse, &back, n, what);
    let mut data: Vec<K::Physical> = random(plan.in_place_len(), 10);
    data[..given.len()].copy_from_slice(&given);
    plan.forward_in_place(&mut data)?;
    close(&data[..there.len()], &there, n, what);
    plan.inverse_in_place(&mut data)?;
    close(&data[..given.len()], &given, n, what);
    Ok(())
}

/// Compares a random transform of up to `longest` points with that of one rank, or checks that it
/// is refused because there are no factors. One rank shares nothing.
pub(crate) fn check_random(comm: &dyn Comm, seed: u64, longest: usize) -> Result<(), Error> {
    if comm.size() == 1 {
        return Ok(());
    }
    let mut rng = Rng(seed);
    let mut n = 1;
    // Half of the lengths are products of small primes.
    while n * 7 <= longest && rng.below(12) > 0 {
        n *= [2, 2, 2, 3, 4, 5, 7][rng.below(7)];
    }
    if rng.below(2) == 0 {
        n = 2 + rng.below(longest);
    }
    let (n, ranks) = (n.max(2), comm.size());
    let sides = [Layout::random(&mut rng, n, ranks), Layout::random(&mut rng, n, ranks)];
    let (batch, single) = (1 + rng.below(3), rng.below(2) == 0);
    let exchanges: Vec<_> = Exchange::ALL.into_iter().filter(|it| suits(comm, *it)).collect();
    let exchange = exchanges[rng.below(exchanges.len())];
    let memory = [Memory::Ample, Memory::Least][rng.below(2)];
    let what = format!("{n} points, {ranks} ranks, {sides:?}, batch {batch}, {exchange}, {memory}");
    // Processes with several threads have points in order.
    let in_order = |side: &Layout| matches!(side, Layout::Blocks | Layout::Given(_));
    let has_threads = comm.name() == "mpi" && sides.iter().all(in_order) && rng.below(2) == 0;
    let has_factors =
        has_threads || Factors::new(n, ranks, sides.map(|side| side.division(ranks))).is_some();
    let seeds = [rng.next(), rng.next()];
    let request = Request { n, sides, seeds, batch, exchange, memory, has_threads };
    if single {
        request.check::<C2c<f32>>(comm, has_factors, &what)
    } else {
        request.check::<C2c<f64>>(comm, has_factors, &what)
    }
}

struct Request {
    n: usize,
    sides: [Layout; 2],
    seeds: [u64; 2],
    batch: usize,
    exchange: Exchange,
    memory: Memory,
    has_threads: bool,
}

impl Request {
    fn check<K>(&self, comm: &dyn Comm, has_factors: bool, what: &str) -> Result<(), Error>
    where
        K: Make + Transform<Spectral = <K as Transform>::Physical>,
    {
        let Self { n, sides: [before, after], seeds, batch, exchange, memory, has_threads } = *self;
        let mut draft: Draft<'_, K, 1> = K::draft(comm, Grid::new([n])?);
        draft = draft.batch(batch).exchange(exchange).memory(memory);
        draft = match before {
            Layout::Transposed => draft.transposed_input(true),
            Layout::Cyclic(parts) => draft.input_cyclic([parts]),
            _ => draft,
        };
        draft = match after {
            Layout::Transposed => draft.transposed_output(true),
            Layout::Cyclic(parts) => draft.output_cyclic([parts]),
            _ => draft,
        };
        if let Some(brick) = before.brick(n, comm, seeds[0]) {
            draft = draft.input_brick(brick);
        }
        if let Some(brick) = after.brick(n, comm, seeds[1]) {
            draft = draft.output_brick(brick);
        }
        if has_threads {
            draft = draft.threads(2).one_rank(true);
        }
        match draft.build() {
            Ok(mut plan) => {
                assert!(has_factors, "{what}");
                compare(&mut plan, n, batch, what)
            }
            Err(Error::Argument { .. }) if !has_factors => Ok(()),
            Err(error) => panic!("{what}: {error}"),
        }
    }
}
