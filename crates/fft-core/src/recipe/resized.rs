//! The points and modes of resized lines, in the order of data and of the whole transform.

use std::ops::Range;

use super::local_fft::Pass;
use crate::problem::{Direction, Kind};

/// The line of a pass before or after it, compared with a transform of all points and modes.
#[derive(Clone, Debug, PartialEq)]
pub struct LineSide {
    /// Elements of the data.
    pub len: usize,
    /// Elements of the transform.
    pub whole: usize,
    /// Ranges of the data, and where each begins in the transform. The rest of both is 0.
    pub kept: Vec<(Range<usize>, usize)>,
}

impl LineSide {
    /// Whether the data is what the transform reads or writes.
    pub fn is_whole(&self) -> bool {
        self.kept == [(0..self.whole, 0)]
    }
}

impl Pass {
    /// The lines before and after.
    pub fn line_sides(&self) -> [LineSide; 2] {
        let physical = LineSide {
            len: self.physical_len(),
            whole: self.n,
            kept: vec![(0..self.physical_len(), 0)],
        };
        let (len, whole) = (self.spectral_len(), self.kind.spectral_len(self.n));
        let [positive, negative] = self.kept_modes();
        let kept = if positive == whole {
            vec![(0..whole, 0)]
        } else {
            vec![(0..positive, 0), (len - negative..len, whole - negative)]
        };
        let spectral = LineSide { len, whole, kept };
        match self.direction {
            Direction::Forward => [physical, spectral],
            Direction::Inverse => [spectral, physical],
        }
    }

    /// The kept modes that are not negative, and the negative ones: the first and the last of the
    /// whole spectrum, and of the data.
    pub(crate) fn kept_modes(&self) -> [usize; 2] {
        let (n, modes) = (self.n, self.resized.map_or(self.n, |[_, modes]| modes));
        match (self.kind, modes < n) {
            (Kind::C2C, true) => [modes.div_ceil(2), (modes - 1) / 2],
            (_, true) => [modes.div_ceil(2), 0],
            (_, false) => [self.kind.spectral_len(n), 0],
        }
    }
}
