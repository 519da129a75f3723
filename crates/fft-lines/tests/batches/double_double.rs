//! The definition of a transform, in sums of two `f64`: twice as many digits.

use std::f64::consts::TAU;
use std::ops::{Add, Mul, Neg};

use fft_lines::{Trigonometric, TrigonometricType};

/// `high + low`, where `low` is less than half a unit of the last place of `high`.
#[derive(Clone, Copy)]
pub(crate) struct Double {
    high: f64,
    low: f64,
}

/// The rest of 2π beyond the digits of an `f64`.
const TAU_LOW: f64 = 2.4492935982947064e-16;

fn double(high: f64) -> Double {
    Double { high, low: 0.0 }
}

/// Knuth's exact sum of two numbers.
fn sum(a: f64, b: f64) -> Double {
    let high = a + b;
    let part = high - a;
    Double { high, low: (a - (high - part)) + (b - part) }
}

impl Add for Double {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        let high = sum(self.high, other.high);
        sum(high.high, high.low + (self.low + other.low))
    }
}

impl Mul for Double {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let high = self.high * other.high;
        let low = self.high.mul_add(other.high, -high);
        sum(high, low + (self.high * other.low + self.low * other.high))
    }
}

impl Neg for Double {
    type Output = Self;
    fn neg(self) -> Self {
        Self { high: -self.high, low: -self.low }
    }
}

/// `x / n`, by one step of Newton's method.
fn divided(x: Double, n: f64) -> Double {
    let first = double(x.high / n);
    let rest = x + -(first * double(n));
    first + double((rest.high + rest.low) / n)
}

/// The cosine and the sine of `2πk/n`, by series.
fn cos_sin(k: usize, n: usize) -> [Double; 2] {
    let angle = divided(Double { high: TAU, low: TAU_LOW } * double(k as f64), n as f64);
    let (mut term, mut parts) = (double(1.0), [double(0.0); 2]);
    for power in 0..60 {
        let part = if power % 4 < 2 { term } else { -term };
        parts[power % 2] = parts[power % 2] + part;
        term = divided(term * angle, (power + 1) as f64);
    }
    parts
}

/// `exp(2πi k/n)` for all `k`.
pub(crate) struct Roots(Vec<[Double; 2]>);

impl Roots {
    pub(crate) fn new(n: usize) -> Self {
        Self((0..n).map(|k| cos_sin(k, n)).collect())
    }

    /// Result `k` of the transform of interleaved complex numbers, with `exp(-2πi jk/n)`.
    pub(crate) fn result(&self, numbers: &[f64], k: usize) -> [f64; 2] {
        let (mut re, mut im) = (double(0.0), double(0.0));
        for (j, x) in numbers.chunks(2).enumerate() {
            let [c, s] = self.0[j * k % self.0.len()];
            let [x, y] = [double(x[0]), double(x[1])];
            re = re + x * c + y * s;
            im = im + y * c + -(x * s);
        }
        [re.high, im.high]
    }
}

/// The transform of interleaved complex numbers.
pub(crate) fn transform(numbers: &[f64]) -> Vec<f64> {
    let n = numbers.len() / 2;
    let roots = Roots::new(n);
    (0..n).flat_map(|k| roots.result(numbers, k)).collect()
}

/// The cosine or sine transform of real numbers, as SciPy defines it.
pub(crate) fn trigonometric(transform: Trigonometric, numbers: &[f64]) -> Vec<f64> {
    let Trigonometric { kind, sine } = transform;
    let n = numbers.len();
    // Terms of place `j` and frequency `k` have angles of `a(j) b(k)` parts of a turn.
    let (parts, place, frequency) = match (kind, sine) {
        (TrigonometricType::I, false) => (2 * (n - 1), [1, 0], [1, 0]),
        (TrigonometricType::I, true) => (2 * (n + 1), [1, 1], [1, 1]),
        (TrigonometricType::II, _) => (4 * n, [2, 1], [1, usize::from(sine)]),
        (TrigonometricType::III, _) => (4 * n, [1, usize::from(sine)], [2, 1]),
        (TrigonometricType::IV, _) => (8 * n, [2, 1], [2, 1]),
        (other, _) => panic!("type {other:?} has no definition here"),
    };
    let is_end = |j: usize| match (kind, sine) {
        (TrigonometricType::I, false) => j == 0 || j == n - 1,
        (TrigonometricType::III, false) => j == 0,
        (TrigonometricType::III, true) => j == n - 1,
        _ => false,
    };
    let roots: Vec<_> = (0..parts).map(|k| cos_sin(k, parts)).collect();
    let angle = |[factor, offset]: [usize; 2], i: usize| factor * i + offset;
    let result = |k: usize| {
        let terms = numbers.iter().enumerate().map(|(j, x)| {
            let root = roots[angle(place, j) * angle(frequency, k) % parts];
            double(if is_end(j) { *x } else { 2.0 * x }) * root[usize::from(sine)]
        });
        terms.fold(double(0.0), Add::add).high
    };
    (0..n).map(result).collect()
}
