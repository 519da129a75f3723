//! Tests of tuned plans: they compute the same, and save wisdom.

use std::path::Path;
use std::time::Duration;

use fft_comm::threads_on;
use thriffty::machine::{How, Machine, Quantity};
use thriffty::planning::{Epochs, Exchange};
use thriffty::tuning::Source;
use thriffty::{C2c, Comm, Complex, Draft, Error, ErrorKind, Grid, Plan, Tolerance, Tuning, Wire};

const SHORT: Tuning = Tuning::Measure { budget: Duration::from_millis(150) };

fn draft<'a>(comm: &'a dyn Comm, tuning: Tuning) -> Draft<'a, C2c, 3> {
    Plan::<C2c>::c2c(comm, Grid::new([8, 12, 10]).unwrap()).tuning(tuning)
}

/// The transform of the same numbers on every rank's brick, by this plan.
fn transform(plan: &mut Plan<C2c>) -> Vec<Complex<f64>> {
    let mut field = plan.input();
    field.fill(|[i, j, k]| Complex::new((i * 3 + j) as f64 - 7.0, (k * j) as f64));
    let mut found = Vec::new();
    plan.forward(field).unwrap().iter().for_each(|(_, value)| found.push(*value));
    found
}

#[test]
fn an_exchange_that_ranks_lack_is_not_timed_under_another_name() {
    let found = threads_on(&[0, 1], |comm| {
        let ring = Exchange::Ring(Epochs::Fence);
        draft(&comm, SHORT).exchange(ring).build().map(drop).unwrap_err().to_string()
    });
    assert!(found.iter().all(|error| error.contains("candidates that work: found")), "{found:?}");
}

#[test]
fn however_it_was_chosen_it_computes_the_same() {
    for hosts in [vec![0], vec![0, 0], vec![0, 1, 1, 0]] {
        threads_on(&hosts, |comm| {
            let mut by_model = draft(&comm, Tuning::Model).build().unwrap();
            let expected = transform(&mut by_model);
            let mut measured = draft(&comm, SHORT).build().unwrap();
            assert_eq!(by_model.report().source, Source::Model);
            assert_eq!(measured.report().source, Source::Measured);
            let row = measured.report().chosen();
            assert_eq!(row.recipe, measured.recipe().to_string());
            assert!(row.measured().unwrap() > 0.0);
            let found = transform(&mut measured);
            let near = |(a, b): (&Complex<f64>, &Complex<f64>)| (a - b).norm() < 1e-9;
            assert!(found.len() == expected.len() && found.iter().zip(&expected).all(near));
        });
    }
}

#[test]
fn an_exchange_that_is_given_is_not_chosen() {
    threads_on(&[0, 0, 1], |comm| {
        for tune in [Tuning::Model, SHORT] {
            let plan = draft(&comm, tune).exchange(Exchange::Alltoallv).build().unwrap();
            let rows = &plan.report().rows;
            assert!(rows.iter().all(|row| row.exchange == Exchange::Alltoallv));
            assert_eq!(plan.exchange(), Exchange::Alltoallv);
        }
        let chosen = draft(&comm, Tuning::Model).build().unwrap();
        assert!(chosen.report().rows.len() > 1);
        // Nothing is clearly faster for so little.
        assert_eq!(chosen.exchange(), Exchange::Shared);
        assert!(chosen.report().rows.is_sorted_by(|a, b| a.predicted <= b.predicted + 1e-12));
        assert_eq!(chosen.recipe().predict().seconds, chosen.report().chosen().predicted);
    });
}

#[test]
fn a_recipe_that_was_printed_is_found_again_and_others_are_refused() {
    threads_on(&[0, 0, 1], |comm| {
        for exchange in [Exchange::Shared, Exchange::P2p, Exchange::KWay(2)] {
            let plan = draft(&comm, Tuning::Model).exchange(exchange).build().unwrap();
            let text = plan.recipe().to_string();
            let again = draft(&comm, Tuning::Recipe(text.clone())).build().unwrap();
            assert_eq!(again.recipe(), plan.recipe());
            assert_eq!(again.report().source, Source::Recipe);
            let other = draft(&comm, Tuning::Recipe(text)).exchange(Exchange::Alltoallv).build();
            assert_eq!(other.err().map(|error| error.kind()), Some(ErrorKind::Argument));
        }
        // Lossy encodings must be requested.
        let lossy = draft(&comm, Tuning::Model).wire(Wire::F32).build().unwrap();
        let text = lossy.recipe().to_string();
        let error = draft(&comm, Tuning::Recipe(text.clone())).build().err().unwrap();
        assert!(error.to_string().contains("found f32, expected raw"), "{error}");
        assert!(draft(&comm, Tuning::Recipe(text)).wire(Wire::F32).build().is_ok());
        for text in ["", "(", "(c2c 8x12x10)", "nonsense shared raw"] {
            let error = draft(&comm, Tuning::Recipe(text.into())).build().err().unwrap();
            assert!(error.to_string().contains("of the recipe"), "{error}");
        }
    });
}

