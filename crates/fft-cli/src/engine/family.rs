//! Families of transforms and precisions, from values to types.

pub(crate) use thriffty::planning::Transform as Family;
use thriffty::planning::{DynDraft, DynGrid, PerAxis, Precision, Real};
use thriffty::{C2c, Comm, Kind, R2c, R2r};

use crate::ranks::world::Failure;

/// Drafts a transform of `kind` along every axis; with R2C, of C2C along all but the last.
pub(crate) fn draft<K: Family>(comm: &dyn Comm, grid: DynGrid, kind: Kind) -> DynDraft<'_> {
    let mut draft = DynDraft::new(comm, grid, K::DYN, K::Real::PRECISION);
    draft.options.kinds = kinds(grid.axes(), kind);
    draft
}

/// The kinds of the axes of that transform.
pub(crate) fn kinds(axes: usize, kind: Kind) -> PerAxis<Kind> {
    let others = if kind == Kind::R2C { Kind::C2C } else { kind };
    PerAxis::from_fn(axes, |axis| if axis + 1 == axes { kind } else { others })
}

/// Work that is generic in the family and the precision.
pub(crate) trait Task {
    type Output;
    fn run<K: Family>(self) -> Result<Self::Output, Failure>;
}

/// Runs a task with the types of these values. Collective.
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
