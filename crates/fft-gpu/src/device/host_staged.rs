//! Messages to ranks that are not reached: made on the device chunk by chunk, sent by any exchange, and read chunk by chunk.
//!
//! The device makes the chunks one after the other, in buffers: places that each message has for good. An exchange that takes
//! buffers sends from there and receives there, and the host waits for each chunk to be made. Otherwise messages go through the
//! host: a second stream copies each chunk when it is made, beside the making of the next and the flight of the one before, into
//! the exchange's messages, whose memory is pinned where the exchange knows how; and each chunk that has come back to the device. The
//! host waits once for the messages of a chunk, unless the exchange takes them one by one. Messages of `lossless` are made and read on
//! the host, one by one, of numbers that the device gathers and scatters.

mod handler;

use std::ops::Range;
use std::sync::Arc;

use fft_core::{
    Algorithm, BoundStep, Chunking, Error, Exchange, MessageBuffers, MessagePlan, MessageSpec,
    Redistribution, Timings, Transfer, Wire,
};

use super::Cuda;
use super::host_codec::HostCodec;
use super::reshape::{squared_error, undecoded};
use crate::base::{GpuError, GpuReal, GpuTransport};
use crate::ffi::{Block, DeviceMemory, Event, Inbox, Outbox, Pages, Slot, device_buffer};
use handler::StagedHandler;

/// Bytes of a chunk that goes through the host: enough to keep the device and its link to the host busy.
const CHUNK: usize = 8 << 20;
/// Chunks of messages that are sent from the device, where all else is fast and to wait for each costs most: what is made before
/// the first leaves, and read after the last came, is of one of so many.
const CHUNKS: usize = 8;
/// Messages begin at multiples of this many bytes.
const ALIGN: usize = 128;

/// Who is at the other end of messages.
pub(super) struct Ends<'a> {
    /// Whether a rank is not reached.
    pub(super) far: &'a dyn Fn(usize) -> bool,
    /// Whether its messages are raw.
    pub(super) bare: &'a dyn Fn(usize) -> bool,
    pub(super) wire: Wire,
    pub(super) exchange: Algorithm,
    /// Where messages are sent from.
    pub(super) transport: GpuTransport,
    pub(super) number: usize,
}

/// A message.
pub(super) struct Part {
    pub(super) transfer: Transfer,
    pub(super) wire: Wire,
    /// Its first byte in the device's memory for messages.
    place: usize,
}

impl Part {
    /// What the device makes of it, or reads.
    fn on_device(&self) -> Wire {
        if self.wire == Wire::Lossless { Wire::Raw } else { self.wire }
    }
}

/// Messages of a chunk that have a wire in common.
struct Load<B> {
    messages: Vec<usize>,
    /// Of those that came, all of them when all have come.
    lengths: Vec<usize>,
    boxed: B,
}

/// The messages of a chunk out of this rank's memory.
struct Outgoing<T> {
    loads: Vec<Load<Outbox<T>>>,
    made: Event,
    waited: bool,
}

/// Those of a chunk of somebody else's.
struct Incoming<T> {
    loads: Vec<Load<Inbox<T>>>,
    range: Range<usize>,
    missing: usize,
}

pub(super) struct Staged<T> {
    message_plan: MessagePlan,
    sends: Vec<Part>,
    recvs: Vec<Part>,
    out: Vec<Outgoing<T>>,
    come: Vec<Incoming<T>>,
    /// Of every message out, its chunk, the load in that, and its place there.
    made_by: Vec<[usize; 3]>,
    lengths: Vec<usize>,
    /// Of memory for messages out and in.
    bytes: [usize; 2],
    /// Whether the device makes or reads messages that are coded: what they lost, and whether they could be read, it knows at the end.
    coded: bool,
    host_codec: Option<HostCodec<T>>,
}

