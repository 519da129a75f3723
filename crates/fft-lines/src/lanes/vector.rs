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
    /// Of deinterleaved neighbours `[a, b]` and `[c, d]` of each line, `[a, c]` and `[b, d]`.
    fn turn<S: Simd>(simd: S, pair: Pair<S, Self>) -> Pair<S, Self>;
}

/// Two vectors: real and imaginary parts, or interleaved complex numbers.
pub(crate) type Pair<S, T> = [<T as Real>::Vector<S>; 2];

/// The number of lines that a vector has numbers of.
pub(crate) const fn lanes<S: Simd, T: Real>() -> usize {
    size_of::<T::Vector<S>>() / size_of::<T>()
}

macro_rules! real {
    ($number:ident, $vector:ident, $pair:ident, $splat:ident $neg:ident $add:ident $sub:ident $mul:ident
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
                #[cfg(target_arch = "x86_64")]
                if let Some(simd) = avx2(simd) {
                    return bytemuck::cast($pair::deinterleave(simd, bytemuck::cast(pair)));
                }
                simd.$deinterleave(pair)
            }
            #[inline(always)]
            fn interleave<S: Simd>(simd: S, pair: Pair<S, Self>) -> Pair<S, Self> {
                #[cfg(target_arch = "x86_64")]
                if let Some(simd) = avx2(simd) {
                    return bytemuck::cast($pair::interleave(simd, bytemuck::cast(pair)));
                }
                simd.$interleave(pair)
            }
            #[inline(always)]
            fn turn<S: Simd>(simd: S, pair: Pair<S, Self>) -> Pair<S, Self> {
                #[cfg(target_arch = "x86_64")]
                if let Some(simd) = avx2(simd) {
                    return bytemuck::cast($pair::turn(simd, bytemuck::cast(pair)));
                }
                let [mut a, mut b] = pair.map(|x| Self::interleave(simd, [x, x]));
                let (low, high): (&mut [[Self; 4]], &mut [[Self; 4]]) =
                    (bytemuck::cast_slice_mut(&mut a), bytemuck::cast_slice_mut(&mut b));
                for ([_, _, b, _], [c, _, _, _]) in low.iter_mut().zip(high) {
                    std::mem::swap(b, c);
                }
                [a, b].map(|pair| Self::deinterleave(simd, pair)[0])
            }
        }
    };
}

real!(f32, f32s, singles, splat_f32s neg_f32s add_f32s sub_f32s mul_f32s mul_add_e_f32s
      negate_mul_add_e_f32s deinterleave_shfl_f32s interleave_shfl_f32s);
real!(f64, f64s, doubles, splat_f64s neg_f64s add_f64s sub_f64s mul_f64s mul_add_e_f64s
      negate_mul_add_e_f64s deinterleave_shfl_f64s interleave_shfl_f64s);

/// Two vectors of AVX2, with as few shuffles as any order of lanes allows.
#[cfg(target_arch = "x86_64")]
mod singles {
    use pulp::x86::V3;
    use std::arch::x86_64::__m256;

    #[inline(always)]
    pub(super) fn deinterleave(simd: V3, [a, b]: [__m256; 2]) -> [__m256; 2] {
        [simd.avx._mm256_shuffle_ps::<0x88>(a, b), simd.avx._mm256_shuffle_ps::<0xdd>(a, b)]
    }
    #[inline(always)]
    pub(super) fn interleave(simd: V3, [a, b]: [__m256; 2]) -> [__m256; 2] {
        [simd.avx._mm256_unpacklo_ps(a, b), simd.avx._mm256_unpackhi_ps(a, b)]
    }
    #[inline(always)]
    pub(super) fn turn(simd: V3, [a, b]: [__m256; 2]) -> [__m256; 2] {
        let (odd, even) = (simd.avx._mm256_movehdup_ps(a), simd.avx._mm256_moveldup_ps(b));
        [simd.avx._mm256_blend_ps::<0xaa>(a, even), simd.avx._mm256_blend_ps::<0xaa>(odd, b)]
    }
}

#[cfg(target_arch = "x86_64")]
mod doubles {
    use pulp::x86::V3;
    use std::arch::x86_64::__m256d;

