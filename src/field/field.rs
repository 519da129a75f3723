//! A rank's part of a distributed array, in physical or in spectral space.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

use fft_core::{Brick, Error};

use super::array::DynArray;
use super::indices::Indices;
use super::part::{Host, Location, Part, Side};
use super::transform::{R2c, Transform};

/// This rank's part of a distributed array, with room to be transformed in place.
///
/// The state `S` is part of the type, so a field cannot be transformed twice in the same direction.
/// `thriffty::gpu::DeviceField` is such a field on a device.
///
/// A failure within an operation of a field, such as a length that is not positive, stays in the
/// field. The next call of a plan that takes the field returns it on every rank.
///
/// ```
/// thriffty::threads(2, |world| {
///     let mut plan = thriffty::r2c(&world, [8, 8, 8]).build()?;
///     let mut rho = plan.input();
///     rho.fill(|[i, j, k]| (i * j * k) as f64);
///     for ([i, j, k], value) in rho.iter() {
///         assert_eq!(*value, (i * j * k) as f64);
///     }
///     let rho_hat = plan.forward(rho)?;
///     plan.inverse(rho_hat.map_modes(|[a, b, c], v| v / (1 + a * a + b * b + c * c) as f64))
/// })?;
/// # Ok::<(), thriffty::Error>(())
/// ```
pub struct Field<S, K: Transform = R2c, const D: usize = 3, L: Location = Host> {
    /// Long enough for both states.
    pub(super) data: DynArray,
    pub(super) error: Option<Error>,
    pub(super) part: Part<S>,
    types: PhantomData<fn() -> (K, L)>,
}

impl<S, K: Transform, const D: usize, L: Location> Field<S, K, D, L> {
    pub(crate) fn new(part: Part<S>, data: DynArray) -> Self {
        Self { data, error: None, part, types: PhantomData }
    }

    /// The part, the array, and the error if an operation failed.
    pub(crate) fn into_parts(self) -> (Part<S>, DynArray, Result<(), Error>) {
        (self.part, self.data, self.error.map_or(Ok(()), Err))
    }

    pub(crate) fn part(&self) -> &Part<S> {
        &self.part
    }

    /// The array, and the error if an operation failed.
    pub(crate) fn dyn_array(&self) -> (&DynArray, Result<(), Error>) {
        (&self.data, self.error.clone().map_or(Ok(()), Err))
    }

    pub(crate) fn dyn_array_mut(&mut self) -> (&mut DynArray, Result<(), Error>) {
        (&mut self.data, self.error.clone().map_or(Ok(()), Err))
    }

    /// A field of zeros for the same plan, where this one is.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub(crate) fn zeros_beside(&self) -> Result<Self, Error> {
        Ok(Self::new(self.part.clone(), self.data.zeros_beside(self.part.rank())?))
    }

    /// A field for the same plan with an error, of zeros if there is memory for them.
    pub(crate) fn failed(&self, error: Error) -> Self {
        let empty = |_| Self::new(self.part.clone(), DynArray::empty());
        let mut made = self.zeros_beside().unwrap_or_else(empty);
        made.record_error(Err(error));
        made
    }

    pub(crate) fn record_error(&mut self, result: Result<(), Error>) {
        self.error = self.error.take().or(result.err());
    }
}

impl<S: Side, K: Transform, const D: usize, L: Location> Field<S, K, D, L> {
    /// The indices that this rank holds; of a strided layout, the positions.
    pub fn brick(&self) -> Brick<D> {
        self.part.brick().typed()
    }

    pub(super) fn indices(&self) -> Indices<D> {
        Indices::new(self.part.layout(), self.part.rank())
    }
}

impl<S: Side, K: Transform, const D: usize> Field<S, K, D> {
    /// The points of this rank in the plan's order of axes, one array after the other for batches.
    pub fn as_slice(&self) -> &[S::Element<K>] {
        &bytemuck::cast_slice(self.data.bytes())[..self.part.points()]
    }

    /// The points of this rank, to be changed.
    pub fn as_mut_slice(&mut self) -> &mut [S::Element<K>] {
        &mut bytemuck::cast_slice_mut(self.data.bytes_mut())[..self.part.points()]
    }

    /// The points of this rank with their global indices, in the order of memory.
    pub fn iter(&self) -> impl Iterator<Item = ([usize; D], &S::Element<K>)> {
        self.indices().zip(self.as_slice())
    }

    /// The same, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = ([usize; D], &mut S::Element<K>)> {
        self.indices().zip(self.as_mut_slice())
    }

    fn position(&self, index: [usize; D]) -> usize {
        let found = self.indices().place(index);
        found.unwrap_or_else(|| panic!("index {index:?} is not in brick {}", self.brick()))
    }
}

/// The point at a global index; for a batch, in its first array.
///
/// # Panics
/// If the index is not in [`Field::brick`].
impl<S: Side, K: Transform, const D: usize> Index<[usize; D]> for Field<S, K, D> {
    type Output = S::Element<K>;

    fn index(&self, index: [usize; D]) -> &S::Element<K> {
        &self.as_slice()[self.position(index)]
    }
}

/// The point at a global index, to be changed.
///
/// # Panics
/// As of `Index`.
impl<S: Side, K: Transform, const D: usize> IndexMut<[usize; D]> for Field<S, K, D> {
    fn index_mut(&mut self, index: [usize; D]) -> &mut S::Element<K> {
        let at = self.position(index);
        &mut self.as_mut_slice()[at]
    }
}

/// The clone has memory of its own, even if the memory of the field is shared.
impl<S, K: Transform, const D: usize> Clone for Field<S, K, D> {
    fn clone(&self) -> Self {
        let error = self.error.clone();
        Self { data: self.data.copy(), error, part: self.part.clone(), types: PhantomData }
    }
}

impl<S: Side, K: Transform, const D: usize, L: Location> fmt::Debug for Field<S, K, D, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Field")
            .field("state", &S::NAME)
            .field("brick", &self.brick())
            .field("kinds", &self.part.problem().kinds)
            .field("data", &self.data)
            .field("error", &self.error)
            .finish()
    }
}
