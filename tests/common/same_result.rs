//! One problem, computed in two ways: the bits must be the same.

use std::time::Duration;

use fft_core::Element;
use thriffty::planning::{Epochs, Exchange, Memory, Reduce};
use thriffty::{C2c, Comm, Error, Kind, R2c, R2r, Scale, Tuning};

use super::check::{Case, Make};
use super::data::{cut, random};
use super::tiling::Rng;

/// A number for results at these places of a whole array, wherever ranks have them: a sum modulo
/// 2^64 over the points.
fn checksum<E: Element>(places: &[usize], results: &[E]) -> u64 {
    let point_bytes = size_of::<E>();
    assert_eq!(places.len(), results.len());
    places.iter().zip(bytes(results).chunks_exact(point_bytes)).fold(0, |sum, (place, point)| {
        let start = Rng(*place as u64).next();
        sum.wrapping_add(point.iter().fold(start, |hash, byte| Rng(hash ^ *byte as u64).next()))
    })
}

fn bytes<E: Element>(data: &[E]) -> &[u8] {
    bytemuck::cast_slice(data)
}

/// The sum of all ranks' numbers modulo 2^64.
fn sum_of_ranks(comm: &dyn Comm, own: u64) -> Result<u64, Error> {
    // Sums of parts of 16 bits are exact.
    let mut parts = [0, 16, 32, 48].map(|shift| f64::from((own >> shift) as u16));
    comm.allreduce(Reduce::Sum, &mut parts)?;
    let shifted = parts.iter().enumerate().map(|(part, sum)| (*sum as u64) << (16 * part));
    Ok(shifted.fold(0, u64::wrapping_add))
}

/// Checksums of the forward and the inverse transform of random data, out of place and in place.
fn checksums<K: Make, const D: usize>(
    comm: &dyn Comm,
    case: &Case<D>,
    threads: usize,
) -> Result<[u64; 2], Error> {
    let rank = comm.rank();
    let [physical, spectral] = case.grids()?.map(|grid| grid.shape());
    let [input, output] = case.bricks(comm.size())?.map(|bricks| bricks[rank]);
    let numbers = |shape: [usize; D]| shape.iter().product::<usize>() * case.batch;
    let x: Vec<K::Physical> = random(numbers(physical), 1);
    let y: Vec<K::Spectral> = random(numbers(spectral), 2);
    let x = cut(&x, physical, input, case.orders[0]);
    let y = cut(&y, spectral, output, case.orders[1]);
    let places = |shape: [usize; D], brick, order| {
        let all: Vec<usize> = (0..numbers(shape)).collect();
        cut(&all, shape, brick, order)
    };
    let mut plan = case.draft::<K>(comm)?.threads(threads).build()?;
    let (mut there, mut back) = (random(y.len(), 3), random(x.len(), 4));
    plan.forward_into(&x, &mut there)?;
    plan.inverse_into(&y, &mut back)?;
    let mut data: Vec<K::Spectral> = random(plan.in_place_len(), 5);
    bytemuck::cast_slice_mut(&mut data)[..x.len()].copy_from_slice(&x);
    plan.forward_in_place(&mut data)?;
    assert!(bytes(&data[..y.len()]) == bytes(&there), "forward in place, {case:?}");
    data[..y.len()].copy_from_slice(&y);
    plan.inverse_in_place(&mut data)?;
    let found: &[K::Physical] = &bytemuck::cast_slice(&data)[..x.len()];
    assert!(bytes(found) == bytes(&back), "inverse in place, {case:?}");
    let forward = checksum(&places(spectral, output, case.orders[1]), &there);
    let inverse = checksum(&places(physical, input, case.orders[0]), &back);
    Ok([sum_of_ranks(comm, forward)?, sum_of_ranks(comm, inverse)?])
}

