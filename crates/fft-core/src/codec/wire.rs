//! The representation of messages.

use std::any::Any;
use std::fmt;
use std::str::FromStr;

use super::bits::Bits;
use super::codec::Codec;
use super::frame::Frame;
use super::header::Kind;
use super::lossless::Lossless;
use super::raw::Raw;
use super::rounded::{Format, Rounded};
use super::tolerance::{self, Tolerance};
use crate::base::{Error, Precision, Real};

/// The representation of numbers in messages. By default every bit arrives.
///
/// Errors of lossy wires are relative to the largest number nearby, not to each number. Messages
/// are never longer than their numbers in memory. Their length is known in advance, except with
/// [`Wire::Tolerance`], [`Wire::Lossless`] and `Mantissa(0)`.
///
/// Infinities and NaNs arrive. A block of 64 reals with one is raw with [`Wire::Tolerance`], and
/// one bit narrower with [`Wire::Bits`]. NaNs may lose their payload, zeros their sign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Wire {
    /// Numbers as in memory.
    #[default]
    Raw,
    /// 32-bit numbers, of which 256 share a power-of-two scale. Single precision is raw.
    F32,
    /// 16-bit numbers with 11 significant bits, scaled likewise.
    F16,
    /// 16-bit numbers with 8 significant bits, scaled likewise.
    Bf16,
    /// Explicit mantissa bits, 0 to 52, with the full exponent. Raw if the type has no more.
    Mantissa(u8),
    /// Integers of so many bits, 2 to 52, with a step per block of 64 reals. The error is at most
    /// half a step. Single precision with more than 31 is raw.
    Bits(u8),
    /// Integers in units of a given step, wrong by at most half of it, as wide as each block needs.
    Tolerance,
    /// Lossless compression by Zstandard: bytes of equal significance together.
    Lossless,
}

// Not generic, so that other crates do not compile the codecs.

fn single(wire: Wire) -> Box<dyn Codec<f32>> {
    wire.codec_of()
}

fn double(wire: Wire) -> Box<dyn Codec<f64>> {
    wire.codec_of()
}

impl Wire {
    /// The codec of this representation.
    ///
    /// # Panics
    /// If [`Wire::check`] fails.
    pub fn codec<T: Real>(self) -> Box<dyn Codec<T>> {
        let made: Box<dyn Any> = match T::PRECISION {
            Precision::F32 => Box::new(single(self)),
            Precision::F64 => Box::new(double(self)),
        };
        *made.downcast().expect("the precision names the type")
    }

    fn codec_of<T: Real>(self) -> Box<dyn Codec<T>> {
        if let Err(error) = self.check() {
            panic!("{error}");
        }
        match self {
            Self::Raw => Box::new(Raw),
            Self::F32 => Box::new(Frame::new(Kind::F32, 0, Rounded(Format::F32))),
            Self::F16 => Box::new(Frame::new(Kind::F16, 0, Rounded(Format::F16))),
            Self::Bf16 => Box::new(Frame::new(Kind::Bf16, 0, Rounded(Format::Bf16))),
            Self::Mantissa(bits) => {
                Box::new(Frame::new(Kind::Mantissa, bits, Rounded(Format::Mantissa(bits.into()))))
            }
            Self::Bits(bits) => Box::new(Frame::new(Kind::Bits, bits, Bits::new(bits.into()))),
            Self::Tolerance => Box::new(Frame::new(Kind::Tolerance, 0, Tolerance)),
            Self::Lossless => Box::new(Frame::new(Kind::Lossless, 0, Lossless::default())),
        }
    }

    /// The step of messages for a wanted one ([`Codec::pack`]).
    ///
    /// [`Wire::Tolerance`] in single precision rounds it down to 6 significant bits.
    pub fn step<T: Real>(self, wanted: f64) -> f64 {
        if self == Self::Tolerance { tolerance::step_of::<T>(wanted) } else { wanted }
    }

