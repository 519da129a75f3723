//! Families of transforms and precisions, from values to types.

pub(crate) use thriffty::planning::Transform as Family;
use thriffty::planning::{DynDraft, DynGrid, DynTransform, PerAxis, Precision};
use thriffty::{Comm, Kind};

use crate::args::options::Axes;
use crate::ranks::world::{Failure, refused};

/// Drafts a transform of `kind` along every axis; with R2C, of C2C along all but the last.
pub(crate) fn draft(
    comm: &dyn Comm,
    grid: DynGrid,
    kind: Kind,
    precision: Precision,
) -> DynDraft<'_> {
    let kinds = kinds(grid.axes(), kind);
    DynDraft::new(comm, grid, transform(kind), precision).with(|options| options.kinds = kinds)
}

/// The types of data of that transform.
pub(crate) fn transform(kind: Kind) -> DynTransform {
    match kind {
        Kind::C2C => DynTransform::C2c,
        Kind::R2C => DynTransform::R2c,
        _ => DynTransform::R2r,
    }
}

/// The kinds of the axes of that transform.
pub(crate) fn kinds(axes: usize, kind: Kind) -> PerAxis<Kind> {
    let others = if kind == Kind::R2C { Kind::C2C } else { kind };
    PerAxis::from_fn(axes, |axis| if axis + 1 == axes { kind } else { others })
}

/// The kinds of so many axes: those that were given, else those of `kind`.
pub(crate) fn kinds_of(axes: usize, kind: Kind, given: &Axes) -> Result<PerAxis<Kind>, Failure> {
    let given = &given.kinds;
    match given.len() {
        0 => Ok(kinds(axes, kind)),
        n if n == axes => Ok(PerAxis::from_fn(axes, |axis| given[axis])),
        n => refused(format!("--kinds names {n} kinds, expected one for each of {axes} axes")),
    }
}

/// Kinds in words: `r2c`, or `dct2,r2c,none`.
pub(crate) fn name(kind: Kind, given: &Axes) -> String {
    match given.kinds.is_empty() {
        true => kind.name().into(),
        false => given.kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(","),
    }
}

/// Calls a function that is generic in the [`Family`], for this kind and precision.
macro_rules! dispatch {
    ($kind:expr, $precision:expr, $function:ident($($argument:expr),*)) => {{
        use thriffty::{C2c, Kind, R2c, R2r, planning::Precision};
        match ($precision, $kind) {
            (Precision::F32, Kind::C2C) => $function::<C2c<f32>>($($argument),*),
            (Precision::F32, Kind::R2C) => $function::<R2c<f32>>($($argument),*),
            (Precision::F32, _) => $function::<R2r<f32>>($($argument),*),
            (Precision::F64, Kind::C2C) => $function::<C2c<f64>>($($argument),*),
            (Precision::F64, Kind::R2C) => $function::<R2c<f64>>($($argument),*),
            (Precision::F64, _) => $function::<R2r<f64>>($($argument),*),
        }
    }};
}

pub(crate) use dispatch;
