//! The seam between what is exchanged and how.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

use super::message_buffers::MessageBuffers;
use super::slot::PinnedMemory;
use crate::base::Error;
use crate::problem::Algorithm;

/// One end of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageSpec {
    /// The other end.
    pub peer: usize,
    /// The bytes it has, or where they depend on the data the most that it can have.
    pub bytes: usize,
    /// Which chunk of the sender's data it is of.
    pub chunk: usize,
}

/// The messages of one reshape, as one rank sees them. In chunks there may be several to and from a peer, in the same
/// order on both sides; otherwise there is at most one. Never one to itself. Each rank begins at another
/// place of its list of peers, so that not all aim at the same one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessagePlan {
    /// Which reshape of the plan this is: the same number on all ranks, and another for every other reshape. Its
    /// specs do not tell: two reshapes may look the same to one rank, which passes on messages of others, or writes
    /// into their memory, and different to those.
    pub reshape: usize,
    /// The most chunks that any rank's data is in: the same number on all ranks.
    pub chunks: usize,
    /// Whether messages may be shorter than their specs, because their sizes depend on the data: the same on all ranks.
    pub shorter: bool,
    /// Whether there is to be memory for all of them at once, as they are kept until all have come, or are made by a device before
    /// any is sent. Otherwise that of a few chunks is enough.
    pub buffers_all: bool,
    /// Outgoing, in order of sending, which is that of chunks.
    pub sends: Vec<MessageSpec>,
    /// Incoming, in the order of chunks.
    pub recvs: Vec<MessageSpec>,
    /// Where messages lie, if the handler has memory for them: on all ranks or on none, and for exchanges that
    /// [take it](Exchange::takes_message_buffers).
    pub buffers: Option<MessageBuffers>,
}

/// A message that is to be packed.
pub struct PackRequest<'m> {
    /// Which one.
    pub number: usize,
    /// Its memory, as [`MessageHandler::pack`] takes it.
    pub message: &'m mut [u8],
    /// To be set to what [`MessageHandler::pack`] returns.
    pub bytes: &'m Cell<usize>,
}

/// What an exchange calls to fill messages and to empty them. Numbers of messages are places in
/// [`MessagePlan`].
pub trait MessageHandler {
    /// Packs and encodes an outgoing message and returns its bytes: the spec's, or fewer if the message_plan's may be
    /// [`shorter`](MessagePlan::shorter). Chunks are packed in order;
    /// the messages of a chunk in any. A message with a berth is made there, and `message` is empty.
    fn pack(&mut self, number: usize, message: &mut [u8]) -> usize;

    /// Whether the messages of a chunk are packed in one call and shown in one, by exchanges that can: for who waits for them, and can
    /// begin with all before. Otherwise each leaves as soon as it is packed, and is shown as soon as it is there.
    fn together(&self) -> bool {
        false
    }

    /// Packs messages of one chunk.
    fn pack_all<'m>(&mut self, requests: &mut dyn Iterator<Item = PackRequest<'m>>) {
        for PackRequest { number, message, bytes } in requests {
            bytes.set(self.pack(number, message));
        }
    }

    /// Called once, when nothing is left to pack: the time to copy what is in memory that this rank can read.
    fn own(&mut self);

    /// Shows an incoming message. Returns whether it has been read; otherwise it must be kept until [`MessageHandler::finish`], which
    /// happens only with exchanges that [keep messages](Algorithm::keeps). A message that does not decode is remembered
    /// and reported after the exchange, which goes on: the other ranks wait for it.
    fn arrived(&mut self, number: usize, message: &[u8]) -> bool;

    /// Shows incoming messages, all of a chunk, each as [`MessageHandler::arrived`] does; what is not read must be kept. A handler that wants them
    /// [together](MessageHandler::together) has read them.
    fn arrived_all<'m>(&mut self, numbers: Range<usize>, message: &dyn Fn(usize) -> &'m [u8]) {
        for number in numbers {
            self.arrived(number, message(number));
        }
    }

    /// Shows an incoming message of so many bytes in its berth, in place of [`MessageHandler::arrived`].
    fn landed(&mut self, _number: usize, _bytes: usize) {}

    /// Called once, when all messages are there, with those that were kept.
    fn finish<'m>(&mut self, message: &dyn Fn(usize) -> &'m [u8]);
}

/// A way to exchange messages. One exists per plan and algorithm, with its memory, and serves every reshape.
pub trait Exchange: Send {
    /// What it does: where ranks cannot put, not what was asked for.
    fn algorithm(&self) -> Algorithm;

    /// PinnedMemory the memory of messages that is made from now on, where it can.
    fn pin(&mut self, _pins: Arc<dyn PinnedMemory>) {}

    /// Whether messages may have [buffers](MessagePlan::buffers), on a communicator that
    /// [reaches](crate::DeviceComm::reaches) their memory.
    fn takes_message_buffers(&self) -> bool {
        false
    }

    /// Makes sure that this message_plan needs no more memory. **Collective**: all ranks reserve for the same reshapes in the same order, and
    /// a rank that fails does so after its collective part. Ranks must expect what others send, which
    /// [`matching`](crate::matching) tells; `kwayK`, which asks for all messages, finds out by itself.
    ///
    /// # Errors
    /// [`Error::Memory`]; what the transport returns; of `kwayK` [`Error::Disagreement`] of two ranks on a message.
    fn reserve(&mut self, message_plan: &MessagePlan) -> Result<(), Error>;

    /// Exchanges. Collective over the ranks of the plan.
    ///
    /// # Errors
    /// When the transport fails.
    fn run(
        &mut self,
        message_plan: &MessagePlan,
        handler: &mut dyn MessageHandler,
    ) -> Result<(), Error>;

    /// Bytes that this rank sent in the last run beside those that the handler packed: messages of others on their way,
    /// and headers.
    fn forwarded(&self) -> u64 {
        0
    }

    /// Bytes of memory held.
    fn memory(&self) -> usize;
}
