//! Copies between a program's arrays and the fields of a plan.

use std::fmt;
use std::marker::PhantomData;

use fft_core::{CopyPlan, Error, Layout, PerAxis};
#[cfg(feature = "cuda")]
use fft_gpu::{
    DeviceCopy, DeviceMemory, GpuReal,
    cudarc::driver::{DevicePtr, DevicePtrMut},
    lend, lend_mut,
};

use super::bound_copy::BoundCopy;
use super::{GridData, Subarray};
#[cfg(feature = "cuda")]
use crate::field::{Device, not_there};
use crate::field::{Field, Host, Location, Part, Physical, R2c, Side, Spectral, Transform};
use crate::plan::Plan;

/// Loads fields of a plan from local arrays, and stores them there.
///
/// The arrays of all ranks together have each point of the grid once; a rank may have several or
/// none. With [`Draft::transposed_input`](crate::Draft::transposed_input) and
/// [`Draft::transposed_output`](crate::Draft::transposed_output) data goes straight between the
/// arrays and the bricks where transforms begin and end: the copy is the plan's first or last
/// reshape. Otherwise, arrays with the plan's own bricks are copied without messages.
///
/// The arrays of a batch are [`Subarray::distance`] apart. Messages are exact, whatever the plan's
/// tolerance.
pub struct FieldCopy<S: Side, K: Transform = R2c, const D: usize = 3, L: Location = Host> {
    part: Part<S>,
    load: BoundCopy,
    store: BoundCopy,
    types: PhantomData<fn() -> (K, L)>,
}

impl<K: Transform, const D: usize, L: Location> FieldCopy<Physical, K, D, L> {
    /// Plans copies of physical data of a plan. Collective.
    ///
    /// # Errors
    /// The errors of [`CopyPlan::new`] and [`BoundCopy::new`].
    pub fn input(plan: &Plan<K, D, L>, arrays: &[Subarray]) -> Result<Self, Error> {
        Self::new(plan, arrays)
    }
}

impl<K: Transform, const D: usize, L: Location> FieldCopy<Spectral, K, D, L> {
    /// Plans copies of spectral data of a plan. Collective.
    ///
    /// # Errors
    /// The errors of [`CopyPlan::new`] and [`BoundCopy::new`].
    pub fn output(plan: &Plan<K, D, L>, arrays: &[Subarray]) -> Result<Self, Error> {
        Self::new(plan, arrays)
    }
}

/// Checks that points of a layout are in the order of the grid.
///
/// # Errors
/// [`Error::Argument`] for strided layouts, the same on all ranks.
pub fn check_in_order(layout: &Layout) -> Result<(), Error> {
    if layout.is_strided() {
        let expected = "points in order, and not a cyclic or transposed line";
        return Err(Error::argument("layout of copies", layout, expected));
    }
    Ok(())
}

impl<S: Side, K: Transform, const D: usize, L: Location> FieldCopy<S, K, D, L> {
    fn new(plan: &Plan<K, D, L>, arrays: &[Subarray]) -> Result<Self, Error> {
        let (rank, problem) = (plan.comm().rank(), plan.problem());
        check_in_order(S::layout(problem))?;
        let (layout, batch) = (S::layout(problem), problem.batch);
        let data = GridData::of::<S::Element<K>>(layout.grid()).batch(batch);
        let own = [whole(layout, rank)];
        let bound = |sources: &[Subarray], targets: &[Subarray]| {
            BoundCopy::new(plan, CopyPlan::new(plan.comm(), data, sources, targets)?)
        };
        let (load, store) = (bound(arrays, &own)?, bound(&own, arrays)?);
        Ok(Self { part: Part::new(problem, rank), load, store, types: PhantomData })
    }

    /// Bytes that this rank sends to load a field, and to store one.
    pub fn bytes_sent(&self) -> [usize; 2] {
        [&self.load, &self.store].map(|copy| copy.plan().bytes_sent())
    }

    fn fits(&self, field: &Field<S, K, D, L>) -> Result<(), Error> {
        let (_, made) = field.dyn_array();
        field.part().fits(self.part.problem(), self.part.rank()).and(made)
    }
}

