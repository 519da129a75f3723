//! Cosine and sine transforms of several lines at once, beside those of rustdct and beside sums in
//! double-double precision.

use fft_lines::{Layout, Lines, Number, Strides, Trigonometric, TrigonometricType};
use proptest::prelude::*;

use crate::double_double::trigonometric;
use crate::{Convert, counts, distance, lengths, numbers};

use TrigonometricType::{I, II, III, IV};

fn transforms() -> impl Iterator<Item = Trigonometric> {
    let types = [I, II, III, IV].into_iter();
    types.flat_map(|kind| [false, true].map(|sine| Trigonometric { kind, sine }))
}

/// A line by rustdct, whose transforms are half of SciPy's.
fn one<T: Convert>(transform: Trigonometric, line: &[f64]) -> Vec<f64> {
    let (transform, zero) = (T::planner().trigonometric(transform, line.len()), T::of(0.0));
    let mut line: Vec<T> = line.iter().copied().map(T::of).collect();
    (transform.run)(&mut line, &mut vec![zero; transform.scratch_len]);
    line.into_iter().map(|x| 2.0 * x.double()).collect()
}

/// Some lines, and how they lie.
#[derive(Clone, Copy, Debug)]
struct Batch {
    transform: Trigonometric,
    n: usize,
    count: usize,
    /// Elements between lines, or rows.
    slack: usize,
    first: usize,
    complex: bool,
    contiguous: bool,
    in_place: bool,
}

impl Batch {
    fn width(&self) -> usize {
        if self.complex { 2 } else { 1 }
    }

    fn strides(&self) -> Strides {
        if self.contiguous {
            Strides { stride: 1, dist: self.n + self.slack }
        } else {
            Strides { stride: self.count + self.slack, dist: 1 }
        }
    }

    /// A part of a line.
    fn line<T: Convert>(&self, array: &[T], line: usize, part: usize) -> Vec<f64> {
        let (at, width) = (self.strides(), self.width());
        let number = |i: usize| array[width * (i * at.stride + line * at.dist) + part].double();
        (0..self.n).map(number).collect()
    }

    /// The source and the results, or `None` if there is no such transform. Checks that nothing
    /// else is written.
    fn run<T: Convert>(&self) -> Option<[Vec<T>; 2]> {
        let (n, width, at) = (self.n, self.width(), self.strides());
        let mut planner = T::planner();
        let fft = planner.trigonometric_batch(self.transform, n, self.complex)?;
        let span = width * ((n - 1) * at.stride + (self.count - 1) * at.dist + 1);
        let src: Vec<T> = numbers(span, n + self.count).into_iter().map(T::of).collect();
        let mut dst = vec![T::of(0.125); self.first + span + 5];
        if self.in_place {
            dst[self.first..][..span].copy_from_slice(&src);
        }
        let before = dst.clone();
        let lines = Lines {
            src: (!self.in_place).then_some(&src[..]),
            from: at,
            dst: &mut dst[self.first..],
            to: at,
            count: self.count,
            uncached: self.contiguous && self.count.is_multiple_of(2),
        };
        fft.run(lines, T::of(0.5), &mut vec![T::of(f64::NAN); fft.scratch_len()]);
        let is_written = |i: usize| {
            let Some(i) = i.checked_sub(self.first).filter(|i| *i < span) else { return false };
            let (i, pitch) = (i / width, at.stride.max(at.dist));
            i % pitch < if self.contiguous { n } else { self.count }
        };
        for i in 0..dst.len() {
            assert!(is_written(i) || dst[i] == before[i], "number {i} is outside of lines");
        }
        Some([src, dst.split_off(self.first)])
    }

