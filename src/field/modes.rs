//! Functions of the modes of a spectrum.

use fft_core::mode;

use super::field::Field;
use super::part::Spectral;
use super::transform::Transform;

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
        let (shape, kinds) = (problem.modes.array::<D>(), problem.kinds.array::<D>());
        let of = |axis: usize, index: usize| mode(kinds[axis], shape[axis], index);
        for (index, point) in self.iter_mut() {
            *point = value(std::array::from_fn(|axis| of(axis, index[axis])), *point);
        }
        self
    }
}
