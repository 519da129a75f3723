//! Fields as arrays of `ndarray`.

use ndarray::{ArrayView, ArrayViewD, IxDyn, ShapeBuilder};

use super::field::Field;
use super::part::Side;
use super::transform::Transform;

impl<S: Side, K: Transform, const D: usize> Field<S, K, D> {
    /// A view with the axes of the grid in their natural order. A batch has one more axis in front.
    ///
    /// ```
    /// thriffty::threads(2, |world| {
    ///     let plan = thriffty::r2c(&world, [8, 6, 4]).input_order([2, 1, 0]).build()?;
    ///     let mut rho = plan.input();
    ///     rho.fill(|[i, j, k]| (100 * i + 10 * j + k) as f64);
    ///     let [lo, ..] = rho.brick().lo;
    ///     assert_eq!(rho.view()[[1, 2, 3]], rho[[lo + 1, 2, 3]]);
    ///     Ok::<(), thriffty::Error>(())
    /// })?;
    /// # Ok::<(), thriffty::Error>(())
    /// ```
    ///
    /// # Panics
    /// Never: shape and strides are the layout's own.
    pub fn view(&self) -> ArrayViewD<'_, S::Element<K>> {
        let (brick, order) = (self.brick(), self.part.layout().order());
        let (mut shape, mut strides, mut stride) = (vec![0; D], vec![0; D], 1);
        for &axis in order.iter().rev() {
            (shape[axis], strides[axis]) = (brick.len(axis), stride);
            stride *= brick.len(axis);
        }
        let batch = self.part.problem().batch;
        if batch > 1 {
            shape.insert(0, batch);
            strides.insert(0, stride);
        }
        let shape = IxDyn(&shape).strides(IxDyn(&strides));
        ArrayView::from_shape(shape, self.as_slice()).expect("the layout's own strides")
    }
}
