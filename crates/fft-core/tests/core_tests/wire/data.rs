//! Numbers to send.

use fft_core::Real;

/// Uniform between 0 and 1, never 0.
pub(crate) fn uniform(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 11) + 1) as f64 / (1u64 << 53) as f64
    }
}

/// Normal numbers, by Box and Muller.
pub(crate) fn gaussian<T: Real>(n: usize) -> Vec<T> {
    let mut uniform = uniform(n as u64);
    let mut normal = || (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
    (0..n).map(|_| T::of(normal())).collect()
}

/// Numbers of very different size, positive and negative, in the range of `T`.
pub(crate) fn wild<T: Real>(n: usize) -> Vec<T> {
    let mut uniform = uniform(7);
    let most = if size_of::<T>() == 4 { 30.0 } else { 300.0 };
    (0..n).map(|_| T::of((uniform() - 0.5) * 10f64.powf((2.0 * uniform() - 1.0) * most))).collect()
}

/// A smooth signal that falls over many decades, with a stretch of zeros.
pub(crate) fn smooth<T: Real>(n: usize) -> Vec<T> {
    let at = |i: usize| match i {
        200..400 => 0.0,
        i => (0.1 * i as f64).sin() * (-0.02 * i as f64).exp(),
    };
    (0..n).map(|i| T::of(at(i))).collect()
}

/// All of them.
pub(crate) fn all<T: Real>(n: usize) -> [Vec<T>; 4] {
    [gaussian(n), wild(n), smooth(n), vec![T::of(0.3); n]]
}
