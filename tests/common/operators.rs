//! Operators on spectra against their formulas, mode by mode, on any communicator.

use std::f64::consts::{PI, TAU};

use Kind::{C2C, Dct1, Dct2, Dct3, Dct4, Dst1, Dst2, Dst3, Dst4, R2C};
use fft_core::Real;
use thriffty::spectral::Operator;
use thriffty::{Comm, Error, Field, Kind, Plan, Spectral};

use super::check::{Case, Make};
use super::data::{C64, cut, index, place, random, widen};
use super::tiling::Rng;

/// All operators, for `axes` axes.
pub(crate) fn all(axes: usize) -> Vec<Operator> {
    let mut all: Vec<_> = (0..axes).map(Operator::Derivative).collect();
    all.extend([Operator::Gradient, Operator::Divergence, Operator::Curl, Operator::Project]);
    all.extend([Operator::Laplacian, Operator::Poisson, Operator::Helmholtz(0.7)]);
    all.extend([Operator::Helmholtz(-3.0), Operator::Gaussian(0.3), Operator::Cutoff(2.0 / 3.0)]);
    all
}

/// Numbers this small have fewer digits in single precision.
const LEAST: f64 = 1e-44;

/// Lengths that make all wavenumbers different.
fn lengths<const D: usize>() -> [f64; D] {
    std::array::from_fn(|axis| 1.0 + 0.7 * axis as f64)
}

/// The wavenumber of an index, whether it is the middle mode, and the highest of the axis.
fn wave(kind: Kind, n: usize, index: usize, length: f64) -> (f64, bool, f64) {
    let (half, i) = (PI / length, index as f64);
    let k = match kind {
        Kind::None | Kind::Tridiagonal => 0.0,
        C2C if 2 * index >= n => TAU / length * (i - n as f64),
        C2C | R2C => TAU / length * i,
        Dct1 | Dct2 => half * i,
        Dst1 | Dst2 => half * (i + 1.0),
        Dct3 | Dct4 | Dst3 | Dst4 => half * (i + 0.5),
    };
    let middle = matches!(kind, C2C | R2C) && 2 * index == n;
    // A single point along a complex axis is the mean.
    if n == 1 && kind == C2C { (0.0, false, half) } else { (k, middle, half * n as f64) }
}

/// The components of a result at one mode, and the sums of the magnitudes of its terms.
fn expected(
    operator: Operator,
    u: &[C64],
    waves: &[(f64, bool, f64)],
    along: &[usize],
) -> Vec<(C64, f64)> {
    let i = C64::new(0.0, 1.0);
    let d = |axis: usize| if waves[axis].1 { 0.0 } else { waves[axis].0 };
    let square: f64 = waves.iter().map(|wave| wave.0 * wave.0).sum();
    let by = |factor: f64| vec![(u[0] * factor, (u[0] * factor).norm())];
    let over = |x: f64| if x == 0.0 { 0.0 } else { 1.0 / x };
    let sum = |terms: &[C64]| (terms.iter().sum(), terms.iter().map(|term| term.norm()).sum());
    match operator {
        Operator::Laplacian => by(-square),
        Operator::Poisson => by(over(square)),
        // Differences of large numbers, and powers, are as accurate as these are.
        Operator::Helmholtz(shift) => {
            let found = u[0] * over(shift + square);
            vec![(found, found.norm() * (1.0 + square * over(shift + square).abs()))]
        }
        Operator::Gaussian(deviation) => {
            let exponent = square * deviation * deviation / 2.0;
            let found = u[0] * (-exponent).exp();
            vec![(found, found.norm() * (1.0 + exponent))]
        }
        Operator::Cutoff(fraction) => {
            let below = |wave: &(f64, bool, f64)| wave.0.abs() < fraction * wave.2 * (1.0 - 1e-12);
            by(if waves.iter().all(below) { 1.0 } else { 0.0 })
        }
        Operator::Derivative(axis) => vec![sum(&[i * d(axis) * u[0]])],
        Operator::Gradient => along.iter().map(|axis| sum(&[i * d(*axis) * u[0]])).collect(),
        Operator::Divergence => {
            let terms = along.iter().zip(u).map(|(axis, u)| i * d(*axis) * u);
            vec![sum(&terms.collect::<Vec<_>>())]
        }
        Operator::Curl => {
            let turn = |a: usize, b: usize| sum(&[i * d(along[a]) * u[b], -i * d(along[b]) * u[a]]);
            match along.len() {
                2 => vec![turn(0, 1)],
                _ => vec![turn(1, 2), turn(2, 0), turn(0, 1)],
            }
        }
        Operator::Project => {
            let odd: f64 = along.iter().map(|axis| d(*axis) * d(*axis)).sum();
            let component = |a: usize| {
                let terms = along.iter().zip(u).map(|(b, u)| -u * d(along[a]) * d(*b) * over(odd));
                sum(&terms.chain([u[a]]).collect::<Vec<_>>())
            };
            (0..along.len()).map(component).collect()
        }
        other => panic!("{other:?} has no formula here"),
    }
}

