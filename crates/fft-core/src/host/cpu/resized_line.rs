//! Lines with fewer points or modes than their transform.
//!
//! ```text
//! forward: fill up with zeros; transform; keep the lowest frequencies, in the order of a
//!     transform of as many points
//! inverse: move the negative frequencies to the end, with zeros before them; transform; keep the
//!     first points
//! the middle mode of an even number, if not all are kept, is 0: it stands for both signs
//! ```

use std::sync::Arc;

use super::line_fft::LineFft;
use crate::base::Real;
use crate::problem::{Direction, Kind};
use crate::recipe::Pass;

/// The transform of a pass, around that of its lines with all points and modes.
pub(crate) fn resized<T: Real>(line: Arc<dyn LineFft<T>>, pass: &Pass) -> Arc<dyn LineFft<T>> {
    let Some([_, modes]) = pass.resized else { return line };
    let (before, after) = (pass.line_before(), pass.line_after());
    let (halved, direction) = (pass.kind == Kind::R2C, pass.direction);
    Arc::new(ResizedLine { line, before, after, n: pass.n, modes, halved, direction })
}

struct ResizedLine<T: Real> {
    line: Arc<dyn LineFft<T>>,
    /// Real numbers before and after.
    before: usize,
    after: usize,
    /// The length of the transform, and the modes that are kept.
    n: usize,
    modes: usize,
    halved: bool,
    direction: Direction,
}

impl<T: Real> ResizedLine<T> {
    /// The middle mode of an even number is dropped, if not all are kept.
    fn clear_middle(&self, line: &mut [T]) {
        if self.modes < self.n && self.modes.is_multiple_of(2) {
            line[self.modes..self.modes + 2].fill(T::default());
        }
    }

    /// Real numbers of the modes that are not negative, and of the negative ones.
    fn signs(&self) -> [usize; 2] {
        match self.halved {
            true => [2 * (self.modes / 2 + 1), 0],
            false => [2 * self.modes.div_ceil(2), 2 * (self.modes / 2)],
        }
    }
}

impl<T: Real> LineFft<T> for ResizedLine<T> {
    fn len_in(&self) -> usize {
        self.before
    }

    fn len_out(&self) -> usize {
        self.after
    }

    fn scratch_len(&self) -> usize {
        self.line.scratch_len()
    }

    fn pitch(&self) -> usize {
        self.line.pitch()
    }

    fn run(&self, tile: &mut [T], scratch: &mut [T]) {
        let [positive, negative] = self.signs();
        let (whole_in, whole_out) = (self.line.len_in(), self.line.len_out());
        for line in tile.chunks_exact_mut(self.pitch()) {
            match self.direction {
                Direction::Forward => line[self.before..whole_in].fill(T::default()),
                Direction::Inverse => {
                    self.clear_middle(line);
                    let end = whole_in - negative;
                    line.copy_within(positive..positive + negative, end);
                    // Where few are missing, both parts overlap.
                    line[positive..end].fill(T::default());
                }
            }
        }
        self.line.run(tile, scratch);
        if self.direction == Direction::Forward {
            for line in tile.chunks_exact_mut(self.pitch()) {
                line.copy_within(whole_out - negative..whole_out, positive);
                self.clear_middle(line);
            }
        }
    }
}
