//! Transforms of a few numbers in registers.

use pulp::Simd;

use super::vector::{Complexes, Real};
use crate::roots::Roots;

/// Where a transform of a few numbers has its input and its results.
pub(crate) trait Ends<S: Simd, T: Real> {
    fn simd(&self) -> S;

    /// Number `k`. Called once for each.
    fn load(&self, k: usize) -> Complexes<S, T>;

    /// Takes result `k`. Called once for each.
    fn store(&mut self, k: usize, x: Complexes<S, T>);
}

/// Repeats a block with a constant: compilers do not unroll such loops reliably.
macro_rules! unroll {
    ($i:ident in [$($value:literal)*] $body:block) => { $({ const $i: usize = $value; $body })* };
}

/// Loads all numbers, transforms them in place and stores them.
macro_rules! direct {
    ($ends:expr, $transform:expr, [$($k:literal)*]) => {{
        let mut x = [$($ends.load($k)),*];
        $transform(&mut x);
        $($ends.store($k, x[$k]);)*
    }};
}

/// Transforms `R` numbers, with `exp(-2πi jk/R)`. `R` is one of the radices of
/// [kernels](super::kernel::Kernels::of), or 1.
#[inline(always)]
pub(crate) fn butterfly<const R: usize, S: Simd, T: Real>(ends: &mut impl Ends<S, T>) {
    match R {
        1 => ends.store(0, ends.load(0)),
        2 => direct!(ends, two, [0 1]),
        3 => direct!(ends, three, [0 1 2]),
        4 => direct!(ends, four, [0 1 2 3]),
        5 => direct!(ends, five, [0 1 2 3 4]),
        6 => six(ends),
        7 => direct!(ends, seven, [0 1 2 3 4 5 6]),
        8 => eight(ends),
        9 => nine(ends),
        10 => ten(ends),
        11 => direct!(ends, eleven, [0 1 2 3 4 5 6 7 8 9 10]),
        12 => twelve(ends),
        13 => direct!(ends, thirteen, [0 1 2 3 4 5 6 7 8 9 10 11 12]),
        15 => fifteen(ends),
        16 => sixteen(ends),
        20 => twenty(ends),
        _ => unreachable!("{R} is not a radix"),
    }
}

#[inline(always)]
fn two<S: Simd, T: Real>(x: &mut [Complexes<S, T>; 2]) {
    *x = [x[0] + x[1], x[0] - x[1]];
}

#[inline(always)]
fn three<S: Simd, T: Real>(x: &mut [Complexes<S, T>; 3]) {
    let (sum, difference) = (x[1] + x[2], x[1] - x[2]);
    let even = x[0].add_scaled(T::rounded(-0.5), sum);
    let s = T::rounded(-Roots::<3>::ALL[1][1]);
    *x = [x[0] + sum, even.sub_i_scaled(s, difference), even.add_i_scaled(s, difference)];
}

#[inline(always)]
fn four<S: Simd, T: Real>(x: &mut [Complexes<S, T>; 4]) {
    let (even, odd) = ([x[0] + x[2], x[0] - x[2]], [x[1] + x[3], x[1] - x[3]]);
    (x[0], x[2]) = (even[0] + odd[0], even[0] - odd[0]);
    (x[1], x[3]) = (even[1].sub_i(odd[1]), even[1].add_i(odd[1]));
}

/// Winograd, *On computing the discrete Fourier transform*, 1978, with additions and
/// multiplications in one.
#[inline(always)]
fn five<S: Simd, T: Real>(x: &mut [Complexes<S, T>; 5]) {
    let ([c, s], [_, t]) = (Roots::<5>::ALL[1], Roots::<5>::ALL[2]);
    // cos 2π/5 + cos 4π/5 = -1/2.
    let (quarter, half, s) = (T::rounded(-0.25), T::rounded(c + 0.25), T::rounded(-s));
    let ratio = T::rounded(t / Roots::<5>::ALL[1][1]);
    let (sums, differences) = ([x[1] + x[4], x[2] + x[3]], [x[1] - x[4], x[3] - x[2]]);
    let (sum, between) = (sums[0] + sums[1], sums[0] - sums[1]);
    let mean = x[0].add_scaled(quarter, sum);
    let even = [mean.add_scaled(half, between), mean.sub_scaled(half, between)];
    let odd = [
        differences[0].sub_scaled(ratio, differences[1]),
        differences[1].add_scaled(ratio, differences[0]),
    ];
    *x = [
        x[0] + sum,
        even[0].sub_i_scaled(s, odd[0]),
        even[1].sub_i_scaled(s, odd[1]),
        even[1].add_i_scaled(s, odd[1]),
        even[0].add_i_scaled(s, odd[0]),
    ];
}

/// Two transforms of four. The eighths of a turn are parts of the last additions.
#[inline(always)]
fn eight<S: Simd, T: Real>(ends: &mut impl Ends<S, T>) {
    let mut even = [ends.load(0), ends.load(2), ends.load(4), ends.load(6)];
    four(&mut even);
    even = [even[0].pinned(), even[1].pinned(), even[2].pinned(), even[3].pinned()];
    let mut odd = [ends.load(1), ends.load(3), ends.load(5), ends.load(7)];
    four(&mut odd);
    let h = T::rounded(std::f64::consts::FRAC_1_SQRT_2);
    let (a, b) = (odd[1].sub_i(odd[1]), odd[3].add_i(odd[3]));
    ends.store(0, even[0] + odd[0]);
    ends.store(4, even[0] - odd[0]);
    ends.store(1, even[1].add_scaled(h, a));
    ends.store(5, even[1].sub_scaled(h, a));
    ends.store(2, even[2].sub_i(odd[2]));
    ends.store(6, even[2].add_i(odd[2]));
    ends.store(3, even[3].sub_scaled(h, b));
    ends.store(7, even[3].add_scaled(h, b));
}

