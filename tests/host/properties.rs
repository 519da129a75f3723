//! Properties of every transform, over random bricks: impulses, constants, linearity, shifts,
//! Parseval's theorem, symmetry. They need no oracle.

use std::f64::consts::TAU;

use crate::common::RANKS;
use crate::common::check::{Case, check};
use crate::common::data::{C64, bound, distance, index, norm, place, random, widen};
use crate::common::tiling::Rng;
use crate::whole::forward as spectrum;
use proptest::prelude::*;
use proptest::sample::select;
use thriffty::planning::{Exchange, Reduce};
use thriffty::{C2c, Comm, Grid, Kind, Plan, R2c, R2r, Scale};

/// `exp(-2πi Σ k p / n)`, the angle reduced to half a turn in whole numbers: one rounding, not one
/// per axis.
fn phase<const D: usize>(shape: [usize; D], k: [usize; D], p: [usize; D]) -> C64 {
    let points: usize = shape.iter().product();
    let turns: usize = (0..D).map(|axis| k[axis] * p[axis] * (points / shape[axis])).sum();
    let (part, turns) = (turns % points, points as f64);
    let signed = if 2 * part > points { part as f64 - turns } else { part as f64 };
    C64::from_polar(1.0, -TAU * signed / turns)
}

/// Grids of uneven shapes, bricks and orders at random.
#[derive(Clone, Debug)]
struct Setting<const D: usize> {
    ranks: usize,
    shape: [usize; D],
    seed: u64,
    exchange: Exchange,
}

impl<const D: usize> Setting<D> {
    fn case(&self, kinds: [Kind; D]) -> Case<D> {
        let mut rng = Rng(self.seed ^ 7);
        Case::new(self.shape, kinds)
            .tiling(self.seed)
            .orders(rng.order(), rng.order())
            .exchange(self.exchange)
    }

    fn points(&self) -> usize {
        self.shape.iter().product()
    }

    /// The error that is allowed in f64.
    fn bound(&self) -> f64 {
        bound(f64::EPSILON, self.points())
    }

    /// The axis that is halved in real transforms.
    fn halved(&self) -> usize {
        (self.seed % D as u64) as usize
    }

    fn halving(&self) -> [Kind; D] {
        std::array::from_fn(|axis| if axis == self.halved() { Kind::R2C } else { Kind::C2C })
    }
}

fn settings<const D: usize>(longest: usize) -> impl Strategy<Value = Setting<D>> {
    let shape: [_; D] = std::array::from_fn(|_| 1..=longest);
    (select(&RANKS[..]), shape, any::<u64>().no_shrink(), select(&Exchange::ALL[..]))
        .prop_map(|(ranks, shape, seed, exchange)| Setting { ranks, shape, seed, exchange })
}

type Checked = Result<(), TestCaseError>;

fn close(found: &[C64], expected: &[C64], bound: f64) -> Checked {
    let error = distance(found, expected) / norm(expected);
    prop_assert!(error <= bound, "relative error {error:.2e} exceeds {bound:.2e}");
    Ok(())
}

/// A single one becomes a wave: everywhere of size 1, with exact phases.
fn impulse<const D: usize>(s: &Setting<D>) -> Checked {
    let at = Rng(s.seed).below(s.points());
    let mut x = vec![C64::default(); s.points()];
    x[at] = C64::from(1.0);
    let found = spectrum::<C2c<f64>, D>(s.ranks, &s.case([Kind::C2C; D]), &x);
    let wave = |k| phase(s.shape, index(s.shape, k), index(s.shape, at));
    let expected: Vec<_> = (0..s.points()).map(wave).collect();
    // Every element by itself, not only their norm, so that no large element hides an error. A
    // factor of 2 is for the largest of them, another one for the phase that it is compared with.
    for (found, expected) in found.iter().zip(&expected) {
        prop_assert!((found - expected).norm() <= 3.0 * s.bound(), "{found}, not {expected}");
    }
    Ok(())
}

/// A constant has only the mean.
fn constant<const D: usize>(s: &Setting<D>) -> Checked {
    let case = s.case(s.halving());
    let found = spectrum::<R2c<f64>, D>(s.ranks, &case, &vec![1.0; s.points()]);
    let mut expected = vec![C64::default(); found.len()];
    expected[0] = C64::from(s.points() as f64);
    close(&found, &expected, s.bound())
}

