//! Long lines with a large prime factor, by a convolution of a length with fast transforms.
//!
//! With `c[j] = exp(-πi j²/n)` and `jk = (j² + k² - (k-j)²)/2`:
//!
//! ```text
//! X[k] = c[k] Σ_j (x[j] c[j]) conj c[k-j]
//! ```
//!
//! Bluestein, *A linear filtering approach to the computation of discrete Fourier transform*, 1970.
//! rustfft has this algorithm, too. Here it takes less time to plan, and its tables are smaller:
//! the transform of `conj c` is symmetric, so that half of it is stored.

use std::sync::Arc;

use rustfft::num_complex::Complex;
use rustfft::{Direction, Fft, FftDirection, Length};

use crate::DctNum;
use crate::lanes::Real;
use crate::roots::ManyRoots;

/// A forward transform.
pub(crate) struct Bluestein<T> {
    /// Of at least `2n - 1` numbers.
    convolution: Arc<dyn Fft<T>>,
    /// `c[j]`.
    chirp: Vec<Complex<T>>,
    /// The first half of the transform of `conj c`, divided by its length.
    kernel: Vec<Complex<T>>,
}

/// The length of the convolution for lines of `n` numbers: the least of factors 2 and 3 that is
/// enough, and a multiple of 8.
pub(crate) fn convolution_len(n: usize) -> usize {
    let mut least = usize::MAX;
    let mut odd = 1;
    while odd < 2 * n {
        let twos = (2 * n - 1).div_ceil(odd).next_power_of_two().max(8);
        least = least.min(odd * twos);
        odd *= 3;
    }
    least
}

impl<T: DctNum + Real> Bluestein<T> {
    /// For lines of `n` numbers by a forward transform of [`convolution_len`] numbers.
    pub(crate) fn new(n: usize, convolution: Arc<dyn Fft<T>>) -> Self {
        let (len, roots) = (convolution.len(), ManyRoots::new(2 * n));
        let mut square = 0;
        let chirp: Vec<_> = (0..n)
            .map(|j| {
                let [re, im] = roots.get(square);
                // (j + 1)² modulo 2n.
                square += 2 * j + 1;
                square -= if square >= 2 * n { 2 * n } else { 0 };
                Complex::new(T::rounded(re), T::rounded(im))
            })
            .collect();
        let zero = Complex::new(T::zero(), T::zero());
        let scale = T::rounded(1.0 / len as f64);
        let mut kernel = vec![zero; len];
        for (j, c) in chirp.iter().enumerate() {
            let c = c.conj() * scale;
            kernel[j] = c;
            kernel[if j == 0 { 0 } else { len - j }] = c;
        }
        let mut scratch = vec![zero; convolution.get_inplace_scratch_len()];
        convolution.process_with_scratch(&mut kernel, &mut scratch);
        kernel.truncate(len / 2 + 1);
        kernel.shrink_to_fit();
        Self { convolution, chirp, kernel }
    }

    /// Bytes of the tables, except the tables of the convolution.
    pub(crate) fn table_bytes(&self) -> usize {
        size_of_val(&*self.chirp) + size_of_val(&*self.kernel)
    }
}

impl<T: DctNum> Bluestein<T> {
    fn scratch_len(&self) -> usize {
        self.convolution.len() + self.convolution.get_inplace_scratch_len()
    }

    fn line(&self, line: &mut [Complex<T>], scratch: &mut [Complex<T>]) {
        let (x, scratch) = scratch.split_at_mut(self.convolution.len());
        for ((x, number), c) in x.iter_mut().zip(&*line).zip(&self.chirp) {
            *x = *number * *c;
        }
        x[self.chirp.len()..].fill(Complex::new(T::zero(), T::zero()));
        self.convolution.process_with_scratch(x, scratch);
        // Conjugated, so that a forward transform is an inverse one.
        let half = self.kernel.len();
        for (x, factor) in x.iter_mut().zip(&self.kernel) {
            *x = (*x * *factor).conj();
        }
        for (x, factor) in x[half..].iter_mut().rev().zip(&self.kernel[1..]) {
            *x = (*x * *factor).conj();
        }
        self.convolution.process_with_scratch(x, scratch);
        for ((number, x), c) in line.iter_mut().zip(x).zip(&self.chirp) {
            *number = x.conj() * *c;
        }
    }
}

impl<T: DctNum> Fft<T> for Bluestein<T> {
    fn process_with_scratch(&self, buffer: &mut [Complex<T>], scratch: &mut [Complex<T>]) {
        for line in buffer.chunks_exact_mut(self.len()) {
            self.line(line, scratch);
        }
    }

    fn process_outofplace_with_scratch(
        &self,
        input: &mut [Complex<T>],
        output: &mut [Complex<T>],
        scratch: &mut [Complex<T>],
    ) {
        self.process_immutable_with_scratch(input, output, scratch);
    }

    fn process_immutable_with_scratch(
        &self,
        input: &[Complex<T>],
        output: &mut [Complex<T>],
        scratch: &mut [Complex<T>],
    ) {
        output.copy_from_slice(input);
        self.process_with_scratch(output, scratch);
    }

    fn get_inplace_scratch_len(&self) -> usize {
        self.scratch_len()
    }

    fn get_outofplace_scratch_len(&self) -> usize {
        self.scratch_len()
    }

    fn get_immutable_scratch_len(&self) -> usize {
        self.scratch_len()
    }
}

impl<T> Length for Bluestein<T> {
    fn len(&self) -> usize {
        self.chirp.len()
    }
}

impl<T> Direction for Bluestein<T> {
    fn fft_direction(&self) -> FftDirection {
        FftDirection::Forward
    }
}
