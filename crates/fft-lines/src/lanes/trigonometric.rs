//! Cosine and sine transforms, by complex ones of about half the length.
//!
//! Two numbers of a line are the parts of a complex number. A linear map of these two is applied
//! before or after the complex transform, or both. For `n` numbers x, h = n/2, w = exp(-πi/2n):
//!
//! ```text
//! II:  V the real transform of x[0], x[2], ..., x[3], x[1], which folds Z[k] and Z[h-k]
//!      X[k] = 2 Re w^k V[k],  X[n-k] = -2 Im w^k V[k]
//! III: the other way, with V[k] = w^-k (X[k] - i X[n-k])
//! IV:  Z the transform of w^2l (x[2l] + i x[n-1-2l])
//!      X[2k] = 2 Re w^(2k+1/2) Z[k],  X[n-1-2k] = -2 Im w^(2k+1/2) Z[k]
//! I:   the real transform of x continued as an even or odd function
//! ```
//!
//! II and III: Makhoul, *A fast cosine transform in one and two dimensions*, 1980. Sine transforms
//! II to IV are cosine transforms with signs that alternate and frequencies in reverse order.

use pulp::{Simd, WithSimd};

use super::ahead::Ahead;
use super::batch::GroupFft;
use super::kernel::Strides;
use super::stages::Stages;
use super::turn::{FromRows, ToRows};
use super::vector::{Pair, Real, lanes};
use crate::roots::root;

/// A cosine or sine transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Trigonometric {
    /// The symmetry at both ends.
    pub kind: TrigonometricType,
    /// Whether it is a sine transform.
    pub sine: bool,
}

/// The type of a cosine or sine transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TrigonometricType {
    /// Symmetric about the first and the last point, or zero beyond them.
    I,
    /// "The" cosine transform.
    II,
    /// The inverse of II.
    III,
    /// Its own inverse, symmetric about half points.
    IV,
}

use TrigonometricType::{I, II, III, IV};

impl Trigonometric {
    /// The length of the complex transform; `None` for odd `n` but in type I.
    pub(crate) fn complex_len(self, n: usize) -> Option<usize> {
        match self.kind {
            I if self.sine => Some(n + 1),
            I => n.checked_sub(1),
            _ => n.is_multiple_of(2).then_some(n / 2),
        }
    }
}

/// Real numbers of a line, the places of half as many complex ones, and the map between them. Both
/// real numbers, or both complex ones, may be the same.
struct Block<T, const REALS: usize, const PLACES: usize> {
    at: [usize; REALS],
    places: [usize; PLACES],
    map: [[T; REALS]; REALS],
}

/// How real numbers become complex ones, or complex ones real.
enum Side<T> {
    Twos(Vec<Block<T, 2, 1>>),
    Fours(Vec<Block<T, 4, 2>>),
}

impl<T> Side<T> {
    fn bytes(&self) -> usize {
        match self {
            Self::Twos(blocks) => size_of_val(&**blocks),
            Self::Fours(blocks) => size_of_val(&**blocks),
        }
    }
}

pub(crate) struct TrigonometricFft<S: Simd, T: Real> {
    stages: Stages<S, T>,
    n: usize,
    /// Real numbers of an element: both parts of complex data are transformed.
    width: usize,
    before: Side<T>,
    after: Side<T>,
}

/// The matrix of a linear function.
fn matrix<T: Real, const N: usize>(f: impl Fn([f64; N]) -> [f64; N]) -> [[T; N]; N] {
    let unit = |column| std::array::from_fn(|row| if row == column { 1.0 } else { 0.0 });
    let columns: [[f64; N]; N] = std::array::from_fn(|column| f(unit(column)));
    std::array::from_fn(|row| columns.map(|column| T::rounded(column[row])))
}

/// The product of two complex numbers.
fn product([a, b]: [f64; 2], [c, d]: [f64; 2]) -> [f64; 2] {
    [a * c - b * d, a * d + b * c]
}

/// Makes tables for `n` numbers by a transform of `h` complex ones.
struct Tables<'a> {
    sine: bool,
    n: usize,
    h: usize,
    /// The frequency of each place.
    order: &'a [usize],
}

