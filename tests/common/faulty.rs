//! A processor that fails when it is told to.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};

use fft_core::{
    BadMessage, Codec, Cpu, CpuFft, Energy, Error, LocalFft, Packed, Processor, Real, Transfer,
};

/// What goes wrong on a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Fault {
    Nothing,
    /// No memory for buffers.
    Buffer,
    /// No memory for tables.
    Tables,
    /// Messages do not decode.
    Message,
    /// The rank panics while it unpacks a message, or transforms what it has fetched.
    Panic,
    /// It panics before it sends its first message.
    PanicEarly,
}

/// A rank's fault, which may be changed while a plan holds the device.
pub(crate) struct Switch(AtomicU8);

impl Switch {
    pub(crate) fn new(fault: Fault) -> Self {
        Self(AtomicU8::new(fault as u8))
    }

    pub(crate) fn set(&self, fault: Fault) {
        self.0.store(fault as u8, Ordering::Relaxed);
    }

    fn is(&self, fault: Fault) -> bool {
        self.0.load(Ordering::Relaxed) == fault as u8
    }
}

/// The processor, with a fault.
pub(crate) struct Faulty<'a, T: Real> {
    pub(crate) cpu: Cpu<T>,
    pub(crate) fault: &'a Switch,
}

impl<T: Real> Processor<T> for Faulty<'_, T> {
    type Memory = [T];
    type Buffer = Vec<T>;
    type Fft = CpuFft<T>;

    fn bytes(memory: &[T]) -> &[u8] {
        Cpu::<T>::bytes(memory)
    }

    fn bytes_mut(memory: &mut [T]) -> &mut [u8] {
        Cpu::<T>::bytes_mut(memory)
    }

    fn memory(bytes: &[u8]) -> &[T] {
        Cpu::<T>::memory(bytes)
    }

    fn memory_mut(bytes: &mut [u8]) -> &mut [T] {
        Cpu::<T>::memory_mut(bytes)
    }

    fn buffer(&self, reals: usize, rank: usize) -> Result<Vec<T>, Error> {
        match self.fault.is(Fault::Buffer) {
            true => Err(Error::Memory { rank, bytes: reals * size_of::<T>() }),
            false => self.cpu.buffer(reals, rank),
        }
    }

    fn reserve_tile(&mut self, reals: usize, rank: usize) -> Result<(), Error> {
        self.cpu.reserve_tile(reals, rank)
    }

    fn tile(&mut self) -> &mut Self::Buffer {
        Processor::tile(&mut self.cpu)
    }

    fn reserve_spare(&mut self, reals: usize, rank: usize) -> Result<(), Error> {
        self.cpu.reserve_spare(reals, rank)
    }

    fn spare(&mut self) -> &mut Self::Buffer {
        self.cpu.spare()
    }

    fn held(&self) -> usize {
        self.cpu.held()
    }

    fn plan_fft(&mut self, shape: &LocalFft, rank: usize) -> Result<CpuFft<T>, Error> {
        match self.fault.is(Fault::Tables) {
            true => Err(Error::Memory { rank, bytes: 1 }),
            false => self.cpu.plan_fft(shape, rank),
        }
    }

    fn fft(&mut self, fft: &CpuFft<T>, blocks: Range<usize>, src: Option<&[T]>, dst: &mut [T]) {
        // Transforms in place come in the middle of an exchange, or after one.
        assert!(src.is_some() || !self.fault.is(Fault::Panic), "a panic on purpose");
        self.cpu.fft(fft, blocks, src, dst);
    }

    fn copy(&mut self, transfer: &Transfer, width: usize, src: &[T], dst: &mut [T]) {
        self.cpu.copy(transfer, width, src, dst);
    }

    fn energy(&mut self, part: &Transfer, width: usize, src: &[T], sum: &mut Energy) {
        self.cpu.energy(part, width, src, sum);
    }

    fn pack(
        &mut self,
        codec: &dyn Codec<T>,
        gather: &Transfer,
        width: usize,
        src: &[T],
        step: f64,
        message: &mut [u8],
    ) -> Packed {
        assert!(!self.fault.is(Fault::PanicEarly), "a panic on purpose");
        self.cpu.pack(codec, gather, width, src, step, message)
    }

    fn unpack(
        &mut self,
        codec: &dyn Codec<T>,
        message: &[u8],
        scatter: &Transfer,
        width: usize,
        dst: &mut [T],
    ) -> Result<(), BadMessage> {
        assert!(!self.fault.is(Fault::Panic), "a panic on purpose");
        match self.fault.is(Fault::Message) {
            true => Err(BadMessage::Length { found: message.len() - 1, expected: message.len() }),
            false => self.cpu.unpack(codec, message, scatter, width, dst),
        }
    }
}
