//! Operators on fields.

use fft_core::{Error, Operator, Spectrum, Wavenumbers};

use super::domain::Domain;
use crate::field::{Field, Location, Part, Spectral, Transform};

impl Domain {
    /// Writes an operator's result to another field. Both fields belong to plans that this domain
    /// serves, and have as many arrays as the operator has components, or a multiple of that.
    ///
    /// If something does not fit, for example if an axis has no derivatives, the result holds the
    /// error. If this is [collective](Domain), the results of all ranks hold it.
    pub fn apply<K: Transform, const D: usize, L: Location>(
        &self,
        operator: Operator,
        from: &Field<Spectral, K, D, L>,
        to: &mut Field<Spectral, K, D, L>,
    ) {
        let fit = self.fits(from).and(self.fits(to));
        let (bytes, place) = (bytes(from), bytes(to));
        let (from, there) = from.dyn_array();
        let (array, here) = to.dyn_array_mut();
        let mine = fit.and(there).and(here);
        let applied = self.apply_arrays(operator, mine, (from, bytes), (array, place));
        to.record_error(applied);
    }

    /// Applies an operator with as many components before as after to a field, as
    /// [`Domain::apply`].
    pub fn apply_in_place<K: Transform, const D: usize, L: Location>(
        &self,
        operator: Operator,
        field: &mut Field<Spectral, K, D, L>,
    ) {
        let (fit, bytes) = (self.fits(field), bytes(field));
        let (array, here) = field.dyn_array_mut();
        let applied = self.apply_array_in_place(operator, fit.and(here), (array, bytes));
        field.record_error(applied);
    }

    /// Convolves a field with a kernel, both transformed unscaled: multiplies their modes.
    ///
    /// The kernel has one array, and its first point is its centre. Convolution is periodic, or for
    /// cosine and sine transforms as their extensions are.
    pub fn convolve<K: Transform, const D: usize, L: Location>(
        &self,
        kernel: &Field<Spectral, K, D, L>,
        field: &mut Field<Spectral, K, D, L>,
    ) {
        self.multiply(kernel, false, field);
    }

    /// Correlates a field with a kernel, as [`Domain::convolve`]: multiplies by the conjugate.
    pub fn correlate<K: Transform, const D: usize, L: Location>(
        &self,
        kernel: &Field<Spectral, K, D, L>,
        field: &mut Field<Spectral, K, D, L>,
    ) {
        self.multiply(kernel, true, field);
    }

    fn multiply<K: Transform, const D: usize, L: Location>(
        &self,
        kernel: &Field<Spectral, K, D, L>,
        correlate: bool,
        field: &mut Field<Spectral, K, D, L>,
    ) {
        let multiplied = self.fits(kernel).and(self.fits(field)).and_then(|()| {
            let (from, bytes) = (bytes(kernel), bytes(field));
            let (kernel, there) = kernel.dyn_array();
            let (array, here) = field.dyn_array_mut();
            there.and(here)?;
            self.convolve_arrays((kernel, from), correlate, (array, bytes))
        });
        field.record_error(multiplied);
    }

    /// Checks that this domain has the field's spectrum.
    fn fits<K: Transform, const D: usize, L: Location>(
        &self,
        field: &Field<Spectral, K, D, L>,
    ) -> Result<(), Error> {
        let part = field.part();
        let fits =
            part.rank() == self.modes().rank() && self.modes().spectrum().is_of(part.problem());
        if fits {
            Ok(())
        } else {
            Err(Error::argument("spectrum", "one of another domain", "one of this one"))
        }
    }
}

/// Bytes of a field's points.
fn bytes<K: Transform, const D: usize, L: Location>(field: &Field<Spectral, K, D, L>) -> usize {
    field.part().points() * size_of::<K::Spectral>()
}

/// Wavenumbers of this part's modes, for `map_modes`.
fn wavenumbers<const D: usize>(
    part: &Part<Spectral>,
    lengths: [f64; D],
) -> impl Fn([i64; D]) -> Wavenumbers<D> + use<D> {
    let (shape, kinds) = (part.problem().modes.array(), part.problem().kinds.array());
    move |mode| Wavenumbers::new(kinds, shape, mode, lengths)
}

impl<K: Transform, const D: usize, L: Location> Field<Spectral, K, D, L> {
    /// The domain of these lengths, where the field is.
    fn domain(&self, lengths: [f64; D]) -> Result<Domain, Error> {
        let (part, (array, there)) = (self.part(), self.dyn_array());
        there?;
        let spectrum = Spectrum::of(part.problem());
        Domain::new(spectrum, part.rank(), &lengths, false)?.beside(array)
    }

    /// Solves -∇²φ = ρ on a domain of these lengths: [`Operator::Poisson`].
    ///
    /// For axes of kind [`Kind::None`](crate::Kind) the equation is solved for each index by
    /// itself.
    pub fn poisson(mut self, lengths: [f64; D]) -> Self {
        match self.domain(lengths) {
            Ok(domain) => domain.apply_in_place(Operator::Poisson, &mut self),
            Err(error) => self.record_error(Err(error)),
        }
        self
    }

    /// The derivative along an axis of a domain of these lengths, as a field of its own:
    /// [`Operator::Derivative`].
    pub fn gradient(&self, axis: usize, lengths: [f64; D]) -> Self {
        let made = self.domain(lengths).and_then(|domain| Ok((domain, self.zeros_beside()?)));
        match made {
            Ok((domain, mut made)) => {
                domain.apply(Operator::Derivative(axis), self, &mut made);
                made
            }
            Err(error) => self.failed(error),
        }
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
        let of = wavenumbers(self.part(), lengths);
        self.map_modes(|mode, point| value(of(mode), point))
    }
}