    #[inline(always)]
    pub(super) fn deinterleave(simd: V3, [a, b]: [__m256d; 2]) -> [__m256d; 2] {
        [simd.avx._mm256_unpacklo_pd(a, b), simd.avx._mm256_unpackhi_pd(a, b)]
    }
    #[inline(always)]
    pub(super) fn interleave(simd: V3, pair: [__m256d; 2]) -> [__m256d; 2] {
        deinterleave(simd, pair)
    }
    #[inline(always)]
    pub(super) fn turn(simd: V3, [a, b]: [__m256d; 2]) -> [__m256d; 2] {
        let avx = simd.avx;
        [avx._mm256_permute2f128_pd::<0x20>(a, b), avx._mm256_permute2f128_pd::<0x31>(a, b)]
    }
}

/// The vectors of AVX2, if these are.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn avx2<S: Simd>(simd: S) -> Option<pulp::x86::V3> {
    (&simd as &dyn std::any::Any).downcast_ref().copied()
}

/// [`fft_stream::pin`] where there are 16 registers.
#[inline(always)]
fn pinned<S: Simd, T: Real>(simd: S, x: T::Vector<S>) -> T::Vector<S> {
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = avx2(simd) {
        return bytemuck::cast(fft_stream::pin(simd, bytemuck::cast(x)));
    }
    x
}

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

    /// Interleaved numbers, one per lane.
    #[inline(always)]
    pub(crate) fn deinterleaved(simd: S, pair: Pair<S, T>) -> Self {
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

    /// Undoes [`deinterleaved`](Self::deinterleaved).
    #[inline(always)]
    pub(crate) fn interleaved(self) -> Pair<S, T> {
        T::interleave(self.simd, self.parts())
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

    /// `self - x other`.
    #[inline(always)]
    pub(crate) fn sub_scaled(self, x: T, other: Self) -> Self {
        let (simd, x) = (self.simd, T::splat(self.simd, x));
        let re = T::mul_sub_from(simd, other.re, x, self.re);
        Self { simd, re, im: T::mul_sub_from(simd, other.im, x, self.im) }
    }

    /// `self + i x other`.
    #[inline(always)]
    pub(crate) fn add_i_scaled(self, x: T, other: Self) -> Self {
        let (simd, x) = (self.simd, T::splat(self.simd, x));
        let re = T::mul_sub_from(simd, other.im, x, self.re);
        Self { simd, re, im: T::mul_add(simd, other.re, x, self.im) }
    }

    /// `self - i x other`.
    #[inline(always)]
    pub(crate) fn sub_i_scaled(self, x: T, other: Self) -> Self {
        let (simd, x) = (self.simd, T::splat(self.simd, x));
        let re = T::mul_add(simd, other.im, x, self.re);
        Self { simd, re, im: T::mul_sub_from(simd, other.re, x, self.im) }
    }

    /// Computed before and used after whatever is pinned before and after it.
    #[inline(always)]
    pub(crate) fn pinned(self) -> Self {
        Self {
            simd: self.simd,
            re: pinned::<S, T>(self.simd, self.re),
            im: pinned::<S, T>(self.simd, self.im),
        }
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

    /// As [`times`](Self::times), with a factor for each lane.
    #[inline(always)]
    pub(crate) fn times_each(self, [c, s]: Pair<S, T>) -> Self {
        let simd = self.simd;
        Self {
            simd,
            re: T::mul_sub_from(simd, self.im, s, T::mul(simd, self.re, c)),
            im: T::mul_add(simd, self.re, s, T::mul(simd, self.im, c)),
        }
    }

    /// Two neighbours, the same for all lines.
    #[inline(always)]
    pub(crate) fn neighbours(simd: S, two: [[T; 2]; 2]) -> Self {
        let mut pair: Pair<S, T> = Zeroable::zeroed();
        let numbers: &mut [[[T; 2]; 2]] = bytemuck::cast_slice_mut(&mut pair);
        numbers.fill(two);
        Self::deinterleaved(simd, pair)
    }

    /// Of neighbours `[a, b]` and `[c, d]` of each line, `[a, c]` and `[b, d]`.
    #[inline(always)]
    pub(crate) fn turned(self, other: Self) -> [Self; 2] {
        let simd = self.simd;
        let (re, im) = (T::turn(simd, [self.re, other.re]), T::turn(simd, [self.im, other.im]));
        [Self { simd, re: re[0], im: im[0] }, Self { simd, re: re[1], im: im[1] }]
    }

    /// Real and imaginary parts exchanged.
    #[inline(always)]
    pub(crate) fn swapped(self) -> Self {
        Self { simd: self.simd, re: self.im, im: self.re }
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
