//! Transforms of real lines to half a spectrum and back, one after the other, by forward complex
//! transforms: of half the length for even `n`, of the same for odd `n`.
//!
//! Of even length, numbers 2j and 2j+1 of a line are the parts of a complex number. With h = n/2,
//! w = exp(-2πi/n), and Z the transform of these numbers:
//!
//! ```text
//! X[k]   = (Z[k] + conj Z[h-k]) / 2 - i w^k (Z[k] - conj Z[h-k]) / 2
//! X[h-k] = conj of the same with + i w^k
//! ```
//!
//! The inverse makes conj Z of X, so that a forward transform gives the conjugates of the numbers.

use std::sync::Arc;

use rustfft::Fft;
use rustfft::num_complex::Complex;

use crate::DctNum;
use crate::lanes::Real;
use crate::roots::ManyRoots;

/// Transforms of `n` real numbers to `n/2 + 1` complex ones and back.
pub struct RealFft<T> {
    n: usize,
    /// Forward.
    fft: Arc<dyn Fft<T>>,
    /// `-i w^k / 2` for `k` from 1 to below `h/2`, of even length.
    factors: Vec<Complex<T>>,
}

/// The length of the complex transform for lines of `n` numbers.
pub(crate) fn inner_len(n: usize) -> usize {
    if n.is_multiple_of(2) { n / 2 } else { n }
}

/// A transform of lines of `n` numbers, by a forward transform of [`inner_len`] numbers.
pub(crate) fn real_fft<T: DctNum + Real>(n: usize, fft: Arc<dyn Fft<T>>) -> RealFft<T> {
    // -i w^k / 2.
    let factor = |[c, s]: [f64; 2]| Complex::new(T::rounded(0.5 * s), T::rounded(-0.5 * c));
    let factors = if n.is_multiple_of(2) {
        let roots = ManyRoots::new(n);
        (1..n.div_ceil(4)).map(|k| factor(roots.get(k))).collect()
    } else {
        Vec::new()
    };
    RealFft { n, fft, factors }
}

impl<T: DctNum> RealFft<T> {
    /// Bytes of the tables, without those of the complex transform.
    pub(crate) fn table_bytes(&self) -> usize {
        size_of_val(&*self.factors)
    }

    /// Real numbers of a line.
    pub fn len(&self) -> usize {
        self.n
    }

    /// Whether lines have no numbers.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// Complex numbers of a line.
    pub fn complex_len(&self) -> usize {
        self.n / 2 + 1
    }

    /// Complex numbers of scratch.
    pub fn scratch_len(&self) -> usize {
        self.fft.len()
            + if self.n.is_multiple_of(2) {
                self.fft.get_outofplace_scratch_len()
            } else {
                self.fft.get_inplace_scratch_len()
            }
    }

    /// Transforms real numbers, which are the parts of the first complex ones, in place and
    /// multiplies the results by `factor`. Other parts are ignored.
    ///
    /// # Panics
    /// If a slice is too short.
    pub fn forward(&self, line: &mut [Complex<T>], scratch: &mut [Complex<T>], factor: T) {
        let (work, scratch) = scratch.split_at_mut(self.fft.len());
        let zero = T::zero();
        if !self.n.is_multiple_of(2) {
            for (number, pair) in line.iter().zip(work.chunks_mut(2)) {
                for (place, part) in pair.iter_mut().zip([number.re, number.im]) {
                    *place = Complex::new(part, zero);
                }
            }
            self.fft.process_with_scratch(work, scratch);
            for (number, found) in line.iter_mut().zip(work) {
                *number = *found * factor;
            }
            line[0].im = zero;
            return;
        }
        let h = work.len();
        for (place, number) in work.iter_mut().zip(&*line) {
            *place = *number * factor;
        }
        self.fft.process_outofplace_with_scratch(work, &mut line[..h], scratch);
        let Complex { re, im } = line[0];
        (line[0], line[h]) = (Complex::new(re + im, zero), Complex::new(re - im, zero));
        let half = T::one() / (T::one() + T::one());
        let (front, back) = line[1..h].split_at_mut((h - 1) / 2);
        for ((a, b), w) in front.iter_mut().zip(back.iter_mut().rev()).zip(&self.factors) {
            let (even, odd) = ((*a + b.conj()) * half, (*a - b.conj()) * *w);
            (*a, *b) = (even + odd, (even - odd).conj());
        }
        if h.is_multiple_of(2) {
            back[0] = back[0].conj();
        }
    }

    /// Transforms half a spectrum in place to real numbers, which are the parts of the first
    /// complex ones, and multiplies them by `factor`. As of NumPy's `irfft`, imaginary parts of
    /// the mean and of the highest frequency of even length are ignored.
    ///
    /// # Panics
    /// If a slice is too short.
    pub fn inverse(&self, line: &mut [Complex<T>], scratch: &mut [Complex<T>], factor: T) {
        let (work, scratch) = scratch.split_at_mut(self.fft.len());
        if !self.n.is_multiple_of(2) {
            // Of real results, a forward transform of the conjugate is the inverse.
            let (front, back) = work[..self.n].split_at_mut(self.n / 2 + 1);
            for (place, number) in front.iter_mut().zip(&*line) {
                *place = number.conj();
            }
            front[0].im = T::zero();
            for (place, number) in back.iter_mut().rev().zip(&line[1..]) {
                *place = *number;
            }
            self.fft.process_with_scratch(work, scratch);
            for (number, pair) in line.iter_mut().zip(work.chunks(2)) {
                number.re = pair[0].re * factor;
                number.im = pair.get(1).map_or(number.im, |second| second.re * factor);
            }
            return;
        }
        let h = work.len();
        let (mean, highest) = (line[0].re, line[h].re);
        work[0] = Complex::new(mean + highest, highest - mean);
        let two = T::one() + T::one();
        let (front, back) = work[1..].split_at_mut((h - 1) / 2);
        let ends = line[1..h].iter().zip(line[1..h].iter().rev());
        let places = front.iter_mut().zip(back.iter_mut().rev());
        for (((p, q), (a, b)), w) in places.zip(ends).zip(&self.factors) {
            let (even, odd) = ((a.conj() + b), (a.conj() - b) * *w * two);
            (*p, *q) = (even + odd, (even - odd).conj());
        }
        if h.is_multiple_of(2) {
            back[0] = line[h / 2] * two;
        }
        self.fft.process_outofplace_with_scratch(work, &mut line[..h], scratch);
        for number in &mut line[..h] {
            *number = Complex::new(number.re * factor, -number.im * factor);
        }
    }
}
