//! `fft-cli verify`: a test of the installation.

use bytemuck::{cast_slice, cast_slice_mut};
use clap::Args;
use thriffty::planning::{Direction, DynDraft, Exchange, Precision, Transform};
use thriffty::{Comm, Kind};

use crate::args::kinds::{self, dispatch};
use crate::args::shape::Shape;
use crate::check::check::{RoundTrip, bound, points};
use crate::check::reference;
use crate::data::fields::{Field, Source};
use crate::ranks::world::{Failure, print, refused, zeros};

/// Even and uneven division, primes, axes of one point, fewer points than ranks.
const QUICK: [&str; 6] = ["13", "36", "12x10", "1x7", "9x8x5", "3x4x2x5"];
const MORE: [&str; 11] = [
    "1", "2", "1024", "997", "64x48", "31x37", "16x1x16", "17x13x11", "32x32x32", "64x2x30",
    "7x6x5x8",
];

/// Check that this installation computes correct transforms.
///
/// Runs all kinds, precisions and exchanges on many shapes: forward against the definition, and
/// forward and inverse, out of place and in place.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Fewer shapes: a few seconds.
    #[arg(long)]
    quick: bool,
}

pub(super) fn run(comm: &dyn Comm, options: &Options) -> Result<(), Failure> {
    let more: &[&str] = if options.quick { &[] } else { &MORE };
    let (mut checks, mut failed) = (0, 0);
    for shape in QUICK.iter().chain(more) {
        let shape: Shape = shape.parse().expect("a shape of ours");
        for (kind, precision, exchange) in problems(&shape) {
            let draft = kinds::draft(comm, shape.grid()?, kind, precision);
            let draft = draft.with(|options| {
                options.exchange = Some(exchange);
                // Some lengths have no factors.
                options.one_rank = true;
            });
            let (ok, found) = match dispatch!(kind, precision, check(draft)) {
                Ok((error, bound)) => {
                    (error <= bound, format!("error {error:.1e} (bound {bound:.1e})"))
                }
                Err(failure) if failure.is_lonely() => return Err(failure),
                Err(failure) => (false, failure.to_string()),
            };
            let verdict = if ok { "ok" } else { "FAIL" };
            print(
                comm,
                &format!("{verdict:<4} {kind} {shape} {precision} {exchange:<10}  {found}\n"),
            )?;
            checks += 1;
            failed += usize::from(!ok);
        }
    }
    match failed {
        0 => print(comm, &format!("{checks} checks, all ok\n")),
        _ => refused(format!("{failed} of {checks} checks failed")),
    }
}

/// The transforms to check on a grid.
fn problems(shape: &Shape) -> impl Iterator<Item = (Kind, Precision, Exchange)> {
    let possible = |kind: &Kind| kind.is_transform() && shape.shortest() >= kind.least_points();
    let kinds: Vec<Kind> = Kind::ALL.into_iter().filter(possible).collect();
    kinds.into_iter().flat_map(|kind| {
        [Precision::F64, Precision::F32].into_iter().flat_map(move |precision| {
            Exchange::ALL.into_iter().map(move |exchange| (kind, precision, exchange))
        })
    })
}

/// The error and its bound: of forward against the reference, and of forward and inverse, out of
/// place and in place.
fn check<K: Transform>(draft: DynDraft<'_>) -> Result<(f64, f64), Failure> {
    let mut plan = draft.build()?;
    let source = Source::new(Field::Noise, &plan)?;
    let mut physical: Vec<K::Physical> = zeros(plan.comm(), plan.input_len())?;
    let mut spectral: Vec<K::Spectral> = zeros(plan.comm(), plan.output_len())?;
    let mut both: Vec<K::Spectral> = zeros(plan.comm(), plan.in_place_len())?;
    source.fill(&mut physical);
    let reals: &mut [K::Physical] = cast_slice_mut(&mut both);
    reals[..physical.len()].copy_from_slice(&physical);

    plan.run(Direction::Forward, cast_slice(&physical), cast_slice_mut(&mut spectral))?;
    plan.run_in_place(Direction::Forward, cast_slice_mut(&mut both))?;
    let there = [
        reference::error::<K>(&plan, &physical, &spectral)?,
        reference::error::<K>(&plan, &physical, &both[..spectral.len()])?,
    ];
    plan.run(Direction::Inverse, cast_slice(&spectral), cast_slice_mut(&mut physical))?;
    plan.run_in_place(Direction::Inverse, cast_slice_mut(&mut both))?;
    let reals: &[K::Physical] = cast_slice(&both);
    let back = [&physical, &reals[..physical.len()]];
    let [a, b] = back.map(|back| RoundTrip::after(&plan, &source, back));
    let errors = [there[0], there[1], a?.l2, b?.l2];
    // Unlike `f64::max`, this keeps a NaN.
    let larger = |a: f64, b: f64| if a.is_nan() || a > b { a } else { b };
    let points = points(plan.problem());
    Ok((errors.into_iter().fold(0.0, larger), bound::<K::Real>(points)))
}
