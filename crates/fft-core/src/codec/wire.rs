//! The representation of messages.
//!
//! Each wire is described by its [`Traits`], and [`Wire::codec`] makes its scheme. A new wire needs
//! a variant, a name and its traits here, and a scheme. If devices have no kernels for a wire, they
//! send it through the host.

use std::any::Any;

use super::bits::Bits;
use super::codec::Codec;
use super::frame::{Frame, Scheme};
use super::lossless::Lossless;
use super::raw::Raw;
use super::rounded::{Format, Rounded};
use super::tolerance::{self, Tolerance};
use crate::base::named::{Name, Named, Number, text};
use crate::base::{self, Error, Precision, Real};

/// The representation of numbers in messages, by default lossless.
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
    /// 32-bit numbers; each 256 of them share a power-of-two scale. Single precision is raw.
    F32,
    /// 16-bit numbers with 11 significant bits, scaled likewise.
    F16,
    /// 16-bit numbers with 8 significant bits, scaled likewise.
    Bf16,
    /// Explicit mantissa bits, 0 to 52, with the full exponent. Raw if the type has no more.
    Mantissa(u8),
    /// Integers of this number of bits, 2 to 52, with a step per block of 64 reals. The error is at
    /// most half a step. Single precision with more than 31 bits is raw.
    Bits(u8),
    /// Integers in units of a given step, wrong by at most half of it, as wide as each block needs.
    Tolerance,
    /// Lossless compression by Zstandard: bytes of equal significance together.
    Lossless,
}

/// The traits of a wire.
struct Traits {
    name: Name,
    /// Its number in headers. Raw messages have no header.
    code: u8,
    /// Whether numbers may change.
    is_lossy: bool,
    /// Which measured rate it has.
    rate: Option<CodecRate>,
    /// Bits of a number in a message.
    bits: fn(&Reals) -> f64,
}

/// The measured rates of codecs ([`Machine::encode`](crate::Machine::encode)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CodecRate {
    Rounded,
    Bits,
    Tolerance,
    Lossless,
}

/// The numbers of a message.
struct Reals {
    /// Bits in memory.
    full: f64,
    /// Bits of sign and exponent.
    exponent: f64,
    /// The number in the name of the wire.
    parameter: f64,
    tolerance: Option<base::Tolerance>,
}

// Not generic, so that other crates do not compile the codecs.

fn single(wire: Wire) -> Box<dyn Codec<f32>> {
    wire.codec_of()
}

fn double(wire: Wire) -> Box<dyn Codec<f64>> {
    wire.codec_of()
}

impl Wire {
    /// All wires, with one number of each that has one.
    pub const ALL: [Self; 8] = [
        Self::Raw,
        Self::F32,
        Self::F16,
        Self::Bf16,
        Self::Mantissa(40),
        Self::Bits(16),
        Self::Tolerance,
        Self::Lossless,
    ];

    fn traits(self) -> Traits {
        let rounded = Traits {
            name: Name::plain(""),
            code: 0,
            is_lossy: true,
            rate: Some(CodecRate::Rounded),
            bits: |reals| reals.full,
        };
        match self {
            Self::Raw => {
                Traits { name: Name::plain("raw"), is_lossy: false, rate: None, ..rounded }
            }
            Self::F32 => Traits { name: Name::plain("f32"), code: 1, bits: |_| 32.0, ..rounded },
            Self::F16 => Traits { name: Name::plain("f16"), code: 2, bits: |_| 16.0, ..rounded },
            Self::Bf16 => Traits { name: Name::plain("bf16"), code: 3, bits: |_| 16.0, ..rounded },
            Self::Mantissa(bits) => Traits {
                name: Name::numbered("mantissa:", bits, 0..=52),
                code: 4,
                bits: |reals| reals.exponent + reals.parameter,
                ..rounded
            },
            Self::Bits(bits) => Traits {
                name: Name::numbered("bits:", bits, 2..=52),
                code: 5,
                rate: Some(CodecRate::Bits),
                // 16 bits more per block of 64.
                bits: |reals| reals.parameter + 0.25,
                ..rounded
            },
            Self::Tolerance => Traits {
                name: Name::plain("tolerance"),
                code: 6,
                rate: Some(CodecRate::Tolerance),
                bits: |reals| reals.tolerance.map_or(reals.full, bits_of_tolerance),
                ..rounded
            },
            Self::Lossless => Traits {
                name: Name::plain("lossless"),
                code: 7,
                is_lossy: false,
                rate: Some(CodecRate::Lossless),
                bits: |reals| 0.9 * reals.full,
            },
        }
    }