/// Sums and differences of numbers at `j` and `p - j`, times cosines and sines.
macro_rules! odd_prime {
    ($name:ident = $p:literal, [1 $($j:literal)*]) => {
        #[inline(always)]
        fn $name<S: Simd, T: Real>(x: &mut [Complexes<S, T>; $p]) {
            let first = x[0];
            let (mut sums, mut differences) = ([first; $p], [first; $p]);
            unroll!(J in [1 $($j)*] {
                (sums[J], differences[J]) = (x[J] + x[$p - J], x[J] - x[$p - J]);
                x[0] = x[0] + sums[J];
            });
            unroll!(K in [1 $($j)*] {
                let [c, s] = Roots::<$p>::ALL[K];
                let mut even = first.add_scaled(T::rounded(c), sums[1]);
                let mut odd = differences[1].scaled(T::rounded(-s));
                unroll!(J in [$($j)*] {
                    let [c, s] = Roots::<$p>::ALL[J * K % $p];
                    even = even.add_scaled(T::rounded(c), sums[J]);
                    odd = odd.add_scaled(T::rounded(-s), differences[J]);
                });
                (x[K], x[$p - K]) = (even.sub_i(odd).pinned(), even.add_i(odd).pinned());
            });
        }
    };
}

odd_prime!(seven = 7, [1 2 3]);
odd_prime!(eleven = 11, [1 2 3 4 5]);
odd_prime!(thirteen = 13, [1 2 3 4 5 6]);

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

/// A transform of `a b` numbers by `b` transforms of `a`, twiddle factors, and `a` transforms of
/// `b`.
macro_rules! product {
    ($name:ident = $a:literal $first:expr, [$($i:literal)*]; $b:literal $second:expr, [$($j:literal)*]) => {
        #[inline(always)]
        fn $name<S: Simd, T: Real>(ends: &mut impl Ends<S, T>) {
            let zero = Complexes::zero(ends.simd());
            let mut columns = [[zero; $a]; $b];
            unroll!(J in [$($j)*] {
                unroll!(I in [$($i)*] { columns[J][I] = ends.load($b * I + J); });
                $first(&mut columns[J]);
                unroll!(I in [$($i)*] { columns[J][I] = turned::<{ $a * $b }, S, T>(columns[J][I], J * I).pinned(); });
            });
            unroll!(K in [$($i)*] {
                let mut row = [zero; $b];
                unroll!(J in [$($j)*] { row[J] = columns[J][K]; });
                $second(&mut row);
                unroll!(J in [$($j)*] { ends.store(K + $a * J, row[J]); });
            });
        }
    };
}

/// The multiple of `b` that is 1 modulo `a`.
const fn idempotent(a: usize, b: usize) -> usize {
    let mut multiple = b;
    while multiple % a != 1 {
        multiple += b;
    }
    multiple
}

/// The same for `a` and `b` without a common factor: no twiddle factors. Good, *The interaction
/// algorithm and practical Fourier analysis*, 1958.
macro_rules! coprime {
    ($name:ident = $a:literal $first:expr, [$($i:literal)*]; $b:literal $second:expr, [$($j:literal)*]) => {
        #[inline(always)]
        fn $name<S: Simd, T: Real>(ends: &mut impl Ends<S, T>) {
            const OF_FIRST: usize = idempotent($a, $b);
            const OF_SECOND: usize = idempotent($b, $a);
            let zero = Complexes::zero(ends.simd());
            let mut columns = [[zero; $a]; $b];
            unroll!(J in [$($j)*] {
                unroll!(I in [$($i)*] { columns[J][I] = ends.load(($b * I + $a * J) % ($a * $b)); });
                $first(&mut columns[J]);
                unroll!(I in [$($i)*] { columns[J][I] = columns[J][I].pinned(); });
            });
            unroll!(K in [$($i)*] {
                let mut row = [zero; $b];
                unroll!(J in [$($j)*] { row[J] = columns[J][K]; });
                $second(&mut row);
                unroll!(J in [$($j)*] { ends.store((OF_FIRST * K + OF_SECOND * J) % ($a * $b), row[J]); });
            });
        }
    };
}

coprime!(six = 3 three, [0 1 2]; 2 two, [0 1]);
product!(nine = 3 three, [0 1 2]; 3 three, [0 1 2]);
coprime!(ten = 5 five, [0 1 2 3 4]; 2 two, [0 1]);
coprime!(twelve = 3 three, [0 1 2]; 4 four, [0 1 2 3]);
coprime!(fifteen = 5 five, [0 1 2 3 4]; 3 three, [0 1 2]);
product!(sixteen = 4 four, [0 1 2 3]; 4 four, [0 1 2 3]);
coprime!(twenty = 5 five, [0 1 2 3 4]; 4 four, [0 1 2 3]);