/// The spectrum of a sum is the sum of spectra.
fn linearity<const D: usize>(s: &Setting<D>) -> Checked {
    let case = s.case([Kind::C2C; D]);
    let transform = |x: &[C64]| spectrum::<C2c<f64>, D>(s.ranks, &case, x);
    let (x, y): (Vec<C64>, Vec<C64>) = (random(s.points(), s.seed), random(s.points(), !s.seed));
    let (a, b) = (C64::new(0.5, -2.0), C64::new(-3.0, 0.25));
    let mix =
        |x: &[C64], y: &[C64]| -> Vec<_> { x.iter().zip(y).map(|(x, y)| a * x + b * y).collect() };
    let (one, two) = (transform(&x), transform(&y));
    let separate = mix(&one, &two);
    // Errors of the parts count as much as the parts, however much of them cancels.
    let parts = a.norm() * norm(&one) + b.norm() * norm(&two);
    let error = distance(&transform(&mix(&x, &y)), &separate) / parts;
    prop_assert!(error <= 2.0 * s.bound(), "error {error:.2e} relative to both parts");
    Ok(())
}

/// Moving data around the periodic grid turns phases.
fn shift<const D: usize>(s: &Setting<D>) -> Checked {
    let case = s.case(s.halving());
    let x: Vec<f64> = random(s.points(), s.seed);
    let by = index(s.shape, Rng(s.seed).below(s.points()));
    let from = |at: usize| {
        let i = index(s.shape, at);
        x[place(s.shape, std::array::from_fn(|a| (i[a] + s.shape[a] - by[a]) % s.shape[a]))]
    };
    let moved: Vec<f64> = (0..s.points()).map(from).collect();
    let spectral = case.grids().unwrap()[1].shape();
    let mut expected = spectrum::<R2c<f64>, D>(s.ranks, &case, &x);
    for (k, x) in expected.iter_mut().enumerate() {
        *x *= phase(s.shape, index(spectral, k), by);
    }
    close(&spectrum::<R2c<f64>, D>(s.ranks, &case, &moved), &expected, 2.0 * s.bound())
}

/// Energy is kept. Along a halved axis, modes that also stand for their mirror images count twice.
fn parseval<const D: usize>(s: &Setting<D>) -> Checked {
    let case = s.case(s.halving());
    let x: Vec<f64> = random(s.points(), s.seed);
    let found = spectrum::<R2c<f64>, D>(s.ranks, &case, &x);
    let (spectral, axis) = (case.grids().unwrap()[1].shape(), s.halved());
    let weight = |k: usize| match index(spectral, k)[axis] {
        0 => 1.0,
        k if 2 * k == s.shape[axis] => 1.0,
        _ => 2.0,
    };
    let energy: f64 = x.iter().map(|x| x * x).sum();
    let modes: f64 = found.iter().enumerate().map(|(k, x)| weight(k) * x.norm_sqr()).sum();
    // Squaring doubles a relative error; adding up N positive numbers costs at most N eps/2 on each
    // side.
    let allowed = 2.0 * s.bound() + s.points() as f64 * f64::EPSILON;
    let error = (modes / s.points() as f64 / energy - 1.0).abs();
    prop_assert!(error <= allowed, "energy is off by {error:.2e}, more than {allowed:.2e}");
    Ok(())
}

/// Modes of real data come in conjugate pairs, and the halved transform is the part that is needed
/// of them.
fn symmetry<const D: usize>(s: &Setting<D>) -> Checked {
    let x: Vec<f64> = random(s.points(), s.seed);
    let full = spectrum::<C2c<f64>, D>(s.ranks, &s.case([Kind::C2C; D]), &widen(&x));
    let mirror = |k: usize| {
        let k = index(s.shape, k);
        full[place(s.shape, std::array::from_fn(|a| (s.shape[a] - k[a]) % s.shape[a]))].conj()
    };
    let mirrored: Vec<_> = (0..full.len()).map(mirror).collect();
    close(&full, &mirrored, 2.0 * s.bound())?;
    let case = s.case(s.halving());
    let spectral = case.grids().unwrap()[1].shape();
    let halved = spectrum::<R2c<f64>, D>(s.ranks, &case, &x);
    let needed: Vec<_> =
        (0..halved.len()).map(|k| full[place(s.shape, index(spectral, k))]).collect();
    close(&halved, &needed, 2.0 * s.bound())
}

