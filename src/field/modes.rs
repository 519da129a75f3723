//! Functions of the modes of a spectrum.

use std::f64::consts::{PI, TAU};

use bytemuck::{cast_slice, cast_slice_mut};
use fft_core::{Element, Error, Kind, Problem, Real};

use super::field::Field;
use super::part::Spectral;
use super::transform::Transform;

/// The wavenumbers of a mode along each axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wavenumbers<const D: usize> {
    /// `2π·mode/length` for kinds C2C and R2C; `π·mode/length` for cosine and sine transforms, with
    /// half a mode more for types III and IV; 0 for an axis that is left alone.
    pub k: [f64; D],
    /// Whether the mode is the middle one of an even number of points. It stands for both signs, so
    /// that its derivatives of odd order are 0.
    pub nyquist: [bool; D],
}

impl<const D: usize> Wavenumbers<D> {
    fn new(kinds: [Kind; D], shape: [usize; D], mode: [i64; D], lengths: [f64; D]) -> Self {
        let k = std::array::from_fn(|axis| {
            let mode = mode[axis] as f64;
            match kinds[axis] {
                Kind::Identity => 0.0,
                Kind::C2C | Kind::R2C => TAU * mode / lengths[axis],
                Kind::Dct3 | Kind::Dct4 => PI * (mode + 0.5) / lengths[axis],
                Kind::Dst3 | Kind::Dst4 => PI * (mode - 0.5) / lengths[axis],
                _ => PI * mode / lengths[axis],
            }
        });
        let nyquist = std::array::from_fn(|axis| {
            matches!(kinds[axis], Kind::C2C | Kind::R2C)
                && 2 * mode[axis].unsigned_abs() as usize == shape[axis]
        });
        Self { k, nyquist }
    }

    /// The square of the wave vector: the sum of the squares of `k`.
    pub fn square(&self) -> f64 {
        self.k.iter().map(|k| k * k).sum()
    }
}

/// Whether the lengths of a domain are positive.
pub(super) fn check_lengths<const D: usize>(lengths: [f64; D]) -> Result<(), Error> {
    match lengths.iter().position(|length| length.is_nan() || *length <= 0.0) {
        None => Ok(()),
        Some(axis) => {
            let what = format!("length of axis {axis}");
            Err(Error::argument(what, lengths[axis], "a positive one"))
        }
    }
}

/// Whether fields can be derived along an axis.
pub(super) fn check_derivable(problem: &Problem, axis: usize) -> Result<(), Error> {
    match problem.kinds[axis] {
        Kind::C2C | Kind::R2C => Ok(()),
        kind => Err(Error::argument(format!("kind of axis {axis}"), kind, "c2c or r2c")),
    }
}

/// Calls a function with the real numbers of a point.
fn scaled<E: Element>(point: E, change: impl FnOnce(&mut [E::Real])) -> E {
    let mut point = [point];
    change(cast_slice_mut(&mut point));
    point[0]
}

impl<K: Transform, const D: usize> Field<Spectral, K, D> {
    /// Replaces every point by a function of its mode and value.
    ///
    /// The mode is, per axis: the signed frequency `-n/2 ..= (n-1)/2` for kind C2C; `0 ..= n/2` for
    /// R2C; the index for cosine transforms, and for an axis that is left alone; the index plus 1
    /// for sine transforms. [`Field::map_wavenumbers`] has wavenumbers instead.
    pub fn map_modes(
        mut self,
        mut value: impl FnMut([i64; D], K::Spectral) -> K::Spectral,
    ) -> Self {
        let problem = self.part.problem();
        let (shape, kinds) = (problem.grid().shape().array::<D>(), problem.kinds.array::<D>());
        let mode = |axis: usize, k: usize| match kinds[axis] {
            Kind::C2C if k >= shape[axis].div_ceil(2) => k as i64 - shape[axis] as i64,
            Kind::Dst1 | Kind::Dst2 | Kind::Dst3 | Kind::Dst4 => k as i64 + 1,
            _ => k as i64,
        };
        for (index, point) in self.iter_mut() {
            *point = value(std::array::from_fn(|axis| mode(axis, index[axis])), *point);
        }
        self
    }

    /// Replaces every point by a function of its wavenumbers, on a domain of these lengths, and of
    /// its value.
    ///
    /// ```
    /// thriffty::threads(2, |world| {
    ///     let mut plan = thriffty::c2c(&world, [8, 8]).build()?;
    ///     let spectrum = plan.forward(plan.input())?;
    ///     let smooth = spectrum.map_wavenumbers([1.0; 2], |waves, v| v * (-waves.square()).exp());
    ///     plan.inverse(smooth)
    /// })?;
    /// # Ok::<(), thriffty::Error>(())
    /// ```
    pub fn map_wavenumbers(
        self,
        lengths: [f64; D],
        mut value: impl FnMut(Wavenumbers<D>, K::Spectral) -> K::Spectral,
    ) -> Self {
        let problem = self.part.problem();
        let (shape, kinds) = (problem.grid().shape().array(), problem.kinds.array());
        self.map_modes(|mode, point| value(Wavenumbers::new(kinds, shape, mode, lengths), point))
    }

    /// Solves -∇²φ = ρ on a domain of these lengths: divides every mode by the square of its wave
    /// vector, and sets the mode without one, the mean, to 0.
    ///
    /// For axes of kind [`Kind::Identity`] the equation is solved for each index by itself.
    pub fn poisson(mut self, lengths: [f64; D]) -> Self {
        if let Err(error) = check_lengths(lengths) {
            self.record_error(Err(error));
            return self;
        }
        self.map_wavenumbers(lengths, |waves, point| {
            let square = waves.square();
            let factor = K::Real::of(if square == 0.0 { 0.0 } else { 1.0 / square });
            scaled(point, |reals| reals.iter_mut().for_each(|x| *x = *x * factor))
        })
    }

    /// The derivative along an axis of a domain of these lengths, as a field of its own: every mode
    /// times i times its wavenumber; 0 for the middle mode of an even number of points.
    ///
    /// Only axes of kind C2C and R2C have derivatives.
    ///
    /// # Panics
    /// If there is no such axis.
    pub fn gradient(&self, axis: usize, lengths: [f64; D]) -> Self {
        let mut made = self.clone();
        let fits = check_derivable(self.part.problem(), axis).and(check_lengths(lengths));
        if fits.is_err() {
            made.record_error(fits);
            return made;
        }
        made.map_wavenumbers(lengths, |waves, point| {
            let k = K::Real::of(if waves.nyquist[axis] { 0.0 } else { waves.k[axis] });
            let from = [point];
            let from: &[K::Real] = cast_slice(&from);
            scaled(point, |to| (to[0], to[1]) = (-k * from[1], k * from[0]))
        })
    }
}
