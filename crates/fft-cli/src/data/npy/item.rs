//! How files store numbers, and how these become the numbers of a transform.

use std::fmt;

use half::f16;

use super::Dtype;

/// An element of a file: one number, or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    number: Number,
    complex: bool,
    big_endian: bool,
}

/// Integers with their bytes, and floating-point numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    Bool,
    Signed(usize),
    Unsigned(usize),
    Half,
    Single,
    Double,
}

/// The types that a file may have.
pub(super) const KNOWN: &str = "b1, i1 to i8, u1 to u8, f2, f4, f8, c8 or c16";

impl Item {
    /// The element that is stored as it is in memory.
    pub(super) const fn plain(dtype: Dtype) -> Self {
        let number = match dtype {
            Dtype::F32 | Dtype::C64 => Number::Single,
            Dtype::F64 | Dtype::C128 => Number::Double,
        };
        Self { number, complex: dtype.is_complex(), big_endian: false }
    }

    /// Of NumPy's name: `<f8`, `>i4`, `|b1`.
    pub(super) fn parse(descr: &str) -> Option<Self> {
        let (number, complex) = match descr.get(1..)? {
            "b1" => (Number::Bool, false),
            "i1" => (Number::Signed(1), false),
            "i2" => (Number::Signed(2), false),
            "i4" => (Number::Signed(4), false),
            "i8" => (Number::Signed(8), false),
            "u1" => (Number::Unsigned(1), false),
            "u2" => (Number::Unsigned(2), false),
            "u4" => (Number::Unsigned(4), false),
            "u8" => (Number::Unsigned(8), false),
            "f2" => (Number::Half, false),
            "f4" => (Number::Single, false),
            "f8" => (Number::Double, false),
            "c8" => (Number::Single, true),
            "c16" => (Number::Double, true),
            _ => return None,
        };
        let big_endian = match &descr[..1] {
            ">" => true,
            "<" => false,
            "|" if number.bytes() == 1 => false,
            _ => return None,
        };
        Some(Self { number, complex, big_endian })
    }

    /// The type that it has in memory: integers become double precision, as in NumPy and SciPy.
    pub(super) const fn dtype(self) -> Dtype {
        match (self.number, self.complex) {
            (Number::Half | Number::Single, false) => Dtype::F32,
            (Number::Half | Number::Single, true) => Dtype::C64,
            (_, false) => Dtype::F64,
            (_, true) => Dtype::C128,
        }
    }

    pub(super) fn bytes(self) -> usize {
        self.number.bytes() * if self.complex { 2 } else { 1 }
    }

    pub(super) fn is_plain(self) -> bool {
        self == Self::plain(self.dtype())
    }

    /// Turns the bytes of a file into numbers of single precision.
    pub(super) fn to_f32(self, bytes: &[u8], out: &mut [f32]) {
        let big = self.big_endian;
        match self.number {
            Number::Half => each(bytes, big, out, |b| f16::from_le_bytes(b).to_f32()),
            _ => each(bytes, big, out, f32::from_le_bytes),
        }
    }

    /// Turns the bytes of a file into numbers of double precision; long integers are rounded.
    pub(super) fn to_f64(self, bytes: &[u8], out: &mut [f64]) {
        let big = self.big_endian;
        match self.number {
            Number::Bool => each(bytes, big, out, |[b]| f64::from(u8::from(b != 0))),
            Number::Signed(1) => each(bytes, big, out, |b| i8::from_le_bytes(b).into()),
            Number::Signed(2) => each(bytes, big, out, |b| i16::from_le_bytes(b).into()),
            Number::Signed(4) => each(bytes, big, out, |b| i32::from_le_bytes(b).into()),
            Number::Signed(_) => each(bytes, big, out, |b| i64::from_le_bytes(b) as f64),
            Number::Unsigned(1) => each(bytes, big, out, |b| u8::from_le_bytes(b).into()),
            Number::Unsigned(2) => each(bytes, big, out, |b| u16::from_le_bytes(b).into()),
            Number::Unsigned(4) => each(bytes, big, out, |b| u32::from_le_bytes(b).into()),
            Number::Unsigned(_) => each(bytes, big, out, |b| u64::from_le_bytes(b) as f64),
            _ => each(bytes, big, out, f64::from_le_bytes),
        }
    }
}

impl Number {
    const fn bytes(self) -> usize {
        match self {
            Self::Bool => 1,
            Self::Signed(bytes) | Self::Unsigned(bytes) => bytes,
            Self::Half => 2,
            Self::Single => 4,
            Self::Double => 8,
        }
    }
}

fn each<const N: usize, T>(
    bytes: &[u8],
    big_endian: bool,
    out: &mut [T],
    value: impl Fn([u8; N]) -> T,
) {
    for (place, bytes) in out.iter_mut().zip(bytes.chunks_exact(N)) {
        let mut bytes: [u8; N] = bytes.try_into().expect("chunks are as long");
        if big_endian {
            bytes.reverse();
        }
        *place = value(bytes);
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = match self.number {
            Number::Bool => 'b',
            Number::Signed(_) => 'i',
            Number::Unsigned(_) => 'u',
            _ if self.complex => 'c',
            _ => 'f',
        };
        let order = match (self.bytes(), self.big_endian) {
            (1, _) => '|',
            (_, true) => '>',
            (_, false) => '<',
        };
        write!(f, "{order}{letter}{}", self.bytes())
    }
}
