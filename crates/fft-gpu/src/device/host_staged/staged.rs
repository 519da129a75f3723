//! The staged messages of a reshape.

use std::sync::Arc;

use fft_core::{
    Chunking, Error, Exchange, ExchangePass, Exchanger, MessageBuffers, MessagePlan, MessageSpec,
    Redistribution, Timings, Transfer, Wire,
};

use super::chunk::{InChunk, OutChunk, WireGroup, chunks, loads};
use super::handler::StagedHandler;
use super::host_codec::HostCodec;
use super::message::{ALIGN, StagedMessage, undecoded};
use crate::abi::form::on_device;
use crate::base::{GpuError, GpuReal, GpuTransport};
use crate::device::cuda::Cuda;
use crate::ffi::{CudaEvent, DeviceMemory, Pages, device_buffer};
use crate::kernel::message_slots::SlotTransfer;
use crate::kernel::{Inbox, Outbox};

/// Bytes of a chunk through the host, which keep the device and its link to the host busy.
const CHUNK: usize = 8 << 20;
/// The most chunks from device memory, because each costs a wait.
const CHUNKS: usize = 8;

/// How a reshape's staged messages travel.
pub(crate) struct StagedOptions<'a> {
    /// Whether a rank is not reached.
    pub(crate) far: &'a dyn Fn(usize) -> bool,
    /// Whether a rank's messages are raw.
    pub(crate) raw: &'a dyn Fn(usize) -> bool,
    pub(crate) wire: Wire,
    pub(crate) exchange: Exchange,
    pub(crate) transport: GpuTransport,
    /// The reshape's number.
    pub(crate) number: usize,
    pub(crate) batch: usize,
}

impl StagedOptions<'_> {
    /// The most bytes of a chunk, of elements of `element` bytes; `None` for one chunk.
    fn most_bytes(&self, pass: &ExchangePass<'_>, element: usize) -> Option<usize> {
        match self.transport {
            // One message to each rank.
            _ if self.exchange.pattern().is_collective() => None,
            GpuTransport::GpuDirect if !self.exchange.is_chunked() => None,
            GpuTransport::GpuDirect => {
                let layout = &pass.from.layout;
                let bricks = (0..layout.ranks()).map(|rank| layout.brick(rank).points());
                let most = bricks.max().unwrap_or(0) * self.batch * element / CHUNKS;
                Some(most.max(CHUNK))
            }
            _ => Some(CHUNK),
        }
    }

    /// One side's messages to or from ranks that are not reached, and bytes of their memory.
    fn side<T: GpuReal>(
        &self,
        width: usize,
        parts: impl Iterator<Item = (usize, Transfer, usize)>,
    ) -> (Vec<MessageSpec>, Vec<StagedMessage>, usize) {
        let mut end = 0;
        let place = |(peer, transfer, chunk): (usize, Transfer, usize)| {
            let wire = if (self.raw)(peer) { Wire::Raw } else { self.wire };
            let (codec, elements) = (wire.codec::<T>(), transfer.elements());
            let most = codec.bound(elements * width);
            let bytes = codec.fixed(elements, width).unwrap_or(most);
            let place = end;
            end = (place + most).next_multiple_of(ALIGN);
            let on_device = on_device::<T>(wire);
            let message = StagedMessage { transfer, wire, on_device, place };
            (MessageSpec { peer, bytes, chunk }, message)
        };
        let (specs, messages) = parts.map(place).unzip();
        (specs, messages, end)
    }
}

/// The messages of a reshape to and from ranks that are not reached.
pub(crate) struct HostStaged<T> {
    pub(crate) message_plan: MessagePlan,
    pub(super) width: usize,
    pub(super) sends: Vec<StagedMessage>,
    pub(super) recvs: Vec<StagedMessage>,
    pub(super) out: Vec<OutChunk<T>>,
    pub(super) come: Vec<InChunk<T>>,
    /// The chunk, load and place there of each outgoing message.
    pub(super) packed_by: Vec<[usize; 3]>,
    /// The lengths of incoming messages.
    pub(super) lengths: Vec<usize>,
    /// Bytes of message memory, out and in.
    pub(crate) bytes: [usize; 2],
    /// Whether the device codes messages, so that outcomes are available at the end.
    coded: bool,
    pub(super) host_codec: Option<HostCodec<T>>,
}

