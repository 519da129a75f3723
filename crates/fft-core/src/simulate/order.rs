//! Orders of sending.

use crate::problem::{Exchange, Pattern};

/// The order in which a rank sends its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// All at once, in sending order, each as soon as it is packed.
    Posted,
    /// One at a time, in matched steps: step d waits for all messages of earlier steps. Everything
    /// is packed before, as in classic collectives of long messages.
    Pairwise,
    /// Puts into the receivers' memory, in rounds synchronized over all ranks.
    Put,
}

impl Order {
    /// The order of an exchange.
    pub fn of(exchange: Exchange) -> Self {
        if exchange.pattern() == Pattern::Put { Self::Put } else { Self::Posted }
    }
}
