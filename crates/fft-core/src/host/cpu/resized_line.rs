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
use crate::problem::Direction;
use crate::recipe::Pass;

/// The transform of a pass, built on a transform of lines with all points and modes.
pub(crate) fn resized<T: Real>(line: Arc<dyn LineFft<T>>, pass: &Pass) -> Arc<dyn LineFft<T>> {
    if pass.resized.is_none() {
        return line;
    }
    let (before, after) = (pass.line_before(), pass.line_after());
    let signs = pass.kept_modes().map(|modes| 2 * modes);
    Arc::new(ResizedLine { line, before, after, signs, direction: pass.direction })
}

struct ResizedLine<T: Real> {
    line: Arc<dyn LineFft<T>>,
    /// Real numbers before and after.
    before: usize,
    after: usize,
    /// Real numbers of [`Pass::kept_modes`].
    signs: [usize; 2],
    direction: Direction,
}

/// Moves the negative modes to the end of a spectrum of another length; zeros are between.
fn move_negative<T: Real>(
    line: &mut [T],
    from: usize,
    to: usize,
    [positive, negative]: [usize; 2],
) {
    line.copy_within(from - negative..from, to - negative);
    line[positive..to - negative].fill(T::default());
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

    fn run(&self, tile: &mut [T], scratch: &mut [T], factor: T) {
        let (whole_in, whole_out) = (self.line.len_in(), self.line.len_out());
        for line in tile.chunks_exact_mut(self.pitch()) {
            match self.direction {
                Direction::Forward => line[self.before..whole_in].fill(T::default()),
                Direction::Inverse => move_negative(line, self.before, whole_in, self.signs),
            }
        }
        self.line.run(tile, scratch, factor);
        if self.direction == Direction::Forward {
            for line in tile.chunks_exact_mut(self.pitch()) {
                move_negative(line, whole_out, self.after, self.signs);
            }
        }
    }
}
