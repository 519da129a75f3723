//! Which messages are turned by who reads them.

use crate::Brick;

/// Which messages come in the order of the sender's memory, where that is not the receiver's: those that have whole blocks between two
/// elements that will be neighbours; and, if many will be, those that have much between two that were, in the order of the receiver's
/// memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TurnedWhenRead {
    /// Elements of a block.
    pub block: usize,
    /// Elements from one to the next that are not much.
    pub short: usize,
    /// Elements side by side that are not many.
    pub few: usize,
}

impl TurnedWhenRead {
    /// The order of axes in a message of these points.
    pub fn order<const D: usize>(
        &self,
        part: &Brick<D>,
        sent: [usize; D],
        received: [usize; D],
    ) -> [usize; D] {
        // From one to the next along the last axis of others.
        let apart = |order: [usize; D], others: [usize; D]| -> usize {
            let within = order.iter().rev().take_while(|axis| **axis != others[D - 1]);
            within.map(|axis| part.len(*axis)).product()
        };
        let whole = apart(sent, received).is_multiple_of(self.block);
        let many = part.len(received[D - 1]) > self.few;
        if whole || (many && apart(received, sent) > self.short) { sent } else { received }
    }
}