/// Whether these kinds have the derivatives of an operator.
fn may(operator: Operator, kinds: &[Kind]) -> bool {
    use Operator::{Curl, Derivative, Divergence, Gradient, Project};
    let fourier = |kind: &Kind| matches!(kind, C2C | R2C);
    let dimensions = kinds.iter().filter(|kind| **kind != Kind::None).count();
    match operator {
        Derivative(axis) => fourier(&kinds[axis]),
        Gradient | Divergence | Project | Curl => {
            let turns = operator != Curl || [2, 3].contains(&dimensions);
            dimensions > 0 && turns && kinds.iter().all(|kind| fourier(kind) || *kind == Kind::None)
        }
        _ => true,
    }
}

/// A field of random modes, and the whole arrays that it is a part of.
pub(crate) fn field<K: Make, const D: usize>(
    plan: &Plan<K, D>,
    shape: [usize; D],
    seed: u64,
) -> (Field<Spectral, K, D>, Vec<K::Spectral>) {
    let batch = plan.recipe().problem().batch;
    let whole = random(shape.iter().product::<usize>() * batch, seed);
    let mut field = plan.output();
    let part = cut(&whole, shape, plan.output_brick(), plan.output_order().array());
    field.as_mut_slice().copy_from_slice(&part);
    (field, whole)
}

/// One operator on all ranks. Operands come as a batch of `operands` vectors or scalars.
pub(crate) fn check<K: Make, const D: usize>(
    comm: &dyn Comm,
    case: &Case<D>,
    transposed: bool,
    (operator, operands): (Operator, usize),
) -> Result<(), Error> {
    let lengths = lengths();
    let draft = K::draft(comm, case.grids()?[0]).kinds(case.kinds).one_rank(true);
    let plan =
        if transposed { draft.transposed_output(true).build()? } else { case.plan::<K>(comm)? };
    let domain = plan.domain(lengths)?;
    let Ok([before, after]) = operator.components(domain.dimensions()) else { return Ok(()) };
    let of = |components: usize| {
        let draft = K::draft(comm, case.grids()?[0]).kinds(case.kinds).like(&plan);
        draft.batch(components * operands).build()
    };
    let (mut from, to) = (of(before)?, of(after)?);
    let shape = case.grids()?[1].shape();
    let (operand, whole) = field(&from, shape, 5);
    let (mut result, _) = field(&to, shape, 6);
    domain.apply(operator, &operand, &mut result);
    let what = format!("{operator:?}, rank {} of {}, {case:?}", comm.rank(), comm.size());
    if !may(operator, &case.kinds) {
        let mut to = to;
        let error = to.inverse(result).unwrap_err();
        assert!(error.to_string().contains("kind of axis"), "{error}: {what}");
        return Ok(());
    }
    let along: Vec<_> = (0..D).filter(|axis| case.kinds[*axis] != Kind::None).collect();
    let (whole, points) = (widen(&whole), shape.iter().product::<usize>());
    let mut results = vec![(C64::default(), 0.0); points * after * operands];
    for place in 0..points {
        let index = index(shape, place);
        let waves: [_; D] = std::array::from_fn(|axis| {
            wave(case.kinds[axis], case.shape[axis], index[axis], lengths[axis])
        });
        for item in 0..operands {
            let u: Vec<_> =
                (0..before).map(|c| whole[(item * before + c) * points + place]).collect();
            for (c, found) in expected(operator, &u, &waves, &along).into_iter().enumerate() {
                results[(item * after + c) * points + place] = found;
            }
        }
    }
    let expected = cut(&results, shape, to.output_brick(), to.output_order().array());
    let close = |found: &[K::Spectral]| {
        assert_eq!(found.len(), expected.len(), "{what}");
        for (found, (expected, size)) in widen(found).iter().zip(&expected) {
            // Real spectra have no imaginary part, and neither have their operators.
            let error = (found - expected).norm();
            let bound = 32.0 * K::Real::EPSILON * size + LEAST;
            assert!(error <= bound, "{found}, not {expected}: {what}");
        }
    };
    close(result.as_slice());
    if before == after {
        let mut operand = operand;
        domain.apply_in_place(operator, &mut operand);
        close(operand.as_slice());
        from.inverse(operand)?;
    } else {
        let mut operand = operand;
        domain.apply_in_place(operator, &mut operand);
        let error = from.inverse(operand).unwrap_err();
        assert!(error.to_string().contains("in place"), "{error}: {what}");
    }
    Ok(())
}

