//! From what is said on the command line or in a file to types: the family of the transform, the precision of its
//! numbers and how many axes there are.

use thriffty::{
    C2c, Comm, Complex, Draft, Element, Grid, Kind, Plan, Precision, R2c, R2r, Transform,
};

/// Numbers that can be transformed wherever this program can.
#[cfg(not(feature = "cuda"))]
pub(crate) use thriffty::Real as Number;
#[cfg(feature = "cuda")]
pub(crate) use thriffty::gpu::GpuReal as Number;

use crate::shape::MAX_AXES;
use crate::world::{Failure, refused};

/// What a [`Task`] needs of a family beside its types.
pub(crate) trait Family: Transform<Real: Number> {
    /// The same of single precision.
    type Single: Family<Real = f32>;
    /// Drafts a transform of `kind` along every axis (along the last one only, for R2C; C2C along the others).
    fn draft<const D: usize>(comm: &dyn Comm, grid: Grid<D>, kind: Kind) -> Draft<'_, Self, D>
    where
        Self: Sized;
}

impl<T: Number> Family for C2c<T>
where
    Complex<T>: Element<Real = T>,
{
    type Single = C2c<f32>;

    fn draft<const D: usize>(comm: &dyn Comm, grid: Grid<D>, kind: Kind) -> Draft<'_, Self, D> {
        Plan::<Self, D>::c2c(comm, grid).kinds(kinds(kind))
    }
}

impl<T: Number> Family for R2c<T>
where
    Complex<T>: Element<Real = T>,
{
    type Single = R2c<f32>;

    fn draft<const D: usize>(comm: &dyn Comm, grid: Grid<D>, kind: Kind) -> Draft<'_, Self, D> {
        Plan::<Self, D>::r2c(comm, grid).kinds(kinds(kind))
    }
}

impl<T: Number> Family for R2r<T> {
    type Single = R2r<f32>;

    fn draft<const D: usize>(comm: &dyn Comm, grid: Grid<D>, kind: Kind) -> Draft<'_, Self, D> {
        Plan::<Self, D>::r2r(comm, grid).kinds(kinds(kind))
    }
}

/// What is done along each axis by a transform of this kind.
pub(crate) fn kinds<const D: usize>(kind: Kind) -> [Kind; D] {
    let others = if kind == Kind::R2C { Kind::C2C } else { kind };
    std::array::from_fn(|axis| if axis + 1 == D { kind } else { others })
}

/// Work that is written once for all families, precisions and numbers of axes.
pub(crate) trait Task {
    /// What it gives.
    type Output;
    /// Does it. Collective.
    fn run<K: Family, const D: usize>(self) -> Result<Self::Output, Failure>;
}

/// Runs a task with the types that these values stand for. Collective.
pub(crate) fn dispatch<W: Task>(
    task: W,
    kind: Kind,
    precision: Precision,
    axes: usize,
) -> Result<W::Output, Failure> {
    match precision {
        Precision::F32 => with_precision::<W, f32>(task, kind, axes),
        Precision::F64 => with_precision::<W, f64>(task, kind, axes),
    }
}

fn with_precision<W: Task, T: Number>(
    task: W,
    kind: Kind,
    axes: usize,
) -> Result<W::Output, Failure>
where
    Complex<T>: Element<Real = T>,
{
    match kind {
        Kind::C2C => with_family::<W, C2c<T>>(task, axes),
        Kind::R2C => with_family::<W, R2c<T>>(task, axes),
        _ => with_family::<W, R2r<T>>(task, axes),
    }
}

/// Runs a task of this family with as many axes as there are. Collective.
pub(crate) fn with_family<W: Task, K: Family>(task: W, axes: usize) -> Result<W::Output, Failure> {
    match axes {
        1 => task.run::<K, 1>(),
        2 => task.run::<K, 2>(),
        3 => task.run::<K, 3>(),
        4 => task.run::<K, 4>(),
        _ => refused(format!("found {axes} axes, expected 1 to {MAX_AXES}")),
    }
}
