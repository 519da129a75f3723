//! Complex transforms of a single axis that ranks share.

use std::f64::consts::TAU;
use std::time::Duration;

use thriffty::arrays::FieldCopy;
use thriffty::planning::Exchange;
use thriffty::{C2c, Complex, Error, Plan, Tolerance, Tuning};

use crate::common::one_axis::check_random;

fn point(i: usize) -> Complex<f64> {
    let x = (i * i % 1009) as f64;
    Complex::new((x * 0.37).sin(), (x * 0.61).cos())
}

fn dft(x: &[Complex<f64>]) -> Vec<Complex<f64>> {
    let n = x.len();
    (0..n)
        .map(|k| {
            let term = |(j, v): (usize, &Complex<f64>)| {
                v * Complex::from_polar(1.0, -TAU * (j * k % n) as f64 / n as f64)
            };
            x.iter().enumerate().map(term).sum()
        })
        .collect()
}

#[test]
fn a_line_over_ranks_is_the_definition() {
    for (n, ranks) in [(64, 2), (60, 3), (1024, 4), (900, 4), (4096, 4)] {
        let x: Vec<_> = (0..n).map(point).collect();
        let expected = dft(&x);
        for layout in ["blocks", "transposed", "cyclic"] {
            thriffty::threads(ranks, |world| {
                let draft = thriffty::c2c(&world, [n]);
                let draft = match layout {
                    "blocks" => draft,
                    "transposed" => draft.transposed_input(true).transposed_output(true),
                    _ if n.is_multiple_of(ranks * ranks) => {
                        draft.input_cyclic([ranks]).output_cyclic([ranks])
                    }
                    _ => return Ok::<_, Error>(()),
                };
                let mut plan = draft.build()?;
                let mut field = plan.input();
                for ([i], value) in field.iter_mut() {
                    *value = point(i);
                }
                let spectrum = plan.forward(field)?;
                let mut worst = 0.0f64;
                for ([k], value) in spectrum.iter() {
                    worst = worst.max((value - expected[k]).norm());
                }
                assert!(worst < 1e-12 * n as f64, "{n} {ranks} {layout} {worst}");
                let back = plan.inverse(spectrum)?;
                for ([i], value) in back.iter() {
                    assert!((value - point(i)).norm() < 1e-13, "{n} {ranks} {layout}");
                }
                Ok(())
            })
            .unwrap();
        }
    }
}

/// Random lengths, layouts, exchanges and ranks; `THRIFFTY_CASES` of them.
#[test]
fn random_lines_are_those_of_one_rank() {
    let cases: u64 = std::env::var("THRIFFTY_CASES").map_or(120, |cases| cases.parse().unwrap());
    for seed in 0..cases {
        let (ranks, longest) = (2 + seed as usize % 7, if seed % 8 == 0 { 20_000 } else { 3000 });
        thriffty::threads(ranks, |comm| check_random(&comm, seed, longest)).unwrap();
    }
}

/// Checks a plan of `n` points against one rank, to this relative error.
fn check(plan: &mut Plan<C2c, 1>, n: usize, error: f64) -> Result<(), Error> {
    let mut whole: Vec<_> = (0..n).map(point).collect();
    thriffty::local::c2c([n]).build()?.forward_in_place(&mut whole)?;
    let mut x = plan.input();
    x.fill(|[i]| point(i));
    let spectrum = plan.forward(x)?;
    let largest = whole.iter().map(|value| value.norm()).fold(0.0, f64::max);
    for ([k], value) in spectrum.iter() {
        assert!((value - whole[k]).norm() <= error * largest, "{k} of {n}: {value}");
    }
    let back = plan.inverse(spectrum)?;
    for ([i], value) in back.iter() {
        assert!((value - point(i)).norm() <= 10.0 * error, "{i} of {n}: {value}");
    }
    Ok(())
}

