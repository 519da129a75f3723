//! The codecs of a reshape's messages, and the errors of those that were encoded.

use crate::base::Real;
use crate::codec::{BadMessage, Codec, Wire};
use crate::geometry::Transfer;
use crate::recipe::norm_gain::Loss;

/// How each message is encoded: some peers get raw messages in any case.
pub(crate) struct MessageCodecs<T: Real> {
    width: usize,
    raw: Box<dyn Codec<T>>,
    wire: Box<dyn Codec<T>>,
    /// For every message sent and received, whether it is raw.
    raw_sends: Vec<bool>,
    raw_recvs: Vec<bool>,
    step: f64,
    /// The step for messages whose error exceeds the error of a uniform distribution, if any.
    finer: Option<f64>,
}

/// The errors of the messages that were encoded in a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Encoded {
    pub(crate) squared_error: f64,
    /// Real numbers in messages that are not raw.
    reals: f64,
}

impl<T: Real> MessageCodecs<T> {
    /// The codecs of messages of elements of `width` real numbers, with the peer of each.
    pub(crate) fn new(
        wire: Wire,
        width: usize,
        is_raw: &dyn Fn(usize) -> bool,
        [receivers, senders]: [&mut dyn Iterator<Item = usize>; 2],
    ) -> Self {
        let (raw, wire) = (Wire::Raw.codec::<T>(), wire.codec::<T>());
        let (raw_sends, raw_recvs) =
            (receivers.map(is_raw).collect(), senders.map(is_raw).collect());
        Self { width, raw, wire, raw_sends, raw_recvs, step: 0.0, finer: None }
    }

    fn codec(&self, is_raw: bool) -> &dyn Codec<T> {
        if is_raw { self.raw.as_ref() } else { self.wire.as_ref() }
    }

    /// Whether a message to be sent is raw.
    pub(crate) fn sends_raw(&self, number: usize) -> bool {
        self.raw_sends[number]
    }

    /// The most bytes of a message to be sent.
    pub(crate) fn bytes_sent(&self, number: usize, elements: usize) -> usize {
        self.most_bytes(self.raw_sends[number], elements)
    }

    /// The most bytes of a message to be received.
    pub(crate) fn bytes_received(&self, number: usize, elements: usize) -> usize {
        self.most_bytes(self.raw_recvs[number], elements)
    }

    fn most_bytes(&self, is_raw: bool, elements: usize) -> usize {
        let codec = self.codec(is_raw);
        codec.fixed(elements, self.width).unwrap_or(codec.bound(elements * self.width))
    }

    /// Whether messages may be shorter than their most bytes.
    pub(crate) fn are_shorter(&self) -> bool {
        self.wire.fixed(0, self.width).is_none()
    }

    /// Whether a message to be received always has its maximum size; otherwise it is damaged.
    pub(crate) fn has_fixed_length(&self, number: usize) -> bool {
        self.codec(self.raw_recvs[number]).random_access()
    }

    /// Sets the quantization step, and a finer one for messages of larger error.
    pub(crate) fn set_step(&mut self, step: f64, finer: Option<f64>) {
        (self.step, self.finer) = (step, finer);
    }

    /// Encodes a box of `src` as a message. Returns its bytes.
    ///
    /// The step assumes that errors are uniformly distributed. Equal numbers all have the same
    /// error, so if it is larger than the budget that is left for them, the finer step is used.
    pub(crate) fn encode(
        &self,
        number: usize,
        (src, gather): (&[T], &Transfer),
        message: &mut [u8],
        encoded: &mut Encoded,
    ) -> usize {
        let is_raw = self.raw_sends[number];
        let codec = self.codec(is_raw);
        if !is_raw {
            encoded.reals += (gather.elements() * self.width) as f64;
        }
        let left = Loss::room(encoded.reals, self.step) - encoded.squared_error;
        let mut packed = codec.pack(src, gather, self.width, self.step, message);
        if let Some(finer) = self.finer
            && packed.squared_error > left
        {
            packed = codec.pack(src, gather, self.width, finer, message);
        }
        encoded.squared_error += packed.squared_error;
        packed.bytes
    }

    /// Decodes a message into a box of `dst`.
    pub(crate) fn decode(
        &self,
        number: usize,
        message: &[u8],
        (dst, scatter): (&mut [T], &Transfer),
    ) -> Result<(), BadMessage> {
        self.codec(self.raw_recvs[number]).unpack(message, scatter, self.width, dst)
    }

    /// Bytes held.
    pub(crate) fn memory(&self) -> usize {
        self.raw.memory() + self.wire.memory()
    }
}
