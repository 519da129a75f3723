//! The same recipe gives the same bits, in every run and in every plan; a reproducible transform
//! gives the same bits by every recipe.

use std::time::Duration;

use crate::common::check::Case;
use crate::common::data::{paste, random};
use crate::common::same_result::{check, check_some};
use thriffty::planning::{
    Direction, DynDraft, DynGrid, DynPlan, DynTransform, Exchange, Precision,
};
use thriffty::{C2c, Comm, Complex, Error, Kind, R2c, Tolerance, Tuning, Wire};

const RUNS: usize = 3;

/// Bytes of an array whose numbers have nothing special about them.
fn noise(bytes: usize, seed: u64) -> Vec<u8> {
    let numbers: Vec<f64> = random(bytes.div_ceil(8), seed);
    bytemuck::cast_slice(&numbers)[..bytes].to_vec()
}

/// Compares transforms of plans that were made anew, by the model or the clock and then by the
/// text of their recipe.
fn compare(
    comm: &dyn Comm,
    transform: DynTransform,
    tuning: &Tuning,
    change: &dyn Fn(&mut DynDraft<'_>),
) -> Result<(), Error> {
    let grid = DynGrid::new([12, 10, 14])?;
    let plan = |tuning: Tuning| {
        let mut draft = DynDraft::new(comm, grid, transform, Precision::F64);
        change(&mut draft);
        draft.options.tuning = tuning;
        draft.build()
    };
    let mut first = plan(tuning.clone())?;
    let text = first.recipe().to_string();
    let bytes = [first.input_bytes(), first.output_bytes()];
    let given = [0, 1].map(|side| noise(bytes[side], 2 * comm.rank() as u64 + side as u64));
    let run = |plan: &mut DynPlan| {
        let [mut there, mut back] = [noise(bytes[1], 97), noise(bytes[0], 98)];
        plan.run(Direction::Forward, &given[0], &mut there)?;
        plan.run(Direction::Inverse, &given[1], &mut back)?;
        Ok::<_, Error>([there, back])
    };
    let expected = run(&mut first)?;
    for _ in 1..RUNS {
        assert!(run(&mut first)? == expected, "{text}");
    }
    drop(first);
    let mut again = plan(Tuning::Recipe(text.clone()))?;
    assert_eq!(again.recipe().to_string(), text);
    assert!(run(&mut again)? == expected, "{text}");
    Ok(())
}

const TRANSFORMS: [DynTransform; 3] = [DynTransform::C2c, DynTransform::R2c, DynTransform::R2r];

#[test]
fn plans_of_one_recipe_give_the_same_bits() {
    for ranks in [1, 2, 3, 5, 7] {
        thriffty::threads(ranks, |comm| {
            for transform in TRANSFORMS {
                for exchange in [Exchange::Shared, Exchange::P2p, Exchange::Alltoallv] {
                    compare(&comm, transform, &Tuning::Model, &|draft| {
                        draft.options.exchange = Some(exchange);
                    })?;
                }
            }
            Ok::<_, Error>(())
        })
        .unwrap();
    }
}

#[test]
fn what_was_chosen_by_the_clock_gives_the_same_bits_by_its_name() {
    let tuning = Tuning::Measure { budget: Duration::from_millis(20) };
    thriffty::threads(3, |comm| {
        TRANSFORMS.into_iter().try_for_each(|it| compare(&comm, it, &tuning, &|_| ()))
    })
    .unwrap();
}

#[test]
fn encoded_messages_give_the_same_bits() {
    let tolerance = Tolerance::relative(1e-4).unwrap();
    thriffty::threads(4, |comm| {
        TRANSFORMS.into_iter().try_for_each(|it| {
            compare(&comm, it, &Tuning::Model, &|draft| {
                draft.options.tolerance = Some(tolerance);
                draft.options.ignore_shared_memory = true;
            })
        })
    })
    .unwrap();
}

#[test]
fn reproducible_transforms_do_not_depend_on_layouts() {
    let each = u64::from(crate::schemes::cases().div_ceil(6));
    for (first, ranks) in [1, 2, 3, 4, 6, 12].into_iter().enumerate() {
        let first = first as u64 * each;
        thriffty::threads(ranks, |comm| check_some(&comm, first..first + each)).unwrap();
    }
}

/// Columns whose rows evict each other from caches, planes that are not in cache when their
/// transforms begin, single columns, lines that are too long to be transformed several at once, and
/// primes.
#[test]
fn reproducible_transforms_do_not_depend_on_places_in_memory() {
    let turned = [1, 2, 0];
    let (complex, halved) = ([Kind::C2C; 3], [Kind::R2C, Kind::C2C, Kind::C2C]);
    for ranks in [1, 2, 3] {
        thriffty::threads(ranks, |comm| {
            for shape in [[16, 256, 2], [2, 130, 128], [24, 1, 1], [2500, 1, 2], [23, 5, 101]] {
                let case = Case::new(shape, complex);
                check::<C2c<f64>, 3>(&comm, &case.clone().orders(turned, [0, 1, 2]), 1)?;
                check::<C2c<f32>, 3>(&comm, &case.orders([2, 0, 1], turned), 1)?;
                let case = Case::new(shape, halved);
                check::<R2c<f64>, 3>(&comm, &case.orders(turned, turned), 1)?;
            }
            Ok::<_, Error>(())
        })
        .unwrap();
    }
}

#[test]
fn reproducible_transforms_do_not_depend_on_layouts_beside_padding_and_truncation() {
    let spectrum = |ranks| {
        let parts = thriffty::threads(ranks, |comm| {
            let mut plan = thriffty::r2c(&comm, [12, 10, 14])
                .zero_padded([18, 15, 22])
                .modes([12, 9, 14])
                .reproducible(true)
                .build()?;
            let mut field = plan.input();
            field.fill(|[i, j, k]| ((i * j + 3 * k) as f64).sqrt());
            let spectrum = plan.forward(field)?;
            Ok::<_, Error>((plan.output_brick(), spectrum.as_slice().to_vec()))
        });
        let shape = [12, 9, 8];
        let mut whole = vec![Complex::default(); shape.iter().product()];
        for (brick, part) in parts.unwrap() {
            paste(&part, &mut whole, shape, brick, [0, 1, 2]);
        }
        whole
    };
    let expected = spectrum(1);
    for ranks in [2, 3, 4, 6] {
        assert!(spectrum(ranks) == expected, "{ranks} ranks");
    }
}

#[test]
fn reproducible_transforms_refuse_messages_that_lose_something() {
    thriffty::threads(2, |comm| {
        let draft = || thriffty::c2c(&comm, [8, 8]).reproducible(true);
        for draft in [draft().wire(Wire::F32), draft().tolerance(Tolerance::relative(1e-6)?)] {
            let error = draft.build().unwrap_err().to_string();
            assert!(error.contains("wire of a reproducible transform: found"), "{error}");
        }
        draft().wire(Wire::Lossless).build().map(drop)
    })
    .unwrap();
}