impl Tables<'_> {
    /// The sign of number `j` of II to IV.
    fn sign(&self, j: usize) -> f64 {
        if self.sine && !j.is_multiple_of(2) { -1.0 } else { 1.0 }
    }

    /// The place of frequency `k` of II to IV.
    fn reversed(&self, k: usize) -> usize {
        if self.sine { self.n - 1 - k } else { k }
    }

    /// Numbers `2l` and `2l + 1` of the real transform of II or III.
    fn pair<T: Real>(&self, l: usize, place: usize) -> Block<T, 2, 1> {
        let permuted = |j| if j < self.h { 2 * j } else { 2 * (self.n - 1 - j) + 1 };
        let at = [2 * l, 2 * l + 1].map(permuted);
        Block {
            at,
            places: [place],
            map: matrix(|[a, b]| [a * self.sign(at[0]), b * self.sign(at[1])]),
        }
    }

    /// Numbers `2l` and `n - 1 - 2l`, before IV.
    fn ends<T: Real>(&self, l: usize) -> Block<T, 2, 1> {
        let at = [2 * l, self.n - 1 - 2 * l];
        let [a, b] = at.map(|j| self.sign(j));
        Block {
            at,
            places: [l],
            map: matrix(|[x, y]| product(root(l, 2 * self.n), [a * x, b * y])),
        }
    }

    /// Frequencies `2k` and `n - 1 - 2k`, after IV.
    fn frequencies<T: Real>(&self, place: usize) -> Block<T, 2, 1> {
        let k = self.order[place];
        let at = [2 * k, self.n - 1 - 2 * k].map(|k| self.reversed(k));
        let map = |z| product(root(4 * k + 1, 8 * self.n), z);
        Block {
            at,
            places: [place],
            map: matrix(|z| {
                let [re, im] = map(z);
                [2.0 * re, -2.0 * im]
            }),
        }
    }

    /// Numbers `2l` and `2l + 1` of a period of an even or odd function, before I.
    fn extended<T: Real>(&self, l: usize) -> Block<T, 2, 1> {
        let [(a, x), (b, y)] = [2 * l, 2 * l + 1].map(|j| match j.min(2 * self.h - j) {
            near if !self.sine => (near, 1.0),
            near if near.is_multiple_of(self.h) => (0, 0.0),
            near => (near - 1, if j > self.h { -1.0 } else { 1.0 }),
        });
        Block { at: [a, b], places: [l], map: matrix(|[p, q]| [p * x, q * y]) }
    }

    /// For `k` to `h/2` and not below `first`: blocks of what belongs to `k` and to `h - k`.
    fn folds<T: Real>(
        &self,
        first: usize,
        place: impl Fn(usize) -> usize,
        at: impl Fn(usize) -> [usize; 2],
        map: impl Fn(usize, [f64; 4]) -> [f64; 4],
    ) -> Side<T> {
        let fold = |k: usize| {
            let [[a, b], [c, d]] = [k, self.h - k].map(&at);
            let places = [k, (self.h - k) % self.h].map(&place);
            Block { at: [a, b, c, d], places, map: matrix(|x| map(k, x)) }
        };
        Side::Fours((first..=self.h / 2).map(fold).collect())
    }

    /// Frequencies `k` and `h - k` of the real transform, twice, from those of the complex one.
    fn split(&self, k: usize, [a, b, c, d]: [f64; 4]) -> [[f64; 2]; 2] {
        let (even, odd) = ([a + c, b - d], [a - c, b + d]);
        let [re, im] = product(root(k, 2 * self.h), odd);
        [[even[0] + im, even[1] - re], [even[0] - im, -even[1] - re]]
    }

    /// Frequencies of II or III, `k` and `n - k`, where `k` is at most `h`.
    fn both(&self, k: usize) -> [usize; 2] {
        [k, if k == 0 { 0 } else { self.n - k }].map(|k| self.reversed(k))
    }

    fn places(&self) -> Vec<usize> {
        let mut places = vec![0; self.h];
        self.order.iter().enumerate().for_each(|(place, k)| places[*k] = place);
        places
    }

    /// After II: the parts of `w^k V[k]`.
    fn after_two<T: Real>(&self) -> Side<T> {
        let places = self.places();
        let parts = |k, v| {
            let [re, im] = product(root(k, 4 * self.n), v);
            // Frequency `n` is none, and the imaginary part is zero.
            if k == 0 { [re, re] } else { [re, -im] }
        };
        self.folds(
            0,
            |k| places[k],
            |k| self.both(k),
            |k, z| {
                let [low, high] = self.split(k, z);
                let ([a, b], [c, d]) = (parts(k, low), parts(self.h - k, high));
                [a, b, c, d]
            },
        )
    }

    /// Before III.
    fn before_three<T: Real>(&self) -> Side<T> {
        let value = |k, [x, y]: [f64; 2]| {
            let [c, s] = root(k, 4 * self.n);
            if k == 0 { [x, 0.0] } else { product([c, -s], [x, -y]) }
        };
        self.folds(
            0,
            |k| k,
            |k| self.both(k),
            |k, [p, q, r, s]| {
                let ([a, b], [c, d]) = (value(k, [p, q]), value(self.h - k, [r, s]));
                let (even, odd) = ([a + c, b - d], [a - c, b + d]);
                let [cos, sin] = root(k, 2 * self.h);
                let [re, im] = product([cos, -sin], odd);
                [even[0] - im, even[1] + re, even[0] + im, re - even[1]]
            },
        )
    }

    /// After I: one part, of which there are 0 to `h`, or 1 to `h - 1` of a sine transform.
    fn after_one<T: Real>(&self) -> Side<T> {
        let (places, first) = (self.places(), usize::from(self.sine));
        self.folds(
            first,
            |k| places[k],
            |k| [k - first; 2],
            |k, z| {
                let [a, b] =
                    self.split(k, z).map(|[re, im]| 0.5 * if self.sine { -im } else { re });
                [a, a, b, b]
            },
        )
    }
}

