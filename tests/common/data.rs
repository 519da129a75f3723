//! Numbers of a distributed array: made from global indices, cut out by brick, put together again.

use fft_core::{Brick, Element, Real};
use thriffty::Complex;

use super::tiling::Rng;

pub(crate) type C64 = Complex<f64>;

/// Places in a row-major array of this shape, for every point of a brick in the order of memory.
fn places<const D: usize>(shape: [usize; D], brick: Brick<D>, order: [usize; D]) -> Vec<usize> {
    let mut places = vec![0];
    for axis in order {
        let stride: usize = shape[axis + 1..].iter().product();
        let along = |place: usize| brick.range(axis).map(move |i| place + i * stride);
        places = places.into_iter().flat_map(along).collect();
    }
    if brick.is_empty() { Vec::new() } else { places }
}

/// The index of a place in a row-major array.
pub(crate) fn index<const D: usize>(shape: [usize; D], mut place: usize) -> [usize; D] {
    let mut index = [0; D];
    for axis in (0..D).rev() {
        index[axis] = place % shape[axis];
        place /= shape[axis];
    }
    index
}

/// The place of an index.
pub(crate) fn place<const D: usize>(shape: [usize; D], index: [usize; D]) -> usize {
    (0..D).fold(0, |place, axis| place * shape[axis] + index[axis])
}

/// The part of whole arrays, one after the other, that a brick holds.
pub(crate) fn cut<E: Copy, const D: usize>(
    arrays: &[E],
    shape: [usize; D],
    brick: Brick<D>,
    order: [usize; D],
) -> Vec<E> {
    let places = places(shape, brick, order);
    let points = shape.iter().product();
    arrays.chunks_exact(points).flat_map(|array| places.iter().map(|&i| array[i])).collect()
}

/// Puts the part that a brick holds back into whole arrays.
pub(crate) fn paste<E: Copy, const D: usize>(
    part: &[E],
    arrays: &mut [E],
    shape: [usize; D],
    brick: Brick<D>,
    order: [usize; D],
) {
    let places = places(shape, brick, order);
    let points = shape.iter().product();
    assert_eq!(part.len() * points, places.len() * arrays.len(), "a part of every array");
    for (batch, array) in arrays.chunks_exact_mut(points).enumerate() {
        for (&place, &x) in places.iter().zip(&part[batch * places.len()..]) {
            array[place] = x;
        }
    }
}

/// Random numbers that are exact in the element's precision.
pub(crate) fn random<E: Element>(points: usize, seed: u64) -> Vec<E> {
    let mut rng = Rng(seed);
    let mut data = vec![E::default(); points];
    for x in bytemuck::cast_slice_mut::<E, E::Real>(&mut data) {
        *x = E::Real::of(rng.signed());
    }
    data
}

/// The same numbers as complex ones in f64.
pub(crate) fn widen<E: Element>(data: &[E]) -> Vec<C64> {
    let reals: &[E::Real] = bytemuck::cast_slice(data);
    let part = |x: Option<&E::Real>| x.map_or(0.0, |x| x.as_f64());
    reals.chunks_exact(E::WIDTH).map(|x| C64::new(x[0].as_f64(), part(x.get(1)))).collect()
}

/// The l2 norm.
pub(crate) fn norm(data: &[C64]) -> f64 {
    data.iter().map(Complex::norm_sqr).sum::<f64>().sqrt()
}

/// The l2 norm of the difference.
pub(crate) fn distance(a: &[C64], b: &[C64]) -> f64 {
    assert_eq!(a.len(), b.len(), "arrays of one length");
    a.iter().zip(b).map(|(a, b)| (a - b).norm_sqr()).sum::<f64>().sqrt()
}

/// The relative l2 error that a transform of `points` random numbers may have in arithmetic of this
/// epsilon.
///
/// Higham (Accuracy and Stability of Numerical Algorithms, theorem 24.2) bounds the error of a
/// radix-2 FFT by log2 N · (u' + γ4 (√2 + u')). Here u' is the error of the twiddles and γ4 ≈ 4u.
/// For u' = u = eps/2 that is 3.4 eps per level, for the worst data. Rounding errors of random data
/// have both signs and add up like √(log2 N). The largest in these tests is 0.63 eps per level,
/// with primes, cosine transforms and the oracle's own error. 2 eps leave room for other vector
/// units. One more level is for scaling and for the ends of cosine and sine transforms.
pub(crate) fn bound(epsilon: f64, points: usize) -> f64 {
    2.0 * epsilon * (1.0 + (points as f64).log2())
}
