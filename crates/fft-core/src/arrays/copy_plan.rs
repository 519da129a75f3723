//! The messages and the local copies of a copy, wherever its arrays are.

use super::grid_data::GridData;
use crate::base::Error;
use crate::comm::{MessagePlan, MessageSpec};
use crate::geometry::Transfer;

/// The messages and the local copies of a copy between the local arrays of all ranks.
///
/// Planning takes O(B log B) time for B bricks of all ranks, and memory as if every rank had as
/// many bricks as the rank with the most.
#[derive(Debug)]
pub struct CopyPlan {
    /// The data.
    pub data: GridData,
    /// The elements that arrays must have, by role.
    pub(super) least: [Vec<usize>; 3],
    /// The messages that this rank sends.
    pub sends: Vec<CopyMessage>,
    /// The messages that it receives.
    pub recvs: Vec<CopyMessage>,
    /// Copies within this rank.
    pub own: Vec<OwnCopy>,
}

/// How a run uses an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrayRole {
    /// It is read.
    Source,
    /// It is written.
    Target,
    /// It is read and written, because the copy is in place.
    Both,
}

/// A message to or from a peer.
#[derive(Debug)]
pub struct CopyMessage {
    /// The rank and the length.
    pub spec: MessageSpec,
    /// Its parts, which are dense.
    pub parts: Vec<CopyPart>,
}

/// A part of a message.
#[derive(Debug)]
pub struct CopyPart {
    /// The number of the array on this side of it.
    pub array: usize,
    /// Between the array and the message.
    pub transfer: Transfer,
}

/// A copy from one array of this rank to another, or within one.
#[derive(Debug)]
pub struct OwnCopy {
    /// The number of the source array.
    pub from: usize,
    /// The number of the target array.
    pub to: usize,
    /// From one to the other.
    pub transfer: Transfer,
}

impl CopyPlan {
    /// The messages to and from these peers, each of one chunk.
    pub fn message_plan(&self, has_messages: &dyn Fn(usize) -> bool) -> MessagePlan {
        let [sends, recvs] = [&self.sends, &self.recvs].map(|messages| {
            let specs = messages.iter().map(|message| message.spec);
            specs.filter(|spec| has_messages(spec.peer)).collect()
        });
        MessagePlan { chunks: 1, sends, recvs, ..MessagePlan::default() }
    }

    /// Bytes that this rank sends to others in a run.
    pub fn bytes_sent(&self) -> usize {
        self.sends.iter().map(|message| message.spec.bytes).sum()
    }

    /// The elements that each array in this role must have.
    pub fn least(&self, role: ArrayRole) -> &[usize] {
        &self.least[role as usize]
    }

    /// Checks that arrays of these addresses and bytes can have this role. Arrays with points must
    /// begin at a multiple of `align` bytes.
    ///
    /// # Errors
    /// [`Error::Argument`] for another number of arrays and for other addresses, [`Error::Length`]
    /// for short arrays.
    pub fn check(
        &self,
        rank: usize,
        role: ArrayRole,
        arrays: impl ExactSizeIterator<Item = (usize, usize)>,
        align: usize,
    ) -> Result<(), Error> {
        let least = self.least(role);
        let what = match role {
            ArrayRole::Source => "source",
            ArrayRole::Target => "target",
            ArrayRole::Both => "array",
        };
        if arrays.len() != least.len() {
            return Err(Error::argument(format!("{what}s of a copy"), arrays.len(), least.len()));
        }
        for ((address, bytes), &expected) in arrays.zip(least) {
            let found = bytes / self.data.bytes;
            if found < expected {
                return Err(Error::Length { what, rank, found, expected });
            }
            if expected > 0 && !address.is_multiple_of(align) {
                let (what, found) = (format!("{what} address"), format!("{address:#x}"));
                return Err(Error::argument(what, found, format!("a multiple of {align}")));
            }
        }
        Ok(())
    }
}
