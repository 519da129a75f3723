//! Vectors of real and of complex numbers, one number of each of several lines.

use std::ops::{Add, Sub};

use bytemuck::{Pod, Zeroable};
use pulp::Simd;

/// A real number of which vectors are made.
pub(crate) trait Real: Pod + PartialEq + Send + Sync {
    type Vector<S: Simd>: Pod + Send + Sync;

    fn rounded(x: f64) -> Self;
    fn splat<S: Simd>(simd: S, x: Self) -> Self::Vector<S>;
    fn neg<S: Simd>(simd: S, a: Self::Vector<S>) -> Self::Vector<S>;
    fn add<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    fn sub<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    fn mul<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// `a b + c`.
    fn mul_add<S: Simd>(
        simd: S,
        a: Self::Vector<S>,
        b: Self::Vector<S>,
        c: Self::Vector<S>,
    ) -> Self::Vector<S>;
    /// `c - a b`.
    fn mul_sub_from<S: Simd>(
        simd: S,
        a: Self::Vector<S>,
        b: Self::Vector<S>,
        c: Self::Vector<S>,
    ) -> Self::Vector<S>;
    /// Interleaved complex numbers to real and imaginary parts, in any order of lanes.
    fn deinterleave<S: Simd>(simd: S, pair: Pair<S, Self>) -> Pair<S, Self>;
    /// Undoes [`deinterleave`](Real::deinterleave).
    fn interleave<S: Simd>(simd: S, pair: Pair<S, Self>) -> Pair<S, Self>;
}

/// Two vectors: real and imaginary parts, or interleaved complex numbers.
pub(crate) type Pair<S, T> = [<T as Real>::Vector<S>; 2];

/// The number of lines that a vector has numbers of.
pub(crate) const fn lanes<S: Simd, T: Real>() -> usize {
    size_of::<T::Vector<S>>() / size_of::<T>()
}

macro_rules! real {
    ($number:ident, $vector:ident, $splat:ident $neg:ident $add:ident $sub:ident $mul:ident
     $mul_add:ident $mul_sub_from:ident $deinterleave:ident $interleave:ident) => {
        impl Real for $number {
            type Vector<S: Simd> = S::$vector;

            fn rounded(x: f64) -> Self {
                x as $number
            }
            #[inline(always)]
            fn splat<S: Simd>(simd: S, x: Self) -> S::$vector {
                simd.$splat(x)
            }
            #[inline(always)]
            fn neg<S: Simd>(simd: S, a: S::$vector) -> S::$vector {
                simd.$neg(a)
            }
            #[inline(always)]
            fn add<S: Simd>(simd: S, a: S::$vector, b: S::$vector) -> S::$vector {
                simd.$add(a, b)
            }
            #[inline(always)]
            fn sub<S: Simd>(simd: S, a: S::$vector, b: S::$vector) -> S::$vector {
                simd.$sub(a, b)
            }
            #[inline(always)]
            fn mul<S: Simd>(simd: S, a: S::$vector, b: S::$vector) -> S::$vector {
                simd.$mul(a, b)
            }
            #[inline(always)]
            fn mul_add<S: Simd>(
                simd: S,
                a: S::$vector,
                b: S::$vector,
                c: S::$vector,
            ) -> S::$vector {
                simd.$mul_add(a, b, c)
            }
            #[inline(always)]
            fn mul_sub_from<S: Simd>(
                simd: S,
                a: S::$vector,
                b: S::$vector,
                c: S::$vector,
            ) -> S::$vector {
                simd.$mul_sub_from(a, b, c)
            }
            #[inline(always)]
            fn deinterleave<S: Simd>(simd: S, pair: Pair<S, Self>) -> Pair<S, Self> {
                simd.$deinterleave(pair)
            }
            #[inline(always)]
            fn interleave<S: Simd>(simd: S, pair: Pair<S, Self>) -> Pair<S, Self> {
                simd.$interleave(pair)
            }
        }
    };
}

real!(f32, f32s, splat_f32s neg_f32s add_f32s sub_f32s mul_f32s mul_add_e_f32s
      negate_mul_add_e_f32s deinterleave_shfl_f32s interleave_shfl_f32s);
real!(f64, f64s, splat_f64s neg_f64s add_f64s sub_f64s mul_f64s mul_add_e_f64s
      negate_mul_add_e_f64s deinterleave_shfl_f64s interleave_shfl_f64s);

/// A complex number of each of several lines.
#[derive(Clone, Copy)]
pub(crate) struct Complexes<S: Simd, T: Real> {
    pub(crate) simd: S,
    pub(crate) re: T::Vector<S>,
    pub(crate) im: T::Vector<S>,
}

impl<S: Simd, T: Real> Add for Complexes<S, T> {
    type Output = Self;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        let simd = self.simd;
        Self { simd, re: T::add(simd, self.re, other.re), im: T::add(simd, self.im, other.im) }
    }
}

