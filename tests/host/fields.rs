//! Fields of the host: points by index, modes, derivatives, and failures that stay in them.

use std::f64::consts::TAU;

use thriffty::planning::Norm;
use thriffty::tuning::Report;
use thriffty::{Comm, Complex, Error, ErrorKind, Kind};

use crate::common::{RANKS, failures};

#[test]
fn points_have_global_indices() {
    thriffty::threads(3, |comm| {
        let plan = thriffty::r2c(&comm, [4, 5, 6]).input_order([2, 0, 1]).batch(2).build()?;
        let mut field = plan.input();
        let value = |[i, j, k]: [usize; 3]| (100 * i + 10 * j + k) as f64;
        field.fill(value);
        assert_eq!(field.iter().count(), plan.input_len());
        assert!(field.iter().all(|(index, v)| *v == value(index)));
        let lo = field.brick().lo;
        assert_eq!(field[lo], value(lo));
        field[lo] = -1.0;
        assert_eq!(field.as_slice().iter().filter(|v| **v == -1.0).count(), 1);
        assert!(format!("{field:?}").contains("physical"));
        let outside = [field.brick().hi[0], 0, 0];
        let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| field[outside]));
        assert!(found.is_err());
        Ok::<_, Error>(())
    })
    .unwrap();
}

/// Derivatives and Poisson's equation of waves, whose results have formulas.
#[test]
fn waves_are_derived_and_solved_for() {
    let lengths = [3.0, 2.0];
    let phase = |i: usize, j: usize| TAU * (i as f64 / 8.0 + 2.0 * j as f64 / 6.0);
    let (kx, ky) = (TAU / lengths[0], 2.0 * TAU / lengths[1]);
    for ranks in RANKS {
        thriffty::threads(ranks, |comm| {
            let mut plan = thriffty::r2c(&comm, [8, 6]).build()?;
            let mut wave = plan.input();
            wave.fill(|[i, j]| phase(i, j).sin());
            let spectrum = plan.forward(wave)?;
            for (axis, k) in [kx, ky].into_iter().enumerate() {
                let slope = plan.inverse(spectrum.gradient(axis, lengths))?;
                let error = |([i, j], v): ([usize; 2], &f64)| (v - k * phase(i, j).cos()).abs();
                assert!(slope.iter().map(error).all(|error| error < 1e-12));
            }
            let phi = plan.inverse(spectrum.poisson(lengths))?;
            let scale = kx * kx + ky * ky;
            let error = |([i, j], v): ([usize; 2], &f64)| (v - phase(i, j).sin() / scale).abs();
            assert!(phi.iter().map(error).all(|error| error < 1e-12));
            Ok::<_, Error>(())
        })
        .unwrap();
    }
}

#[test]
fn middle_modes_are_marked() {
    thriffty::threads(2, |comm| {
        let mut plan = thriffty::c2c(&comm, [4, 5]).build()?;
        let spectrum = plan.forward(plan.input())?;
        let mut marked = 0.0;
        spectrum.map_wavenumbers([TAU; 2], |waves, v| {
            assert_eq!(waves.nyquist, [waves.k[0] == -2.0, false]);
            assert!((-2.0..2.0).contains(&waves.k[0]) && (-2.0..=2.0).contains(&waves.k[1]));
            marked += f64::from(waves.nyquist[0]);
            v
        });
        let mut sum = [marked];
        comm.allreduce(thriffty::planning::Reduce::Sum, &mut sum)?;
        assert_eq!(sum, [5.0]);
        let kinds = [Kind::Dct2, Kind::Dst3];
        let mut plan = thriffty::r2r(&comm, [4, 5], kinds).build()?;
        plan.forward(plan.input())?.map_wavenumbers([TAU / 2.0; 2], |waves, v| {
            assert!(waves.k[0].fract() == 0.0 && waves.k[1].fract() == 0.5);
            assert_eq!(waves.square(), waves.k[0].powi(2) + waves.k[1].powi(2));
            v
        });
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn failures_stay_in_the_field() {
    thriffty::threads(3, |comm| {
        let kinds = [Kind::C2C, Kind::None];
        let mut plan = thriffty::c2c(&comm, [4, 6]).kinds(kinds).build()?;
        let last = comm.rank() == 2;
        let lengths = [if last { f64::NAN } else { 1.0 }, 1.0];
        let field = plan.output().gradient(usize::from(last), [1.0; 2]);
        for (field, word) in
            [(plan.output().poisson(lengths), "length of axis 0"), (field, "kind of axis 1")]
        {
            let error = plan.inverse(field).unwrap_err();
            assert!(matches!(error, Error::OnRank { rank: 2, .. }), "{error}");
            assert_eq!(error.kind(), ErrorKind::Argument);
            assert!(error.to_string().contains(word), "{error}");
        }
        plan.inverse(plan.output().poisson([1.0; 2])).map(drop)
    })
    .unwrap();
}

#[test]
fn fields_are_copied_between_plans_with_one_layout() {
    thriffty::threads(2, |world| {
        let [mut plan, mut other] =
            [thriffty::r2c(&world, [6, 5, 4]).build()?, thriffty::r2c(&world, [6, 5, 4]).build()?];
        let mut rho = plan.input();
        rho.fill(|[i, j, k]| (i * 20 + j * 4 + k) as f64);
        let mut copy = other.input();
        copy.copy_from(&rho);
        assert_eq!(copy.as_slice(), rho.to_host()?.as_slice());
        other.forward(copy)?;
        plan.forward(rho)?;
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn fields_of_other_layouts_are_refused_on_all_ranks() {
    thriffty::threads(3, |world| {
        let mut plan = thriffty::r2c(&world, [6, 5, 4]).build()?;
        let other = thriffty::r2c(&world, [6, 5, 5]).build()?;
        for culprit in 0..3 {
            let mut rho = plan.input();
            if world.rank() == culprit {
                rho.copy_from(&other.input());
                assert!(rho.to_host().is_err() && rho.synchronize().is_err());
            }
            let error = failures::everywhere(&world, "a copy", plan.forward(rho))?;
            assert!(error.to_string().contains("one of another layout"), "{error}");
        }
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn scales_have_numpys_names() {
    thriffty::threads(2, |comm| {
        for (name, factor) in [("backward", 1.0), ("ortho", 0.25), ("forward", 0.0625)] {
            let norm: Norm = name.parse()?;
            let mut plan = thriffty::c2c(&comm, [4, 4]).norm(norm).build()?;
            let mut ones = plan.input();
            ones.fill(|_| Complex::new(1.0, 0.0));
            let sums = plan.forward(ones)?;
            assert!(comm.rank() > 0 || sums[[0, 0]].re == 16.0 * factor, "{name}");
        }
        assert!("backwards".parse::<Norm>().is_err());
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn reports_and_recipes_can_be_written() {
    thriffty::threads(2, |comm| {
        let plan = thriffty::c2c(&comm, [8, 8]).build()?;
        let text = toml::to_string(plan.report()).unwrap();
        assert_eq!(toml::from_str::<Report>(&text).as_ref(), Ok(plan.report()));
        let value = toml::Value::try_from(plan.recipe()).unwrap();
        assert_eq!(value.as_str(), Some(plan.recipe().to_string().as_str()));
        Ok::<_, Error>(())
    })
    .unwrap();
}
