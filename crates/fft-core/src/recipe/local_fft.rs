//! Local transforms: passes over memory along axes of a rank's brick.
//!
//! Transforms along consecutive whole axes share one pass over memory if a block of these axes fits
//! into cache.

use crate::base::cache_sizes::BLOCK_BYTES;
use crate::geometry::{DynBrick, PerAxis};
use crate::problem::{Direction, Kind};
use crate::recipe::twiddles::Twiddles;

/// Transforms along one axis of every block.
#[derive(Clone, Debug, PartialEq)]
pub struct Pass {
    /// The kind of transform.
    pub kind: Kind,
    /// The direction.
    pub direction: Direction,
    /// The length of the transform: physical points along the axis, unless padded.
    pub n: usize,
    /// Points of physical data and modes of spectral data, if there are fewer.
    pub resized: Option<[usize; 2]>,
    /// Whether elements are complex before the pass.
    pub complex_before: bool,
    /// Whether elements are complex after the pass.
    pub complex_after: bool,
    /// Outer repetitions within a block.
    pub outer: usize,
    /// The stride of a line in elements, which is the number of adjacent lines.
    pub inner: usize,
    /// The scale of the result.
    pub factor: f64,
    /// The factors of lines before the transform, or after it in the inverse.
    pub twiddles: Option<Twiddles>,
    /// The strides between adjacent points of a line, in physical and in spectral data, as in
    /// [`Layout::strided`](crate::Layout::strided).
    pub strides: [usize; 2],
}

impl Pass {
    /// Elements along the axis before.
    pub fn len_before(&self) -> usize {
        match self.direction {
            Direction::Forward => self.physical_len(),
            Direction::Inverse => self.spectral_len(),
        }
    }

    /// The stride between adjacent points before, and after.
    pub fn strides_in_order(&self) -> [usize; 2] {
        let [physical, spectral] = self.strides;
        self.direction.choose([physical, spectral], [spectral, physical])
    }

    pub(super) fn physical_len(&self) -> usize {
        self.resized.map_or(self.n, |[points, _]| points)
    }

    pub(super) fn spectral_len(&self) -> usize {
        self.kind.spectral_len(self.resized.map_or(self.n, |[_, modes]| modes))
    }

    /// Elements along the axis after.
    pub fn len_after(&self) -> usize {
        match self.direction {
            Direction::Forward => self.spectral_len(),
            Direction::Inverse => self.physical_len(),
        }
    }

    /// Whether the length of lines changes.
    pub fn changes_len(&self) -> bool {
        self.kind == Kind::R2C || self.resized.is_some()
    }

    /// Real numbers of a line before.
    pub(crate) fn line_before(&self) -> usize {
        self.len_before() * if self.complex_before { 2 } else { 1 }
    }

    /// Real numbers of a line after.
    pub(crate) fn line_after(&self) -> usize {
        self.len_after() * if self.complex_after { 2 } else { 1 }
    }

    /// Real numbers of a block before.
    fn reals_before(&self) -> usize {
        self.outer * self.inner * self.line_before()
    }

    /// Real numbers of a block after.
    fn reals_after(&self) -> usize {
        self.outer * self.inner * self.line_after()
    }
}

/// Passes over each of several equal blocks of contiguous memory.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalFft {
    /// Number of blocks.
    pub blocks: usize,
    /// The passes. Only the first may change the length of lines; the others are in any order.
    pub passes: Vec<Pass>,
    /// Whether blocks are in cache at the start.
    pub cached: bool,
    /// Whether results are written to cache.
    pub to_cache: bool,
}

impl LocalFft {
    /// A transform of an array with these lengths in memory order, along the axis at `place`.
    pub(crate) fn new(lens: &[usize], place: usize, pass: Pass) -> Self {
        let blocks = if lens.contains(&0) { 0 } else { lens[..place].iter().product() };
        let inner = lens[place + 1..].iter().product();
        Self {
            blocks,
            passes: vec![Pass { outer: 1, inner, ..pass }],
            cached: false,
            to_cache: false,
        }
    }

