//! Transforms of several lines at once, against those of one line after the other and against sums
//! in double-double precision.

mod double_double;
mod layouts;
mod one_by_one;
mod trigonometric;

use std::ops::Range;

use double_double::transform;
use fft_lines::{BatchFft, Layout, Lines, Number, Strides};
use proptest::prelude::*;
use rustfft::num_complex::Complex;

/// Numbers in [-1, 1).
fn numbers(len: usize, seed: usize) -> Vec<f64> {
    let mut state = seed as u64 + 1;
    let mut next = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    };
    (0..len).map(|_| next()).collect()
}

/// Converts a number of either precision.
trait Convert: Number + PartialEq {
    fn of(x: f64) -> Self;
    fn double(self) -> f64;
}

impl Convert for f32 {
    fn of(x: f64) -> Self {
        x as f32
    }
    fn double(self) -> f64 {
        self.into()
    }
}

impl Convert for f64 {
    fn of(x: f64) -> Self {
        x
    }
    fn double(self) -> f64 {
        self
    }
}

/// The relative l2 distance.
fn distance(found: &[f64], expected: &[f64]) -> f64 {
    let squares = |all: &mut dyn Iterator<Item = f64>| all.map(|x| x * x).sum::<f64>();
    let off = squares(&mut found.iter().zip(expected).map(|(a, b)| a - b));
    (off / squares(&mut expected.iter().copied())).sqrt()
}

/// Runs a batch and checks that it writes its lines alone.
fn run<T: Convert>(
    fft: &dyn BatchFft<T>,
    src: &[T],
    [from, to]: [Strides; 2],
    [first, after, count]: [usize; 3],
    in_place: bool,
) -> Vec<T> {
    let mark = T::of(0.125);
    let span = 2 * ((after - 1) * to.stride + (count - 1) * to.dist + 1);
    let is_written = |i: usize| {
        let i = (i - first) / 2;
        (0..count).any(|line| {
            let rest = i.checked_sub(line * to.dist);
            rest.is_some_and(|i| i.is_multiple_of(to.stride) && i / to.stride < after)
        })
    };
    let mut dst = vec![mark; first + span + 5];
    if in_place {
        dst[first..][..src.len().min(span)].copy_from_slice(&src[..src.len().min(span)]);
    }
    let before = dst.clone();
    let mut scratch = vec![T::of(f64::NAN); fft.scratch_len()];
    let source = (!in_place).then_some(src);
    let lines = Lines {
        src: source,
        from,
        dst: &mut dst[first..],
        to,
        count,
        uncached: count.is_multiple_of(2),
    };
    fft.run(lines, T::of(0.5), &mut scratch);
    for i in (0..first).chain(first + span..dst.len()) {
        assert!(dst[i] == before[i], "number {i} is outside");
    }
    for i in first..first + span {
        assert!(is_written(i) || dst[i] == before[i], "number {i} is between lines");
    }
    dst.split_off(first)
}

/// Line `line` of an array.
fn line<T: Convert>(array: &[T], at: Strides, line: usize, len: usize) -> Vec<f64> {
    let number = |i: usize| array[2 * (i * at.stride + line * at.dist)..][..2].iter();
    (0..len).flat_map(|i| number(i).map(|x| x.double())).collect()
}

fn complex_lines<T: Convert>(
    [n, count, slack, first]: [usize; 4],
    [forward, contiguous, in_place]: [bool; 3],
    bound: f64,
) {
    let layout = if contiguous { Layout::Rows } else { Layout::Columns };
    let Some(fft) = T::planner().complex_batch(n, forward, layout) else { return };
    let at = if contiguous {
        Strides { stride: 1, dist: n + slack }
    } else {
        Strides { stride: count + slack, dist: 1 }
    };
    let len = 2 * ((n - 1) * at.stride + (count - 1) * at.dist + 1);
    let src: Vec<T> = numbers(len, n + count).into_iter().map(T::of).collect();
    let found = run(&*fft, &src, [at; 2], [first, n, count], in_place);
    let one = f64::planner().complex(n, forward);
    for number in 0..count {
        let mut expected: Vec<_> =
            line(&src, at, number, n).chunks(2).map(|x| Complex { re: x[0], im: x[1] }).collect();
        one.run(&mut expected, &mut vec![Complex::default(); one.scratch_len()], 0.5);
        let expected: Vec<f64> = expected.into_iter().flat_map(|x| [x.re, x.im]).collect();
        let off = distance(&line(&found, at, number, n), &expected);
        assert!(off < bound, "line {number}: {off:e}");
    }
}

