//! Operators on spectra, over random bricks, kinds and orders.

use std::f64::consts::TAU;

use proptest::prelude::*;
use proptest::sample::select;
use thriffty::planning::{Exchange, ProcGrid, Step};
use thriffty::spectral::Operator;
use thriffty::{C2c, Comm, Error, ErrorKind, Field, Grid, Kind, Physical, R2c, R2r, Spectral};

use crate::common::RANKS;
use crate::common::check::{Case, Make};
use crate::common::operators::{all, check, convolution, kinds};
use crate::common::tiling::Rng;

fn case<K: Make, const D: usize>(ranks: usize, shape: [usize; D], seed: u64) {
    let mut rng = Rng(seed);
    let complex = K::DYN.is_complex();
    let kinds = kinds(complex, K::DYN.has_complex_spectrum() && !complex, &mut rng);
    let short = |axis: usize| kinds[axis] == Kind::Dct1 && shape[axis] < 2;
    if kinds.iter().all(|kind| *kind == Kind::None) || (0..D).any(short) {
        return;
    }
    let case = Case::new(shape, kinds).tiling(seed).orders(rng.order(), rng.order());
    let operators = all(D);
    let operator = (operators[rng.below(operators.len())], 1 + rng.below(2));
    let transposed = rng.below(2) == 0;
    let run = |comm: thriffty::ThreadComm| check::<K, D>(&comm, &case, transposed, operator);
    thriffty::threads(ranks, run).unwrap_or_else(|error| panic!("{error}: {case:?}"));
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(40)
    })]

    #[test]
    fn operators_are_their_formulas(
        ranks in select(&RANKS[..]),
        shape in [1usize..8, 1..8, 1..8],
        seed in any::<u64>().no_shrink(),
    ) {
        let [x, y, z] = shape;
        match seed % 8 {
            0 => case::<C2c<f64>, 1>(ranks, [x], seed),
            1 => case::<R2c<f32>, 2>(ranks, [x, y], seed),
            2 => case::<R2c<f64>, 2>(ranks, [y, z], seed),
            3 => case::<C2c<f32>, 3>(ranks, shape, seed),
            4 => case::<C2c<f64>, 4>(ranks, [2, x, y, 3], seed),
            5 => case::<R2r<f64>, 3>(ranks, shape, seed),
            6 => case::<R2r<f32>, 2>(ranks, [x, y], seed),
            _ => case::<R2c<f64>, 3>(ranks, shape, seed),
        }
    }
}

#[test]
fn products_of_spectra_convolve() {
    for ranks in [1, 3, 4] {
        let complex = Case::new([4, 3, 5], [Kind::C2C; 3]).tiling(2).orders([1, 0, 2], [2, 0, 1]);
        let real = Case::new([5, 6], [Kind::R2C, Kind::C2C]).tiling(3);
        thriffty::threads(ranks, |comm| {
            convolution::<C2c<f64>, 3>(&comm, &complex)?;
            convolution::<C2c<f32>, 3>(&comm, &complex)?;
            convolution::<R2c<f64>, 2>(&comm, &real)
        })
        .unwrap();
    }
}

