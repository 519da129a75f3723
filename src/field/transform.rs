//! Families of transforms: the types of physical and of spectral data.

use std::marker::PhantomData;

use fft_core::{Complex, Element, Kind, PerAxis, Real};

/// A family of transforms.
pub trait Transform: sealed::Sealed + 'static {
    /// `f32` or `f64`.
    type Real: Real;
    /// One point of physical data.
    type Physical: Element<Real = Self::Real>;
    /// One point of spectral data.
    type Spectral: Element<Real = Self::Real>;
    /// The family as a value.
    const DYN: DynTransform;
    /// The default kind of each axis.
    fn kinds<const D: usize>() -> [Kind; D] {
        Self::DYN.kinds(D).array()
    }
}

/// Complex data, complex spectrum. An axis may have a cosine or sine transform of both parts, or
/// none.
#[derive(Clone, Copy, Debug)]
pub struct C2c<T = f64>(PhantomData<T>);

/// Real data, complex spectrum; one axis, by default the last, has its non-negative frequencies
/// only.
#[derive(Clone, Copy, Debug)]
pub struct R2c<T = f64>(PhantomData<T>);

/// Real data, real spectrum: a cosine or sine transform, or none, along each axis.
#[derive(Clone, Copy, Debug)]
pub struct R2r<T = f64>(PhantomData<T>);

/// A [`Transform`] as a value, of either precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DynTransform {
    /// As [`C2c`].
    C2c,
    /// As [`R2c`].
    R2c,
    /// As [`R2r`].
    R2r,
}

impl DynTransform {
    /// Whether physical data is complex.
    pub fn is_complex(self) -> bool {
        self == Self::C2c
    }

    /// Whether spectral data is complex.
    pub fn has_complex_spectrum(self) -> bool {
        self != Self::R2r
    }

    /// The default kinds for this number of axes.
    ///
    /// # Panics
    /// If there are not 1 to 4 axes.
    pub fn kinds(self, axes: usize) -> PerAxis<Kind> {
        PerAxis::from_fn(axes, |axis| match self {
            Self::C2c => Kind::C2C,
            Self::R2c if axis + 1 == axes => Kind::R2C,
            Self::R2c => Kind::C2C,
            Self::R2r => Kind::Dct2,
        })
    }
}

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
    const DYN: DynTransform = DynTransform::C2c;
}

impl<T: Real> Transform for R2c<T>
where
    Complex<T>: Element<Real = T>,
{
    type Real = T;
    type Physical = T;
    type Spectral = Complex<T>;
    const DYN: DynTransform = DynTransform::R2c;
}

impl<T: Real> Transform for R2r<T> {
    type Real = T;
    type Physical = T;
    type Spectral = T;
    const DYN: DynTransform = DynTransform::R2r;
}