#[test]
fn with_a_tolerance_the_wire_may_be_raw_where_that_is_faster() {
    threads_on(&[0, 1], |comm| {
        let draft = |tune| draft(&comm, tune).tolerance(Tolerance::relative(1e-6).unwrap());
        let plan = draft(SHORT).build().unwrap();
        let wires: Vec<_> = plan.report().rows.iter().map(|row| row.wire).collect();
        assert!(wires.contains(&Wire::Tolerance) && wires.contains(&Wire::Raw), "{wires:?}");
        let fixed = draft(SHORT).wire(Wire::Tolerance).build().unwrap();
        assert!(fixed.report().rows.iter().all(|row| row.wire == Wire::Tolerance));
        let model = draft(Tuning::Model).build().unwrap();
        assert!(model.report().rows.iter().all(|row| row.wire == Wire::Tolerance));
        let exact = draft(Tuning::Recipe(plan.recipe().to_string())).build().unwrap();
        assert_eq!(exact.recipe().to_string(), plan.recipe().to_string());
    });
}

/// The choice with this wisdom, on every rank.
fn with_wisdom(hosts: &[usize], path: &Path) -> (Source, String) {
    let mut found = threads_on(hosts, |comm| {
        let plan = draft(&comm, Tuning::Wisdom(path.into())).build().unwrap();
        (plan.report().source, plan.recipe().to_string())
    });
    let first = found.swap_remove(0);
    assert!(found.iter().all(|other| *other == first));
    first
}

#[test]
fn wisdom_is_used_where_it_was_made_and_ignored_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wisdom.toml");
    let hosts = [0, 0, 1];
    // There is none yet.
    assert_eq!(with_wisdom(&hosts, &path).0, Source::Model);
    let saved = threads_on(&hosts, |comm| {
        let plan = draft(&comm, SHORT).build().unwrap();
        plan.save_wisdom(&path).unwrap();
        // An entry of another transform, in the same file.
        let other = Plan::<C2c, 2>::c2c(&comm, Grid::new([6, 7]).unwrap()).tuning(SHORT);
        other.build().unwrap().save_wisdom(&path).unwrap();
        // An entry of the other precision, next to the one of this precision.
        let single = draft(&comm, SHORT).precision::<f32>();
        single.build().unwrap().save_wisdom(&path).unwrap();
        (plan.recipe().to_string(), plan.report().chosen().chunk)
    });
    assert_eq!(with_wisdom(&hosts, &path), (Source::Wisdom, saved[0].0.clone()));
    threads_on(&hosts, |comm| {
        let plan = draft(&comm, Tuning::Wisdom(path.clone())).build().unwrap();
        assert_eq!(plan.report().chosen().chunk, saved[0].1);
        // Other problems: another exchange requested, another batch.
        for other in [draft(&comm, Tuning::Wisdom(path.clone())).batch(2), {
            draft(&comm, Tuning::Wisdom(path.clone())).exchange(Exchange::P2p)
        }] {
            assert_eq!(other.build().unwrap().report().source, Source::Model);
        }
        // What was not measured is not wisdom.
        assert!(plan.save_wisdom(&path).is_err());
    });
    // Other ranks, other hosts.
    for hosts in [&[0, 1][..], &[0, 0, 0]] {
        assert_eq!(with_wisdom(hosts, &path).0, Source::Model);
    }
    let text = std::fs::read_to_string(&path).unwrap();
    for damaged in [text.replace("version", "versiom"), text[..text.len() / 2].into(), "".into()] {
        std::fs::write(&path, damaged).unwrap();
        assert_eq!(with_wisdom(&hosts, &path).0, Source::Model);
    }
}

/// What a rank makes of a draft.
type Changed = dyn Fn(usize, Draft<'_, C2c, 3>) -> Result<Plan<C2c>, Error> + Sync;

#[test]
fn ranks_that_tune_differently_are_told() {
    let differ = |options: &Changed| {
        let found = thriffty::threads(2, |comm| {
            let error = options(comm.rank(), draft(&comm, Tuning::Model)).err().unwrap();
            Ok::<_, Error>(error.to_string())
        });
        let found = found.unwrap();
        assert_eq!(found[0], found[1]);
        found.into_iter().next().unwrap()
    };
    let tuning =
        differ(&|rank, draft| draft.tuning(if rank == 0 { Tuning::Model } else { SHORT }).build());
    assert!(tuning.contains("disagree on the tuning"), "{tuning}");
    let machine = differ(&|rank, draft| {
        let cores = Quantity::new(4.0 + rank as f64, How::Assumed, "");
        draft.machine(Machine { cores, ..Machine::default() }).build()
    });
    assert!(machine.contains("disagree on the machine"), "{machine}");
    let known = differ(&|rank, draft| {
        let mut machine = Machine::default();
        machine.near.bandwidth.how = [How::Assumed, How::Measured][rank];
        draft.machine(machine).build()
    });
    assert!(known.contains("disagree on the machine"), "{known}");
    let lines = differ(&|rank, draft| {
        let mut machine = Machine::default();
        machine.lines.f64.longest -= rank;
        draft.machine(machine).build()
    });
    assert!(lines.contains("disagree on the machine"), "{lines}");
}

#[test]
fn a_machine_that_cannot_be_is_refused_on_all_ranks() {
    let found = thriffty::threads(2, |comm| {
        let mut machine = Machine::default();
        machine.memory.value = f64::NAN;
        draft(&comm, Tuning::Model).machine(machine).build().map(drop)
    });
    assert!(found.unwrap_err().to_string().contains("memory of machine default: found NaN"));
}
