//! The part of the input that a rank holds.

use thriffty::planning::{DynBrick, DynGrid, PerAxis, Precision};

/// A rank's brick of a batch of arrays.
pub(super) struct Domain {
    pub(super) grid: DynGrid,
    pub(super) brick: DynBrick,
    /// The axes in memory, slowest first.
    pub(super) order: PerAxis<usize>,
    pub(super) batch: usize,
    pub(super) precision: Precision,
}