#[test]
fn long_factors_are_divided() {
    let n = 9 * 6000;
    thriffty::threads(2, |world| {
        let draft = thriffty::c2c(&world, [n]).input_cyclic([3]).output_cyclic([3]);
        let mut plan = draft.build()?;
        assert_eq!(plan.recipe().problem().kinds.len(), 4, "{}", plan.recipe());
        check(&mut plan, n, 1e-13)
    })
    .unwrap();
}

#[test]
fn recipes_of_one_axis_are_bound_and_parsed() {
    let n = 4096;
    thriffty::threads(4, |world| {
        for cyclic in [false, true] {
            let draft = || {
                let draft = thriffty::c2c(&world, [n]).exchange(Exchange::P2p);
                if cyclic { draft.input_cyclic([4]).output_cyclic([4]) } else { draft }
            };
            let recipe = draft().recipe()?;
            let mut plan = Plan::<C2c, 1>::bind(&world, recipe.clone())?;
            assert_eq!(plan.exchange(), Exchange::P2p);
            check(&mut plan, n, 1e-14)?;
            let mut again = draft().tuning(Tuning::Recipe(recipe.to_string())).build()?;
            assert_eq!(again.recipe(), &recipe);
            check(&mut again, n, 1e-14)?;
            let mut like = thriffty::c2c(&world, [n]).like(&plan).build()?;
            assert_eq!(like.problem().input, plan.problem().input);
            check(&mut like, n, 1e-14)?;
            assert!(Plan::<C2c, 2>::bind(&world, recipe).is_err());
            let copied = FieldCopy::input(&plan, &[]).map(drop).unwrap_err().to_string();
            assert_eq!(copied.contains("layout of copies"), cyclic, "{copied}");
        }
        let mut measured = thriffty::c2c(&world, [n]);
        measured = measured.tuning(Tuning::Measure { budget: Duration::from_millis(20) });
        check(&mut measured.build()?, n, 1e-14)
    })
    .unwrap();
}

#[test]
fn encoded_messages_keep_the_tolerance_of_one_axis() {
    let n = 1 << 14;
    thriffty::threads(4, |world| {
        let draft = thriffty::c2c(&world, [n]).ignore_shared_memory(true);
        let mut plan = draft.tolerance(Tolerance::relative(1e-5)?).build()?;
        check(&mut plan, n, 1e-4)?;
        let lost = plan.wire_error().expect("messages are encoded");
        assert!(lost.estimate > 1e-12 && lost.estimate <= 1e-5, "{lost:?}");
        Ok::<(), Error>(())
    })
    .unwrap();
}

#[test]
fn threads_share_one_axis() {
    for n in [36, 60, 1 << 15, 2 * 7919, 7919] {
        for threads in [2, 3, 8] {
            let mut plan = thriffty::local::c2c([n]).threads(threads).build().unwrap();
            check(&mut plan, n, 1e-13).unwrap();
        }
    }
}

#[test]
fn sets_of_a_cyclic_layout_are_those_of_the_first_ranks() {
    thriffty::threads(4, |world| {
        let plan = thriffty::c2c(&world, [64]).input_cyclic([2]).output_cyclic([8]).build()?;
        let (rank, all) = (plan.comm().rank(), plan.output_indices(0).collect::<Vec<_>>());
        let expected: Vec<_> = if rank < 2 { (rank..64).step_by(2).collect() } else { Vec::new() };
        assert!(plan.input_indices(0).eq(expected));
        let set = |first: usize| (first..64).step_by(8);
        assert!(set(2 * rank).chain(set(2 * rank + 1)).eq(all));
        Ok::<(), Error>(())
    })
    .unwrap();
}

#[test]
fn axes_without_factors_are_errors_of_all_ranks() {
    for (n, text) in [(7919, "one_rank"), (1, "one_rank"), (20, "strided by 4")] {
        let failed = thriffty::threads(4, |world| {
            let draft = thriffty::c2c(&world, [n]);
            if n == 20 { draft.input_cyclic([4]).output_cyclic([4]) } else { draft }
                .build()
                .map(drop)
        });
        let error = failed.unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
}
