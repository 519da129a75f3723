//! The transforms by their definitions: along each axis a matrix, in f64, with compensated sums.
//!
//! The matrices are defined as in SciPy, without normalisation. Nothing here is shared with the
//! library.

use std::f64::consts::PI;
use std::sync::{Arc, Mutex, OnceLock};

use fft_core::locked;

use thriffty::planning::Direction;
use thriffty::{Complex, Kind};

type C64 = Complex<f64>;

/// `exp(iπ a/b)` times `factor`. The angle is brought into the first octant in whole numbers, so
/// that the result is as exact as the sine and cosine of small angles are.
fn turn(factor: f64, a: usize, b: usize) -> C64 {
    let a = a % (2 * b);
    let (a, below) = if a > b { (2 * b - a, true) } else { (a, false) };
    let (a, left) = if 2 * a > b { (b - a, true) } else { (a, false) };
    let (re, im) = if 4 * a > b {
        let (sin, cos) = (PI * (b - 2 * a) as f64 / (2 * b) as f64).sin_cos();
        (sin, cos)
    } else {
        let (sin, cos) = (PI * a as f64 / b as f64).sin_cos();
        (cos, sin)
    };
    C64::new(factor * if left { -re } else { re }, factor * if below { -im } else { im })
}

/// Row `k`, column `j` of the forward transform of `n` points.
fn forward(kind: Kind, n: usize, k: usize, j: usize) -> C64 {
    let cos = |factor, a, b| C64::from(turn(factor, a, b).re);
    let sin = |factor, a, b| C64::from(turn(factor, a, b).im);
    let sign = if k.is_multiple_of(2) { 1.0 } else { -1.0 };
    match kind {
        Kind::None | Kind::Tridiagonal => C64::from(if k == j { 1.0 } else { 0.0 }),
        Kind::C2C | Kind::R2C => turn(1.0, 2 * j * k, n).conj(),
        Kind::Dct1 if j == 0 => C64::from(1.0),
        Kind::Dct1 if j == n - 1 => C64::from(sign),
        Kind::Dct1 => cos(2.0, j * k, n - 1),
        Kind::Dct2 => cos(2.0, k * (2 * j + 1), 2 * n),
        Kind::Dct3 if j == 0 => C64::from(1.0),
        Kind::Dct3 => cos(2.0, (2 * k + 1) * j, 2 * n),
        Kind::Dct4 => cos(2.0, (2 * k + 1) * (2 * j + 1), 4 * n),
        Kind::Dst1 => sin(2.0, (k + 1) * (j + 1), n + 1),
        Kind::Dst2 => sin(2.0, (k + 1) * (2 * j + 1), 2 * n),
        Kind::Dst3 if j == n - 1 => C64::from(sign),
        Kind::Dst3 => sin(2.0, (2 * k + 1) * (j + 1), 2 * n),
        Kind::Dst4 => sin(2.0, (2 * k + 1) * (2 * j + 1), 4 * n),
    }
}

/// Row `j`, column `k` of the unscaled inverse: multiplied by the forward matrix it gives the
/// logical length times one. For a halved axis the real part of the result is meant.
fn inverse(kind: Kind, n: usize, j: usize, k: usize) -> C64 {
    match kind {
        Kind::C2C => turn(1.0, 2 * j * k, n),
        Kind::R2C if k == 0 || 2 * k == n => turn(1.0, 2 * j * k, n),
        Kind::R2C => turn(2.0, 2 * j * k, n),
        Kind::Dct2 => forward(Kind::Dct3, n, j, k),
        Kind::Dct3 => forward(Kind::Dct2, n, j, k),
        Kind::Dst2 => forward(Kind::Dst3, n, j, k),
        Kind::Dst3 => forward(Kind::Dst2, n, j, k),
        own => forward(own, n, j, k),
    }
}

/// Neumaier's sum: the error of the result does not grow with the number of terms.
#[derive(Default)]
struct Sum {
    sum: f64,
    lost: f64,
}

impl Sum {
    fn add(&mut self, x: f64) {
        let sum = self.sum + x;
        self.lost +=
            if self.sum.abs() >= x.abs() { (self.sum - sum) + x } else { (x - sum) + self.sum };
        self.sum = sum;
    }

    fn value(&self) -> f64 {
        self.sum + self.lost
    }
}