/// Products with a kernel against its definition, as sums over all points.
pub(crate) fn convolution<K: Make, const D: usize>(
    comm: &dyn Comm,
    case: &Case<D>,
) -> Result<(), Error> {
    let mut one = case.plan::<K>(comm)?;
    let draft = K::draft(comm, case.grids()?[0]).kinds(case.kinds).like(&one);
    let mut two = draft.batch(2).build()?;
    let (shape, points) = (case.shape, case.shape.iter().product::<usize>());
    let domain = one.domain(lengths())?;
    let whole: [Vec<K::Physical>; 2] = [random(points, 7), random(2 * points, 8)];
    let orders = [one.input_order().array(), two.input_order().array()];
    let (mut kernel, mut data) = (one.input(), two.input());
    kernel.as_mut_slice().copy_from_slice(&cut(&whole[0], shape, one.input_brick(), orders[0]));
    data.as_mut_slice().copy_from_slice(&cut(&whole[1], shape, two.input_brick(), orders[1]));
    let kernel = one.forward(kernel)?;
    let (a, b) = (widen(&whole[0]), widen(&whole[1]));
    for conjugate in [false, true] {
        let mut product = two.forward(data.clone())?;
        if conjugate {
            domain.correlate(&kernel, &mut product)
        } else {
            domain.convolve(&kernel, &mut product)
        }
        let found = two.inverse(product)?;
        let sum = |item: usize, at: usize| -> C64 {
            let term = |from: usize| {
                let (i, j) = (index(shape, at), index(shape, from));
                let shift = |axis: usize| (i[axis] + shape[axis] - j[axis]) % shape[axis];
                let behind = place(shape, std::array::from_fn(shift));
                let ahead =
                    place(shape, std::array::from_fn(|axis| (i[axis] + j[axis]) % shape[axis]));
                if conjugate {
                    a[from].conj() * b[item * points + ahead]
                } else {
                    a[from] * b[item * points + behind]
                }
            };
            (0..points).map(term).sum()
        };
        let sums: Vec<_> = (0..2 * points).map(|at| sum(at / points, at % points)).collect();
        let expected = cut(&sums, shape, two.input_brick(), orders[1]);
        for (found, expected) in widen(found.as_slice()).iter().zip(&expected) {
            let bound = 64.0 * K::Real::EPSILON * (points as f64).sqrt();
            assert!((found - expected).norm() <= bound, "{found}, not {expected}: {case:?}");
        }
    }
    Ok(())
}

/// Random kinds of a family with a complex or a real spectrum.
pub(crate) fn kinds<const D: usize>(complex: bool, halved: bool, rng: &mut Rng) -> [Kind; D] {
    let mixed = [C2C, Kind::None, Dct2, Dst3];
    let real = [Kind::None, Dct1, Dct2, Dct3, Dct4, Dst1, Dst2, Dst3, Dst4];
    let alike = rng.below(3) > 0;
    let mut kinds = std::array::from_fn(|_| match (complex || halved, alike) {
        (true, true) => C2C,
        (true, false) => mixed[rng.below(4)],
        (false, _) => real[rng.below(9)],
    });
    if halved {
        kinds[rng.below(D)] = R2C;
    }
    kinds
}
