//! 64 unsigned codes of `b` bits each as 8 `b` bytes.
//!
//! The bits of a code are split, from the lowest up, into parts of 64, 32, 16, 8, 4, 2 and 1 bits
//! that add up to `b`. Parts of equal size are stored together. Parts of 8 bits and more are
//! little-endian integers. Smaller ones share bytes: for 4-bit parts, byte `i` of 32 has code `i`
//! in its low half and code `i + 32` in its high half. So every loop shifts 64 codes by the same
//! amount, and common widths are plain arrays.

/// Codes in a block.
pub(super) const BLOCK: usize = 64;

pub(super) const fn bytes(bits: u32) -> usize {
    BLOCK / 8 * bits as usize
}

/// Makes codes and stores them. Codes of 8, 16, 32 and 64 bits need no buffer.
#[inline(always)]
pub(super) fn write(bits: u32, out: &mut [u8], mut code: impl FnMut(usize) -> u64) {
    macro_rules! array {
        ($part:ty) => {{
            let out = out.as_chunks_mut().0.first_chunk_mut::<BLOCK>().expect("room for a block");
            (0..BLOCK).for_each(|i| out[i] = (code(i) as $part).to_le_bytes());
        }};
    }
    match bits {
        8 => array!(u8),
        16 => array!(u16),
        32 => array!(u32),
        64 => array!(u64),
        _ => {
            let mut codes = [0; BLOCK];
            (0..BLOCK).for_each(|i| codes[i] = code(i));
            store(&codes, bits, out);
        }
    }
}

/// Writes codes of at most `bits` bits into [`bytes`] bytes.
#[inline(always)]
fn store(codes: &[u64; BLOCK], bits: u32, out: &mut [u8]) {
    let mut out = &mut out[..bytes(bits)];
    let mut shift = 0;
    macro_rules! whole {
        ($part:ty) => {
            if bits & <$part>::BITS != 0 {
                let (here, rest) = out.split_at_mut(size_of::<$part>() * BLOCK);
                let (here, _) = here.as_chunks_mut::<{ size_of::<$part>() }>();
                for (bytes, code) in here.iter_mut().zip(codes) {
                    *bytes = ((code >> shift) as $part).to_le_bytes();
                }
                (out, shift) = (rest, shift + <$part>::BITS);
            }
        };
    }
    whole!(u64);
    whole!(u32);
    whole!(u16);
    whole!(u8);
    if bits & 7 != 0 {
        let mut rest = codes.map(|code| (code >> shift) as u8);
        for part in [4, 2, 1].into_iter().filter(|part| bits & part != 0) {
            let (here, behind) = out.split_at_mut(bytes(part));
            match part {
                4 => fold::<4>(&rest, here),
                2 => fold::<2>(&rest, here),
                _ => fold::<1>(&rest, here),
            }
            rest.iter_mut().for_each(|code| *code >>= part);
            out = behind;
        }
    }
}

/// Reads codes of `bits` bits from [`bytes`] bytes.
#[inline(always)]
pub(super) fn load(bytes_in: &[u8], bits: u32) -> [u64; BLOCK] {
    let mut from = &bytes_in[..bytes(bits)];
    let mut shift = 0;
    let mut codes = [0; BLOCK];
    macro_rules! whole {
        ($part:ty) => {
            if bits & <$part>::BITS != 0 {
                let (here, rest) = from.split_at(size_of::<$part>() * BLOCK);
                let (here, _) = here.as_chunks::<{ size_of::<$part>() }>();
                for (code, bytes) in codes.iter_mut().zip(here) {
                    *code |= u64::from(<$part>::from_le_bytes(*bytes)) << shift;
                }
                (from, shift) = (rest, shift + <$part>::BITS);
            }
        };
    }
    whole!(u64);
    whole!(u32);
    whole!(u16);
    whole!(u8);
    if bits & 7 != 0 {
        let mut rest = [0; BLOCK];
        let mut at = 0;
        for part in [4, 2, 1].into_iter().filter(|part| bits & part != 0) {
            let (here, behind) = from.split_at(bytes(part));
            match part {
                4 => unfold::<4>(here, at, &mut rest),
                2 => unfold::<2>(here, at, &mut rest),
                _ => unfold::<1>(here, at, &mut rest),
            }
            (from, at) = (behind, at + part);
        }
        for (code, rest) in codes.iter_mut().zip(rest) {
            *code |= u64::from(rest) << shift;
        }
    }
    codes
}

/// Packs the lowest bits of all codes, several to a byte.
#[inline(always)]
fn fold<const PART: usize>(codes: &[u8; BLOCK], out: &mut [u8]) {
    let (mask, pitch) = ((1 << PART) - 1, 8 * PART);
    let mut bytes = [0; BLOCK];
    for (n, codes) in codes.chunks_exact(pitch).enumerate() {
        for (byte, code) in bytes[..pitch].iter_mut().zip(codes) {
            *byte |= (code & mask) << (n * PART);
        }
    }
    out.copy_from_slice(&bytes[..pitch]);
}

/// Unpacks them into the bits of the codes from `at` on.
#[inline(always)]
fn unfold<const PART: usize>(bytes: &[u8], at: u32, codes: &mut [u8; BLOCK]) {
    let (mask, pitch) = ((1 << PART) - 1, 8 * PART);
    for (n, codes) in codes.chunks_exact_mut(pitch).enumerate() {
        for (code, byte) in codes.iter_mut().zip(&bytes[..pitch]) {
            *code |= ((byte >> (n * PART)) & mask) << at;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_every_width_come_back() {
        for bits in 0..=64 {
            let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
            let codes: [u64; BLOCK] = std::array::from_fn(|i| {
                (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(i as u32) & mask
            });
            let mut out = [0xA5; 8 * BLOCK + 1];
            store(&codes, bits, &mut out);
            assert_eq!(load(&out, bits), codes, "{bits} bits");
            assert!(out[bytes(bits)..].iter().all(|byte| *byte == 0xA5), "{bits} bits");
        }
    }
}