/// Transforms along one axis of a row-major array of shape `[outer, before, inner]`.
fn along(array: &[C64], inner: usize, before: usize, matrix: &[Vec<C64>]) -> Vec<C64> {
    let after = matrix.len();
    let outer = array.len() / (inner * before);
    let mut result = Vec::with_capacity(outer * after * inner);
    for block in array.chunks_exact(before * inner) {
        for row in matrix {
            for column in 0..inner {
                let (mut re, mut im) = (Sum::default(), Sum::default());
                for (m, x) in row.iter().zip(block[column..].iter().step_by(inner)) {
                    re.add(m.re * x.re);
                    re.add(-m.im * x.im);
                    im.add(m.re * x.im);
                    im.add(m.im * x.re);
                }
                result.push(C64::new(re.value(), im.value()));
            }
        }
    }
    result
}

/// How many numbers are kept, at most: 192 MiB. Each transform counts as some more, so that there
/// are not too many to look through.
const KEPT: usize = 12 << 20;

/// A transform of these arrays, which one of the ranks computes where they share memory.
struct Known {
    direction: Direction,
    axes: Vec<(usize, Kind)>,
    arrays: Vec<C64>,
    result: OnceLock<Vec<C64>>,
}

/// The most recently computed ones, because ranks, exchanges and numbers of ranks use the same
/// ones.
static KNOWN: Mutex<Vec<Arc<Known>>> = Mutex::new(Vec::new());

/// Transforms whole row-major arrays, one after the other, without scaling. `shape` is the physical
/// one.
pub(crate) fn transform<const D: usize>(
    direction: Direction,
    shape: [usize; D],
    kinds: [Kind; D],
    arrays: &[C64],
) -> Vec<C64> {
    let same = |known: &&Arc<Known>| {
        let axes = known.axes.iter().copied();
        known.direction == direction
            && axes.eq(shape.into_iter().zip(kinds))
            && known.arrays == arrays
    };
    let mut all = locked(&KNOWN);
    let known = all.iter().rev().find(same).cloned().unwrap_or_else(|| {
        let axes = shape.into_iter().zip(kinds).collect();
        let arrays = arrays.to_vec();
        Arc::new(Known { direction, axes, arrays, result: OnceLock::new() })
    });
    // The most recently used one goes last.
    all.retain(|other| !Arc::ptr_eq(other, &known));
    all.push(known.clone());
    let mut kept = 0;
    let old = all.iter().rev().take_while(|known| {
        kept += 2 * known.arrays.len() + 5000;
        kept <= KEPT
    });
    let old = all.len() - old.count().max(1);
    all.drain(..old);
    drop(all);
    known.result.get_or_init(|| computed(direction, shape, kinds, arrays)).clone()
}

fn computed<const D: usize>(
    direction: Direction,
    shape: [usize; D],
    kinds: [Kind; D],
    arrays: &[C64],
) -> Vec<C64> {
    let mut lens: [usize; D] = match direction {
        Direction::Forward => shape,
        Direction::Inverse => std::array::from_fn(|axis| kinds[axis].spectral_len(shape[axis])),
    };
    // The halved axis comes first on the way there and last on the way back: what its inverse
    // drops, the imaginary part, is dropped when nothing else is left to be done.
    let mut axes: Vec<usize> = (0..D).collect();
    axes.sort_by_key(|&axis| (kinds[axis] == Kind::R2C) != (direction == Direction::Forward));
    let mut arrays = arrays.to_vec();
    for axis in axes {
        let (kind, n) = (kinds[axis], shape[axis]);
        let (spectral, inner) = (kind.spectral_len(n), lens[axis + 1..].iter().product());
        let matrix: Vec<Vec<C64>> = match direction {
            Direction::Forward => {
                (0..spectral).map(|k| (0..n).map(|j| forward(kind, n, k, j)).collect()).collect()
            }
            Direction::Inverse => {
                (0..n).map(|j| (0..spectral).map(|k| inverse(kind, n, j, k)).collect()).collect()
            }
        };
        arrays = along(&arrays, inner, lens[axis], &matrix);
        lens[axis] = matrix.len();
        if (kind, direction) == (Kind::R2C, Direction::Inverse) {
            arrays.iter_mut().for_each(|x| x.im = 0.0);
        }
    }
    arrays
}
