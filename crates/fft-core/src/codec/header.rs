//! The header of 8 bytes.

use super::codec::BadMessage;

pub(super) const HEADER: usize = 8;

/// The version of the format in `docs/wire.md`.
const VERSION: u8 = 2;

/// The fields of a header, all of which the receiver knows in advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    /// The number and the bits of the wire ([`Wire::code`](super::Wire::code)).
    pub(super) code: u64,
    /// Bytes of a real number.
    pub(super) real: u8,
    /// Reals per element.
    pub(super) width: u8,
    pub(super) elements: usize,
}

pub(super) fn write(known: Known, message: &mut [u8]) {
    let Known { code, real, width, elements } = known;
    let [bits, wire, ..] = code.to_le_bytes();
    message[..4].copy_from_slice(&[VERSION, wire, bits, width << 4 | real]);
    message[4..8].copy_from_slice(&(elements as u32).to_le_bytes());
}

/// Compares a header with the expected fields and returns the body.
pub(super) fn read(known: Known, message: &[u8]) -> Result<&[u8], BadMessage> {
    let Some((header, body)) = message.split_first_chunk::<HEADER>() else {
        return Err(BadMessage::Length { found: message.len(), expected: HEADER });
    };
    let Known { code, real, width, elements } = known;
    let [bits, wire, ..] = code.to_le_bytes();
    let low = u32::from_le_bytes([0, 1, 2, 3].map(|i| header[4 + i]));
    for (field, found, expected) in [
        ("format version", header[0].into(), VERSION.into()),
        ("wire", header[1].into(), wire.into()),
        ("bits", header[2].into(), bits.into()),
        ("reals per element", u64::from(header[3] >> 4), width.into()),
        ("bytes per real", u64::from(header[3] & 15), real.into()),
        ("elements", low.into(), (elements as u32).into()),
    ] {
        if found != expected {
            return Err(BadMessage::Header { field, found, expected });
        }
    }
    Ok(body)
}
