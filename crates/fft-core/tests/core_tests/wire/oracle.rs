//! A decoder written from `docs/wire.md`: one number at a time, one bit at a time.

use fft_core::Real;

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    /// An integer of this number of bytes.
    fn at(&self, place: usize, bytes: usize) -> u64 {
        (0..bytes).rev().fold(0, |word, i| word << 8 | u64::from(self.0[place + i]))
    }

    /// Code `i` of the block at this place.
    fn code(&self, place: usize, bits: usize, i: usize) -> u64 {
        let (mut place, mut shift, mut code) = (place, 0, 0);
        for part in [64, 32, 16, 8, 4, 2, 1] {
            if bits & part == 0 {
                continue;
            }
            if part >= 8 {
                code |= self.at(place + i * part / 8, part / 8) << shift;
            } else {
                let m = 8 * part;
                let byte = u64::from(self.0[place + i % m]);
                code |= (byte >> (i / m * part) & ((1 << part) - 1)) << shift;
            }
            (place, shift) = (place + 8 * part, shift + part);
        }
        code
    }
}

/// The bits of `reals` numbers in a message.
pub(crate) fn decode<T: Real>(message: &[u8], reals: usize) -> Vec<u64> {
    let read = Reader(message);
    if message.len() == reals * size_of::<T>() {
        return (0..reals).map(|i| read.at(i * size_of::<T>(), size_of::<T>())).collect();
    }
    let (version, wire, bits) = (message[0], message[1], usize::from(message[2]));
    let (size, width) = (usize::from(message[3] & 15), usize::from(message[3] >> 4));
    let (elements, total) = (read.at(4, 4) as usize, message.len());
    assert_eq!((version, size, elements * width), (2, size_of::<T>(), reals));
    let word = |x: f64| super::words(&[T::of(x)])[0];
    // An integer times a step, within the range of the numbers.
    let most = if size == 4 { f32::MAX.into() } else { f64::MAX };
    let cut = |x: f64| word(x.clamp(-most, most));
    let padded = |bytes: usize| bytes.div_ceil(8) * 8;
    match wire {
        1..=3 => {
            let table = padded(2 * reals.div_ceil(256));
            let format = [(8, 23), (5, 10), (8, 7)][usize::from(wire) - 1];
            let bits = 1 + format.0 + format.1;
            let number = |i: usize| {
                let scale = read.at(8 + i / 256 * 2, 2) as i16;
                let code = read.code(8 + table + i / 64 * 8 * bits, bits, i % 64);
                word(float(code, format) * 2f64.powi(scale.into()))
            };
            (0..reals).map(number).collect()
        }
        4 => {
            let (exponent, mantissa) = if size == 4 { (8, 23) } else { (11, 52) };
            let code = 1 + exponent + bits;
            let number = |i| read.code(8 + i / 64 * 8 * code, code, i % 64) << (mantissa - bits);
            (0..reals).map(number).collect()
        }
        5 => {
            let blocks = elements.div_ceil(64) * width;
            let table = padded(2 * blocks);
            let number = |i: usize| {
                let (element, plane) = (i / width, i % width);
                let block = element / 64 * width + plane;
                let place = 8 + table + 8 * bits * block;
                match read.at(8 + 2 * block, 2) {
                    0 => word(0.0),
                    65535 => {
                        let bits = (bits - 1).max(2);
                        let scale = if bits > 2 { read.at(place + 8 * bits, 2) } else { 0 };
                        match read.code(place, bits, element % 64) {
                            0 => word(f64::NAN),
                            1 => word(f64::NEG_INFINITY),
                            code if code == (1 << bits) - 1 => word(f64::INFINITY),
                            code => {
                                let integer = code as i64 - (1 << (bits - 1));
                                cut(integer as f64 * f64::from_bits(scale << 47))
                            }
                        }
                    }
                    scale => {
                        let code = read.code(place, bits, element % 64) as i64;
                        cut((code - (1 << (bits - 1))) as f64 * f64::from_bits(scale << 47))
                    }
                }
            };
            (0..reals).map(number).collect()
        }
        6 => {
            let blocks = elements.div_ceil(64) * width;
            let step = f64::from_bits(read.at(8, 8));
            let table = (6 * blocks).div_ceil(8);
            let bit = |i: usize| usize::from(message[16 + i / 8] >> (i % 8) & 1);
            let mut place = 16 + padded(table);
            let mut numbers = vec![0; reals];
            for block in 0..blocks {
                let (group, plane) = (block / width, block % width);
                let stored = (0..6).fold(0, |w, i| w | bit(6 * block + i) << i);
                let w = if stored == 63 { 8 * size } else { stored };
                for element in 64 * group..elements.min(64 * (group + 1)) {
                    let code = read.code(place, w, element % 64);
                    numbers[element * width + plane] = match stored {
                        63 => code,
                        0 => word(0.0),
                        _ => word((code as i64 - (1 << (w - 1))) as f64 * step),
                    };
                }
                place += 8 * w;
            }
            assert_eq!(place, total);
            numbers
        }
        7 => {
            let spans = elements.div_ceil(4096);
            let mut place = 8 + 2 * size * spans;
            let mut numbers = vec![0; reals];
            for span in 0..spans {
                let first = span * 4096 * width;
                let here = (reals - first).min(4096 * width);
                for byte in 0..size {
                    let len = read.at(8 + 2 * (span * size + byte), 2) as usize;
                    let from = &message[place..place + len];
                    let plane = if len == here {
                        from.to_vec()
                    } else {
                        zstd::bulk::decompress(from, here).expect("a frame")
                    };
                    assert_eq!(plane.len(), here);
                    for (i, part) in plane.into_iter().enumerate() {
                        numbers[first + i] |= u64::from(part) << (8 * byte);
                    }
                    place += len;
                }
            }
            assert_eq!(place, total);
            numbers
        }
        _ => panic!("wire {wire}"),
    }
}

/// A number of an IEEE format with these numbers of bits for exponent and mantissa.
fn float(code: u64, (exponent, mantissa): (usize, usize)) -> f64 {
    let sign = if code >> (exponent + mantissa) == 1 { -1.0 } else { 1.0 };
    let fraction = (code & ((1 << mantissa) - 1)) as f64 / (1u64 << mantissa) as f64;
    let field = code >> mantissa & ((1 << exponent) - 1);
    let bias = (1 << (exponent - 1)) - 1;
    let magnitude = match field {
        0 => fraction * 2f64.powi(1 - bias),
        field if field == (1 << exponent) - 1 && fraction == 0.0 => f64::INFINITY,
        field if field == (1 << exponent) - 1 => f64::NAN,
        field => (1.0 + fraction) * 2f64.powi(field as i32 - bias),
    };
    sign * magnitude
}
