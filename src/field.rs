//! Data that knows where it is: in physical or in spectral space, and in which brick.

use std::marker::PhantomData;

use fft_core::{Brick, Element, Error, Kind, Layout, Problem};

use crate::array::DynArray;
use crate::part::Part;
use crate::{R2c, Transform};

/// The state of a field before the forward transform.
#[derive(Clone, Copy, Debug)]
pub enum Physical {}

/// The state of a field after it.
#[derive(Clone, Copy, Debug)]
pub enum Spectral {}

/// [`Physical`] or [`Spectral`].
pub trait Side: sealed::Sealed {
    /// One point of a field in this state.
    type Element<K: Transform>: Element<Real = K::Real>;
    /// Where such a field is.
    #[doc(hidden)]
    fn layout(problem: &Problem) -> &Layout;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Physical {}
    impl Sealed for super::Spectral {}
}

impl Side for Physical {
    type Element<K: Transform> = K::Physical;
    fn layout(problem: &Problem) -> &Layout {
        &problem.input
    }
}

impl Side for Spectral {
    type Element<K: Transform> = K::Spectral;
    fn layout(problem: &Problem) -> &Layout {
        &problem.output
    }
}

/// This rank's part of a distributed array, with room to be transformed in place.
///
/// The state is part of the type: what has been transformed cannot be transformed again.
/// ```
/// use thriffty::{Field, Grid, Physical, Plan, Spectral};
/// thriffty::threads(2, |world| {
///     let mut plan = Plan::r2c(&world, Grid::new([8, 8, 8])?).build()?;
///     let rho: Field<Physical> = plan.input();
///     let rho_hat: Field<Spectral> = plan.forward(rho)?;
///     let phi_hat = rho_hat.map_modes(|[a, b, c], v| v / (1 + a * a + b * b + c * c) as f64);
///     plan.inverse(phi_hat).map(|_| ())
/// })?;
/// # Ok::<(), thriffty::Error>(())
/// ```
/// A second forward transform does not compile:
/// ```compile_fail,E0308
/// # use thriffty::{Field, Grid, Physical, Plan, Spectral};
/// # thriffty::threads(2, |world| {
/// let mut plan = Plan::r2c(&world, Grid::new([8, 8, 8])?).build()?;
/// let rho: Field<Physical> = plan.input();
/// let rho_hat: Field<Spectral> = plan.forward(rho)?;
/// plan.forward(rho_hat).map(|_| ())
/// # })?;
/// # Ok::<(), thriffty::Error>(())
/// ```
/// Neither does the use of a field that was transformed:
/// ```compile_fail,E0382
/// # use thriffty::{Field, Grid, Physical, Plan, Spectral};
/// # thriffty::threads(2, |world| {
/// let mut plan = Plan::r2c(&world, Grid::new([8, 8, 8])?).build()?;
/// let rho: Field<Physical> = plan.input();
/// let rho_hat: Field<Spectral> = plan.forward(rho)?;
/// assert_eq!(rho.as_slice().len(), 256);
/// plan.inverse(rho_hat).map(|_| ())
/// # })?;
/// # Ok::<(), thriffty::Error>(())
/// ```
/// Nor modes of physical data:
/// ```compile_fail,E0599
/// # use thriffty::{Field, Grid, Physical, Plan, Spectral};
/// # thriffty::threads(2, |world| {
/// let mut plan = Plan::r2c(&world, Grid::new([8, 8, 8])?).build()?;
/// let rho: Field<Physical> = plan.input();
/// let rho = rho.map_modes(|[a, b, c], v| v / (1 + a * a + b * b + c * c) as f64);
/// plan.forward(rho).map(|_| ())
/// # })?;
/// # Ok::<(), thriffty::Error>(())
/// ```
pub struct Field<S, K: Transform = R2c, const D: usize = 3> {
    /// Long enough for both states; a field in physical space is the beginning, as other numbers.
    data: DynArray,
    part: Part<S>,
    transform: PhantomData<fn() -> K>,
}

/// The clone's memory is this rank's own, also where that of the field is shared ([`Plan::shared_input`](crate::Plan::shared_input)).
impl<S, K: Transform, const D: usize> Clone for Field<S, K, D> {
    fn clone(&self) -> Self {
        Self { data: self.data.clone(), part: self.part.clone(), transform: PhantomData }
    }
}

impl<S: Side, K: Transform, const D: usize> Field<S, K, D> {
    /// The part in an array of spectral points.
    pub(crate) fn new(part: Part<S>, data: DynArray) -> Self {
        Self { data, part, transform: PhantomData }
    }

    /// The indices that this rank holds.
    pub fn brick(&self) -> Brick<D> {
        self.part.brick().typed()
    }

    /// The points of this rank, in the plan's order of axes, one array after the other for batches.
    pub fn as_slice(&self) -> &[S::Element<K>] {
        &bytemuck::cast_slice(self.data.bytes())[..self.part.points()]
    }

    /// The points of this rank, to be changed.
    pub fn as_mut_slice(&mut self) -> &mut [S::Element<K>] {
        &mut bytemuck::cast_slice_mut(self.data.bytes_mut())[..self.part.points()]
    }

