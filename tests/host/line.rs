//! Complex transforms of a single axis that ranks share.

use std::f64::consts::TAU;

use thriffty::{Complex, Error};

use crate::common::line::check_random;

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
