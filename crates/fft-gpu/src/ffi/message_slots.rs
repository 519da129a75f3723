//! Messages in slots: made where they are to be, whoever's memory that is, and read where they came.
//!
//! Kernels are told addresses instead of places in one buffer, so that one launch serves slots in many memories.

use std::any::Any;
use std::sync::Arc;

use cudarc::driver::CudaStream;
use fft_core::{BadMessage, Packed, Transfer, Wire};

use super::memory::{DeviceMemory, Slot};
use crate::base::{Gpu, GpuError, GpuReal};
use crate::kernel::{Decoder, Encoder, Incoming, Move, Outgoing, Transfers};

/// Outgoing messages, one launch.
pub(crate) struct Outbox<T> {
    maker: Maker<T>,
    width: usize,
    everywhere: DeviceMemory<u8>,
    _keepers: Vec<Arc<dyn Any + Send + Sync>>,
}

enum Maker<T> {
    Raw(Box<Transfers>),
    Coded(Box<Encoder<T>>),
}

/// Incoming messages, one launch.
pub(crate) struct Inbox<T> {
    reader: Reader<T>,
    everywhere: DeviceMemory<u8>,
    _keepers: Vec<Arc<dyn Any + Send + Sync>>,
}

enum Reader<T> {
    Raw(Box<Transfers>, Vec<usize>),
    Coded(Box<Decoder<T>>),
}

/// Makes sure that slots have room.
fn check(parts: &[(&Transfer, Slot)], bound: impl Fn(usize) -> usize) -> Result<(), GpuError> {
    for (part, slot) in parts {
        let (found, expected) = (slot.bytes(), bound(part.elements()));
        if found < expected {
            return Err(GpuError::Short { what: "a slot", found, expected });
        }
    }
    Ok(())
}

fn keepers(parts: &[(&Transfer, Slot)]) -> Vec<Arc<dyn Any + Send + Sync>> {
    parts.iter().map(|(_, slot)| slot.keeper.clone()).collect()
}

impl<T: GpuReal> Outbox<T> {
    /// Prepares messages of boxes, each in its slot.
    ///
    /// # Errors
    /// As [`Encoder::new`] and [`Transfers::new`]; [`GpuError::Short`] for a slot without room.
    pub(crate) fn new(
        gpu: &Gpu,
        stream: &Arc<CudaStream>,
        wire: Wire,
        width: usize,
        parts: &[(&Transfer, Slot)],
    ) -> Result<Self, GpuError> {
        let element = width * size_of::<T>();
        let maker = match wire {
            Wire::Raw => {
                check(parts, |elements| elements * element)?;
                let to = |slot: &Slot| slot.address() / element;
                let redistribution: Vec<_> = parts
                    .iter()
                    .map(|(transfer, slot)| Move { transfer, from: 0, to: to(slot) })
                    .collect();
                Maker::Raw(Box::new(Transfers::new(gpu, stream, element, &redistribution)?))
            }
            _ => {
                let outgoing: Vec<_> = parts
                    .iter()
                    .map(|(gather, slot)| Outgoing { gather, place: slot.address() })
                    .collect();
                let encoder = Encoder::new(gpu, stream, wire, width, &outgoing)?;
                check(parts, |elements| encoder.bound(elements))?;
                Maker::Coded(Box::new(encoder))
            }
        };
        // SAFETY: it is used below alone, by launches that write to the slots, which are held, and were found to have room.
        let everywhere = unsafe { DeviceMemory::everywhere(stream) };
        Ok(Self { maker, width, everywhere, _keepers: keepers(parts) })
    }

    /// Makes the messages; returns when that is queued.
    ///
    /// # Errors
    /// As [`Encoder::encode`].
    pub(crate) fn make(
        &mut self,
        stream: &Arc<CudaStream>,
        src: &DeviceMemory<T>,
        step: f64,
    ) -> Result<(), GpuError> {
        match &mut self.maker {
            Maker::Raw(transfers) => transfers.run::<T, u8>(stream, src, &mut self.everywhere),
            Maker::Coded(encoder) => {
                encoder.encode(stream, src, step, &mut self.everywhere)?;
                encoder.report(stream)
            }
        }
    }