    /// Sets every point to a function of its global index; in a batch every array gets the same.
    pub fn fill(&mut self, mut value: impl FnMut([usize; D]) -> S::Element<K>) {
        let (brick, order) = (self.brick(), self.part.layout().order().array());
        let mut indices = Indices::new(brick, order);
        for point in self.as_mut_slice() {
            *point = value(indices.next());
        }
    }

    /// Calls `look` with the global index and the value of every point of this rank.
    pub fn for_each(&self, mut look: impl FnMut([usize; D], S::Element<K>)) {
        let mut indices = Indices::new(self.brick(), self.part.layout().order().array());
        for point in self.as_slice() {
            look(indices.next(), *point);
        }
    }
}

impl<S, K: Transform, const D: usize> Field<S, K, D> {
    pub(crate) fn part(&self) -> &Part<S> {
        &self.part
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.data.bytes()
    }

    pub(crate) fn transformed<R>(
        mut self,
        run: impl FnOnce(&mut [u8]) -> Result<(), Error>,
    ) -> Result<Field<R, K, D>, Error> {
        run(self.data.bytes_mut())?;
        Ok(Field { data: self.data, part: self.part.across(), transform: PhantomData })
    }
}

impl<K: Transform, const D: usize> Field<Spectral, K, D> {
    /// Replaces every point by a function of its mode and value.
    ///
    /// The mode is, per axis: for complex transforms the signed frequency `-n/2 ..= (n-1)/2`; for the halved
    /// axis `0 ..= n/2`; for cosine transforms `k` and for sine transforms `k + 1`, `k` being the index (types
    /// III and IV lie half a step above and below); the index itself for an axis that is left alone.
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
        let mut indices = Indices::new(self.brick(), self.part.layout().order().array());
        for point in self.as_mut_slice() {
            let index = indices.next();
            *point = value(std::array::from_fn(|axis| mode(axis, index[axis])), *point);
        }
        self
    }
}

#[cfg(feature = "ndarray")]
impl<S: Side, K: Transform, const D: usize> Field<S, K, D> {
    /// The shape and strides of an array over all axes, batches first.
    fn strided(&self) -> ndarray::StrideShape<ndarray::IxDyn> {
        use ndarray::ShapeBuilder;
        let (brick, order) = (self.brick(), self.part.layout().order());
        let (mut shape, mut strides, mut stride) = (vec![0; D + 1], vec![0; D + 1], 1);
        for &axis in order.iter().rev() {
            (shape[axis + 1], strides[axis + 1]) = (brick.len(axis), stride);
            stride *= brick.len(axis);
        }
        (shape[0], strides[0]) = (self.part.problem().howmany, stride);
        ndarray::IxDyn(&shape).strides(ndarray::IxDyn(&strides))
    }

    /// A view as an array of `D + 1` axes: batches, then the axes of the grid in their natural order.
    ///
    /// ```
    /// use thriffty::{Field, Grid, Physical, Plan};
    /// thriffty::threads(2, |world| {
    ///     let plan = Plan::r2c(&world, Grid::new([8, 6, 4])?).input_order([2, 1, 0]).build()?;
    ///     let mut rho: Field<Physical> = plan.input();
    ///     rho.fill(|[i, j, k]| (100 * i + 10 * j + k) as f64);
    ///     let lo = rho.brick().lo;
    ///     assert_eq!(rho.view().shape(), [1, 4, 6, 4]);
    ///     assert_eq!(rho.view()[[0, 1, 2, 3]], (100 * (lo[0] + 1) + 23) as f64);
    ///     Ok::<(), thriffty::Error>(())
    /// })?;
    /// # Ok::<(), thriffty::Error>(())
    /// ```
    ///
    /// # Panics
    /// Never: shape and strides are the layout's own.
    pub fn view(&self) -> ndarray::ArrayViewD<'_, S::Element<K>> {
        let shape = self.strided();
        ndarray::ArrayView::from_shape(shape, self.as_slice()).expect("the layout's own strides")
    }

    /// A view as an array to be changed, as [`Field::view`].
    ///
    /// # Panics
    /// Never: shape and strides are the layout's own.
    pub fn view_mut(&mut self) -> ndarray::ArrayViewMutD<'_, S::Element<K>> {
        let shape = self.strided();
        let points = self.as_mut_slice();
        ndarray::ArrayViewMut::from_shape(shape, points).expect("the layout's own strides")
    }
}

/// The indices of a brick in the order of memory, over and over.
struct Indices<const D: usize> {
    brick: Brick<D>,
    order: [usize; D],
    next: [usize; D],
}

impl<const D: usize> Indices<D> {
    fn new(brick: Brick<D>, order: [usize; D]) -> Self {
        Self { brick, order, next: brick.lo }
    }

    fn next(&mut self) -> [usize; D] {
        let here = self.next;
        for &axis in self.order.iter().rev() {
            self.next[axis] += 1;
            if self.next[axis] < self.brick.hi[axis] {
                break;
            }
            self.next[axis] = self.brick.lo[axis];
        }
        here
    }
}
