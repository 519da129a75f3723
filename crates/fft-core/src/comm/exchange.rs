//! The interface between the messages of a reshape and the exchange that carries them.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

use super::message_buffers::MessageBuffers;
use super::slot::PinnedMemory;
use crate::base::Error;
use crate::problem::Exchange;

/// One end of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageSpec {
    /// The rank at the other end.
    pub peer: usize,
    /// Its bytes, or their maximum if they depend on the data.
    pub bytes: usize,
    /// The chunk of the sender's data.
    pub chunk: usize,
}

impl MessageSpec {
    /// The bytes of a message that has arrived at `rank`.
    ///
    /// # Errors
    /// [`Error::Message`] if it is too short, as after a failure of its sender.
    pub fn received<'m>(&self, rank: usize, message: &'m [u8]) -> Result<&'m [u8], Error> {
        let Self { peer: from, bytes: expected, .. } = *self;
        let short = Error::Message { rank, from, found: message.len(), expected };
        message.get(..expected).ok_or(short)
    }
}

/// The messages of a reshape, as one rank sends and receives them.
///
/// A pair of ranks has at most one message per chunk, in the same order at both ends. No rank sends
/// to itself. Each rank starts at another peer, so that not all send to the same one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessagePlan {
    /// The number of the reshape in its plan. Two reshapes may look the same to one rank only.
    pub reshape: usize,
    /// The most chunks of any rank.
    pub chunks: usize,
    /// Whether messages may be shorter than their specs, because their size depends on the data.
    pub shorter: bool,
    /// Whether all messages need buffers at once, because they are kept until all have arrived, or
    /// a device packs them all before the first is sent. Otherwise buffers for a few chunks
    /// suffice.
    pub buffers_all: bool,
    /// Messages to send, in order of chunks.
    pub sends: Vec<MessageSpec>,
    /// Messages to receive, in order of chunks.
    pub recvs: Vec<MessageSpec>,
    /// Device buffers, on all ranks or none ([`Exchanger::takes_message_buffers`]).
    pub buffers: Option<MessageBuffers>,
}

impl MessagePlan {
    /// Bytes of the lists of messages.
    pub fn list_bytes(&self) -> usize {
        size_of_val(&*self.sends) + size_of_val(&*self.recvs)
    }
}

/// A message to pack.
pub struct PackRequest<'m> {
    /// Its number.
    pub number: usize,
    /// The argument of [`MessageHandler::pack`].
    pub message: &'m mut [u8],
    /// Receives the result of [`MessageHandler::pack`].
    pub bytes: &'m Cell<usize>,
}

/// Packs and unpacks the messages of an exchange. Their numbers are indices of [`MessagePlan`].
pub trait MessageHandler {
    /// Packs a message and returns its bytes: its spec's, or fewer if [`MessagePlan::shorter`].
    ///
    /// Chunks come in order, the messages of a chunk in any order. For a device buffer, `message`
    /// is empty.
    fn pack(&mut self, number: usize, message: &mut [u8]) -> usize;

    /// Whether the messages of a chunk are packed in one call and shown in one call, if the
    /// exchange supports it. Otherwise each is sent once it is packed, and shown on arrival.
    fn together(&self) -> bool {
        false
    }

    /// Packs the messages of a chunk.
    fn pack_all<'m>(&mut self, requests: &mut dyn Iterator<Item = PackRequest<'m>>) {
        for PackRequest { number, message, bytes } in requests {
            bytes.set(self.pack(number, message));
        }
    }

    /// Called once after the last pack, to copy data that does not leave this rank's memory.
    fn own(&mut self) {}

    /// Shows a message on arrival. Returns whether it was read; if not, it is kept until
    /// [`MessageHandler::finish`], which needs an exchange that keeps messages until all have
    /// arrived.
    ///
    /// An error of decoding is reported after the exchange, because other ranks wait for this one.
    fn arrived(&mut self, number: usize, message: &[u8]) -> bool;

    /// Shows the messages of a chunk. A handler that wants them
    /// [together](MessageHandler::together) reads them; others are called for each.
    fn arrived_all<'m>(&mut self, numbers: Range<usize>, message: &dyn Fn(usize) -> &'m [u8]) {
        for number in numbers {
            self.arrived(number, message(number));
        }
    }

    /// Shows a message in its device buffer, instead of [`MessageHandler::arrived`].
    fn landed(&mut self, _number: usize, _bytes: usize) {}

    /// Called once when all messages have arrived, with the messages that were kept.
    fn finish<'m>(&mut self, _message: &dyn Fn(usize) -> &'m [u8]) {}
}

/// Carries messages by one exchange, with its buffers. A plan has one per exchange, for all
/// reshapes.
pub trait Exchanger: Send {
    /// The exchange in use, which differs from the requested one if ranks cannot put.
    fn exchange(&self) -> Exchange;

    /// Pins buffers that are allocated from now on.
    fn pin(&mut self, _pins: Arc<dyn PinnedMemory>) {}

    /// Whether these messages may have [buffers](MessagePlan::buffers), on a communicator that
    /// [reaches](crate::DeviceComm::reaches) their memory.
    fn takes_message_buffers(&self, _message_plan: &MessagePlan) -> bool {
        false
    }

    /// Allocates for a reshape. **Collective**: ranks reserve the same reshapes in the same order.
    ///
    /// A rank that fails first completes its collective part. Check [`matching`](crate::matching)
    /// before.
    ///
    /// # Errors
    /// [`Error::Memory`]; the errors of the transport; for `kwayK` [`Error::Disagreement`] on a
    /// message.
    fn reserve(&mut self, message_plan: &MessagePlan) -> Result<(), Error>;

    /// Exchanges the messages of a reshape. Collective.
    ///
    /// # Errors
    /// When the transport fails.
    fn run(
        &mut self,
        message_plan: &MessagePlan,
        handler: &mut dyn MessageHandler,
    ) -> Result<(), Error>;

    /// Bytes of the last run that the handler did not pack: headers and forwarded messages.
    fn forwarded(&self) -> u64 {
        0
    }

    /// Bytes of memory held.
    fn memory(&self) -> usize;
}
