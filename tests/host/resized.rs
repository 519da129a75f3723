//! Padded and truncated transforms against whole ones, over random bricks and orders.

use proptest::prelude::*;
use proptest::sample::select;
use thriffty::planning::{Direction, Exchange, Memory, Problem};
use thriffty::{C2c, Comm, Error, Grid, Kind, R2c, Wire};

use crate::common::RANKS;
use crate::common::check::Make;
use crate::common::data::{C64, bound, cut, distance, index, norm, place, random, widen};
use crate::common::oracle;
use crate::common::tiling::{Rng, tiling};

/// Lengths along each axis: of physical data, of the transform, and the number of modes.
#[derive(Clone, Copy, Debug)]
struct Lens<const D: usize> {
    points: [usize; D],
    transform: [usize; D],
    modes: [usize; D],
    kinds: [Kind; D],
}

impl<const D: usize> Lens<D> {
    fn spectral(&self, modes: [usize; D]) -> [usize; D] {
        Problem::spectral_grid(Grid::new(modes).unwrap(), self.kinds).shape().array()
    }

    /// The place of a kept mode in the whole transform; none for the middle one.
    fn mode(&self, axis: usize, index: usize) -> Option<usize> {
        let (n, modes) = (self.transform[axis], self.modes[axis]);
        let negative = self.kinds[axis] == Kind::C2C && index >= modes.div_ceil(2);
        if modes < n && 2 * index == modes {
            None
        } else {
            Some(if negative { index + n - modes } else { index })
        }
    }
}

fn indices<const D: usize>(shape: [usize; D]) -> impl Iterator<Item = [usize; D]> {
    (0..shape.iter().product::<usize>()).map(move |at| index(shape, at))
}

/// The forward transform of padded data, and the inverse of padded modes, by the definition.
fn expected<const D: usize>(lens: &Lens<D>, direction: Direction, data: &[C64]) -> Vec<C64> {
    let (points, n) = (lens.points, lens.transform);
    let [all, kept] = [lens.spectral(n), lens.spectral(lens.modes)];
    let modes = |index: [usize; D]| -> Option<[usize; D]> {
        let mut found = [0; D];
        for axis in 0..D {
            found[axis] = lens.mode(axis, index[axis])?;
        }
        Some(found)
    };
    match direction {
        Direction::Forward => {
            let mut padded = vec![C64::default(); n.iter().product()];
            for (index, x) in indices(points).zip(data) {
                padded[place(n, index)] = *x;
            }
            let whole = oracle::transform(direction, n, lens.kinds, &padded);
            let mode = |index| modes(index).map_or(C64::default(), |at| whole[place(all, at)]);
            indices(kept).map(mode).collect()
        }
        Direction::Inverse => {
            let mut padded = vec![C64::default(); all.iter().product()];
            for (index, x) in indices(kept).zip(data) {
                if let Some(at) = modes(index) {
                    padded[place(all, at)] = *x;
                }
            }
            let whole = oracle::transform(direction, n, lens.kinds, &padded);
            let scale = 1.0 / n.iter().product::<usize>() as f64;
            indices(points).map(|index| whole[place(n, index)] * scale).collect()
        }
    }
}

fn check<K: Make, const D: usize>(
    comm: &dyn Comm,
    lens: &Lens<D>,
    seed: u64,
    (exchange, memory, batch): (Exchange, Memory, usize),
) -> Result<(), Error> {
    let mut rng = Rng(seed);
    let spectral = lens.spectral(lens.modes);
    let (ranks, rank) = (comm.size(), comm.rank());
    let input = tiling(Grid::new(lens.points)?, ranks, &mut rng)[rank];
    let output = tiling(Grid::new(spectral)?, ranks, &mut rng)[rank];
    let orders: [[usize; D]; 2] = [rng.order(), rng.order()];
    let mut plan = K::draft(comm, Grid::new(lens.points)?)
        .kinds(lens.kinds)
        .zero_padded(lens.transform)
        .modes(lens.modes)
        .batch(batch)
        .input_brick(input)
        .output_brick(output)
        .input_order(orders[0])
        .output_order(orders[1])
        .exchange(exchange)
        .memory(memory)
        .one_rank(true)
        .build()?;
    let points = |shape: [usize; D]| batch * shape.iter().product::<usize>();
    let x: Vec<K::Physical> = random(points(lens.points), seed);
    let y: Vec<K::Spectral> = random(points(spectral), !seed);
    let [x_here, y_here] = [
        widen(&cut(&x, lens.points, input, orders[0])),
        widen(&cut(&y, spectral, output, orders[1])),
    ];
    let all = |direction, data: &[C64], one: usize| -> Vec<C64> {
        data.chunks(one / batch).flat_map(|data| expected(lens, direction, data)).collect()
    };
    let forward = all(Direction::Forward, &widen(&x), points(lens.points));
    let inverse = all(Direction::Inverse, &widen(&y), points(spectral));
    let what = format!("rank {rank} of {ranks}, {memory}, {lens:?}, {}", plan.recipe());
    // Errors are relative to whole transforms, of which only a small part may be kept.
    let root = (lens.transform.iter().product::<usize>() as f64).sqrt();
    let sizes = [norm(&widen(&x)) * root, norm(&widen(&y)) / root];
    let close = |found: Vec<C64>, size: f64, part: Vec<C64>, way: &str| {
        let error = distance(&found, &part) / size;
        let bound = bound(1e-16 + epsilon::<K>(), lens.transform.iter().product::<usize>().max(2));
        assert!(error <= bound, "{way}: {error:.2e} exceeds {bound:.2e}: {what}");
    };
    let mut field = plan.input();
    field.as_mut_slice().copy_from_slice(&cut(&x, lens.points, input, orders[0]));
    let field = plan.forward(field)?;
    let part = cut(&forward, spectral, output, orders[1]);
    close(widen(field.as_slice()), sizes[0], part.clone(), "forward in place");
    let mut result = y.clone();
    result.resize(y_here.len(), K::Spectral::default());
    let source = cut(&x, lens.points, input, orders[0]);
    plan.forward_into(&source, &mut result)?;
    close(widen(&result), sizes[0], part, "forward");
    assert_eq!(widen(&source), x_here, "the input stays: {what}");
    let mut field = plan.output();
    field.as_mut_slice().copy_from_slice(&cut(&y, spectral, output, orders[1]));
    let field = plan.inverse(field)?;
    let part = cut(&inverse, lens.points, input, orders[0]);
    close(widen(field.as_slice()), sizes[1], part, "inverse");
    Ok(())
}