impl<S: Simd, T: Real> TrigonometricFft<S, T> {
    /// For lines of `n` numbers, real or complex, and stages of
    /// [so many](Trigonometric::complex_len).
    pub(crate) fn new(
        Trigonometric { kind, sine }: Trigonometric,
        n: usize,
        complex: bool,
        stages: Stages<S, T>,
    ) -> Self {
        let h = stages.n;
        let order = stages.frequencies();
        let tables = Tables { sine, n, h, order: &order };
        let (before, after) = match kind {
            I => (Side::Twos((0..h).map(|l| tables.extended(l)).collect()), tables.after_one()),
            II => (Side::Twos((0..h).map(|l| tables.pair(l, l)).collect()), tables.after_two()),
            III => {
                // The inverse is the forward transform with its results in reverse order.
                let pair = |(place, k)| tables.pair((h - k) % h, place);
                let pairs = order.iter().copied().enumerate().map(pair);
                (tables.before_three(), Side::Twos(pairs.collect()))
            }
            IV => {
                let after = (0..h).map(|place| tables.frequencies(place)).collect();
                (Side::Twos((0..h).map(|l| tables.ends(l)).collect()), Side::Twos(after))
            }
        };
        Self { stages, n, width: if complex { 2 } else { 1 }, before, after }
    }
}

impl<S: Simd, T: Real> GroupFft for TrigonometricFft<S, T> {
    type S = S;
    type T = T;

    fn stages(&self) -> &Stages<S, T> {
        &self.stages
    }

    fn more_bytes(&self) -> usize {
        self.before.bytes() + self.after.bytes()
    }

    fn lens(&self) -> [usize; 2] {
        [self.n; 2]
    }

    fn width(&self) -> usize {
        self.width
    }

    fn group(&self) -> usize {
        lanes::<S, T>() / self.width
    }

    fn most_groups(&self) -> usize {
        1
    }

    fn work_len(&self) -> usize {
        self.stages.n + self.n.div_ceil(2)
    }

    fn read(&self, src: &[T], at: Strides, work: &mut [Pair<S, T>], _: usize, _: Option<Ahead>) {
        let (simd, side, width) = (self.stages.simd, &self.before, self.width);
        let (y, tile) = work.split_at_mut(self.stages.n);
        if at.dist == 1 {
            return simd.vectorize(Read { simd, side, src, stride: width * at.stride, y });
        }
        // Two numbers of each line are turned at once.
        let tile: &mut [T] = bytemuck::cast_slice_mut(tile);
        simd.vectorize(FromRows { simd, src, dist: at.dist, n: self.n, width, tile });
        simd.vectorize(Read { simd, side, src: tile, stride: lanes::<S, T>(), y });
    }

