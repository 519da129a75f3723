//! Complex transforms of one line after the other, and the bytes of their tables.

use std::sync::Arc;

use rustfft::num_complex::Complex;
use rustfft::{Fft, FftDirection, FftPlanner};

use crate::DctNum;
use crate::shared::Made;

/// Numbers of a line whose tables are larger than a cache. Both directions use the same.
pub(crate) const LONG: usize = 1 << 15;

/// The primes up to the longest butterfly of rustfft.
const SMALL_PRIMES: [usize; 11] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31];

/// `n` without these prime factors.
fn without(n: usize, primes: &[usize]) -> usize {
    primes.iter().fold(n.max(1), |mut rest, prime| {
        while rest.is_multiple_of(*prime) {
            rest /= prime;
        }
        rest
    })
}

fn is_prime(n: usize) -> bool {
    n > 1 && (2..).take_while(|factor| factor * factor <= n).all(|factor| !n.is_multiple_of(factor))
}

/// Whether lines of `n` numbers are long and have few factors that are small primes, so that
/// rustfft would convolve lines of about their length.
pub(crate) fn needs_convolution(n: usize) -> bool {
    let rest = without(n, &SMALL_PRIMES);
    n >= LONG && rest > n / 3 && !(is_prime(rest) && without(rest - 1, &SMALL_PRIMES) == 1)
}

/// A transform by rustfft.
pub(crate) fn complex<T: DctNum>(n: usize, forward: bool) -> Made<Arc<dyn Fft<T>>> {
    let direction = if forward { FftDirection::Forward } else { FftDirection::Inverse };
    let mut planner = FftPlanner::new();
    let transform = planner.plan_fft(n, direction);
    // rustfft does not tell what its tables take. The stages of small radices have one factor for
    // each number, all together.
    let rest = without(n, &SMALL_PRIMES[..5]);
    let more = if rest <= 31 {
        0
    } else {
        // What is left is transformed by Bluestein's algorithm, with as much scratch as tables, or
        // by Rader's, with a factor and an index for each number. The planner has it already.
        let scratch = planner.plan_fft(rest, direction).get_inplace_scratch_len();
        if scratch > 2 * rest { scratch } else { rest + rest / 2 }
    };
    Made { transform, bytes: (n + more) * size_of::<Complex<T>>() }
}
