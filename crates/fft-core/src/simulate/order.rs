//! Orders of sending.

use crate::problem::Algorithm;

/// In which order a rank's messages come to be under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// All at once, in the order of sending, each as soon as it is packed.
    Posted,
    /// One at a time, in matched steps: before a rank sends to the one that comes d after it, it has everything from those
    /// that come less than d before it. As classic collectives do it for long messages; everything is packed before.
    Pairwise,
    /// RmaWindow into the receivers' memory, in rounds of which each begins and ends for all ranks together.
    Ring,
}

impl Order {
    /// How an exchange sends.
    pub fn of(exchange: Algorithm) -> Self {
        match exchange {
            Algorithm::Ring(_) => Self::Ring,
            _ => Self::Posted,
        }
    }
}