impl<S: Simd, T: Real> Sub for Complexes<S, T> {
    type Output = Self;
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        let simd = self.simd;
        Self { simd, re: T::sub(simd, self.re, other.re), im: T::sub(simd, self.im, other.im) }
    }
}

impl<S: Simd, T: Real> Complexes<S, T> {
    #[inline(always)]
    pub(crate) fn zero(simd: S) -> Self {
        Self { simd, re: Zeroable::zeroed(), im: Zeroable::zeroed() }
    }

    #[inline(always)]
    pub(crate) fn of(simd: S, [re, im]: Pair<S, T>) -> Self {
        Self { simd, re, im }
    }

    #[inline(always)]
    pub(crate) fn parts(self) -> Pair<S, T> {
        [self.re, self.im]
    }

    /// Loads interleaved numbers, one per lane.
    #[inline(always)]
    pub(crate) fn load(simd: S, numbers: &[T]) -> Self {
        let pair = bytemuck::pod_read_unaligned(bytemuck::cast_slice(numbers));
        Self::of(simd, T::deinterleave(simd, pair))
    }

    /// Loads number `i` of each line.
    #[inline(always)]
    pub(crate) fn load_each(simd: S, lines: &[&[[T; 2]]; MOST_LANES], i: usize) -> Self {
        let mut pair: Pair<S, T> = Zeroable::zeroed();
        let numbers: &mut [[T; 2]] = bytemuck::cast_slice_mut(&mut pair);
        for lane in 0..lanes::<S, T>() {
            numbers[lane] = lines[lane][i];
        }
        Self::of(simd, T::deinterleave(simd, pair))
    }

    /// Stores interleaved numbers.
    #[inline(always)]
    pub(crate) fn store(self, numbers: &mut [T]) {
        let pair = T::interleave(self.simd, self.parts());
        numbers.copy_from_slice(bytemuck::cast_slice(&pair));
    }

    /// Stores number `i` of each line.
    #[inline(always)]
    pub(crate) fn store_each(self, lines: &mut [&mut [[T; 2]]; MOST_LANES], i: usize) {
        let pair = T::interleave(self.simd, self.parts());
        let numbers: &[[T; 2]] = bytemuck::cast_slice(&pair);
        for lane in 0..lanes::<S, T>() {
            lines[lane][i] = numbers[lane];
        }
    }

    #[inline(always)]
    pub(crate) fn conj(self) -> Self {
        Self { im: T::neg(self.simd, self.im), ..self }
    }

    /// `self + i other`.
    #[inline(always)]
    pub(crate) fn add_i(self, other: Self) -> Self {
        let simd = self.simd;
        Self { simd, re: T::sub(simd, self.re, other.im), im: T::add(simd, self.im, other.re) }
    }

    /// `self - i other`.
    #[inline(always)]
    pub(crate) fn sub_i(self, other: Self) -> Self {
        let simd = self.simd;
        Self { simd, re: T::add(simd, self.re, other.im), im: T::sub(simd, self.im, other.re) }
    }

    /// `x self`.
    #[inline(always)]
    pub(crate) fn scaled(self, x: T) -> Self {
        let (simd, x) = (self.simd, T::splat(self.simd, x));
        Self { simd, re: T::mul(simd, self.re, x), im: T::mul(simd, self.im, x) }
    }

    /// `self + x other`.
    #[inline(always)]
    pub(crate) fn add_scaled(self, x: T, other: Self) -> Self {
        let (simd, x) = (self.simd, T::splat(self.simd, x));
        let (re, im) =
            (T::mul_add(simd, other.re, x, self.re), T::mul_add(simd, other.im, x, self.im));
        Self { simd, re, im }
    }

    /// `(re + i im) self`.
    #[inline(always)]
    pub(crate) fn times(self, [re, im]: [T; 2]) -> Self {
        let simd = self.simd;
        let (c, s) = (T::splat(simd, re), T::splat(simd, im));
        Self {
            simd,
            re: T::mul_sub_from(simd, self.im, s, T::mul(simd, self.re, c)),
            im: T::mul_add(simd, self.re, s, T::mul(simd, self.im, c)),
        }
    }

    /// `-i self`.
    #[inline(always)]
    pub(crate) fn quarter_turn(self) -> Self {
        Self { simd: self.simd, re: self.im, im: T::neg(self.simd, self.re) }
    }

    /// `(1 - i)/√2 self`.
    #[inline(always)]
    pub(crate) fn eighth_turn(self) -> Self {
        let simd = self.simd;
        let (re, im) = (T::add(simd, self.re, self.im), T::sub(simd, self.im, self.re));
        Self { simd, re, im }.scaled(T::rounded(std::f64::consts::FRAC_1_SQRT_2))
    }
}

/// The lanes of 512 bits of `f32`.
pub(crate) const MOST_LANES: usize = 16;
