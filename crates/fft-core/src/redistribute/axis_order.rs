//! Messages that the receiver transposes.

use crate::geometry::{DynBrick, PerAxis};

/// Messages in the sender's order of axes, if the receiver's differs.
///
/// These have whole blocks between two elements that become adjacent. Long messages also qualify if
/// elements adjacent before are far apart in the receiver's order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TransposedWhenRead {
    /// Elements of a block.
    pub block: usize,
    /// Maximum distance that counts as short, in elements.
    pub short: usize,
    /// Maximum adjacent elements that count as few.
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
        // The distance of neighbours along the contiguous axis of the other order.
        let apart = |order: PerAxis<usize>, others: PerAxis<usize>| -> usize {
            let within = order.iter().rev().take_while(|axis| **axis != others.contiguous());
            within.map(|axis| part.len(*axis)).product()
        };
        let whole = apart(sent, received).is_multiple_of(self.block);
        let many = part.len(received.contiguous()) > self.few;
        if whole || (many && apart(received, sent) > self.short) { sent } else { received }
    }
}
