//! Transforms of a few numbers in registers.

use pulp::Simd;

use super::vector::{Complexes, Real};
use crate::roots::Roots;

/// Replaces `x` by its transform, with `exp(-2πi jk/R)`. `R` is one of the
/// radices of [kernels](super::kernel::Kernels::of), or 1.
#[inline(always)]
pub(crate) fn butterfly<const R: usize, S: Simd, T: Real>(x: &mut [Complexes<S, T>; R]) {
    match R {
        1 => {}
        2 => two(x),
        4 => four(x),
        8 => eight(x),
        9 => nine(x),
        16 => sixteen(x),
        _ => odd_prime::<R, S, T>(x),
    }
}

#[inline(always)]
fn two<S: Simd, T: Real>(x: &mut [Complexes<S, T>]) {
    (x[0], x[1]) = (x[0] + x[1], x[0] - x[1]);
}

#[inline(always)]
fn four<S: Simd, T: Real>(x: &mut [Complexes<S, T>]) {
    let (even, odd) = ([x[0] + x[2], x[0] - x[2]], [x[1] + x[3], x[1] - x[3]]);
    (x[0], x[2]) = (even[0] + odd[0], even[0] - odd[0]);
    (x[1], x[3]) = (even[1].sub_i(odd[1]), even[1].add_i(odd[1]));
}

/// Sums and differences of numbers at `j` and `P - j`, times cosines and sines.
#[inline(always)]
fn odd_prime<const P: usize, S: Simd, T: Real>(x: &mut [Complexes<S, T>]) {
    let first = x[0];
    let (mut sums, mut differences) = ([first; P], [first; P]);
    for j in 1..P.div_ceil(2) {
        (sums[j], differences[j]) = (x[j] + x[P - j], x[j] - x[P - j]);
        x[0] = x[0] + sums[j];
    }
    for k in 1..P.div_ceil(2) {
        let [c, s] = Roots::<P>::ALL[k];
        let mut even = first.add_scaled(T::rounded(c), sums[1]);
        let mut odd = differences[1].scaled(T::rounded(-s));
        for j in 2..P.div_ceil(2) {
            let [c, s] = Roots::<P>::ALL[j * k % P];
            even = even.add_scaled(T::rounded(c), sums[j]);
            odd = odd.add_scaled(T::rounded(-s), differences[j]);
        }
        (x[k], x[P - k]) = (even.sub_i(odd), even.add_i(odd));
    }
}

/// Times `exp(-2πi k/N)`.
#[inline(always)]
fn turned<const N: usize, S: Simd, T: Real>(x: Complexes<S, T>, k: usize) -> Complexes<S, T> {
    match 8 * k {
        0 => x,
        eighths if eighths == N => x.eighth_turn(),
        eighths if eighths == 2 * N => x.quarter_turn(),
        eighths if eighths == 3 * N => x.eighth_turn().quarter_turn(),
        _ => x.times(Roots::<N>::ALL[k].map(T::rounded)),
    }
}

/// Repeats a block with a constant: compilers do not unroll such loops reliably.
macro_rules! unroll {
    ($i:ident in [$($value:literal)*] $body:block) => { $({ const $i: usize = $value; $body })* };
}

/// A transform of `a b` numbers by `b` transforms of `a`, twiddle factors, and `a` transforms of
/// `b`.
macro_rules! product {
    ($name:ident = $a:literal $first:expr, [$($i:literal)*]; $b:literal $second:expr, [$($j:literal)*]) => {
        #[inline(always)]
        fn $name<S: Simd, T: Real>(x: &mut [Complexes<S, T>]) {
            let mut columns = [[x[0]; $a]; $b];
            unroll!(J in [$($j)*] {
                unroll!(I in [$($i)*] { columns[J][I] = x[$b * I + J]; });
                $first(&mut columns[J]);
            });
            unroll!(K in [$($i)*] {
                let mut row = [x[0]; $b];
                unroll!(J in [$($j)*] { row[J] = turned::<{ $a * $b }, S, T>(columns[J][K], J * K); });
                $second(&mut row);
                unroll!(J in [$($j)*] { x[K + $a * J] = row[J]; });
            });
        }
    };
}

product!(eight = 4 four, [0 1 2 3]; 2 two, [0 1]);
product!(nine = 3 odd_prime::<3, S, T>, [0 1 2]; 3 odd_prime::<3, S, T>, [0 1 2]);
product!(sixteen = 4 four, [0 1 2 3]; 4 four, [0 1 2 3]);