impl<T: GpuReal> Staged<T> {
    pub(super) fn new(
        redistribution: Redistribution,
        leg: &BoundStep<'_>,
        (element, batches): (usize, usize),
        ends: Ends<'_>,
    ) -> Self {
        let most = match (ends.exchange, ends.transport) {
            // These take one message to each rank.
            (Algorithm::Alltoallv | Algorithm::KWay(_), _) => None,
            (Algorithm::P2p, GpuTransport::GpuDirect) => None,
            (_, GpuTransport::GpuDirect) => {
                let layout = &leg.from.layout;
                let bricks = (0..layout.ranks()).map(|rank| layout.brick(rank).points());
                Some(bricks.max().unwrap_or(0) * batches * element / CHUNKS)
            }
            _ => Some(CHUNK),
        };
        let redistribution = match most {
            Some(most) => {
                let most = Chunking { bytes: most.max(CHUNK), fine: false };
                redistribution.chunked([leg.from, leg.to], &[], element, most)
            }
            None => redistribution,
        };
        let all = redistribution.all();
        let side = |peer: usize, transfer: Transfer, chunk: usize, end: &mut usize| {
            let wire = if (ends.bare)(peer) { Wire::Raw } else { ends.wire };
            let (codec, elements) = (wire.codec::<T>(), transfer.elements());
            let most = codec.bound(elements * redistribution.width);
            let bytes = codec.fixed(elements, redistribution.width).unwrap_or(most);
            let place = *end;
            *end = (place + most).next_multiple_of(ALIGN);
            (MessageSpec { peer, bytes, chunk }, Part { transfer, wire, place })
        };
        let [mut out, mut come] = [0, 0];
        let (sent, sends): (Vec<_>, Vec<_>) = (redistribution
            .sends
            .iter()
            .zip(&redistribution.chunk_of))
        .filter(|((peer, _), _)| (ends.far)(*peer))
        .map(|((peer, part), chunk)| side(*peer, redistribution.gather(part), *chunk, &mut out))
        .unzip();
        let (received, recvs): (Vec<_>, Vec<_>) =
            (redistribution.recvs.iter().zip(&redistribution.theirs))
                .filter(|((peer, _), _)| (ends.far)(*peer))
                .map(|((peer, part), chunk)| {
                    let scatter =
                        redistribution.scatter(part, &all).expect("messages are not empty");
                    side(*peer, scatter, *chunk, &mut come)
                })
                .unzip();
        let bytes = [out, come];
        let shorter = ends.wire.codec::<T>().fixed(0, redistribution.width).is_none();
        let message_plan = MessagePlan {
            reshape: ends.number,
            chunks: redistribution.most_chunks,
            shorter,
            buffers_all: true,
            sends: sent,
            recvs: received,
            buffers: None,
        };
        let (lengths, made_by) = (vec![0; recvs.len()], vec![[0; 3]; sends.len()]);
        let (out, come) = (Vec::new(), Vec::new());
        let coded = |part: &Part| part.on_device() != Wire::Raw;
        let coded = sends.iter().chain(&recvs).any(coded);
        Self {
            message_plan,
            sends,
            recvs,
            out,
            come,
            made_by,
            lengths,
            bytes,
            coded,
            host_codec: None,
        }
    }

    /// Bytes of memory of the device for messages out and in.
    pub(super) fn bytes(&self) -> [usize; 2] {
        self.bytes
    }

    /// Bytes of memory held beside that.
    pub(super) fn memory(&self) -> usize {
        let out = self.out.iter().flat_map(|chunk| &chunk.loads).map(|load| load.boxed.memory());
        let come = self.come.iter().flat_map(|chunk| &chunk.loads).map(|load| load.boxed.memory());
        out.chain(come).sum::<usize>() + self.host_codec.as_ref().map_or(0, HostCodec::memory)
    }

    /// Real numbers that go by the wire.
    pub(super) fn coded(&self, width: usize) -> usize {
        let coded = self.sends.iter().filter(|part| part.wire != Wire::Raw);
        coded.map(|part| part.transfer.elements() * width).sum()
    }

    pub(super) fn message_plan(&self) -> &MessagePlan {
        &self.message_plan
    }

    pub(super) fn squared_error(&self) -> f64 {
        let loads = self.out.iter().flat_map(|chunk| &chunk.loads);
        loads.map(|load| squared_error(&load.boxed)).sum()
    }

    /// The first message of the last run that did not decode, when the device has come to its end.
    pub(super) fn damage(&self, rank: usize) -> Result<(), Error> {
        let bad = |load: &Load<Inbox<T>>| load.boxed.bad().map(|at| load.messages[at]);
        let Some(number) = self.come.iter().flat_map(|chunk| &chunk.loads).find_map(bad) else {
            return Ok(());
        };
        Err(undecoded(rank, self.message_plan.recvs[number].peer, self.recvs[number].wire))
    }

    /// Collective.
    pub(super) fn reserve(
        &mut self,
        device: &mut Cuda<T>,
        exchange: &mut dyn Exchange,
        width: usize,
    ) -> Result<(), Error> {
        let boxes = self.host_codec(width).and_then(|()| self.boxes(device, width));
        let boxes = boxes.map_err(|why| why.on(device.rank));
        if !exchange.takes_message_buffers() {
            device.taken = GpuTransport::HostStaged;
        }
        if device.taken == GpuTransport::GpuDirect {
            let rank = device.rank;
            let memory = device
                .staging
                .each_ref()
                .map(|block| device_buffer(block.as_ref().expect("memory for messages"), rank));
            let places = |parts: &[Part]| parts.iter().map(|part| part.place).collect();
            self.message_plan.buffers =
                Some(MessageBuffers { memory, places: [places(&self.sends), places(&self.recvs)] });
        } else {
            exchange.pin(Arc::new(Pages(device.gpu.context().clone())));
        }
        exchange.reserve(&self.message_plan).and(boxes)
    }

    /// Makes ready for messages that the host makes, if there are any.
    fn host_codec(&mut self, width: usize) -> Result<(), GpuError> {
        let parts = self.sends.iter().chain(&self.recvs);
        let lossless = parts.filter(|part| part.wire == Wire::Lossless);
        if let Some(most) = lossless.map(|part| part.transfer.elements()).max() {
            self.host_codec = Some(HostCodec::new(Wire::Lossless, width, most)?);
        }
        Ok(())
    }

