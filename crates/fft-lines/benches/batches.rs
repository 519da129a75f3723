//! Nanoseconds per line of transforms one after the other, and of several at once.
//!
//! `cargo bench -p fft-lines -- [f32|f64] [cosines] [LENGTH...]`

use std::sync::Arc;
use std::time::Instant;

use fft_lines::{BatchFft, Layout, Lines, Number, Strides, Trigonometric, TrigonometricType};
use rustfft::num_complex::Complex;

/// Lines of a batch; not a power of two.
const LINES: usize = 136;
const ROUNDS: usize = 25;
/// The lengths of grids that people use.
const LENGTHS: [usize; 25] = [
    64, 80, 96, 100, 120, 125, 128, 144, 150, 160, 180, 192, 200, 216, 240, 243, 250, 256, 300,
    320, 360, 384, 400, 500, 512,
];
/// `f32` numbers of a cache line.
const LINE: usize = 16;

/// A transform of all lines.
type Run<'a> = Box<dyn FnMut() + 'a>;

/// The least time of each, by turns.
fn by_turns(all: &mut [Run<'_>]) -> Vec<f64> {
    let mut least = vec![f64::INFINITY; all.len()];
    for _ in 0..ROUNDS {
        for (run, least) in all.iter_mut().zip(&mut least) {
            let start = Instant::now();
            run();
            *least = least.min(start.elapsed().as_secs_f64());
        }
    }
    least
}

/// A batch out of place, with memory of its own.
fn batch<'a, T: Number>(
    fft: Arc<dyn BatchFft<T>>,
    src: &'a [T],
    [from, to]: [Strides; 2],
    [zero, one]: [T; 2],
    reals: usize,
) -> Run<'a> {
    let mut dst = vec![zero; reals];
    let mut room = vec![zero; fft.scratch_len() + LINE];
    let before = room.as_ptr().align_offset(64);
    Box::new(move || {
        let (src, dst) = (Some(src), &mut dst[..]);
        let lines = Lines { src, from, dst, to, count: LINES, uncached: false };
        fft.run(lines, one, &mut room[before..]);
    })
}

fn times<T: Number>(n: usize, of: impl Fn(f64) -> T) {
    let (zero, one) = (of(0.0), of(1.0));
    let numbers: Vec<T> =
        (0..2 * n * LINES).map(|i| of((i * 7919 % 1009) as f64 / 1009.0 - 0.5)).collect();
    let source: Vec<_> = numbers.chunks(2).map(|x| Complex { re: x[0], im: x[1] }).collect();
    let mut planner = T::planner();
    let one_by_one = planner.complex(n, true);
    let mut results = source.clone();
    let mut scratch = vec![Complex { re: zero, im: zero }; one_by_one.scratch_len()];
    let real_one_by_one = planner.real(n);
    let mut halved = vec![Complex { re: zero, im: zero }; (n / 2 + 1) * LINES];
    let mut real_scratch = vec![Complex { re: zero, im: zero }; real_one_by_one.scratch_len()];
    let mut all: Vec<(&str, Run<'_>)> = vec![
        (
            "lines",
            Box::new(|| {
                results.copy_from_slice(&source);
                one_by_one.run(&mut results, &mut scratch, one);
            }),
        ),
        (
            "real lines",
            Box::new(|| {
                let places = halved.chunks_exact_mut(n / 2 + 1);
                for (numbers, place) in source.chunks_exact(n.div_ceil(2)).zip(places) {
                    place[..numbers.len()].copy_from_slice(numbers);
                    real_one_by_one.forward(place, &mut real_scratch, one);
                }
            }),
        ),
    ];
    let batches =
        [Layout::Columns, Layout::Rows].map(|layout| planner.complex_batch(n, true, layout));
    let [columns, rows] = batches;
    let real = planner.real_to_complex_batch(n);
    let contiguous = |dist| Strides { stride: 1, dist };
    let reals = numbers.len();
    if let Some(fft) = rows {
        all.push(("rows", batch(fft, &numbers, [contiguous(n); 2], [zero, one], reals)));
    }
    if let Some(fft) = columns {
        let strides = Strides { stride: LINES, dist: 1 };
        all.push(("columns", batch(fft, &numbers, [strides; 2], [zero, one], reals)));
    }
    if let Some(fft) = real {
        let strides = [contiguous(n / 2), contiguous(n / 2 + 1)];
        all.push(("real rows", batch(fft, &numbers, strides, [zero, one], reals + 2 * LINES)));
    }
    print!("{n:5}");
    report(all);
}

fn report(all: Vec<(&str, Run<'_>)>) {
    let (names, mut all): (Vec<_>, Vec<_>) = all.into_iter().unzip();
    for (name, seconds) in names.iter().zip(by_turns(&mut all)) {
        print!("  {name} {:6.0}", seconds * 1e9 / LINES as f64);
    }
    println!();
}

/// Cosine transforms of all types, of real lines.
fn cosine_times<T: Number>(n: usize, of: impl Fn(f64) -> T) {
    let (zero, one) = (of(0.0), of(1.0));
    let numbers: Vec<T> =
        (0..n * LINES).map(|i| of((i * 7919 % 1009) as f64 / 1009.0 - 0.5)).collect();
    let mut planner = T::planner();
    let mut scratch = vec![zero; 8 * n + 64];
    for kind in
        [TrigonometricType::I, TrigonometricType::II, TrigonometricType::III, TrigonometricType::IV]
    {
        let transform = Trigonometric { kind, sine: false };
        let line_by_line = planner.trigonometric(transform, n);
        let mut results = numbers.clone();
        let mut all: Vec<(&str, Run<'_>)> = vec![(
            "lines",
            Box::new(|| {
                results.copy_from_slice(&numbers);
                for line in results.chunks_exact_mut(n) {
                    (line_by_line.run)(line, &mut scratch);
                }
            }),
        )];
        for (name, at) in [
            ("rows", Strides { stride: 1, dist: n }),
            ("columns", Strides { stride: LINES, dist: 1 }),
        ] {
            if let Some(fft) = planner.trigonometric_batch(transform, n, false) {
                all.push((name, batch(fft, &numbers, [at; 2], [zero, one], numbers.len())));
            }
        }
        print!("{n:5} {kind:>3?}");
        report(all);
    }
}

fn main() {
    let words: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let mut lengths: Vec<usize> = words.iter().filter_map(|word| word.parse().ok()).collect();
    if lengths.is_empty() {
        lengths = LENGTHS.to_vec();
    }
    let [single, cosines] = ["f32", "cosines"].map(|name| words.iter().any(|word| word == name));
    for n in lengths {
        match (single, cosines) {
            (false, false) => times(n, |x| x),
            (true, false) => times(n, |x| x as f32),
            (false, true) => cosine_times(n, |x| x),
            (true, true) => cosine_times(n, |x| x as f32),
        }
    }
}