/// Kinds, orders, batches and scales at random, against the definition.
fn definition<const D: usize>(s: &Setting<D>) -> Checked {
    let mut rng = Rng(s.seed);
    let mut kinds = [Kind::None; D];
    for (kind, n) in kinds.iter_mut().zip(s.shape) {
        *kind = Kind::ALL[rng.below(Kind::Tridiagonal as usize)];
        if *kind == Kind::Dct1 && n == 1 {
            *kind = Kind::Dst1;
        }
    }
    let scales = [Scale::None, Scale::Full, Scale::Symmetric];
    let scale = |rng: &mut Rng| scales[rng.below(3)];
    let case =
        |kinds, rng: &mut Rng| s.case(kinds).batch(1 + rng.below(3)).scales(scale(rng), scale(rng));
    let run = |body: &(dyn Fn(&dyn Comm) -> Result<(), thriffty::Error> + Sync)| {
        thriffty::threads(s.ranks, |comm| body(&comm)).unwrap();
    };
    let axis = rng.below(D);
    let halved: [Kind; D] = std::array::from_fn(|a| match kinds[a] {
        _ if a == axis => Kind::R2C,
        Kind::R2C => Kind::C2C,
        kind => kind,
    });
    let whole = kinds.map(|kind| if kind == Kind::R2C { Kind::C2C } else { kind });
    let real = whole.map(|kind| if kind == Kind::C2C { Kind::Dct4 } else { kind });
    let (halved, whole, real) =
        (case(halved, &mut rng), case(whole, &mut rng), case(real, &mut rng));
    run(&|comm| check::<R2c<f64>, D>(comm, &halved));
    run(&|comm| check::<C2c<f32>, D>(comm, &whole));
    run(&|comm| check::<R2r<f64>, D>(comm, &real));
    Ok(())
}

macro_rules! properties {
    ($cases:literal: $($property:ident),*) => {$(
        mod $property {
            use super::*;
            proptest! {
                #![proptest_config(ProptestConfig {
                    failure_persistence: None,
                    ..ProptestConfig::with_cases($cases)
                })]
                #[test]
                fn in_1d(s in settings::<1>(120)) { super::$property(&s)?; }
                #[test]
                fn in_2d(s in settings::<2>(25)) { super::$property(&s)?; }
                #[test]
                fn in_3d(s in settings::<3>(11)) { super::$property(&s)?; }
                #[test]
                fn in_4d(s in settings::<4>(6)) { super::$property(&s)?; }
            }
        }
    )*};
}
properties!(64: impulse, constant, linearity, shift, parseval, symmetry, definition);

/// The Taylor-Green vortex, u = sin x cos y cos z, v = -cos x sin y cos z: its energy is 1/8 both
/// as the mean over space and as the sum over modes, and all of it is in modes whose three
/// frequencies are 1 or -1.
#[test]
fn taylor_green_vortex() {
    const N: usize = 32;
    let points = (N * N * N) as f64;
    for ranks in RANKS {
        thriffty::threads(ranks, |world| {
            let mut plan = Plan::<R2c, 3>::r2c(&world, Grid::new([N; 3])?)
                .forward_scale(Scale::Full)
                .inverse_scale(Scale::None)
                .build()?;
            // The mean of squares over space, the sum of squares over modes.
            let mut energy = [0.0; 2];
            for velocity in [0, 1] {
                let mut field = plan.input();
                field.fill(|index| {
                    let [x, y, z] = index.map(|i| TAU * i as f64 / N as f64);
                    match velocity {
                        0 => x.sin() * y.cos() * z.cos(),
                        _ => -x.cos() * y.sin() * z.cos(),
                    }
                });
                let squares: Vec<f64> = field.as_slice().iter().map(|u| u * u).collect();
                energy[0] += pairwise(&squares) / points / 2.0;
                let _ = plan.forward(field)?.map_modes(|mode, u| {
                    // A product of three waves of size 1 is eight modes of size 1/8.
                    let expected = if mode.iter().all(|k| k.abs() == 1) { 0.125 } else { 0.0 };
                    let error = (u.norm() - expected).abs();
                    assert!(error <= bound(f64::EPSILON, N), "{u} at {mode:?}");
                    let weight = if mode[2] == 0 || mode[2] == N as i64 / 2 { 1.0 } else { 2.0 };
                    energy[1] += weight * u.norm_sqr() / 2.0;
                    u
                });
            }
            world.allreduce(Reduce::Sum, &mut energy)?;
            // A square has twice the 3 eps of a product of three rounded waves; a pairwise sum of
            // 2^15 numbers adds 15 eps/2; the few that are added otherwise, ranks and velocities,
            // 4.
            let allowed = [20.0 * f64::EPSILON, 4.0 * bound(f64::EPSILON, N)];
            for (energy, allowed) in energy.into_iter().zip(allowed) {
                assert!((energy - 0.125).abs() <= allowed * 0.125, "{energy:.17} of 0.125");
            }
            Ok::<(), thriffty::Error>(())
        })
        .unwrap_or_else(|error| panic!("{ranks} ranks: {error}"));
    }
}

/// A sum whose error grows with the logarithm of the number of terms.
fn pairwise(numbers: &[f64]) -> f64 {
    match numbers {
        [] => 0.0,
        [one] => *one,
        _ => {
            let (left, right) = numbers.split_at(numbers.len() / 2);
            pairwise(left) + pairwise(right)
        }
    }
}
