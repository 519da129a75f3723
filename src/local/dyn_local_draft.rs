//! Plans of one process in the making, whose types and number of axes are values.

use fft_core::{MAX_AXES, PerAxis, Precision};

use super::threads::default_threads;
use crate::field::DynTransform;
use crate::options::Options;

/// Below this number of points a transform takes less time than to wake other threads for it.
const POINTS_FOR_THREADS: usize = 1 << 14;

/// A [`LocalDraft`](super::LocalDraft) whose transform, precision and number of axes are run-time
/// values.
///
/// ```
/// use bytemuck::{cast_slice, cast_slice_mut};
/// use thriffty::planning::{Direction, DynTransform, Precision};
/// use thriffty::local::DynLocalDraft;
/// let draft = DynLocalDraft::new([4, 6], DynTransform::R2c, Precision::F64);
/// let (x, mut spectrum) = ([1.0; 24], [[0.0; 2]; 16]);
/// draft.run(Direction::Forward, cast_slice(&x), cast_slice_mut(&mut spectrum))?;
/// assert_eq!(spectrum[0], [24.0, 0.0]);
/// # Ok::<(), thriffty::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct DynLocalDraft {
    /// Points of physical data along each axis.
    pub shape: PerAxis<usize>,
    /// What is transformed.
    pub transform: DynTransform,
    /// The precision of all numbers.
    pub precision: Precision,
    /// Bricks must be the whole grid, unless there are [other
    /// processes](DynLocalDraft::build_over). Shared arrays and transposed data have no effect.
    pub options: Options,
    /// The most threads. Without a number, one process has
    /// [as many as are worth it](DynLocalDraft::useful_threads), and each of several has one.
    pub threads: Option<usize>,
}

impl DynLocalDraft {
    /// Drafts a transform with the usual options.
    ///
    /// # Panics
    /// If there are not 1 to 4 axes.
    pub fn new(
        shape: impl Into<PerAxis<usize>>,
        transform: DynTransform,
        precision: Precision,
    ) -> Self {
        let (shape, options) = (shape.into(), Options::default());
        Self { shape, transform, precision, options, threads: None }
    }

    /// The number of threads of one process that are worth it: one for few points, otherwise
    /// those that the draft names, or [`default_threads`].
    pub fn useful_threads(&self) -> usize {
        // Of four axes, the transforms of a batch are done one after the other.
        let at_once = if self.shape.len() == MAX_AXES { 1 } else { self.options.batch };
        let points = self.shape.iter().fold(at_once, |all, n| all.saturating_mul(*n));
        if points < POINTS_FOR_THREADS {
            return 1;
        }
        self.threads.unwrap_or_else(default_threads)
    }
}
