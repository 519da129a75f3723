//! From options of the command line to types: the family of a transform, and its precision.

use thriffty::planning::{DynDraft, DynGrid, Element, PerAxis, Precision, Real, Transform};
use thriffty::{C2c, Comm, Complex, Kind, R2c, R2r};

use crate::ranks::world::Failure;

/// What a [`Task`] needs of a family beside its types.
pub(crate) trait Family: Transform {
    /// The same of single precision.
    type Single: Family<Real = f32>;
}

impl<T: Real> Family for C2c<T>
where
    Complex<T>: Element<Real = T>,
{
    type Single = C2c<f32>;
}

impl<T: Real> Family for R2c<T>
where
    Complex<T>: Element<Real = T>,
{
    type Single = R2c<f32>;
}

impl<T: Real> Family for R2r<T> {
    type Single = R2r<f32>;
}

/// Drafts a transform of `kind` along every axis (along the last one only, for R2C; C2C along the
/// others).
pub(crate) fn draft<K: Family>(comm: &dyn Comm, grid: DynGrid, kind: Kind) -> DynDraft<'_> {
    let mut draft = DynDraft::new(comm, grid, K::DYN, K::Real::PRECISION);
    draft.options.kinds = kinds(grid.axes(), kind);
    draft
}

/// What is done along each of so many axes by a transform of this kind.
pub(crate) fn kinds(axes: usize, kind: Kind) -> PerAxis<Kind> {
    let others = if kind == Kind::R2C { Kind::C2C } else { kind };
    PerAxis::from_fn(axes, |axis| if axis + 1 == axes { kind } else { others })
}

/// Work that is written once for all families and precisions.
pub(crate) trait Task {
    /// What it gives.
    type Output;
    /// Does it. Collective.
    fn run<K: Family>(self) -> Result<Self::Output, Failure>;
}

/// Runs a task with the types that these values stand for. Collective.
pub(crate) fn dispatch<W: Task>(
    task: W,
    kind: Kind,
    precision: Precision,
) -> Result<W::Output, Failure> {
    match (precision, kind) {
        (Precision::F32, Kind::C2C) => task.run::<C2c<f32>>(),
        (Precision::F32, Kind::R2C) => task.run::<R2c<f32>>(),
        (Precision::F32, _) => task.run::<R2r<f32>>(),
        (Precision::F64, Kind::C2C) => task.run::<C2c<f64>>(),
        (Precision::F64, Kind::R2C) => task.run::<R2c<f64>>(),
        (Precision::F64, _) => task.run::<R2r<f64>>(),
    }
}
