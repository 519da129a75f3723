//! Domains that plans keep between calls.

use thriffty::planning::MAX_AXES;
use thriffty::spectral::Domain;

/// A domain, and the arguments that it was made from.
pub(crate) struct KnownDomain {
    pub(crate) lengths: [f64; MAX_AXES],
    pub(crate) reversed: bool,
    pub(crate) domain: Domain,
}