    fn codec_of<T: Real>(self) -> Box<dyn Codec<T>> {
        if let Err(error) = self.check() {
            panic!("{error}");
        }
        match self {
            Self::Raw => Box::new(Raw),
            Self::F32 => self.frame(Rounded(Format::F32)),
            Self::F16 => self.frame(Rounded(Format::F16)),
            Self::Bf16 => self.frame(Rounded(Format::Bf16)),
            Self::Mantissa(bits) => self.frame(Rounded(Format::Mantissa(bits.into()))),
            Self::Bits(bits) => self.frame(Bits::new(bits.into())),
            Self::Tolerance => self.frame(Tolerance),
            Self::Lossless => self.frame(Lossless::default()),
        }
    }

    fn frame<T: Real>(self, scheme: impl Scheme<T> + 'static) -> Box<dyn Codec<T>> {
        Box::new(Frame::new(self.code(), scheme))
    }

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
        let name = self.traits().name;
        match &name.number {
            Some(Number { value, range }) if !range.contains(value) => {
                Err(Error::argument(Self::WHAT, self, name.listed()))
            }
            _ => Ok(()),
        }
    }

    /// Whether numbers may change.
    pub fn is_lossy(self) -> bool {
        self.traits().is_lossy
    }

    /// A unique number of this wire: the number in headers, combined with the number in its name.
    pub fn code(self) -> u64 {
        let Traits { code, name, .. } = self.traits();
        u64::from(code) << 8 | name.number.map_or(0, |number| number.value.into())
    }

    pub(crate) fn rate(self) -> Option<CodecRate> {
        self.traits().rate
    }

    /// The share of bits that messages have, for uncorrelated numbers: smooth data takes less.
    pub(crate) fn share(self, precision: Precision, tolerance: Option<base::Tolerance>) -> f64 {
        let Traits { name, bits, .. } = self.traits();
        let full = 8.0 * precision.bytes() as f64;
        let exponent = if precision == Precision::F64 { 12.0 } else { 9.0 };
        let parameter = name.number.map_or(0.0, |number| number.value.into());
        let bits = bits(&Reals { full, exponent, parameter, tolerance });
        (bits / full).clamp(1.0 / full, 1.0)
    }
}

/// Shannon's bound log₂(1/e) + ½log₂(reshapes), and an overhead.
///
/// Not inline, because compilers would take the logarithm before they test whether there is a
/// tolerance, and valgrind would report an uninitialised number.
#[inline(never)]
fn bits_of_tolerance(tolerance: base::Tolerance) -> f64 {
    let strict = if tolerance.is_strict() { 1.7 } else { 0.0 };
    2.1 + strict - tolerance.value().log2()
}

impl Named for Wire {
    const WHAT: &'static str = "wire";

    fn all() -> &'static [Self] {
        &Self::ALL
    }

    fn full_name(self) -> Name {
        self.traits().name
    }

    fn with_number(self, number: u8) -> Self {
        match self {
            Self::Mantissa(_) => Self::Mantissa(number),
            Self::Bits(_) => Self::Bits(number),
            other => other,
        }
    }
}

text!(Wire);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        let numbers = |wire: Wire| match wire.full_name().number {
            Some(Number { range, .. }) => range.map(|number| wire.with_number(number)).collect(),
            None => vec![wire],
        };
        let all: Vec<_> = Wire::ALL.into_iter().flat_map(numbers).collect();
        for (n, wire) in all.iter().enumerate() {
            assert_eq!(wire.to_string().parse(), Ok(*wire));
            assert!(all[..n].iter().all(|other| other.code() != wire.code()));
        }
    }

    #[test]
    fn what_cannot_be_had_is_an_error_with_both_values() {
        let error = |name: &str| name.parse::<Wire>().unwrap_err().to_string();
        let all = "raw, f32, f16, bf16, mantissa:0 to mantissa:52, bits:2 to bits:52, tolerance, lossless";
        assert_eq!(error("bits:1"), format!("wire: found bits:1, expected one of {all}"));
        assert!(error("zip").starts_with("wire: found zip, expected one of raw, f32,"));
        let error = Wire::Mantissa(53).check().unwrap_err().to_string();
        assert_eq!(error, "wire: found mantissa:53, expected mantissa:0 to mantissa:52");
    }
}
