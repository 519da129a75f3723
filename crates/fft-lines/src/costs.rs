//! Costs that decide how lines are transformed.

use serde::{Deserialize, Serialize};

/// The radices of which there are passes.
pub const RADICES: [usize; 15] = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 16, 20];

/// Their default costs: the time of a pass per number.
const DEFAULT: [f64; 15] =
    [1.3, 1.4, 1.15, 1.6, 1.45, 2.1, 1.75, 2.2, 1.9, 4.0, 1.95, 5.1, 2.2, 2.15, 2.3];

/// Costs of a processor. The default is of a Zen 5 with AVX2.
///
/// ```
/// use fft_lines::{Layout, LineCosts, Number};
/// let mut costs = LineCosts::default();
/// costs.f64.longest = 99;
/// let mut planner = f64::planner_with(&costs);
/// assert!(planner.complex_batch(100, true, Layout::Columns).is_none());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LineCosts {
    /// In single precision.
    pub f32: Costs,
    /// In double precision.
    pub f64: Costs,
}

/// Costs of a precision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    /// Radices among [`RADICES`], and the time of a stage per number, in any unit.
    pub radices: Vec<(usize, f64)>,
    /// The longest lines that are transformed several at once.
    pub longest: usize,
}

impl Default for Costs {
    fn default() -> Self {
        Self { radices: RADICES.into_iter().zip(DEFAULT).collect(), longest: 2048 }
    }
}

/// Where the lines of a batch are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Each line is contiguous.
    Rows,
    /// Adjacent lines lie side by side.
    Columns,
}
