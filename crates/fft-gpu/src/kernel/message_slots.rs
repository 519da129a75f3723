//! Messages that are encoded into slots, and decoded out of them, wherever slots are.
//!
//! Descriptors hold addresses, so that one launch serves slots in many memories.

use std::sync::Arc;

use cudarc::driver::CudaStream;
use fft_core::{BadMessage, Packed, Transfer, Wire};

use super::decoder::Decoder;
use super::encoder::Encoder;
use super::transfers::Transfers;
use crate::abi::{Move, PlacedTransfer};
use crate::base::{Gpu, GpuError, GpuReal};
use crate::ffi::{DeviceMemory, Slot, SlotMemory};

/// A message and its slot.
pub(crate) type SlotTransfer<'t> = (&'t Transfer, Slot);

/// Outgoing messages, of one launch.
pub(crate) struct Outbox<T> {
    packer: Packer<T>,
    slots: SlotMemory,
}

enum Packer<T> {
    Raw(Box<Transfers>),
    Coded(Box<Encoder<T>>),
}

/// Incoming messages, of one launch.
pub(crate) struct Inbox<T> {
    unpacker: Unpacker<T>,
    slots: SlotMemory,
}

enum Unpacker<T> {
    /// With the lengths of messages.
    Raw(Box<Transfers>, Vec<usize>),
    Coded(Box<Decoder<T>>),
}

/// The slots of messages, each with room for its length.
fn slots(
    stream: &Arc<CudaStream>,
    parts: &[SlotTransfer<'_>],
    bytes: impl Fn(usize) -> usize,
) -> Result<SlotMemory, GpuError> {
    let sized = parts.iter().map(|(part, slot)| (slot, bytes(part.elements())));
    SlotMemory::new(stream, sized)
}

/// The messages with the addresses of their slots.
fn placed<'p>(parts: &'p [SlotTransfer<'p>]) -> Vec<PlacedTransfer<'p>> {
    let place = |(transfer, slot): &'p SlotTransfer<'p>| PlacedTransfer {
        transfer,
        place: slot.at as usize,
    };
    parts.iter().map(place).collect()
}

/// Raw messages: copies into slots, or out of them, of elements of `element` bytes.
fn raw(
    gpu: &Gpu,
    stream: &Arc<CudaStream>,
    element: usize,
    parts: &[SlotTransfer<'_>],
    sends: bool,
) -> Result<(Box<Transfers>, SlotMemory), GpuError> {
    let slots = slots(stream, parts, |elements| elements * element)?;
    let moves: Vec<_> = (parts.iter())
        .map(|(transfer, slot)| match (sends, slot.at as usize / element) {
            (true, to) => Move { transfer, from: 0, to },
            (false, from) => Move { transfer, from, to: 0 },
        })
        .collect();
    Ok((Box::new(Transfers::new(gpu, stream, element, &moves)?), slots))
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
        if wire == Wire::Raw {
            let (transfers, slots) = raw(gpu, stream, width * size_of::<T>(), parts, true)?;
            return Ok(Self { packer: Packer::Raw(transfers), slots });
        }
        let encoder = Encoder::new(gpu, stream, wire, width, &placed(parts))?;
        let slots = slots(stream, parts, |elements| encoder.bound(elements))?;
        Ok(Self { packer: Packer::Coded(Box::new(encoder)), slots })
    }

    /// Queues the messages.
    pub(crate) fn pack(
        &mut self,
        stream: &Arc<CudaStream>,
        src: &DeviceMemory<T>,
        step: f64,
    ) -> Result<(), GpuError> {
        match &mut self.packer {
            Packer::Raw(transfers) => transfers.run::<T, u8>(stream, src, self.slots.memory_mut()),
            Packer::Coded(encoder) => {
                encoder.encode(stream, src, step, self.slots.memory_mut())?;
                encoder.report(stream)
            }
        }
    }

    /// Bytes of memory held beside the messages.
    pub(crate) fn memory(&self) -> usize {
        match &self.packer {
            Packer::Raw(transfers) => transfers.memory(),
            Packer::Coded(encoder) => encoder.memory(),
        }
    }

    /// The outcomes of coded messages, when the stream has packed them.
    pub(crate) fn packed(&self) -> impl Iterator<Item = Packed> {
        let encoder = match &self.packer {
            Packer::Raw(_) => None,
            Packer::Coded(encoder) => Some(encoder),
        };
        encoder.into_iter().flat_map(|encoder| encoder.reported())
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
        if wire == Wire::Raw {
            let element = width * size_of::<T>();
            let (transfers, slots) = raw(gpu, stream, element, parts, false)?;
            let lengths = parts.iter().map(|(part, _)| part.elements() * element).collect();
            return Ok(Self { unpacker: Unpacker::Raw(transfers, lengths), slots });
        }
        let decoder = Decoder::new(gpu, stream, wire, width, &placed(parts))?;
        let slots = slots(stream, parts, |elements| decoder.bound(elements))?;
        Ok(Self { unpacker: Unpacker::Coded(Box::new(decoder)), slots })
    }

    /// Queues the reading of messages of these lengths.
    pub(crate) fn unpack(
        &mut self,
        stream: &Arc<CudaStream>,
        lengths: &[usize],
        dst: &mut DeviceMemory<T>,
    ) -> Result<(), GpuError> {
        match &mut self.unpacker {
            Unpacker::Raw(transfers, expected) => {
                let differs = |(found, expected): (&usize, &usize)| found != expected;
                if let Some(index) = lengths.iter().zip(&*expected).position(differs) {
                    let (found, expected) = (lengths[index], expected[index]);
                    let why = BadMessage::Length { found, expected };
                    return Err(GpuError::Message { index, why });
                }
                transfers.run::<u8, T>(stream, self.slots.memory(), dst)
            }
            Unpacker::Coded(decoder) => {
                decoder.decode(stream, lengths, self.slots.memory(), dst)?;
                decoder.report(stream)
            }
        }
    }

    /// Bytes of memory held beside the messages.
    pub(crate) fn memory(&self) -> usize {
        match &self.unpacker {
            Unpacker::Raw(transfers, _) => transfers.memory(),
            Unpacker::Coded(decoder) => decoder.memory(),
        }
    }

    /// The first message that did not decode, when the stream has unpacked them.
    pub(crate) fn bad(&self) -> Option<usize> {
        match &self.unpacker {
            Unpacker::Raw(..) => None,
            Unpacker::Coded(decoder) => decoder.reported(),
        }
    }
}
