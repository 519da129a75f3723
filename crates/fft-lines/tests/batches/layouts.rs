//! Lines have the same bits wherever they lie, and those of every length are right.

use fft_lines::{Layout, Lines, Strides};
use proptest::prelude::*;

use crate::{Convert, complex_lines, lengths, line, numbers};

/// How some lines lie.
#[derive(Clone, Copy, Debug)]
struct Place {
    layout: Layout,
    /// Elements between lines, or between rows, that belong to none.
    slack: usize,
    /// Real numbers before the first.
    first: usize,
    in_place: bool,
}

impl Place {
    fn strides(self, n: usize, count: usize) -> Strides {
        match self.layout {
            Layout::Rows => Strides { stride: 1, dist: n + self.slack },
            _ => Strides { stride: count + self.slack, dist: 1 },
        }
    }

    /// Transforms these lines, each of `n` complex numbers, and returns the bits of each result.
    fn run<T: Convert>(self, source: &[Vec<f64>], forward: bool) -> Option<Vec<Vec<u64>>> {
        let (n, count) = (source[0].len() / 2, source.len());
        let fft = T::planner().complex_batch(n, forward, self.layout)?;
        let at = self.strides(n, count);
        let span = 2 * ((n - 1) * at.stride + (count - 1) * at.dist + 1);
        let mut src = vec![T::of(0.0); span];
        for (number, source) in source.iter().enumerate() {
            for (i, x) in source.iter().enumerate() {
                src[2 * (i / 2 * at.stride + number * at.dist) + i % 2] = T::of(*x);
            }
        }
        let mut dst = vec![T::of(0.0); self.first + span];
        dst[self.first..].copy_from_slice(&src);
        let lines = Lines {
            src: (!self.in_place).then_some(&src[..]),
            from: at,
            dst: &mut dst[self.first..],
            to: at,
            count,
            uncached: false,
        };
        fft.run(lines, T::of(0.5), &mut vec![T::of(f64::NAN); fft.scratch_len()]);
        let bits = |number| line(&dst[self.first..], at, number, n).into_iter().map(f64::to_bits);
        Some((0..count).map(|number| bits(number).collect()).collect())
    }
}

fn same_bits<T: Convert>(n: usize, count: usize, forward: bool, places: [Place; 2]) {
    let source: Vec<_> = (0..count).map(|number| numbers(2 * n, n + number)).collect();
    let plain = Place { layout: Layout::Columns, slack: 0, first: 0, in_place: false };
    let expected = plain.run::<T>(&source, forward);
    for place in places {
        assert!(place.run::<T>(&source, forward) == expected, "{place:?}");
    }
    // Alone, a line takes another way through the batch.
    let alone = plain.run::<T>(&source[..1], forward);
    assert!(alone.map(|lines| lines[0].clone()) == expected.map(|lines| lines[0].clone()));
}

fn places(layout: Layout) -> impl Strategy<Value = Place> {
    (0..5_usize, 0..9_usize, any::<bool>()).prop_map(move |(slack, first, in_place)| Place {
        layout,
        slack,
        first,
        in_place,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn lines_have_the_same_bits_in_every_layout(
        n in lengths(), count in 1..40_usize, forward: bool, single: bool,
        rows in places(Layout::Rows), columns in places(Layout::Columns),
    ) {
        let places = [rows, columns];
        if single { same_bits::<f32>(n, count, forward, places) } else { same_bits::<f64>(n, count, forward, places) }
    }
}

/// Whether all prime factors of `n` are at most 13.
fn is_smooth(n: usize) -> bool {
    let left = [2, 3, 5, 7, 11, 13].iter().fold(n, |mut left, prime| {
        while left % prime == 0 {
            left /= prime;
        }
        left
    });
    left == 1
}

#[test]
fn lines_of_every_length_are_those_of_rustfft() {
    for n in (2..=2048).filter(|n| is_smooth(*n)) {
        for (forward, contiguous) in [(true, false), (false, false), (true, true), (false, true)] {
            complex_lines::<f64>([n, 9, 0, 0], [forward, contiguous, false], 2e-15);
            complex_lines::<f32>([n, 9, 0, 0], [forward, contiguous, false], 8e-7);
        }
    }
}
