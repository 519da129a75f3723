//! Which types of data a transform has on its two sides.

use std::marker::PhantomData;

use fft_core::{Complex, Element, Kind, Real};

/// A family of transforms: what physical and spectral data consist of.
pub trait Transform: sealed::Sealed + 'static {
    /// `f32` or `f64`.
    type Real: Real;
    /// One point of physical data.
    type Physical: Element<Real = Self::Real>;
    /// One point of spectral data.
    type Spectral: Element<Real = Self::Real>;
    /// What is done along each axis unless told otherwise.
    fn kinds<const D: usize>() -> [Kind; D];
}

/// Complex data, complex spectrum. Along any axis also a cosine or sine transform of both parts, or nothing.
#[derive(Clone, Copy, Debug)]
pub struct C2c<T = f64>(PhantomData<T>);

/// Real data, complex spectrum, one axis halved to its non-negative frequencies (the last unless told
/// otherwise).
#[derive(Clone, Copy, Debug)]
pub struct R2c<T = f64>(PhantomData<T>);

/// Real data, real spectrum: a cosine or sine transform, or nothing, along each axis.
#[derive(Clone, Copy, Debug)]
pub struct R2r<T = f64>(PhantomData<T>);

mod sealed {
    pub trait Sealed {}
    impl<T> Sealed for super::C2c<T> {}
    impl<T> Sealed for super::R2c<T> {}
    impl<T> Sealed for super::R2r<T> {}
}

impl<T: Real> Transform for C2c<T>
where
    Complex<T>: Element<Real = T>,
{
    type Real = T;
    type Physical = Complex<T>;
    type Spectral = Complex<T>;
    fn kinds<const D: usize>() -> [Kind; D] {
        [Kind::C2C; D]
    }
}

impl<T: Real> Transform for R2c<T>
where
    Complex<T>: Element<Real = T>,
{
    type Real = T;
    type Physical = T;
    type Spectral = Complex<T>;
    fn kinds<const D: usize>() -> [Kind; D] {
        std::array::from_fn(|axis| if axis + 1 == D { Kind::R2C } else { Kind::C2C })
    }
}

impl<T: Real> Transform for R2r<T> {
    type Real = T;
    type Physical = T;
    type Spectral = T;
    fn kinds<const D: usize>() -> [Kind; D] {
        [Kind::Dct2; D]
    }
}
