//! The callbacks of an exchange: messages to be sent, and messages that have arrived.

use std::ops::Range;
use std::sync::Arc;

use cudarc::driver::CudaStream;
use fft_core::{Error, Loss, MessageHandler, MessagePlan, PackRequest, Timings};

use super::chunk::{InChunk, OutChunk};
use super::host_codec::HostCodec;
use super::message::StagedMessage;
use crate::base::{GpuError, GpuReal};
use crate::device::cuda::Cuda;
use crate::ffi::{Block, DeviceMemory};

/// The handler of an exchange.
pub(super) struct StagedHandler<'a, T> {
    pub(super) message_plan: &'a MessagePlan,
    pub(super) width: usize,
    /// Out and in.
    pub(super) messages: (&'a [StagedMessage], &'a [StagedMessage]),
    pub(super) out: &'a mut [OutChunk<T>],
    pub(super) come: &'a mut [InChunk<T>],
    pub(super) packed_by: &'a [[usize; 3]],
    pub(super) lengths: &'a mut [usize],
    pub(super) host_codec: &'a mut Option<HostCodec<T>>,
    pub(super) device: &'a mut Cuda,
    pub(super) src: &'a DeviceMemory<T>,
    pub(super) dst: &'a mut DeviceMemory<T>,
    pub(super) step: (f64, Option<f64>),
    pub(super) timings: &'a mut Timings,
    pub(super) damage: Result<(), Error>,
}

impl<T: GpuReal> StagedHandler<'_, T> {
    /// Orders copies of a chunk after its packing. Packs messages again with the finer step if they
    /// lost too much.
    fn await_chunk(&mut self, chunk: usize) -> Result<(), GpuError> {
        let chunk = &mut self.out[chunk];
        if std::mem::replace(&mut chunk.waited, true) {
            return Ok(());
        }
        // If lengths are fixed, copies wait for the chunk, and the host only for the copies.
        if !self.message_plan.shorter && self.message_plan.buffers.is_none() {
            return chunk.packed.hold(&self.device.copies);
        }
        chunk.packed.wait()?;
        let (step, Some(finer)) = self.step else { return Ok(()) };
        for load in &mut chunk.loads {
            let reals = |i: &usize| self.messages.0[*i].transfer.elements() * self.width;
            let reals: usize = load.messages.iter().map(reals).sum();
            if load.boxed.squared_error() > Loss::room(reals as f64, step) {
                let stream = &self.device.stream;
                load.boxed.pack(stream, self.src, finer)?;
                chunk.packed.record(stream)?;
                chunk.packed.wait()?;
            }
        }
        Ok(())
    }

    /// Awaits the chunk of a message, and returns the message's length.
    fn packed_length(&mut self, number: usize) -> usize {
        let [chunk, load, at] = self.packed_by[number];
        let awaited = self.await_chunk(chunk);
        self.device.record_error(awaited);
        let most = self.message_plan.sends[number].bytes;
        let boxed = &self.out[chunk].loads[load].boxed;
        let packed = self.message_plan.shorter.then(|| boxed.packed().nth(at)).flatten();
        self.timings.reals += (self.messages.0[number].transfer.elements() * self.width) as u64;
        packed.map_or(most, |packed| packed.bytes).min(most)
    }

    /// Message memory, and the stream of copies.
    fn staging(&self, side: usize) -> (Arc<Block>, Arc<CudaStream>) {
        let memory = self.device.staging[side].as_ref().expect("memory for messages");
        (memory.clone(), self.device.copies.clone())
    }
}

impl<T: GpuReal> MessageHandler for StagedHandler<'_, T> {
    fn pack(&mut self, number: usize, message: &mut [u8]) -> usize {
        let (bytes, part) = (self.packed_length(number), &self.messages.0[number]);
        let (memory, copies) = self.staging(0);
        let fetch = |to: &mut [u8]| memory.read(&copies, [(part.place, to)]);
        let copied = match self.host_codec {
            _ if self.message_plan.buffers.is_some() => Ok(bytes),
            Some(host_codec) if part.is_coded_by_host() => host_codec.pack(part, message, fetch),
            _ => fetch(&mut message[..bytes]).map(|()| bytes),
        };
        let bytes = *copied.as_ref().unwrap_or(&bytes);
        self.device.record_error(copied.map(drop));
        self.timings.sent += bytes as u64;
        bytes
    }

    fn together(&self) -> bool {
        self.message_plan.buffers.is_none() && self.host_codec.is_none()
    }

    fn pack_all<'m>(&mut self, requests: &mut dyn Iterator<Item = PackRequest<'m>>) {
        if !self.together() {
            for PackRequest { number, message, bytes } in requests {
                bytes.set(self.pack(number, message));
            }
            return;
        }
        let (memory, copies) = self.staging(0);
        let pieces = requests.map(|PackRequest { number, message, bytes }| {
            bytes.set(self.packed_length(number));
            self.timings.sent += bytes.get() as u64;
            (self.messages.0[number].place, &mut message[..bytes.get()])
        });
        let copied = memory.read(&copies, pieces);
        self.device.record_error(copied);
    }

    fn arrived(&mut self, number: usize, message: &[u8]) -> bool {
        let (spec, part) = (self.message_plan.recvs[number], &self.messages.1[number]);
        let memory = self.device.staging[1].as_ref().expect("memory for messages");
        let (bytes, most) = match self.host_codec {
            Some(host_codec) if part.is_coded_by_host() => match host_codec.unpack(part, message) {
                Ok(numbers) => (numbers, numbers.len()),
                Err(why) => {
                    let bad = Err(why.at(self.device.rank, spec.peer));
                    self.damage = std::mem::replace(&mut self.damage, Ok(())).and(bad);
                    return true;
                }
            },
            _ => (message, message.len().min(spec.bytes)),
        };
        let copied = memory.write(&self.device.copies, [(part.place, &bytes[..most])]);
        let length = bytes.len();
        self.device.record_error(copied);
        self.landed(number, length);
        true
    }

    fn arrived_all<'m>(&mut self, numbers: Range<usize>, message: &dyn Fn(usize) -> &'m [u8]) {
        if !self.together() {
            for number in numbers {
                self.arrived(number, message(number));
            }
            return;
        }
        let (memory, copies) = self.staging(1);
        let pieces = numbers.clone().map(|number| {
            let (message, most) = (message(number), self.message_plan.recvs[number].bytes);
            (self.messages.1[number].place, &message[..message.len().min(most)])
        });
        let copied = memory.write(&copies, pieces);
        self.device.record_error(copied);
        numbers.for_each(|number| self.landed(number, message(number).len()));
    }

    fn landed(&mut self, number: usize, bytes: usize) {
        self.lengths[number] = bytes;
        let after = self.come.partition_point(|chunk| chunk.range.end <= number);
        let chunk = &mut self.come[after];
        chunk.missing = chunk.missing.saturating_sub(1);
        if chunk.missing > 0 {
            return;
        }
        for load in &mut chunk.loads {
            let lengths = load.messages.iter().map(|&i| self.lengths[i]);
            load.lengths.iter_mut().zip(lengths).for_each(|(length, found)| *length = found);
            let read = load.boxed.unpack(&self.device.stream, &load.lengths, self.dst);
            if let Err(GpuError::Message { index, why }) = &read {
                let from = self.message_plan.recvs[load.messages[*index]].peer;
                if self.damage.is_ok() {
                    self.damage = Err(why.at(self.device.rank, from));
                }
            } else {
                self.device.record_error(read);
            }
        }
    }
}