fn epsilon<K: Make>() -> f64 {
    <K::Real as fft_core::Real>::EPSILON
}

fn case<K: Make, const D: usize>(ranks: usize, seed: u64) {
    let mut rng = Rng(seed);
    let points: [usize; D] = std::array::from_fn(|_| 1 + rng.below(6));
    let transform = std::array::from_fn(|axis| points[axis] + rng.below(3) * rng.below(6));
    let halved = rng.below(D);
    let kinds = std::array::from_fn(|axis| {
        if !K::DYN.is_complex() && axis == halved { Kind::R2C } else { Kind::C2C }
    });
    let modes = std::array::from_fn(|axis: usize| match rng.below(2) {
        0 => transform[axis],
        _ => 1 + rng.below(transform[axis]),
    });
    let lens = Lens { points, transform, modes, kinds };
    let exchange = Exchange::ALL[rng.below(Exchange::ALL.len())];
    let memory = [Memory::Ample, Memory::Least][rng.below(2)];
    let how = (exchange, memory, 1 + rng.below(2));
    let run = |comm: thriffty::ThreadComm| check::<K, D>(&comm, &lens, seed, how);
    thriffty::threads(ranks, run).unwrap_or_else(|error| panic!("{error}: {lens:?}, {how:?}"));
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(30)
    })]

    #[test]
    fn padded_and_truncated_transforms_are_parts_of_whole_ones(
        ranks in select(&RANKS[..]),
        seed in any::<u64>().no_shrink(),
    ) {
        match seed % 6 {
            0 => case::<C2c<f64>, 1>(ranks, seed),
            1 => case::<R2c<f64>, 2>(ranks, seed),
            2 => case::<C2c<f32>, 2>(ranks, seed),
            3 => case::<R2c<f32>, 3>(ranks, seed),
            4 => case::<C2c<f64>, 3>(ranks, seed),
            _ => case::<R2c<f64>, 3>(ranks, seed),
        }
    }
}

/// Processes with whole arrays and threads of their own.
#[test]
fn local_plans_are_padded_too() {
    let lens = Lens {
        points: [3, 4, 5],
        transform: [6, 8, 10],
        modes: [4, 8, 6],
        kinds: [Kind::C2C, Kind::C2C, Kind::R2C],
    };
    for (threads, batch) in [(1, 1), (2, 1), (3, 1), (2, 4)] {
        let plan = thriffty::local::r2c(lens.points).zero_padded(lens.transform);
        let mut plan = plan.modes(lens.modes).threads(threads).batch(batch).build().unwrap();
        let x: Vec<f64> = random(60 * batch, 1);
        let mut y = vec![C64::default(); plan.output_len()];
        plan.forward_into(&x, &mut y).unwrap();
        let parts = widen(&x);
        let parts = parts.chunks(60).flat_map(|x| expected(&lens, Direction::Forward, x));
        let expected: Vec<_> = parts.collect();
        assert!(distance(&y, &expected) <= 1e-14 * norm(&expected), "{threads} threads");
    }
}

#[test]
fn lengths_without_meaning_are_refused() {
    thriffty::threads(2, |comm| {
        let draft = || thriffty::c2c(&comm, [4, 6]);
        for (draft, text) in [
            (draft().zero_padded([3, 6]), "zero_padded along axis 0: found 3"),
            (draft().modes([4, 7]), "modes along axis 1: found 7"),
            (draft().modes([0, 6]), "modes along axis 0: found 0"),
            (draft().zero_padded([8, 6]).kinds([Kind::Dct2, Kind::C2C]), "kind of padding"),
            (draft().zero_padded([8, 6]).wire(Wire::F32), "wire beside padding"),
        ] {
            let error = draft.build().unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
        let recipe = draft().zero_padded([8, 6]).modes([5, 6]).build()?.recipe().to_string();
        assert!(recipe.starts_with("(c2c 4x6 f64 zero_padded=8x6 modes=5x6 ranks=2"), "{recipe}");
        let tuning = thriffty::Tuning::Recipe(recipe);
        draft().zero_padded([8, 6]).modes([5, 6]).tuning(tuning).build().map(drop)
    })
    .unwrap();
}