impl<S: Side, K: Transform, const D: usize> FieldCopy<S, K, D> {
    /// Copies from the arrays to a field. Collective.
    ///
    /// # Errors
    /// On every rank: [`Error::OnRank`] for another number of arrays, for arrays that are too
    /// short, for a field of another plan or with an error, and when the transport fails. The field
    /// is then undefined.
    pub fn load(
        &mut self,
        arrays: &[&[S::Element<K>]],
        field: &mut Field<S, K, D>,
    ) -> Result<(), Error> {
        let mine = self.fits(field);
        self.load.host().run_after(mine, arrays, &mut [field.as_mut_slice()])
    }

    /// Copies from a field to the arrays. Points around their bricks stay as they are. Collective.
    ///
    /// # Errors
    /// As [`FieldCopy::load`]; the arrays are then undefined.
    pub fn store(
        &mut self,
        field: &Field<S, K, D>,
        arrays: &mut [&mut [S::Element<K>]],
    ) -> Result<(), Error> {
        let mine = self.fits(field);
        self.store.host().run_after(mine, &[field.as_slice()], arrays)
    }
}

/// On devices arrays are slices of real numbers, as for [`Plan::forward_into`].
#[cfg(feature = "cuda")]
impl<S: Side, K: Transform<Real: GpuReal>, const D: usize> FieldCopy<S, K, D, Device> {
    /// As on the host; queued on the plan's stream.
    ///
    /// # Errors
    /// As on the host; also when the driver fails.
    pub fn load(
        &mut self,
        arrays: &[&impl DevicePtr<K::Real>],
        field: &mut Field<S, K, D, Device>,
    ) -> Result<(), Error> {
        let (mine, copy) = (self.fits(field), self.load.device());
        let (mine, stream) = (mine.and(is_on_device_of(field, copy)), copy.stream().clone());
        let arrays: Vec<_> =
            arrays.iter().map(|array| lend(*array, &stream).into_bytes()).collect();
        let bytes = field.part().points() * size_of::<S::Element<K>>();
        match field.dyn_array_mut().0.device_mut() {
            Some(array) => {
                array.with_mut(&stream, bytes, |array| copy.run_after(mine, &arrays, &mut [array]))
            }
            None => copy.run_after(mine, &arrays, &mut [] as &mut [&mut DeviceMemory<u8>]),
        }
    }

    /// As on the host; queued on the plan's stream.
    ///
    /// # Errors
    /// As on the host; also when the driver fails.
    pub fn store(
        &mut self,
        field: &Field<S, K, D, Device>,
        arrays: &mut [&mut impl DevicePtrMut<K::Real>],
    ) -> Result<(), Error> {
        let (mine, copy) = (self.fits(field), self.store.device());
        let (mine, stream) = (mine.and(is_on_device_of(field, copy)), copy.stream().clone());
        let mut arrays: Vec<_> =
            arrays.iter_mut().map(|array| lend_mut(&mut **array, &stream).into_bytes()).collect();
        let bytes = field.part().points() * size_of::<S::Element<K>>();
        match field.dyn_array().0.device() {
            Some(array) => {
                array.with(&stream, bytes, |array| copy.run_after(mine, &[array], &mut arrays))
            }
            None => copy.run_after(mine, &[] as &[&DeviceMemory<u8>], &mut arrays),
        }
    }
}

/// Checks that a field has an array on the device of a copy.
#[cfg(feature = "cuda")]
fn is_on_device_of<S: Side, K: Transform, const D: usize>(
    field: &Field<S, K, D, Device>,
    copy: &DeviceCopy,
) -> Result<(), Error> {
    let array = field.dyn_array().0.device();
    array.ok_or_else(not_there).and_then(|array| array.is_on(copy.stream().context()))
}

/// A rank's brick of a layout, as fields have it.
fn whole(layout: &Layout, rank: usize) -> Subarray {
    let brick = layout.brick(rank);
    let start = PerAxis::splat(brick.axes(), 0);
    Subarray::placed(brick, start, brick.shape(), layout.order())
}

impl<S: Side, K: Transform, const D: usize, L: Location> fmt::Debug for FieldCopy<S, K, D, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [load, store] = self.bytes_sent();
        f.debug_struct("FieldCopy")
            .field("state", &S::NAME)
            .field("bytes sent to load", &load)
            .field("bytes sent to store", &store)
            .finish_non_exhaustive()
    }
}