/// A vortex has its vorticity and no divergence, and its gradient part is what was added to it.
#[test]
fn vector_fields_have_the_derivatives_of_calculus() {
    let lengths = [TAU, 2.0 * TAU, TAU];
    let at = |[i, j, k]: [usize; 3]| {
        let [x, y, z] = [i as f64 / 8.0, j as f64 / 12.0, k as f64 / 10.0].map(|t| TAU * t);
        (x, y, z)
    };
    let velocity = |index| {
        let (x, y, z) = at(index);
        [x.sin() * y.cos() * z.cos(), -x.cos() * y.sin() * z.cos(), 0.0]
    };
    let vorticity = |index| {
        let (x, y, z) = at(index);
        let w = [-x.cos() * y.sin() * z.sin(), -x.sin() * y.cos() * z.sin()];
        [w[0], w[1], 2.0 * x.sin() * y.sin() * z.cos()]
    };
    let slope = |index| {
        let (x, y, z) = at(index);
        [x.cos() * y.sin() * z.sin(), x.sin() * y.cos() * z.sin(), x.sin() * y.sin() * z.cos()]
    };
    for ranks in RANKS {
        thriffty::threads(ranks, |comm| {
            let shape = [8, 24, 10];
            let scalar = thriffty::r2c(&comm, shape).transposed_output(true).build()?;
            let mut vector = thriffty::r2c(&comm, shape).batch(3).like(&scalar).build()?;
            let mut scalar = scalar;
            let domain = scalar.domain(lengths)?;
            let fill = |field: &mut Field<Physical, R2c, 3>,
                        value: &dyn Fn([usize; 3]) -> [f64; 3]| {
                let indices: Vec<_> = field.iter().map(|(index, _)| index).collect();
                let one = indices.len() / 3;
                for (at, (index, v)) in indices.iter().zip(field.as_mut_slice()).enumerate() {
                    *v = value(*index)[at / one.max(1)];
                }
            };
            let close = |found: Field<Physical, R2c, 3>, value: &dyn Fn([usize; 3]) -> [f64; 3]| {
                let one = found.as_slice().len() / 3;
                for (at, (index, v)) in found.iter().enumerate() {
                    let expected = value(index)[at / one.max(1)];
                    assert!((v - expected).abs() < 1e-13, "{v}, not {expected} at {index:?}");
                }
            };
            let mut u = vector.input();
            fill(&mut u, &velocity);
            let u = vector.forward(u)?;
            let mut w = vector.output();
            domain.apply(Operator::Curl, &u, &mut w);
            close(vector.inverse(w)?, &vorticity);
            let mut divergence: Field<Spectral, _, 3> = scalar.output();
            domain.apply(Operator::Divergence, &u, &mut divergence);
            let divergence = scalar.inverse(divergence)?;
            assert!(divergence.as_slice().iter().all(|v| v.abs() < 1e-13));
            let mut both = vector.input();
            fill(&mut both, &|index| {
                let (u, v) = (velocity(index), slope(index));
                std::array::from_fn(|a| u[a] + v[a])
            });
            let mut both = vector.forward(both)?;
            domain.apply_in_place(Operator::Project, &mut both);
            close(vector.inverse(both)?, &velocity);
            Ok::<_, Error>(())
        })
        .unwrap();
    }
}

#[test]
fn what_does_not_fit_is_an_error_on_every_rank() {
    thriffty::threads(3, |comm| {
        let mut plan = thriffty::r2c(&comm, [4, 6, 8]).build()?;
        let last = comm.rank() == 2;
        let refused = |found: Result<Field<_, R2c, 3>, Error>, word: &str| {
            let error = found.map(drop).unwrap_err();
            assert!(matches!(error, Error::OnRank { rank: 2, .. }), "{error}");
            assert!(error.to_string().contains(word), "{error}");
            error.kind()
        };
        let domain = plan.domain([1.0; 3])?;
        assert_eq!(domain.wavenumbers(0).len(), plan.output_brick().len(0));
        for (operator, word) in [
            (Operator::Helmholtz(f64::NAN), "shift"),
            (Operator::Gaussian(f64::INFINITY), "standard deviation"),
            (Operator::Gaussian(-0.1), "standard deviation: found -0.1, expected 0 or more"),
            (Operator::Cutoff(-1e-9), "fraction: found -0.000000001, expected 0 or more"),
            (Operator::Derivative(3), "axis: found 3"),
            (Operator::Gradient, "in place"),
            (Operator::Curl, "the input of rank 2"),
        ] {
            let mut field = plan.output();
            let operator = if last { operator } else { Operator::Poisson };
            domain.apply_in_place(operator, &mut field);
            refused(plan.inverse(field), word);
        }
        let other = thriffty::r2c(&comm, [4, 6, 10]).build()?;
        let mut field = plan.output();
        let stranger = other.domain([1.0; 3])?;
        let one = if last { &stranger } else { &domain };
        one.apply_in_place(Operator::Poisson, &mut field);
        assert_eq!(refused(plan.inverse(field), "another domain"), ErrorKind::Argument);
        assert!(plan.domain([1.0, 0.0, 1.0]).is_err());
        Ok::<_, Error>(())
    })
    .unwrap();
}

