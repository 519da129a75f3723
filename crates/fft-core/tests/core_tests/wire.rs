//! What the wires promise, against a decoder that shares no code with them.

mod data;
mod golden;
mod oracle;
mod promises;
mod refusals;
mod special;

use fft_core::{BadMessage, Codec, Packed, Real, Transfer, Wire};

/// All kinds of wires, with a step for those that want one.
const WIRES: [(Wire, f64); 22] = [
    (Wire::F32, 0.0),
    (Wire::F16, 0.0),
    (Wire::Bf16, 0.0),
    (Wire::Mantissa(0), 0.0),
    (Wire::Mantissa(7), 0.0),
    (Wire::Mantissa(20), 0.0),
    (Wire::Mantissa(23), 0.0),
    (Wire::Mantissa(40), 0.0),
    (Wire::Mantissa(52), 0.0),
    (Wire::Bits(2), 0.0),
    (Wire::Bits(5), 0.0),
    (Wire::Bits(8), 0.0),
    (Wire::Bits(15), 0.0),
    (Wire::Bits(16), 0.0),
    (Wire::Bits(31), 0.0),
    (Wire::Bits(32), 0.0),
    (Wire::Bits(52), 0.0),
    (Wire::Tolerance, 0.3),
    (Wire::Tolerance, 1e-3),
    (Wire::Tolerance, 1e-12),
    (Wire::Tolerance, 0.0),
    (Wire::Lossless, 0.0),
];

/// A message of a whole array, in memory of exactly the length that it may need.
fn pack<T: Real>(codec: &dyn Codec<T>, x: &[T], width: usize, step: f64) -> (Vec<u8>, Packed) {
    let room = codec.fixed(x.len() / width, width).unwrap_or(codec.bound(x.len()));
    let mut message = vec![0xA5; room];
    let packed = codec.pack(x, &Transfer::run_of(x.len() / width), width, step, &mut message);
    message.truncate(packed.bytes);
    (message, packed)
}

fn unpack<T: Real>(
    codec: &dyn Codec<T>,
    message: &[u8],
    reals: usize,
    width: usize,
) -> Result<Vec<T>, BadMessage> {
    let mut x = vec![T::of(-777.0); reals];
    codec.unpack(message, &Transfer::run_of(reals / width), width, &mut x)?;
    Ok(x)
}

/// The bits of numbers.
fn words<T: Real>(x: &[T]) -> Vec<u64> {
    match bytemuck::try_cast_slice::<T, u64>(x) {
        Ok(words) if size_of::<T>() == 8 => words.to_vec(),
        _ => bytemuck::cast_slice::<T, u32>(x).iter().map(|word| u64::from(*word)).collect(),
    }
}
