//! Random problems against the definition.

use thriffty::group::GroupComm;
use thriffty::planning::{Exchange, Memory};
use thriffty::{C2c, Comm, Error, Kind, R2c, R2r, Scale};

use crate::common::RANKS;
use crate::common::check::{Case, check};
use crate::common::tiling::Rng;
use crate::processes;

/// Problems for each number of ranks, unless `THRIFFTY_CASES` says otherwise.
const CASES: usize = 12;

#[test]
fn random_problems_are_solved_by_all_exchanges() {
    for ranks in RANKS {
        processes::must_succeed(ranks, "properties::body", "");
    }
}

#[test]
#[ignore = "started by another test"]
fn body() {
    let comm = GroupComm::new(processes::world()).expect("a group");
    let cases = std::env::var("THRIFFTY_CASES").ok().and_then(|cases| cases.parse().ok());
    for seed in 0..cases.unwrap_or(CASES) as u64 {
        solve(&comm, seed).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

/// The same problem on all ranks.
fn solve(comm: &dyn Comm, seed: u64) -> Result<(), Error> {
    let mut rng = Rng(seed ^ (comm.size() as u64) << 32);
    match rng.below(4) {
        0 => transform::<1>(comm, &mut rng, 60),
        1 => transform::<2>(comm, &mut rng, 14),
        2 => transform::<3>(comm, &mut rng, 8),
        _ => transform::<4>(comm, &mut rng, 5),
    }
}

fn transform<const D: usize>(comm: &dyn Comm, rng: &mut Rng, longest: usize) -> Result<(), Error> {
    // Along two points each kind can be transformed.
    let shape = std::array::from_fn(|_| 2 + rng.below(longest - 1));
    let real: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| is_real(*kind)).collect();
    let mut kinds: [Kind; D] = std::array::from_fn(|_| real[rng.below(real.len())]);
    let halved = rng.below(D);
    let transform = rng.below(3);
    match transform {
        0 => kinds[halved] = Kind::C2C,
        1 => kinds[halved] = Kind::R2C,
        _ => {}
    }
    let scales = [Scale::None, Scale::Full, Scale::Symmetric];
    let case = Case::new(shape, kinds)
        .orders(rng.order(), rng.order())
        .batch(1 + rng.below(3))
        .scales(scales[rng.below(3)], scales[rng.below(3)])
        .exchange(Exchange::ALL[rng.below(Exchange::ALL.len())])
        .memory([Memory::Ample, Memory::Least][rng.below(2)]);
    let case = if rng.below(2) == 0 { case.tiling(rng.0) } else { case };
    match transform {
        0 => check::<C2c<f64>, D>(comm, &case),
        1 => check::<R2c<f64>, D>(comm, &case),
        _ => check::<R2r<f64>, D>(comm, &case),
    }
}

fn is_real(kind: Kind) -> bool {
    !matches!(kind, Kind::C2C | Kind::R2C | Kind::Tridiagonal)
}