/// Compares a reproducible transform over these ranks with one by a single rank.
pub(crate) fn check<K: Make, const D: usize>(
    comm: &dyn Comm,
    case: &Case<D>,
    threads: usize,
) -> Result<(), Error> {
    let Case { shape, kinds, batch, scales, .. } = case.clone();
    let plain = Case::new(shape, kinds).batch(batch).scales(scales[0], scales[1]).reproducible();
    let expected = checksums::<K, D>(&fft_comm::alone(), &plain, 1)?;
    let found = checksums::<K, D>(comm, &case.clone().reproducible(), threads)?;
    assert_eq!(found, expected, "{} ranks, {threads} threads, {case:?}", comm.size());
    Ok(())
}

/// The kinds of a random transform: any for complex data, one halved axis, or real ones alone.
fn random_kinds<const D: usize>(rng: &mut Rng, shape: [usize; D], family: usize) -> [Kind; D] {
    let halved = rng.below(D);
    std::array::from_fn(|axis| {
        let any = Kind::ALL[rng.below(Kind::Tridiagonal as usize)];
        // Half of the axes are of the usual kind.
        let kind = if rng.below(2) == 0 { Kind::C2C } else { any };
        match (family, kind) {
            (1, _) if axis == halved => Kind::R2C,
            (2, Kind::C2C | Kind::R2C) => Kind::Dct2,
            (_, Kind::R2C) => Kind::C2C,
            (_, Kind::Dct1) if shape[axis] == 1 => Kind::Dst1,
            (_, kind) => kind,
        }
    })
}

/// Compares a random transform, whose axes are up to `longest`, over random bricks.
pub(crate) fn check_random<const D: usize>(
    comm: &dyn Comm,
    seed: u64,
    longest: usize,
) -> Result<(), Error> {
    let mut rng = Rng(seed);
    let shape: [usize; D] = std::array::from_fn(|_| 1 + rng.below(longest));
    let family = rng.below(3);
    let kinds = random_kinds(&mut rng, shape, family);
    let scales = [0; 2].map(|_| [Scale::None, Scale::Full, Scale::Symmetric][rng.below(3)]);
    let exchanges: Vec<_> = Exchange::ALL.into_iter().filter(|it| suits(comm, *it)).collect();
    let mut case = Case::new(shape, kinds)
        .batch(1 + rng.below(3))
        .scales(scales[0], scales[1])
        .orders(rng.order(), rng.order())
        .exchange(exchanges[rng.below(exchanges.len())])
        .memory([Memory::Ample, Memory::Least][rng.below(2)]);
    if rng.below(4) > 0 {
        case = case.tiling(rng.next());
    }
    if rng.below(8) == 0 {
        // Exchanges that fall back to another are no candidates.
        case.exchange = [Exchange::Shared, Exchange::P2p, Exchange::Alltoallv][rng.below(3)];
        case.tuning = Tuning::Measure { budget: Duration::from_millis(2) };
    }
    let threads = if comm.size() == 1 { 1 + rng.below(3) } else { 1 };
    match (family, rng.below(2)) {
        (0, 0) => check::<C2c<f64>, D>(comm, &case, threads),
        (0, _) => check::<C2c<f32>, D>(comm, &case, threads),
        (1, 0) => check::<R2c<f64>, D>(comm, &case, threads),
        (1, _) => check::<R2c<f32>, D>(comm, &case, threads),
        (_, 0) => check::<R2r<f64>, D>(comm, &case, threads),
        (_, _) => check::<R2r<f32>, D>(comm, &case, threads),
    }
}

/// Whether ranks may use this exchange.
pub(crate) fn suits(comm: &dyn Comm, exchange: Exchange) -> bool {
    comm.name() != "threads" || exchange != Exchange::Ring(Epochs::Flush)
}

/// Grids of one to four axes at random.
pub(crate) fn check_some(comm: &dyn Comm, seeds: std::ops::Range<u64>) -> Result<(), Error> {
    for seed in seeds {
        match seed % 4 {
            0 => check_random::<1>(comm, seed, 300)?,
            1 => check_random::<2>(comm, seed, 40)?,
            2 => check_random::<3>(comm, seed, 17)?,
            _ => check_random::<4>(comm, seed, 7)?,
        }
    }
    Ok(())
}
