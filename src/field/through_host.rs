//! Operations on fields that run on the host, wherever the field is.

use fft_core::{Error, mode};

use super::array::DynArray;
use super::field::Field;
use super::part::{Location, Side, Spectral};
use super::transform::Transform;

impl<S: Side, K: Transform, const D: usize, L: Location> Field<S, K, D, L> {
    /// Copies the field to the host. On a device, waits for that.
    ///
    /// # Errors
    /// What failed before, or when there is no memory or the driver fails, on this rank.
    pub fn to_host(&self) -> Result<Field<S, K, D>, Error> {
        let (array, there) = self.dyn_array();
        there?;
        let mut here = DynArray::zeros(self.part.sizes().in_place_bytes(), self.part.rank())?;
        array.read(&mut here.bytes_mut()[..self.bytes()])?;
        Ok(Field::new(self.part.clone(), here))
    }

    /// Copies a field of the host into this one. It may belong to another plan with the same grid,
    /// bricks and order of axes on this side.
    pub fn copy_from(&mut self, from: &Field<S, K, D>) {
        let there = from.dyn_array().1.and_then(|()| self.part.has_points_of(from.part()));
        let copied = there.and_then(|()| {
            let (array, there) = self.dyn_array_mut();
            there.and_then(|()| array.write(bytemuck::cast_slice(from.as_slice())))
        });
        self.record_error(copied);
    }

    /// Sets every point to a function of its global index; every array of a batch gets the same.
    /// The function is computed on the host.
    pub fn fill(&mut self, mut value: impl FnMut([usize; D]) -> S::Element<K>) {
        if L::ON_HOST {
            return self.change(|index, point| *point = value(index));
        }
        match DynArray::zeros(self.bytes(), self.part.rank()) {
            Ok(array) => {
                let mut here = Field::<S, K, D>::new(self.part.clone(), array);
                here.fill(value);
                self.copy_from(&here);
            }
            Err(error) => self.record_error(Err(error)),
        }
    }

    /// Waits for the work that is queued on the field's device, if it is on one.
    ///
    /// # Errors
    /// What failed before, or when the driver fails, on this rank.
    pub fn synchronize(&self) -> Result<(), Error> {
        let (array, there) = self.dyn_array();
        there.and_then(|()| array.synchronize())
    }

    /// Changes every point by a function of its global index and value, on the host.
    fn change(&mut self, mut value: impl FnMut([usize; D], &mut S::Element<K>)) {
        if L::ON_HOST {
            let (indices, points) = (self.indices(), self.part.points());
            let data = &mut bytemuck::cast_slice_mut(self.data.bytes_mut())[..points];
            return indices.zip(data).for_each(|(index, point)| value(index, point));
        }
        match self.to_host() {
            Ok(mut here) => {
                here.change(value);
                self.copy_from(&here);
            }
            Err(error) => self.record_error(Err(error)),
        }
    }

    /// Bytes of this rank's points.
    fn bytes(&self) -> usize {
        self.part.points() * size_of::<S::Element<K>>()
    }
}

impl<K: Transform, const D: usize, L: Location> Field<Spectral, K, D, L> {
    /// Replaces every point by a function of its mode and value, which is computed on the host.
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
        self.change(|index, point| {
            *point = value(std::array::from_fn(|axis| of(axis, index[axis])), *point);
        });
        self
    }
}