    fn write(
        &self,
        scale: T,
        work: &mut [Pair<S, T>],
        dst: &mut [T],
        at: Strides,
        _: usize,
        ahead: Option<Ahead>,
    ) {
        let (simd, side, width) = (self.stages.simd, &self.after, self.width);
        let (x, tile) = work.split_at_mut(self.stages.n);
        self.stages.between(0..self.stages.len(), x, ahead);
        self.stages.multiply(x, scale);
        if at.dist == 1 {
            return simd.vectorize(Write { simd, side, x, dst, stride: width * at.stride });
        }
        let tile: &mut [T] = bytemuck::cast_slice_mut(tile);
        simd.vectorize(Write { simd, side, x, dst: tile, stride: lanes::<S, T>() });
        simd.vectorize(ToRows { simd, tile, dst, dist: at.dist, n: self.n, width });
    }
}

/// Columns, with `stride` real numbers between two of a line, to complex numbers.
struct Read<'a, S: Simd, T: Real> {
    simd: S,
    side: &'a Side<T>,
    src: &'a [T],
    stride: usize,
    y: &'a mut [Pair<S, T>],
}

/// Complex numbers to columns.
struct Write<'a, S: Simd, T: Real> {
    simd: S,
    side: &'a Side<T>,
    x: &'a [Pair<S, T>],
    dst: &'a mut [T],
    stride: usize,
}

/// The product of a matrix and vectors.
#[inline(always)]
fn mapped<const N: usize, S: Simd, T: Real>(
    simd: S,
    map: &[[T; N]; N],
    x: [T::Vector<S>; N],
) -> [T::Vector<S>; N] {
    let mut y = [x[0]; N];
    for row in 0..N {
        y[row] = T::mul(simd, x[0], T::splat(simd, map[row][0]));
        for k in 1..N {
            y[row] = T::mul_add(simd, x[k], T::splat(simd, map[row][k]), y[row]);
        }
    }
    y
}

impl<V: Simd, T: Real> WithSimd for Read<'_, V, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { simd, side, src, stride, y } = self;
        let load = |i: usize| -> T::Vector<V> {
            let numbers = &src[i * stride..][..lanes::<V, T>()];
            bytemuck::pod_read_unaligned(bytemuck::cast_slice(numbers))
        };
        match side {
            Side::Twos(blocks) => {
                for Block { at, places: [place], map } in blocks {
                    y[*place] = mapped::<2, V, T>(simd, map, [load(at[0]), load(at[1])]);
                }
            }
            Side::Fours(blocks) => {
                for Block { at, places: [low, high], map } in blocks {
                    let x = [load(at[0]), load(at[1]), load(at[2]), load(at[3])];
                    let [a, b, c, d] = mapped::<4, V, T>(simd, map, x);
                    (y[*low], y[*high]) = ([a, b], [c, d]);
                }
            }
        }
    }
}

impl<V: Simd, T: Real> WithSimd for Write<'_, V, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { simd, side, x, dst, stride } = self;
        let mut store = |i: usize, vector: T::Vector<V>| {
            let numbers = bytemuck::cast_slice(std::slice::from_ref(&vector));
            dst[i * stride..][..lanes::<V, T>()].copy_from_slice(numbers);
        };
        match side {
            Side::Twos(blocks) => {
                for Block { at, places: [place], map } in blocks {
                    let [a, b] = mapped::<2, V, T>(simd, map, x[*place]);
                    store(at[0], a);
                    store(at[1], b);
                }
            }
            Side::Fours(blocks) => {
                for Block { at, places: [low, high], map } in blocks {
                    let ([a, b], [c, d]) = (x[*low], x[*high]);
                    let results = mapped::<4, V, T>(simd, map, [a, b, c, d]);
                    for k in 0..4 {
                        store(at[k], results[k]);
                    }
                }
            }
        }
    }
}