/// The spectrum stays where the last transform leaves it, which saves an exchange between slabs.
#[test]
fn transposed_outputs_cost_fewer_exchanges() {
    for ranks in [2, 3, 4] {
        thriffty::threads(ranks, |comm| {
            let slab = ProcGrid::new([ranks, 1, 1]).brick(&Grid::new([12, 10, 8])?, comm.rank());
            let draft = || {
                let draft = thriffty::c2c(&comm, [12, 10, 8]).input_brick(slab);
                draft.exchange(Exchange::P2p).ignore_shared_memory(true)
            };
            let same = draft().output_brick(slab).build()?;
            let transposed = draft().transposed_output(true).build()?;
            let exchanges = |plan: &thriffty::Plan<C2c, 3>| {
                let steps = plan.recipe().steps().iter();
                steps.filter(|step| matches!(step, Step::Reshape { .. })).count()
            };
            assert_eq!((exchanges(&same), exchanges(&transposed)), (2, 1));
            let error =
                draft().transposed_output(true).output_order([1, 0, 2]).build().unwrap_err();
            assert!(error.to_string().contains("transposed_output"), "{error}");
            Ok::<_, Error>(())
        })
        .unwrap();
    }
}

/// The potential of a Gaussian charge in open space converges to its formula with the square of the
/// spacing, whatever the bricks; the potential of points far away is exact.
#[test]
fn potentials_in_open_space_converge() {
    let error = |n: usize, ranks: usize| {
        let errors = thriffty::threads(ranks, |comm| {
            let (h, deviation) = (1.0 / n as f64, 0.1);
            let draft = thriffty::r2c(&comm, [n, n + 2, n]).zero_padded([2 * n, 2 * n + 4, 2 * n]);
            let mut plan = draft.transposed_output(true).build()?;
            let (green, domain) = (plan.green_function([h; 3])?, plan.domain([1.0; 3])?);
            // The centre is no point of the grid.
            let r = |[i, j, k]: [usize; 3]| {
                let square = |i: usize| ((i as f64 + 0.3) * h - 0.5).powi(2);
                (square(i) + square(j) + square(k)).sqrt()
            };
            let normal = (TAU.sqrt() * deviation).powi(3);
            let mut rho = plan.input();
            rho.fill(|at| (-0.5 * (r(at) / deviation).powi(2)).exp() / normal);
            let mut rho = plan.forward(rho)?;
            domain.convolve(&green, &mut rho);
            let phi = plan.inverse(rho)?;
            let largest = 2.0 / (2.0 * TAU * TAU.sqrt() * deviation);
            let exact = |r: f64| erf(r / (2f64.sqrt() * deviation)) / (2.0 * TAU * r);
            let off = phi.iter().map(|(at, v)| (v - exact(r(at))).abs() / largest);
            Ok::<_, Error>(off.fold(0.0, f64::max))
        });
        errors.unwrap().into_iter().fold(0.0, f64::max)
    };
    let [coarse, fine] = [error(16, 3), error(32, 2)];
    assert!(coarse < 0.015 && (3.5..4.8).contains(&(coarse / fine)), "{coarse}, {fine}");
}

/// The error function, by its series; for arguments of a few units.
fn erf(x: f64) -> f64 {
    if x > 5.0 {
        return 1.0;
    }
    let (mut term, mut sum) = (x, x);
    for n in 1..200 {
        term *= -x * x / n as f64;
        sum += term / (2 * n + 1) as f64;
    }
    sum * 2.0 / (TAU / 2.0).sqrt()
}

#[test]
fn open_space_needs_twice_the_length() {
    thriffty::threads(2, |comm| {
        let plan = |lens: [usize; 3]| thriffty::r2c(&comm, [4, 4, 4]).zero_padded(lens).build();
        for (found, text) in [
            (plan([8, 8, 7])?.green_function([1.0; 3]), "along axis 2 in open space: found 7"),
            (plan([8, 8, 8])?.green_function([1.0, 0.0, 1.0]), "spacing of axis 1: found 0"),
        ] {
            let error = found.unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
        let line = thriffty::r2c(&comm, [4]).zero_padded([8]).build()?;
        let error = line.green_function([1.0]).unwrap_err().to_string();
        assert!(error.contains("axes of open space: found 1"), "{error}");
        Ok::<_, Error>(())
    })
    .unwrap();
}
