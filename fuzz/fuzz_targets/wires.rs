//! Decoders of messages: whatever arrives, the result is numbers or an error.
#![no_main]

use fft_core::{Codec, Real, Transfer, Wire};
use libfuzzer_sys::fuzz_target;

fn wire(number: u8, bits: u8) -> Wire {
    match number % 8 {
        0 => Wire::Raw,
        1 => Wire::F32,
        2 => Wire::F16,
        3 => Wire::Bf16,
        4 => Wire::Mantissa(bits.min(52)),
        5 => Wire::Bits((bits + 2).min(52)),
        6 => Wire::Tolerance,
        _ => Wire::Lossless,
    }
}

fn decode<T: Real>(wire: Wire, elements: usize, width: usize, message: &[u8]) {
    if wire.check().is_err() {
        return;
    }
    let codec: Box<dyn Codec<T>> = wire.codec();
    // As slots do, it begins at a multiple of the size of numbers.
    let mut words = vec![0u64; message.len().div_ceil(8)];
    let slot = &mut bytemuck::cast_slice_mut(&mut words)[..message.len()];
    slot.copy_from_slice(message);
    let message = &*slot;
    let mut numbers = vec![T::of(0.0); elements * width];
    let found = codec.unpack(message, &Transfer::run_of(elements), width, &mut numbers);
    // A codec with random access takes a part of a longer message.
    if let Some(expected) = codec.fixed(elements, width).filter(|_| !codec.random_access()) {
        assert!(found.is_err() || message.len() == expected);
    }
}

// The wire; precision, width and bits of the wire; elements; the message.
fuzz_target!(|data: &[u8]| {
    let [number, form, elements, message @ ..] = data else { return };
    let (wire, width) = (wire(*number, form >> 2), 1 + usize::from(form >> 1 & 1));
    match form & 1 {
        0 => decode::<f32>(wire, (*elements).into(), width, message),
        _ => decode::<f64>(wire, (*elements).into(), width, message),
    }
});