    /// A transform along an axis of `batch` bricks with this order of axes in memory.
    pub(crate) fn along(
        axis: usize,
        brick: &DynBrick,
        order: PerAxis<usize>,
        batch: usize,
        pass: Pass,
    ) -> Self {
        let mut lens = vec![batch];
        lens.extend(order.into_iter().map(|axis| brick.len(axis)));
        let place = order.iter().position(|a| *a == axis).expect("the order has every axis");
        let twiddles = pass.twiddles.map(|it| it.of_lines(axis, brick, order, batch));
        Self::new(&lens, place + 1, Pass { twiddles, ..pass })
    }

    /// Real numbers of a block before.
    pub fn block_before(&self) -> usize {
        self.passes[0].reals_before()
    }

    /// Real numbers of a block after.
    pub fn block_after(&self) -> usize {
        self.passes[self.passes.len() - 1].reals_after()
    }

    /// Whether the result can replace the input in memory.
    pub fn in_place(&self) -> bool {
        !self.passes[0].changes_len()
    }

    /// Joins `next`, which follows on the same array, if the common blocks fit into cache.
    pub(crate) fn join(&mut self, next: &Self, real_bytes: usize) -> bool {
        let blocks = gcd_of_nested(self.blocks, next.blocks);
        let grown = |fft: &Self| fft.blocks.checked_div(blocks).unwrap_or(1);
        let bytes =
            |fft: &Self| fft.block_before().max(fft.block_after()) * grown(fft) * real_bytes;
        if next.passes[0].changes_len() || bytes(self).max(bytes(next)) > BLOCK_BYTES {
            return false;
        }
        let (mine, theirs) = (grown(self), grown(next));
        self.blocks = blocks;
        self.passes.iter_mut().for_each(|pass| pass.outer *= mine);
        let regrown = next.passes.iter().map(|p| Pass { outer: p.outer * theirs, ..p.clone() });
        self.passes.extend(regrown);
        true
    }
}

/// Block counts are products of leading axes, so the smaller divides the larger.
fn gcd_of_nested(a: usize, b: usize) -> usize {
    debug_assert!(a == 0 || b == 0 || a.max(b).is_multiple_of(a.min(b)));
    a.min(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(kind: Kind, n: usize) -> Pass {
        Pass {
            kind,
            direction: Direction::Forward,
            n,
            resized: None,
            complex_before: kind != Kind::R2C,
            complex_after: true,
            outer: 1,
            inner: 1,
            factor: 1.0,
            twiddles: None,
            strides: [1; 2],
        }
    }

    #[test]
    fn two_axes_of_a_small_plane_are_one_pass() {
        let mut fft = LocalFft::new(&[4, 256, 256], 2, pass(Kind::C2C, 256));
        assert_eq!((fft.blocks, fft.passes[0].outer, fft.passes[0].inner), (1024, 1, 1));
        assert!(fft.join(&LocalFft::new(&[4, 256, 256], 1, pass(Kind::C2C, 256)), 8));
        assert_eq!(fft.blocks, 4);
        let shapes: Vec<_> = fft.passes.iter().map(|p| (p.outer, p.inner)).collect();
        assert_eq!(shapes, [(256, 1), (1, 256)]);
        // The third axis would make the block the whole array.
        assert!(!fft.join(&LocalFft::new(&[4, 256, 256], 0, pass(Kind::C2C, 4)), 8));
    }

    #[test]
    fn halving_may_only_come_first() {
        let halved = LocalFft::new(&[2, 6, 8], 2, pass(Kind::R2C, 8));
        let mut first = halved.clone();
        let along_y = LocalFft::new(&[2, 6, 5], 1, pass(Kind::C2C, 6));
        assert!(first.join(&along_y, 8));
        assert_eq!((first.block_before(), first.block_after()), (48, 60));
        let mut last = along_y;
        assert!(!last.join(&halved, 8));
    }
}