    fn check<T: Convert>(&self, bound: f64) {
        let Some([src, found]) = self.run::<T>() else { return };
        for (line, part) in (0..self.count).flat_map(|line| [0, 1].map(|part| (line, part))) {
            if part < self.width() {
                let mut expected = one::<f64>(self.transform, &self.line(&src, line, part));
                expected.iter_mut().for_each(|x| *x *= 0.5);
                let off = distance(&self.line(&found, line, part), &expected);
                assert!(off < bound, "line {line}, part {part}: {off:e}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn lines_are_those_of_rustdct(
        transform in prop::sample::select(transforms().collect::<Vec<_>>()),
        half in lengths(), count in counts(), slack in 0..5usize, first in 0..9usize,
        complex: bool, contiguous: bool, in_place: bool, single: bool,
    ) {
        // Complex transforms of `half` numbers.
        let n = match transform {
            Trigonometric { kind: I, sine: false } => half + 1,
            Trigonometric { kind: I, sine: true } => half - 1,
            _ => 2 * half,
        };
        prop_assume!(n > 0);
        let batch = Batch { transform, n, count, slack, first, complex, contiguous, in_place };
        if single { batch.check::<f32>(1e-6) } else { batch.check::<f64>(2.5e-15) }
    }
}

/// Both errors, of all lines together, beside sums in double-double precision.
fn errors<T: Convert>(transform: Trigonometric, n: usize) -> Option<[f64; 2]> {
    let [count, slack, first] = [8, 0, 0];
    let [complex, contiguous, in_place] = [false; 3];
    let batch = Batch { transform, n, count, slack, first, complex, contiguous, in_place };
    let [src, found] = batch.run::<T>()?;
    let [mut ours, mut theirs, mut expected] = [const { Vec::new() }; 3];
    for number in 0..count {
        let line = batch.line(&src, number, 0);
        ours.extend(batch.line(&found, number, 0).into_iter().map(|x| 2.0 * x));
        theirs.extend(one::<T>(transform, &line));
        expected.extend(trigonometric(transform, &line));
    }
    Some([distance(&ours, &expected), distance(&theirs, &expected)])
}

#[test]
fn errors_are_no_larger_than_those_of_rustdct() {
    let mut all = [0.0; 2];
    for transform in transforms() {
        let mut logarithms = [0.0; 2];
        for half in [8, 12, 25, 50, 64, 77, 100, 128] {
            let n = match transform {
                Trigonometric { kind: I, sine: false } => half + 1,
                Trigonometric { kind: I, sine: true } => half - 1,
                _ => 2 * half,
            };
            let found = [errors::<f64>(transform, n), errors::<f32>(transform, n)];
            for [ours, theirs] in found.into_iter().flatten() {
                println!("{transform:?} {n:4}: {ours:.2e}, rustdct {theirs:.2e}");
                assert!(ours < 1.5 * theirs, "{transform:?} {n}: {ours:e}, rustdct {theirs:e}");
                logarithms = [logarithms[0] + ours.ln(), logarithms[1] + theirs.ln()];
            }
        }
        // In the mean, which a single length may miss by chance, and a transform by a little.
        let [ours, theirs] = logarithms.map(|sum| sum / 16.0);
        println!("{transform:?}: {:.3} of rustdct's", (ours - theirs).exp());
        assert!(ours < theirs + 0.03, "{transform:?}: {ours}, {theirs}");
        all = [all[0] + ours, all[1] + theirs];
    }
    assert!(all[0] <= all[1], "{all:?}");
}

#[test]
fn even_lengths_have_several_at_once() {
    let mut planner = f64::planner();
    let Some(_) = planner.complex_batch(100, true, Layout::Rows) else { return };
    let mut has = |kind, sine, n| {
        let transform = Trigonometric { kind, sine };
        planner.trigonometric_batch(transform, n, false).is_some()
    };
    assert!([II, III, IV].into_iter().all(|kind| has(kind, false, 100) && !has(kind, true, 99)));
    assert!(has(I, false, 101) && has(I, true, 99));
    assert!(!has(I, false, 2) && !has(I, false, 1) && !has(II, true, 2), "transforms of 1 number");
}