impl<T: GpuReal> HostStaged<T> {
    pub(crate) fn new(
        redistribution: Redistribution,
        pass: &ExchangePass<'_>,
        options: StagedOptions<'_>,
    ) -> Self {
        let width = redistribution.width;
        let element = width * size_of::<T>();
        let redistribution = match options.most_bytes(pass, element) {
            Some(bytes) => {
                let most = Chunking { bytes, fine: false };
                redistribution.chunked([pass.from, pass.to], &[], element, most)
            }
            None => redistribution,
        };
        let all = redistribution.all();
        let sends = redistribution.sends.iter().zip(&redistribution.chunk_of);
        let sends = sends
            .filter(|((peer, _), _)| (options.far)(*peer))
            .map(|((peer, part), chunk)| (*peer, redistribution.gather(part), *chunk));
        let (sent, sends, out) = options.side::<T>(width, sends);
        let recvs = redistribution.recvs.iter().zip(&redistribution.theirs);
        let recvs =
            recvs.filter(|((peer, _), _)| (options.far)(*peer)).map(|((peer, part), chunk)| {
                let scatter = redistribution.scatter(part, &all).expect("messages are not empty");
                (*peer, scatter, *chunk)
            });
        let (received, recvs, come) = options.side::<T>(width, recvs);
        let message_plan = MessagePlan {
            reshape: options.number,
            chunks: redistribution.most_chunks,
            shorter: options.wire.codec::<T>().fixed(0, width).is_none(),
            buffers_all: true,
            sends: sent,
            recvs: received,
            buffers: None,
        };
        Self {
            message_plan,
            width,
            coded: sends.iter().chain(&recvs).any(|message| message.on_device != Wire::Raw),
            packed_by: vec![[0; 3]; sends.len()],
            lengths: vec![0; recvs.len()],
            sends,
            recvs,
            out: Vec::new(),
            come: Vec::new(),
            bytes: [out, come],
            host_codec: None,
        }
    }

    /// Bytes of memory held in addition to the message memory.
    pub(crate) fn memory(&self) -> usize {
        let out = self.out.iter().flat_map(|chunk| &chunk.loads).map(|load| load.boxed.memory());
        let come = self.come.iter().flat_map(|chunk| &chunk.loads).map(|load| load.boxed.memory());
        out.chain(come).sum::<usize>() + self.host_codec.as_ref().map_or(0, HostCodec::memory)
    }

    /// Real numbers of outgoing messages that are coded.
    pub(crate) fn coded(&self) -> usize {
        let coded = self.sends.iter().filter(|message| message.wire != Wire::Raw);
        coded.map(|message| message.transfer.elements() * self.width).sum()
    }

    /// The squared error of the last run's outgoing messages, which are done.
    pub(crate) fn squared_error(&self) -> f64 {
        let loads = self.out.iter().flat_map(|chunk| &chunk.loads);
        let by_host = self.host_codec.as_ref().map_or(0.0, |codec| codec.squared_error);
        by_host + loads.map(|load| load.boxed.squared_error()).sum::<f64>()
    }

    /// The first message that did not decode in the last run, which must be finished.
    pub(crate) fn damage(&self, rank: usize) -> Result<(), Error> {
        let bad = |load: &WireGroup<Inbox<T>>| load.boxed.bad().map(|at| load.messages[at]);
        let Some(number) = self.come.iter().flat_map(|chunk| &chunk.loads).find_map(bad) else {
            return Ok(());
        };
        Err(undecoded(rank, self.message_plan.recvs[number].peer, self.recvs[number].wire))
    }

