//! Transforms of one line after the other, against sums in double-double precision.

use fft_lines::Number;
use rustfft::num_complex::Complex;

use crate::double_double::{Roots, transform};
use crate::{Convert, distance, numbers};

fn complex<T: Convert>(numbers: &[f64]) -> Vec<Complex<T>> {
    let pairs = numbers.chunks(2);
    let number = |x: &[f64]| Complex { re: T::of(x[0]), im: T::of(*x.get(1).unwrap_or(&0.5)) };
    pairs.map(number).collect()
}

fn parts<T: Convert>(numbers: &[Complex<T>]) -> Vec<f64> {
    numbers.iter().flat_map(|x| [x.re.double(), x.im.double()]).collect()
}

fn zeros<T: Convert>(len: usize) -> Vec<Complex<T>> {
    vec![Complex { re: T::of(f64::NAN), im: T::of(f64::NAN) }; len]
}

/// What both directions make of a line, and its numbers as they are in this precision.
struct Found {
    numbers: Vec<f64>,
    forward: Vec<f64>,
    inverse: Vec<f64>,
}

fn complex_line<T: Convert>(n: usize) -> Found {
    let line = complex::<T>(&numbers(2 * n, n));
    let run = |forward| {
        let fft = T::planner().complex(n, forward);
        let mut line = line.clone();
        fft.run(&mut line, &mut zeros(fft.scratch_len()), T::of(0.5));
        parts(&line)
    };
    Found { numbers: parts(&line), forward: run(true), inverse: run(false) }
}

/// The inverse is that of the line's own spectrum.
fn real_line<T: Convert>(n: usize) -> Found {
    let fft = T::planner().real(n);
    let mut line = complex::<T>(&numbers(n, n));
    line.resize(fft.complex_len(), Complex { re: T::of(0.5), im: T::of(0.5) });
    let mut scratch = zeros(fft.scratch_len());
    let numbers = parts(&line)[..n].to_vec();
    fft.forward(&mut line, &mut scratch, T::of(0.5));
    let forward = parts(&line);
    // What cannot be is ignored.
    line[0].im = T::of(0.5);
    if n.is_multiple_of(2) {
        line[n / 2].im = T::of(0.5);
    }
    fft.inverse(&mut line, &mut scratch, T::of(2.0 / n as f64));
    Found { numbers, forward, inverse: parts(&line)[..n].to_vec() }
}

fn scaled(numbers: &[f64], factor: f64) -> Vec<f64> {
    numbers.iter().map(|x| factor * x).collect()
}

/// Interleaved numbers with the other sign of imaginary parts.
fn conjugate(numbers: &[f64]) -> Vec<f64> {
    numbers.chunks(2).flat_map(|x| [x[0], -x[1]]).collect()
}

fn check<T: Convert>(n: usize, epsilon: f64) {
    let bound = epsilon * (n as f64).log2().max(1.0);
    let near = |found: &[f64], expected: &[f64], what| {
        let off = distance(found, expected);
        assert!(off <= bound, "{what} of {n}: {off:e}, {bound:e} allowed");
    };
    let found = complex_line::<T>(n);
    near(&found.forward, &scaled(&transform(&found.numbers), 0.5), "forward");
    let inverse = conjugate(&transform(&conjugate(&found.numbers)));
    near(&found.inverse, &scaled(&inverse, 0.5), "inverse");
    let found = real_line::<T>(n);
    let whole: Vec<f64> = found.numbers.iter().flat_map(|x| [*x, 0.0]).collect();
    let half = scaled(&transform(&whole)[..2 * (n / 2 + 1)], 0.5);
    near(&found.forward, &half, "real forward");
    near(&found.inverse, &found.numbers, "real inverse");
}

#[test]
fn short_lines_are_those_of_the_definition() {
    for n in (1..=40).chain([49, 60, 64, 97, 101, 106, 125, 128, 143, 210, 211, 243, 256]) {
        check::<f64>(n, 1e-15);
        check::<f32>(n, 5e-7);
    }
}

/// Lengths from which tables are those of the other direction: products of small primes, primes by
/// Rader's and by Bluestein's algorithm, products of two larger primes, and twice and ten times a
/// prime.
const LONG: [usize; 8] = [32768, 36864, 65537, 32771, 41989, 40022, 33010, 57122];

fn check_long<T: Convert>(n: usize, roots: &Roots, epsilon: f64) {
    let bound = epsilon * (n as f64).log2();
    let few = [0, 1, n / 7, n / 2, n - 1];
    let near = |numbers: &[f64], found: &[f64], sign: f64, what| {
        let size = 0.5 * numbers.iter().map(|x| x * x).sum::<f64>().sqrt();
        for k in few.into_iter().filter(|k| 2 * k < found.len()) {
            let [re, im] = roots.result(numbers, if sign < 0.0 { (n - k) % n } else { k });
            let off = (found[2 * k] - 0.5 * re).hypot(found[2 * k + 1] - 0.5 * im);
            assert!(off <= bound * size, "{what} of {n}, {k}: {:e}", off / size);
        }
    };
    let found = complex_line::<T>(n);
    near(&found.numbers, &found.forward, 1.0, "forward");
    near(&found.numbers, &found.inverse, -1.0, "inverse");
    let norm = |numbers: &[f64]| numbers.iter().map(|x| x * x).sum::<f64>().sqrt();
    for spectrum in [&found.forward, &found.inverse] {
        let ratio = norm(spectrum) / norm(&found.numbers) / (0.5 * (n as f64).sqrt());
        assert!((ratio - 1.0).abs() < bound, "{n}: {ratio}");
    }
    let found = real_line::<T>(n);
    let whole: Vec<f64> = found.numbers.iter().flat_map(|x| [*x, 0.0]).collect();
    near(&whole, &found.forward, 1.0, "real forward");
    let off = distance(&found.inverse, &found.numbers);
    assert!(off <= bound, "real inverse of {n}: {off:e}");
}

#[test]
fn long_lines_are_those_of_the_definition() {
    for n in LONG {
        let roots = Roots::new(n);
        check_long::<f64>(n, &roots, 1e-15);
        check_long::<f32>(n, &roots, 5e-7);
    }
}

/// No other test uses these lengths.
#[test]
fn planners_share_tables() {
    for n in [5 * 1021, 32779, 45056] {
        let (mut a, mut b) = (f64::planner(), f64::planner());
        let _ = (a.complex(n, true), a.real(n));
        let alone = a.table_bytes();
        assert!(alone >= n * size_of::<Complex<f64>>());
        let _ = (b.complex(n, true), b.real(n));
        let both = a.table_bytes() + b.table_bytes();
        assert!(both.abs_diff(alone) < 64, "{n}: {both} of two, {alone} of one");
        let single = f32::planner().complex(n, true).len();
        assert_eq!((single, a.table_bytes() + b.table_bytes()), (n, both));
        drop(a);
        assert_eq!(b.table_bytes(), alone, "{n}");
    }
}

#[test]
fn both_directions_of_long_lines_have_the_same_tables() {
    let mut planner = f64::planner();
    let _ = planner.complex(49153, true);
    let one = planner.table_bytes();
    let _ = planner.complex(49153, false);
    assert_eq!(planner.table_bytes(), one);
}