    /// Checks the number of bits.
    ///
    /// # Errors
    /// [`Error::Argument`] for a number out of range.
    pub fn check(self) -> Result<(), Error> {
        let (bits, range) = match self {
            Self::Mantissa(bits) => (bits, 0..=52),
            Self::Bits(bits) => (bits, 2..=52),
            _ => return Ok(()),
        };
        if range.contains(&bits) {
            return Ok(());
        }
        let expected = format!("from {} to {}", range.start(), range.end());
        Err(Error::argument(format!("bits of the wire {self}"), bits, expected))
    }

    /// Whether numbers may change.
    pub fn is_lossy(self) -> bool {
        !matches!(self, Self::Raw | Self::Lossless)
    }

    /// A unique number of this wire.
    pub fn code(self) -> u64 {
        let (kind, bits) = match self {
            Self::Raw => return 0,
            Self::F32 => (Kind::F32, 0),
            Self::F16 => (Kind::F16, 0),
            Self::Bf16 => (Kind::Bf16, 0),
            Self::Mantissa(bits) => (Kind::Mantissa, bits),
            Self::Bits(bits) => (Kind::Bits, bits),
            Self::Tolerance => (Kind::Tolerance, 0),
            Self::Lossless => (Kind::Lossless, 0),
        };
        (kind as u64) << 8 | u64::from(bits)
    }
}

/// `raw`, `mantissa:40`, `bits:16`, `tolerance`.
impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Raw => f.pad("raw"),
            Self::F32 => f.pad("f32"),
            Self::F16 => f.pad("f16"),
            Self::Bf16 => f.pad("bf16"),
            Self::Mantissa(bits) => f.pad(&format!("mantissa:{bits}")),
            Self::Bits(bits) => f.pad(&format!("bits:{bits}")),
            Self::Tolerance => f.pad("tolerance"),
            Self::Lossless => f.pad("lossless"),
        }
    }
}

/// Parses the names that [`Display`](fmt::Display) writes.
impl FromStr for Wire {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let bits = |prefix| name.strip_prefix(prefix).and_then(|bits| bits.parse().ok());
        let wire = match name {
            "raw" => Self::Raw,
            "f32" => Self::F32,
            "f16" => Self::F16,
            "bf16" => Self::Bf16,
            "tolerance" => Self::Tolerance,
            "lossless" => Self::Lossless,
            _ => {
                let mantissa = bits("mantissa:").map(Self::Mantissa);
                mantissa.or(bits("bits:").map(Self::Bits)).ok_or_else(|| {
                    let all =
                        "raw, f32, f16, bf16, mantissa:0 to 52, bits:2 to 52, tolerance, lossless";
                    Error::argument("wire", name, format!("one of {all}"))
                })?
            }
        };
        wire.check().map(|()| wire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        let plain = [Wire::Raw, Wire::F32, Wire::F16, Wire::Bf16, Wire::Tolerance, Wire::Lossless];
        let all: Vec<_> = (plain.into_iter())
            .chain((0..=52).map(Wire::Mantissa))
            .chain((2..=52).map(Wire::Bits))
            .collect();
        for (n, wire) in all.iter().enumerate() {
            assert_eq!(wire.to_string().parse(), Ok(*wire));
            assert!(all[..n].iter().all(|other| other.code() != wire.code()));
        }
    }

    #[test]
    fn what_cannot_be_had_is_an_error_with_both_values() {
        let error = |name: &str| name.parse::<Wire>().unwrap_err().to_string();
        assert_eq!(error("bits:1"), "bits of the wire bits:1: found 1, expected from 2 to 52");
        assert_eq!(
            error("mantissa:53"),
            "bits of the wire mantissa:53: found 53, expected from 0 to 52"
        );
        assert!(error("zip").starts_with("wire: found zip, expected one of raw, f32,"));
        assert!(error("bits:300").starts_with("wire: found bits:300"));
    }
}
