//! Messages that are encoded into slots, and decoded from them, wherever slots are.
//!
//! Descriptors hold addresses, so that one launch serves slots in many memories.

use std::sync::Arc;

use cudarc::driver::CudaStream;
use fft_core::{BadMessage, Packed, Transfer, Wire};

use super::decoder::Decoder;
use super::encoder::Encoder;
use super::transfers::Transfers;
use crate::abi::form::Form;
use crate::abi::{Move, PlacedTransfer};
use crate::base::{Gpu, GpuError, GpuReal};
use crate::ffi::{DeviceMemory, DeviceSlot, SlotMemory};

pub(crate) type SlotTransfer<'t> = (&'t Transfer, DeviceSlot);

/// Messages of one launch, by the encoder or decoder `C`.
pub(crate) struct MessageSlots<C> {
    work: Work<C>,
    slots: SlotMemory,
    /// Bytes of each message at most.
    lengths: Vec<usize>,
    memory: usize,
}

enum Work<C> {
    Raw(Box<Transfers>),
    Coded(Box<C>),
}

/// Outgoing messages.
pub(crate) type Outbox<T> = MessageSlots<Encoder<T>>;
/// Incoming messages.
pub(crate) type Inbox<T> = MessageSlots<Decoder<T>>;

impl<C> MessageSlots<C> {
    /// Raw messages are copies into slots if they are sent, or out of them. The coder comes with
    /// the bytes that it holds.
    fn prepare<T: GpuReal>(
        gpu: &Gpu,
        stream: &Arc<CudaStream>,
        (wire, width): (Wire, usize),
        parts: &[SlotTransfer<'_>],
        sends: bool,
        coder: impl FnOnce(&[PlacedTransfer<'_>]) -> Result<(C, usize), GpuError>,
    ) -> Result<Self, GpuError> {
        let element = width * size_of::<T>();
        let elements = parts.iter().map(|(transfer, _)| transfer.elements());
        let (work, memory, lengths): (_, _, Vec<_>) = if wire == Wire::Raw {
            let moves: Vec<_> = (parts.iter())
                .map(|(transfer, slot)| match (sends, slot.at as usize / element) {
                    (true, to) => Move { transfer, from: 0, to },
                    (false, from) => Move { transfer, from, to: 0 },
                })
                .collect();
            let transfers = Transfers::new(gpu, stream, element, &moves)?;
            let memory = transfers.memory();
            (Work::Raw(Box::new(transfers)), memory, elements.map(|n| n * element).collect())
        } else {
            let form = Form::new::<T>(wire, width)?;
            let placed: Vec<_> = (parts.iter())
                .map(|(transfer, slot)| PlacedTransfer { transfer, place: slot.at as usize })
                .collect();
            let (coder, memory) = coder(&placed)?;
            (Work::Coded(Box::new(coder)), memory, elements.map(|n| form.bound(n)).collect())
        };
        let sized = parts.iter().map(|(_, slot)| slot).zip(lengths.iter().copied());
        Ok(Self { work, slots: SlotMemory::new(stream, sized)?, lengths, memory })
    }

    /// The encoder or decoder, unless messages are raw.
    fn coder(&self) -> Option<&C> {
        match &self.work {
            Work::Raw(_) => None,
            Work::Coded(coder) => Some(coder),
        }
    }

    /// Bytes of memory held in addition to the messages.
    pub(crate) fn memory(&self) -> usize {
        self.memory
    }
}

impl<T: GpuReal> Outbox<T> {
    /// Prepares messages of boxes, each in its slot.
    pub(crate) fn new(
        gpu: &Gpu,
        stream: &Arc<CudaStream>,
        wire: Wire,
        width: usize,
        parts: &[SlotTransfer<'_>],
    ) -> Result<Self, GpuError> {
        Self::prepare::<T>(gpu, stream, (wire, width), parts, true, |placed| {
            let encoder = Encoder::new(gpu, stream, wire, width, placed)?;
            let memory = encoder.memory();
            Ok((encoder, memory))
        })
    }

    pub(crate) fn pack(
        &mut self,
        stream: &Arc<CudaStream>,
        src: &DeviceMemory<T>,
        step: f64,
    ) -> Result<(), GpuError> {
        match &mut self.work {
            Work::Raw(transfers) => transfers.run::<T, u8>(stream, src, self.slots.memory_mut()),
            Work::Coded(encoder) => {
                encoder.encode(stream, src, step, self.slots.memory_mut())?;
                encoder.report(stream)
            }
        }
    }

    /// The outcomes of coded messages, when the stream has packed them.
    pub(crate) fn packed(&self) -> impl Iterator<Item = Packed> {
        self.coder().into_iter().flat_map(Encoder::reported)
    }

    /// The squared error of all messages, when the stream has packed them.
    pub(crate) fn squared_error(&self) -> f64 {
        self.packed().map(|packed| packed.squared_error).sum()
    }
}

impl<T: GpuReal> Inbox<T> {
    /// Prepares to read messages, each out of its slot.
    pub(crate) fn new(
        gpu: &Gpu,
        stream: &Arc<CudaStream>,
        wire: Wire,
        width: usize,
        parts: &[SlotTransfer<'_>],
    ) -> Result<Self, GpuError> {
        Self::prepare::<T>(gpu, stream, (wire, width), parts, false, |placed| {
            let decoder = Decoder::new(gpu, stream, wire, width, placed)?;
            let memory = decoder.memory();
            Ok((decoder, memory))
        })
    }

    /// Queues the reading of messages of these lengths.
    pub(crate) fn unpack(
        &mut self,
        stream: &Arc<CudaStream>,
        lengths: &[usize],
        dst: &mut DeviceMemory<T>,
    ) -> Result<(), GpuError> {
        match &mut self.work {
            Work::Raw(transfers) => {
                let differs = |(found, expected): (&usize, &usize)| found != expected;
                if let Some(index) = lengths.iter().zip(&self.lengths).position(differs) {
                    let (found, expected) = (lengths[index], self.lengths[index]);
                    let why = BadMessage::Length { found, expected };
                    return Err(GpuError::Message { index, why });
                }
                transfers.run::<u8, T>(stream, self.slots.memory(), dst)
            }
            Work::Coded(decoder) => {
                decoder.decode(stream, lengths, self.slots.memory(), dst)?;
                decoder.report(stream)
            }
        }
    }

    /// The first message that did not decode, when the stream has unpacked them.
    pub(crate) fn bad(&self) -> Option<usize> {
        self.coder()?.reported()
    }
}