    fn boxes(&mut self, device: &Cuda<T>, width: usize) -> Result<(), GpuError> {
        let (gpu, stream) = (&device.gpu, &device.stream);
        let [out, come] = &device.staging;
        for range in chunks(&self.message_plan.sends) {
            let out = out.as_ref().expect("memory for messages");
            let make =
                |wire, parts: &[(&Transfer, Slot)]| Outbox::new(gpu, stream, wire, width, parts);
            let loads = loads(&self.sends, range, out, make)?;
            for (load, messages) in loads.iter().map(|load| &load.messages).enumerate() {
                for (at, number) in messages.iter().enumerate() {
                    self.made_by[*number] = [self.out.len(), load, at];
                }
            }
            self.out.push(Outgoing { loads, made: Event::new(gpu.context())?, waited: false });
        }
        for range in chunks(&self.message_plan.recvs) {
            let come = come.as_ref().expect("memory for messages");
            let make =
                |wire, parts: &[(&Transfer, Slot)]| Inbox::new(gpu, stream, wire, width, parts);
            let loads = loads(&self.recvs, range.clone(), come, make)?;
            self.come.push(Incoming { loads, range, missing: 0 });
        }
        Ok(())
    }

    /// Queues the making of all messages.
    pub(super) fn launch(
        &mut self,
        device: &mut Cuda<T>,
        src: &DeviceMemory<T>,
        step: f64,
    ) -> Result<(), GpuError> {
        for chunk in &mut self.out {
            for load in &mut chunk.loads {
                load.boxed.make(&device.stream, src, step)?;
            }
            chunk.made.record(&device.stream)?;
        }
        Ok(())
    }

    /// Exchanges the messages. Collective over all ranks.
    pub(super) fn exchange(
        &mut self,
        device: &mut Cuda<T>,
        exchange: &mut dyn Exchange,
        (src, dst): (&DeviceMemory<T>, &mut DeviceMemory<T>),
        (step, finer): (f64, Option<f64>),
        timings: &mut Timings,
    ) -> Result<(), Error> {
        let Self {
            message_plan, sends, recvs, out, come, made_by, lengths, coded, host_codec, ..
        } = self;
        device.needs_sync |= *coded;
        // What came in another reshape was in the same memory.
        let held = match message_plan.buffers {
            Some(_) => device.read.wait(),
            None => device.read.hold(&device.copies),
        };
        device.record_error(held);
        out.iter_mut().for_each(|chunk| chunk.waited = false);
        come.iter_mut().for_each(|chunk| chunk.missing = chunk.range.len());
        let mut mail = StagedHandler {
            message_plan,
            parts: (sends, recvs),
            out,
            come,
            made_by,
            lengths,
            host_codec,
            device,
            src,
            dst,
            step,
            finer,
            timings,
            damage: Ok(()),
        };
        let sent = exchange.run(message_plan, &mut mail);
        let damage = mail.damage;
        let read = device.read.record(&device.stream);
        device.record_error(read);
        damage.and(sent)
    }
}

/// Messages by chunks, in order.
fn chunks(specs: &[MessageSpec]) -> Vec<Range<usize>> {
    let mut chunks: Vec<Range<usize>> = Vec::new();
    for (number, spec) in specs.iter().enumerate() {
        match chunks.last_mut() {
            Some(last) if specs[last.start].chunk == spec.chunk => last.end = number + 1,
            _ => chunks.push(number..number + 1),
        }
    }
    chunks
}

/// The messages of a chunk by wire.
fn loads<B>(
    parts: &[Part],
    range: Range<usize>,
    memory: &Arc<Block>,
    make: impl Fn(Wire, &[(&Transfer, Slot)]) -> Result<B, GpuError>,
) -> Result<Vec<Load<B>>, GpuError> {
    let mut wires: Vec<Wire> = Vec::new();
    for part in &parts[range.clone()] {
        if !wires.contains(&part.on_device()) {
            wires.push(part.on_device());
        }
    }
    let load = |wire: Wire| {
        let messages: Vec<_> = range.clone().filter(|&i| parts[i].on_device() == wire).collect();
        let end = |i: usize| parts.get(i + 1).map_or(memory.bytes(), |next| next.place);
        let slot = |i: usize| Slot::of_block(memory, parts[i].place..end(i));
        let boxes: Vec<_> = messages.iter().map(|&i| (&parts[i].transfer, slot(i))).collect();
        Ok(Load { boxed: make(wire, &boxes)?, lengths: vec![0; messages.len()], messages })
    };
    wires.into_iter().map(load).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_a_chunk_follow_each_other() {
        let spec = |chunk| MessageSpec { peer: 0, bytes: 1, chunk };
        assert_eq!(chunks(&[0, 0, 1, 3, 3, 3].map(spec)), [0..2, 2..3, 3..6]);
        assert!(chunks(&[]).is_empty());
    }
}
