//! Complex transforms of lines, one after the other.

use std::sync::Arc;

use rustfft::Fft;
use rustfft::num_complex::Complex;

use crate::DctNum;

/// A complex transform, with `exp(-2πi jk/n)` or its conjugate.
pub struct ComplexFft<T> {
    fft: Arc<dyn Fft<T>>,
    /// Whether frequencies `k` and `n - k` change places, which makes an inverse of a forward
    /// transform.
    reversed: bool,
}

impl<T: DctNum> ComplexFft<T> {
    pub(crate) fn new(fft: Arc<dyn Fft<T>>, reversed: bool) -> Self {
        Self { fft, reversed }
    }

    /// Numbers of a line.
    pub fn len(&self) -> usize {
        self.fft.len()
    }

    /// Whether lines have no numbers.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Numbers of scratch.
    pub fn scratch_len(&self) -> usize {
        self.fft.get_inplace_scratch_len()
    }

    /// Transforms lines in place and multiplies the results by `factor`.
    ///
    /// # Panics
    /// If scratch is too short, or if there is a part of a line.
    pub fn run(&self, lines: &mut [Complex<T>], scratch: &mut [Complex<T>], factor: T) {
        self.fft.process_with_scratch(lines, scratch);
        if self.reversed {
            for line in lines.chunks_exact_mut(self.len()) {
                reverse(line, factor);
            }
        } else if factor != T::one() {
            for number in lines {
                *number = *number * factor;
            }
        }
    }
}

fn reverse<T: DctNum>(line: &mut [Complex<T>], factor: T) {
    let Some((mean, rest)) = line.split_first_mut() else { return };
    *mean = *mean * factor;
    let (front, back) = rest.split_at_mut(rest.len() / 2);
    for (a, b) in front.iter_mut().zip(back.iter_mut().rev()) {
        (*a, *b) = (*b * factor, *a * factor);
    }
    if back.len() > front.len() {
        back[0] = back[0] * factor;
    }
}
