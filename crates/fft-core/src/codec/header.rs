//! The first 32 bytes of a message.

use super::BadMessage;

/// Bytes of a header.
pub(super) const HEADER: usize = 32;

/// The version of the format, which `docs/wire.md` describes.
const VERSION: u8 = 1;

/// The number of a wire. 0 is none: raw messages have no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    F32 = 1,
    F16 = 2,
    Bf16 = 3,
    Mantissa = 4,
    Bits = 5,
    Tolerance = 6,
    Lossless = 7,
}

/// What a receiver knows before it looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) kind: Kind,
    /// The wire's number of bits, or 0.
    pub(super) bits: u8,
    /// Bytes of a real number in memory.
    pub(super) real: u8,
    /// Reals per element.
    pub(super) width: u8,
    pub(super) elements: usize,
}

/// What it learns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Told {
    /// The body is the numbers as they are.
    pub(super) raw: bool,
    pub(super) step: f64,
}

/// Writes a header to the front of a message that will have `total` bytes.
pub(super) fn write(known: Known, told: Told, total: usize, message: &mut [u8]) {
    let Known { kind, bits, real, width, elements } = known;
    message[..8].copy_from_slice(&[
        VERSION,
        kind as u8,
        bits,
        width << 4 | real,
        told.raw.into(),
        0,
        0,
        0,
    ]);
    message[8..16].copy_from_slice(&(elements as u64).to_le_bytes());
    message[16..24].copy_from_slice(&(total as u64).to_le_bytes());
    message[24..32].copy_from_slice(&told.step.to_bits().to_le_bytes());
}

/// Reads a header and compares it with what is known, byte by byte, and with the length of the message.
pub(super) fn read(known: Known, message: &[u8]) -> Result<Told, BadMessage> {
    let found = message.len();
    let Some(header) = message.first_chunk::<HEADER>() else {
        return Err(BadMessage::Length { found, expected: HEADER });
    };
    let Known { kind, bits, real, width, elements } = known;
    let flags = header[4];
    let word = |at: usize| {
        u64::from_le_bytes(*header[at..].first_chunk().expect("a header has four words"))
    };
    for (field, found, expected) in [
        ("format version", header[0].into(), VERSION.into()),
        ("wire", header[1].into(), kind as u64),
        ("bits", header[2].into(), bits.into()),
        ("reals per element", u64::from(header[3] >> 4), width.into()),
        ("bytes per real", u64::from(header[3] & 15), real.into()),
        ("flags", flags.into(), (flags & 1).into()),
        ("reserved bytes", word(0) >> 40, 0),
        ("elements", word(8), elements as u64),
    ] {
        if found != expected {
            return Err(BadMessage::Header { field, found, expected });
        }
    }
    if word(16) != found as u64 {
        let expected = usize::try_from(word(16)).unwrap_or(usize::MAX);
        return Err(BadMessage::Length { found, expected });
    }
    Ok(Told { raw: flags == 1, step: f64::from_bits(word(24)) })
}