    /// Prepares launches and buffers. Collective.
    pub(crate) fn reserve(
        &mut self,
        device: &mut Cuda,
        exchange: &mut dyn Exchanger,
    ) -> Result<(), Error> {
        let boxes = self.make_host_codec().and_then(|()| self.boxes(device));
        let boxes = boxes.map_err(|why| why.on(device.rank));
        if !exchange.takes_message_buffers(&self.message_plan) {
            device.taken = GpuTransport::HostStaged;
        }
        if device.taken == GpuTransport::GpuDirect {
            let rank = device.rank;
            let memory = device
                .staging
                .each_ref()
                .map(|block| device_buffer(block.as_ref().expect("memory for messages"), rank));
            let places = |all: &[StagedMessage]| all.iter().map(|message| message.place).collect();
            self.message_plan.buffers =
                Some(MessageBuffers { memory, places: [places(&self.sends), places(&self.recvs)] });
        } else {
            exchange.pin(Arc::new(Pages(device.gpu.context().clone())));
        }
        exchange.reserve(&self.message_plan).and(boxes)
    }

    /// Makes the codec of messages that the host codes, if there are any. They have one wire.
    fn make_host_codec(&mut self) -> Result<(), GpuError> {
        let all = self.sends.iter().chain(&self.recvs).filter(|message| message.is_coded_by_host());
        if let Some(longest) = all.max_by_key(|message| message.transfer.elements()) {
            self.host_codec = Some(HostCodec::new(longest, self.width)?);
        }
        Ok(())
    }

    fn boxes(&mut self, device: &Cuda) -> Result<(), GpuError> {
        let (gpu, stream, width) = (&device.gpu, &device.stream, self.width);
        let [out, come] = device.staging.each_ref().map(Option::as_ref);
        for range in chunks(&self.message_plan.sends) {
            let make =
                |wire, parts: &[SlotTransfer<'_>]| Outbox::new(gpu, stream, wire, width, parts);
            let loads = loads(&self.sends, range, out.expect("memory for messages"), make)?;
            for (load, messages) in loads.iter().map(|load| &load.messages).enumerate() {
                for (at, number) in messages.iter().enumerate() {
                    self.packed_by[*number] = [self.out.len(), load, at];
                }
            }
            self.out.push(OutChunk {
                loads,
                packed: CudaEvent::new(gpu.context())?,
                waited: false,
            });
        }
        for range in chunks(&self.message_plan.recvs) {
            let make =
                |wire, parts: &[SlotTransfer<'_>]| Inbox::new(gpu, stream, wire, width, parts);
            let memory = come.expect("memory for messages");
            let loads = loads(&self.recvs, range.clone(), memory, make)?;
            self.come.push(InChunk { loads, range, missing: 0 });
        }
        Ok(())
    }

    /// Queues the packing of all messages.
    pub(crate) fn pack(
        &mut self,
        device: &mut Cuda,
        src: &DeviceMemory<T>,
        step: f64,
    ) -> Result<(), GpuError> {
        for chunk in &mut self.out {
            for load in &mut chunk.loads {
                load.boxed.pack(&device.stream, src, step)?;
            }
            chunk.packed.record(&device.stream)?;
        }
        Ok(())
    }

    /// Exchanges the messages. Collective over all ranks.
    pub(crate) fn exchange(
        &mut self,
        device: &mut Cuda,
        exchange: &mut dyn Exchanger,
        (src, dst): (&DeviceMemory<T>, &mut DeviceMemory<T>),
        step: (f64, Option<f64>),
        timings: &mut Timings,
    ) -> Result<(), Error> {
        device.needs_sync |= self.coded;
        // The messages of an earlier reshape were in the same memory.
        let held = match self.message_plan.buffers {
            Some(_) => device.unpacked.wait(),
            None => device.unpacked.hold(&device.copies),
        };
        device.record_error(held);
        self.out.iter_mut().for_each(|chunk| chunk.waited = false);
        self.come.iter_mut().for_each(|chunk| chunk.missing = chunk.range.len());
        if let Some(codec) = &mut self.host_codec {
            codec.squared_error = 0.0;
        }
        let Self { message_plan, width, sends, recvs, out, come, packed_by, lengths, .. } = self;
        let mut handler = StagedHandler {
            message_plan,
            width: *width,
            messages: (sends, recvs),
            out,
            come,
            packed_by,
            lengths,
            host_codec: &mut self.host_codec,
            device,
            src,
            dst,
            step,
            timings,
            damage: Ok(()),
        };
        let sent = exchange.run(message_plan, &mut handler);
        let damage = handler.damage;
        let unpacked = device.unpacked.record(&device.stream);
        device.record_error(unpacked);
        damage.and(sent)
    }
}
