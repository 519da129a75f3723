//! Kinds and precisions of transforms, from values to types.

use thriffty::planning::{DynDraft, DynGrid, DynTransform, Options, PerAxis, Precision};
use thriffty::{Comm, Kind};

/// Drafts a transform of `kind` along every axis; with R2C, of C2C along all but the last.
pub(crate) fn draft(
    comm: &dyn Comm,
    grid: DynGrid,
    kind: Kind,
    precision: Precision,
) -> DynDraft<'_> {
    let kinds = Some(kinds(grid.axes(), kind));
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

/// The options with a kind for each of `axes` axes: the given ones, else the kinds for `kind`.
pub(crate) fn with_kinds(options: &Options, kind: Kind, axes: usize) -> Options {
    let kinds = options.kinds.unwrap_or_else(|| kinds(axes, kind));
    Options { kinds: Some(kinds), ..options.clone() }
}

/// Kinds in words: `r2c`, or `dct2,r2c,none`.
pub(crate) fn name(kind: Kind, options: &Options) -> String {
    match options.kinds {
        None => kind.name().into(),
        Some(kinds) => kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(","),
    }
}

/// Calls a function that is generic in the `Transform`, for this kind and precision.
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
