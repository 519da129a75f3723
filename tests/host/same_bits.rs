//! The same recipe gives the same bits, in every run and in every plan.

use std::time::Duration;

use crate::common::data::random;
use thriffty::planning::{
    Direction, DynDraft, DynGrid, DynPlan, DynTransform, Exchange, Precision,
};
use thriffty::{Comm, Error, Tolerance, Tuning};

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
