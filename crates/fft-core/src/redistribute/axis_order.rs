//! Which messages are transposed by who reads them.

use crate::geometry::{DynBrick, PerAxis};

/// Which messages come in the order of the sender's memory, where that is not the receiver's: those that have whole blocks between two
/// elements that will be peers; and, if many will be, those that have much between two that were, in the order of the receiver's
/// memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TransposedWhenRead {
    /// Elements of a block.
    pub block: usize,
    /// Elements from one to the next that are not much.
    pub short: usize,
    /// Elements side by side that are not many.
    pub few: usize,
}

impl TransposedWhenRead {
    /// The order of axes in a message of these points.
    pub fn order(
        &self,
        part: &DynBrick,
        sent: PerAxis<usize>,
        received: PerAxis<usize>,
    ) -> PerAxis<usize> {
        // From one to the next along the last axis of others.
        let apart = |order: PerAxis<usize>, others: PerAxis<usize>| -> usize {
            let within = order.iter().rev().take_while(|axis| **axis != others.contiguous());
            within.map(|axis| part.len(*axis)).product()
        };
        let whole = apart(sent, received).is_multiple_of(self.block);
        let many = part.len(received.contiguous()) > self.few;
        if whole || (many && apart(received, sent) > self.short) { sent } else { received }
    }
}
