//! A processor that fails on command.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use fft_core::{Cpu, CpuCall};

/// The fault of a rank.
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
pub(crate) struct Switch(Arc<AtomicU8>);

impl Switch {
    pub(crate) fn new(fault: Fault) -> Self {
        Self(Arc::new(AtomicU8::new(fault as u8)))
    }

    pub(crate) fn set(&self, fault: Fault) {
        self.0.store(fault as u8, Ordering::Relaxed);
    }

    /// The processor, with this fault.
    pub(crate) fn cpu(&self) -> Cpu<f64> {
        let fault = self.0.clone();
        Cpu::failing(move |call| {
            let is = |known| fault.load(Ordering::Relaxed) == known as u8;
            match call {
                CpuCall::Buffer => is(Fault::Buffer),
                CpuCall::Tables => is(Fault::Tables),
                // Transforms in place come in the middle of an exchange, or after one.
                CpuCall::InPlaceFft | CpuCall::Unpack if is(Fault::Panic) => {
                    panic!("a panic on purpose")
                }
                CpuCall::Pack if is(Fault::PanicEarly) => panic!("a panic on purpose"),
                CpuCall::Unpack => is(Fault::Message),
                CpuCall::InPlaceFft | CpuCall::Pack => false,
            }
        })
    }
}