    /// Bytes of memory held beside the messages.
    pub(crate) fn memory(&self) -> usize {
        match &self.maker {
            Maker::Raw(transfers) => transfers.memory(),
            Maker::Coded(encoder) => encoder.memory(),
        }
    }

    /// Real numbers of an element.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// What became of messages that are coded, when the device has come so far.
    pub(crate) fn packed(&self) -> impl Iterator<Item = Packed> {
        let encoder = match &self.maker {
            Maker::Raw(_) => None,
            Maker::Coded(encoder) => Some(encoder),
        };
        encoder.into_iter().flat_map(|encoder| encoder.reported())
    }
}

impl<T: GpuReal> Inbox<T> {
    /// Prepares to read messages, each in its slot.
    ///
    /// # Errors
    /// As [`Decoder::new`] and [`Transfers::new`]; [`GpuError::Short`] for a slot that is too short.
    pub(crate) fn new(
        gpu: &Gpu,
        stream: &Arc<CudaStream>,
        wire: Wire,
        width: usize,
        parts: &[(&Transfer, Slot)],
    ) -> Result<Self, GpuError> {
        let element = width * size_of::<T>();
        let reader = match wire {
            Wire::Raw => {
                check(parts, |elements| elements * element)?;
                let from = |slot: &Slot| slot.address() / element;
                let redistribution: Vec<_> = parts
                    .iter()
                    .map(|(transfer, slot)| Move { transfer, from: from(slot), to: 0 })
                    .collect();
                let lengths = parts.iter().map(|(part, _)| part.elements() * element).collect();
                Reader::Raw(
                    Box::new(Transfers::new(gpu, stream, element, &redistribution)?),
                    lengths,
                )
            }
            _ => {
                let incoming: Vec<_> = parts
                    .iter()
                    .map(|(scatter, slot)| Incoming { scatter, place: slot.address() })
                    .collect();
                let decoder = Decoder::new(gpu, stream, wire, width, &incoming)?;
                check(parts, |elements| decoder.bound(elements))?;
                Reader::Coded(Box::new(decoder))
            }
        };
        // SAFETY: it is used below alone, by launches that read the slots, which are held, and were found to be long enough.
        let everywhere = unsafe { DeviceMemory::everywhere(stream) };
        Ok(Self { reader, everywhere, _keepers: keepers(parts) })
    }

    /// Reads the messages, which are so long; returns when that is queued.
    ///
    /// # Errors
    /// As [`Decoder::decode`].
    pub(crate) fn read(
        &mut self,
        stream: &Arc<CudaStream>,
        lengths: &[usize],
        dst: &mut DeviceMemory<T>,
    ) -> Result<(), GpuError> {
        match &mut self.reader {
            Reader::Raw(transfers, expected) => {
                let differs = |(found, expected): (&usize, &usize)| found != expected;
                if let Some(index) = lengths.iter().zip(&*expected).position(differs) {
                    let (found, expected) = (lengths[index], expected[index]);
                    return Err(GpuError::Message {
                        index,
                        why: BadMessage::Length { found, expected },
                    });
                }
                transfers.run::<u8, T>(stream, &self.everywhere, dst)
            }
            Reader::Coded(decoder) => {
                decoder.decode(stream, lengths, &self.everywhere, dst)?;
                decoder.report(stream)
            }
        }
    }

    /// Bytes of memory held beside the messages.
    pub(crate) fn memory(&self) -> usize {
        match &self.reader {
            Reader::Raw(transfers, _) => transfers.memory(),
            Reader::Coded(decoder) => decoder.memory(),
        }
    }

    /// The first message that did not decode, when the device has come so far.
    pub(crate) fn bad(&self) -> Option<usize> {
        match &self.reader {
            Reader::Raw(..) => None,
            Reader::Coded(decoder) => decoder.reported(),
        }
    }
}
