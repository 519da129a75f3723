//! What an exchange fills messages by, and empties them.

use std::ops::Range;
use std::sync::Arc;

use cudarc::driver::CudaStream;
use fft_core::{Error, Loss, MessageHandler, MessagePlan, PackRequest, Timings, Wire};

use super::{Incoming, Outgoing, Part};
use crate::base::{GpuError, GpuReal};
use crate::device::Cuda;
use crate::device::host_codec::HostCodec;
use crate::device::reshape::squared_error;
use crate::ffi::{Block, DeviceMemory};

/// The handler of an exchange.
pub(super) struct StagedHandler<'a, T> {
    pub(super) message_plan: &'a MessagePlan,
    pub(super) parts: (&'a [Part], &'a [Part]),
    pub(super) out: &'a mut [Outgoing<T>],
    pub(super) come: &'a mut [Incoming<T>],
    pub(super) made_by: &'a [[usize; 3]],
    pub(super) lengths: &'a mut [usize],
    pub(super) host_codec: &'a mut Option<HostCodec<T>>,
    pub(super) device: &'a mut Cuda<T>,
    pub(super) src: &'a DeviceMemory<T>,
    pub(super) dst: &'a mut DeviceMemory<T>,
    pub(super) step: f64,
    pub(super) finer: Option<f64>,
    pub(super) timings: &'a mut Timings,
    pub(super) damage: Result<(), Error>,
}

impl<T: GpuReal> StagedHandler<'_, T> {
    /// Sees to it that copies of a chunk's messages find them made; makes them again with a smaller step where they lost too much.
    fn ready(&mut self, chunk: usize) -> Result<(), GpuError> {
        let chunk = &mut self.out[chunk];
        if std::mem::replace(&mut chunk.waited, true) {
            return Ok(());
        }
        // Where lengths are known copies wait for the chunk, and the host for the copies alone.
        if !self.message_plan.shorter && self.message_plan.buffers.is_none() {
            return chunk.made.hold(&self.device.copies);
        }
        chunk.made.wait()?;
        let Some(finer) = self.finer else { return Ok(()) };
        for load in &mut chunk.loads {
            let width = load.boxed.width();
            let reals = |i: &usize| self.parts.0[*i].transfer.elements() * width;
            let reals: usize = load.messages.iter().map(reals).sum();
            if squared_error(&load.boxed) > Loss::room(reals as f64, self.step) {
                let stream = &self.device.stream;
                load.boxed.make(stream, self.src, finer)?;
                chunk.made.record(stream)?;
                chunk.made.wait()?;
            }
        }
        Ok(())
    }

    /// As [`StagedHandler::ready`] for a message, of which it tells the length.
    fn made(&mut self, number: usize) -> usize {
        let [chunk, load, at] = self.made_by[number];
        let made = self.ready(chunk);
        self.device.record_error(made);
        let (most, boxed) =
            (self.message_plan.sends[number].bytes, &self.out[chunk].loads[load].boxed);
        let packed = self.message_plan.shorter.then(|| boxed.packed().nth(at)).flatten();
        self.timings.reals += (self.parts.0[number].transfer.elements() * boxed.width()) as u64;
        packed.map_or(most, |packed| packed.bytes).min(most)
    }

    /// Memory for messages on the device, and the stream of copies.
    fn staging(&self, side: usize) -> (Arc<Block>, Arc<CudaStream>) {
        let memory = self.device.staging[side].as_ref().expect("memory for messages");
        (memory.clone(), self.device.copies.clone())
    }
}

impl<T: GpuReal> MessageHandler for StagedHandler<'_, T> {
    fn pack(&mut self, number: usize, message: &mut [u8]) -> usize {
        let (bytes, part) = (self.made(number), &self.parts.0[number]);
        let (memory, copies) = self.staging(0);
        let fetch = |to: &mut [u8]| memory.read(&copies, part.place, to);
        let copied = match self.host_codec {
            _ if self.message_plan.buffers.is_some() => Ok(bytes),
            Some(host_codec) if part.wire == Wire::Lossless => {
                host_codec.pack(part, message, fetch)
            }
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
            bytes.set(self.made(number));
            self.timings.sent += bytes.get() as u64;
            (self.parts.0[number].place, &mut message[..bytes.get()])
        });
        let copied = memory.read_all(&copies, pieces);
        self.device.record_error(copied);
    }

    fn own(&mut self) {}

    fn arrived(&mut self, number: usize, message: &[u8]) -> bool {
        let (spec, part) = (self.message_plan.recvs[number], &self.parts.1[number]);
        let memory = self.device.staging[1].as_ref().expect("memory for messages");
        let message = match self.host_codec {
            Some(host_codec) if part.wire == Wire::Lossless => {
                match host_codec.unpack(part, message) {
                    Ok(numbers) => numbers,
                    Err(why) => {
                        let bad = Err(why.at(self.device.rank, spec.peer));
                        self.damage = std::mem::replace(&mut self.damage, Ok(())).and(bad);
                        return true;
                    }
                }
            }
            _ => message,
        };
        let most = message.len().min(spec.bytes);
        let copied = memory.write(&self.device.copies, part.place, &message[..most]);
        let bytes = message.len();
        self.device.record_error(copied);
        self.landed(number, bytes);
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
            (self.parts.1[number].place, &message[..message.len().min(most)])
        });
        let copied = memory.write_all(&copies, pieces);
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
            let read = load.boxed.read(&self.device.stream, &load.lengths, self.dst);
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

    fn finish<'m>(&mut self, _message: &dyn Fn(usize) -> &'m [u8]) {}
}
