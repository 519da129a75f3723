//! The rows of the study's results.

use std::fmt;

use thriffty::planning::WireError;
use thriffty::{Tolerance, Wire};

use super::options::Part;
use crate::args::encoding::Encoding;
use crate::data::fields::Field;

pub(super) const TOLERANCES: [f64; 8] = [1e-1, 1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12, 1e-13];

#[derive(Clone, Copy, Debug)]
pub(super) enum Format {
    Double,
    Single,
    /// Double precision, with messages encoded.
    Encoded(Encoding),
}

impl Format {
    pub(super) fn wire(wire: Wire) -> Self {
        Self::Encoded(Encoding { wire: Some(wire), tolerance: None })
    }

    pub(super) fn with_tolerance(tolerance: Tolerance) -> Self {
        Self::Encoded(Encoding { wire: None, tolerance: Some(tolerance) })
    }

    pub(super) fn tolerance(&self) -> Option<Tolerance> {
        match self {
            Self::Encoded(encoding) => encoding.tolerance,
            _ => None,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Double => f.pad("fp64"),
            Self::Single => f.pad("fp32"),
            Self::Encoded(encoding) => encoding.fmt(f),
        }
    }
}

pub(super) struct Row {
    pub(super) part: Part,
    pub(super) field: Field,
    pub(super) ranks: usize,
    pub(super) format: Format,
    pub(super) found: Found,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// Bits per real number sent, of the forward transform.
    pub(super) bits: f64,
    /// How often it sends each number, on average.
    pub(super) passes: f64,
    /// The relative l2 error of the forward transform.
    pub(super) forward: f64,
    /// The relative l2 error of forward and inverse.
    pub(super) roundtrip: f64,
    /// The library's report on the forward transform, if any.
    pub(super) lost: Option<WireError>,
}

impl Found {
    /// The estimated error, NaN without one.
    pub(super) fn estimate(&self) -> f64 {
        self.lost.map_or(f64::NAN, |it| it.estimate)
    }

    /// The bound of the error, NaN without one.
    pub(super) fn bound(&self) -> f64 {
        self.lost.map_or(f64::NAN, |it| it.bound)
    }
}