fn real_lines<T: Convert>([n, count]: [usize; 2], forward: bool, bound: f64) {
    let (half, mut planner) = (n / 2, T::planner());
    let contiguous = |dist| Strides { stride: 1, dist };
    let (real, spectrum) = (contiguous(half), contiguous(half + 1));
    let (from, to) = if forward { (real, spectrum) } else { (spectrum, real) };
    let fft =
        if forward { planner.real_to_complex_batch(n) } else { planner.complex_to_real_batch(n) };
    let Some(fft) = fft else { return };
    let src: Vec<T> = numbers(2 * from.dist * count, n).into_iter().map(T::of).collect();
    let found = run(&*fft, &src, [from, to], [0, to.dist, count], false);
    let one = f64::planner().real(n);
    let mut scratch = vec![Complex::default(); one.scratch_len()];
    for number in 0..count {
        let input = line(&src, from, number, from.dist);
        let mut expected: Vec<_> =
            input.chunks(2).map(|x| Complex { re: x[0], im: x[1] }).collect();
        expected.resize(half + 1, Complex::default());
        if forward {
            one.forward(&mut expected, &mut scratch, 0.5)
        } else {
            one.inverse(&mut expected, &mut scratch, 0.5)
        }
        let expected = expected.into_iter().take(to.dist).flat_map(|x| [x.re, x.im]);
        let expected: Vec<f64> = expected.collect();
        let off = distance(&line(&found, to, number, to.dist), &expected);
        assert!(off < bound, "line {number}: {off:e}");
    }
}

/// Lengths whose prime factors are at most 13.
fn lengths() -> impl Strategy<Value = usize> {
    let factors =
        prop::collection::vec(prop::sample::select(vec![2, 2, 2, 3, 3, 5, 5, 7, 11, 13]), 1..7);
    let product = |factors: Vec<usize>| factors.into_iter().product::<usize>();
    factors.prop_map(product).prop_filter("long lines take long", |n| *n <= 2048)
}

fn counts() -> Range<usize> {
    1..40
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn complex_lines_are_those_of_rustfft(
        n in lengths(), count in counts(), slack in 0..5usize, first in 0..9usize,
        forward: bool, contiguous: bool, in_place: bool, single: bool,
    ) {
        let (sizes, how) = ([n, count, slack, first], [forward, contiguous, in_place]);
        if single { complex_lines::<f32>(sizes, how, 8e-7) } else { complex_lines::<f64>(sizes, how, 2e-15) }
    }

    #[test]
    fn real_lines_are_those_of_one_after_the_other(
        half in lengths(), count in counts(), forward: bool, single: bool,
    ) {
        let sizes = [2 * half, count];
        if single { real_lines::<f32>(sizes, forward, 8e-7) } else { real_lines::<f64>(sizes, forward, 2e-15) }
    }
}

/// Both errors, of all lines together, beside sums in double-double precision.
fn errors<T: Convert>(n: usize) -> Option<[f64; 2]> {
    let count = 8;
    let fft = T::planner().complex_batch(n, true, Layout::Columns)?;
    let at = Strides { stride: count, dist: 1 };
    let src: Vec<T> = numbers(2 * n * count, n).into_iter().map(T::of).collect();
    let found = run(&*fft, &src, [at; 2], [0, n, count], false);
    let one = T::planner().complex(n, true);
    let [mut ours, mut theirs, mut expected] = [const { Vec::new() }; 3];
    for number in 0..count {
        let numbers = line(&src, at, number, n);
        ours.extend(line(&found, at, number, n).into_iter().map(|x| 2.0 * x));
        let mut beside: Vec<_> =
            numbers.chunks(2).map(|x| Complex { re: T::of(x[0]), im: T::of(x[1]) }).collect();
        let mut scratch = vec![Complex { re: T::of(0.0), im: T::of(0.0) }; one.scratch_len()];
        one.run(&mut beside, &mut scratch, T::of(1.0));
        theirs.extend(beside.into_iter().flat_map(|x| [x.re.double(), x.im.double()]));
        expected.extend(transform(&numbers));
    }
    Some([distance(&ours, &expected), distance(&theirs, &expected)])
}

#[test]
fn errors_are_no_larger_than_those_of_rustfft() {
    let mut logarithms = [0.0; 2];
    for n in [8, 12, 25, 60, 64, 77, 100, 120, 125, 128, 144, 169, 200, 243, 256] {
        let (Some(double), Some(single)) = (errors::<f64>(n), errors::<f32>(n)) else { return };
        for ([ours, theirs], name) in [(double, "f64"), (single, "f32")] {
            println!("{name} {n:4}: {ours:.2e}, rustfft {theirs:.2e}");
        }
        for [ours, theirs] in [double, single] {
            assert!(ours < 1.5 * theirs, "{n}: {ours:e}, rustfft {theirs:e}");
            logarithms = [logarithms[0] + ours.ln(), logarithms[1] + theirs.ln()];
        }
    }
    // In the mean, which a single length may miss by chance.
    assert!(logarithms[0] < logarithms[1], "{logarithms:?}");
}

#[test]
fn lengths_have_several_at_once_or_none() {
    let mut planner = f64::planner();
    let Some(_) = planner.complex_batch(100, true, Layout::Rows) else { return };
    for n in 2..700 {
        let mut rest = n;
        for prime in [2, 3, 5, 7, 11, 13] {
            while rest % prime == 0 {
                rest /= prime;
            }
        }
        assert_eq!(planner.complex_batch(n, true, Layout::Columns).is_some(), rest == 1, "{n}");
    }
    assert!(planner.complex_batch(1, true, Layout::Columns).is_none());
    assert!(planner.real_to_complex_batch(99).is_none(), "odd");
    assert!(planner.real_to_complex_batch(2).is_none(), "half of it is 1");
}
