//! Scalar types.

use std::fmt::Debug;

use bytemuck::Pod;
use num_complex::Complex;

use super::named::names;

/// `f32` or `f64`.
pub trait Real:
    Pod + fft_lines::Number + Debug + Default + PartialOrd + Send + Sync + sealed::Sealed
{
    /// Its format.
    const PRECISION: Precision;
    /// The distance from 1 to the next larger number.
    const EPSILON: f64;
    /// Rounds to this precision.
    fn of(value: f64) -> Self;
    /// Converts to `f64`.
    fn as_f64(self) -> f64;
}

/// The type of a grid point: a [`Real`] or a complex number of two.
pub trait Element: Pod + Debug + Default + Send + Sync + sealed::Sealed {
    /// Its real type.
    type Real: Real;
    /// Reals per element: 1 or 2.
    const WIDTH: usize;
}

/// A floating-point format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Precision {
    /// 32 bits.
    F32,
    /// 64 bits.
    F64,
}

impl Precision {
    /// Bytes of a real number.
    pub fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }
}

names!(Precision, "precision", { F32 = "f32", F64 = "f64" });

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
    impl<T: Sealed> Sealed for num_complex::Complex<T> {}
}

impl Real for f32 {
    const PRECISION: Precision = Precision::F32;
    const EPSILON: f64 = f32::EPSILON as f64;
    fn of(value: f64) -> Self {
        value as f32
    }
    fn as_f64(self) -> f64 {
        f64::from(self)
    }
}

impl Real for f64 {
    const PRECISION: Precision = Precision::F64;
    const EPSILON: f64 = f64::EPSILON;
    fn of(value: f64) -> Self {
        value
    }
    fn as_f64(self) -> f64 {
        self
    }
}

impl<T: Real> Element for T {
    type Real = T;
    const WIDTH: usize = 1;
}

macro_rules! complex_element {
    ($($real:ty),*) => {$(
        impl Element for Complex<$real> {
            type Real = $real;
            const WIDTH: usize = 2;
        }
    )*};
}
complex_element!(f32, f64);
