//! Operators on spectra: derivatives, equations, filters and convolutions.
//!
//! A [`Domain`] is a box with physical lengths under a plan's spectrum. It applies an [`Operator`]
//! to fields or slices, on the host or on a device. Ranks communicate only if they divide the axis
//! of tridiagonal systems:
//!
//! ```
//! use std::f64::consts::TAU;
//! use thriffty::spectral::Operator;
//! thriffty::threads(2, |world| {
//!     let mut scalar = thriffty::r2c(&world, [8, 8, 8]).transposed_output(true).build()?;
//!     let mut vector = thriffty::r2c(&world, [8, 8, 8]).batch(3).like(&scalar).build()?;
//!     let domain = scalar.domain([TAU; 3])?;
//!     let mut phi = scalar.input();
//!     phi.fill(|[i, _, _]| (TAU * i as f64 / 8.0).sin());
//!     let phi = scalar.forward(phi)?;
//!     let mut slope = vector.output();
//!     domain.apply(Operator::Gradient, &phi, &mut slope);
//!     let slope = vector.inverse(slope)?;
//!     assert!((slope.as_slice()[0] - 1.0).abs() < 1e-14 || world.rank() > 0);
//!     Ok::<(), thriffty::Error>(())
//! })?;
//! # use thriffty::Comm;
//! # Ok::<(), thriffty::Error>(())
//! ```
//!
//! Vector fields are batches: the components follow each other in memory, in the order of axes.
//! Operators allocate nothing, and go over their data once, or more often if ranks divide such
//! systems.

mod domain;
mod fields;
mod green;

pub use domain::Domain;
pub use fft_core::{Operator, Scheme, Tridiagonal, Wavenumbers};
pub(crate) use green::{check_spacing, integrated};

/// The smallest length of at least `n` points whose transform is fast: a product of powers of 2, 3
/// and 5.
///
/// Transforms of kind R2C are fastest if the length is also even.
///
/// ```
/// assert_eq!(thriffty::spectral::next_fast_len(1021), 1024);
/// assert_eq!(thriffty::spectral::next_fast_len(97), 100);
/// ```
///
/// # Panics
/// If there is none below `usize::MAX`.
pub fn next_fast_len(n: usize) -> usize {
    let mut best = n.checked_next_power_of_two().unwrap_or(usize::MAX);
    let mut fives = 1usize;
    while fives < best {
        let mut odd = fives;
        while odd < best {
            let halves = n.div_ceil(odd).checked_next_power_of_two();
            let len = halves.and_then(|halves| odd.checked_mul(halves));
            best = len.map_or(best, |len| len.min(best));
            let Some(more) = odd.checked_mul(3) else { break };
            odd = more;
        }
        let Some(more) = fives.checked_mul(5) else { break };
        fives = more;
    }
    assert!(best < usize::MAX, "no fast length of at least {n} points");
    best
}

#[cfg(test)]
mod tests {
    use super::next_fast_len;

    #[test]
    fn fast_lengths_are_the_next_ones() {
        let is_fast = |n: usize| {
            let rest = [2, 3, 5].into_iter().fold(n, |mut rest: usize, prime| {
                while rest.is_multiple_of(prime) {
                    rest /= prime;
                }
                rest
            });
            rest == 1
        };
        for n in 1..3000 {
            let expected = (n..).find(|n| is_fast(*n)).unwrap();
            assert_eq!(next_fast_len(n), expected, "{n}");
        }
        assert_eq!(next_fast_len(0), 1);
        assert_eq!(next_fast_len(1 << 62), 1 << 62);
        let next = next_fast_len((1 << 63) + 1);
        assert!(next > 1 << 63 && is_fast(next), "{next}");
    }
}
