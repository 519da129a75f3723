//! Roots of unity to the last digit or two.

use std::f64::consts::FRAC_PI_4;

/// `exp(-2πi k/N)` for all `k`.
pub(crate) struct Roots<const N: usize>;

impl<const N: usize> Roots<N> {
    pub(crate) const ALL: [[f64; 2]; N] = {
        let mut all = [[0.0; 2]; N];
        let mut k = 0;
        while k < N {
            all[k] = root(k, N);
            k += 1;
        }
        all
    };
}

/// `exp(-2πi k/n)`, from the sine and cosine of at most an eighth of a turn.
pub(crate) const fn root(k: usize, n: usize) -> [f64; 2] {
    let eighths = 8 * (k % n);
    let (octant, rest) = (eighths / n, eighths % n);
    let rest = if octant.is_multiple_of(2) { rest } else { n - rest };
    let [c, s] = cos_sin(FRAC_PI_4 * (rest as f64 / n as f64));
    match octant {
        0 => [c, -s],
        1 => [s, -c],
        2 => [-s, -c],
        3 => [-c, -s],
        4 => [-c, s],
        5 => [-s, c],
        6 => [s, c],
        _ => [c, s],
    }
}

/// Taylor series, which compilers can evaluate. For `x` of at most π/4.
const fn cos_sin(x: f64) -> [f64; 2] {
    let (mut c, mut s, mut term) = (1.0, 1.0, 10);
    while term > 0 {
        let even = (2 * term) as f64;
        c = 1.0 - x * x / ((even - 1.0) * even) * c;
        s = 1.0 - x * x / (even * (even + 1.0)) * s;
        term -= 1;
    }
    [c, x * s]
}

/// Any `exp(-2πi k/n)` by one multiplication of two roots from tables of about `√n` each.
pub struct ManyRoots {
    bits: u32,
    /// For multiples of `2^bits`, and for numbers below.
    coarse: Vec<[f64; 2]>,
    fine: Vec<[f64; 2]>,
}

impl ManyRoots {
    /// The tables of the roots of order `n`.
    ///
    /// # Panics
    /// If `n` is 0.
    pub fn new(n: usize) -> Self {
        let bits = n.ilog2().div_ceil(2);
        let coarse = (0..=n >> bits).map(|k| root(k << bits, n)).collect();
        let fine = (0..1 << bits).map(|k| root(k, n)).collect();
        Self { bits, coarse, fine }
    }

    /// Bytes of both tables.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.coarse) + size_of_val(&*self.fine)
    }

    /// The real and the imaginary part of a root. Panics unless `k` is below `n`.
    #[inline]
    pub fn get(&self, k: usize) -> [f64; 2] {
        let ([a, b], [c, d]) = (self.coarse[k >> self.bits], self.fine[k & ((1 << self.bits) - 1)]);
        [a * c - b * d, a * d + b * c]
    }
}
