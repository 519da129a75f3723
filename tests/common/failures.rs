//! A failure on one rank must be the same error on every rank, on any communicator.

use thriffty::planning::Exchange;
use thriffty::{Brick, C2c, Comm, Error, ErrorKind, Grid, Kind, Plan, R2c, R2r, Scale};

use super::check::{Case, check};
use super::data::C64;
use super::{injected, unequal};

type Done = Result<(), Error>;

/// Room for the text of an error, to be compared over ranks.
const TEXT: usize = 2048;

/// The error that this rank got, which every rank must have got as well. The communicator must
/// still work.
pub(crate) fn everywhere<R>(
    comm: &dyn Comm,
    what: &str,
    result: Result<R, Error>,
) -> Result<Error, Error> {
    let found = format!("{:?}", result.as_ref().map(|_| ()));
    let mut mine = [0; TEXT];
    mine[..found.len()].copy_from_slice(found.as_bytes());
    let mut all = vec![0; TEXT * comm.size()];
    comm.allgather(&mine, &mut all)?;
    for (rank, text) in all.chunks_exact(TEXT).enumerate() {
        let text = String::from_utf8_lossy(text);
        let (text, here) = (text.trim_end_matches('\0'), comm.rank());
        assert_eq!(text, found, "{what}: rank {rank} (left) differs from rank {here} (right)");
    }
    Ok(result.err().unwrap_or_else(|| panic!("{what}: no rank reports an error")))
}

/// The first and the last rank, which fail one after the other.
pub(crate) fn culprits(comm: &dyn Comm) -> [usize; 2] {
    assert!(comm.size() > 1, "with one rank there is nothing to agree on");
    [0, comm.size() - 1]
}

const SHAPE: [usize; 2] = [12, 10];

/// One rank's brick grows by a plane, shrinks by one, or leaves the grid: as input, and as output.
pub(crate) fn bricks(comm: &dyn Comm) -> Done {
    let (rank, ranks) = (comm.rank(), comm.size());
    let grid = Grid::new(SHAPE)?;
    for culprit in culprits(comm) {
        // Slabs along the first axis, so that the neighbours are easy to compute.
        let slab =
            |rank: usize| Brick { lo: [12 * rank / ranks, 0], hi: [12 * (rank + 1) / ranks, 10] };
        let (good, first) = (slab(culprit), culprit == 0);
        let (mut grown, mut shrunk, mut beyond) = (good, good, good);
        beyond.hi[1] = 11;
        if first {
            grown.hi[0] += 1;
            shrunk.hi[0] -= 1;
        } else {
            grown.lo[0] -= 1;
            shrunk.lo[0] += 1;
        }
        for (what, bad) in [("grown", grown), ("shrunk", shrunk), ("beyond", beyond)] {
            for side in ["input", "output"] {
                let draft = Plan::<C2c, 2>::c2c(comm, grid);
                let mine = if rank == culprit { bad } else { slab(rank) };
                let draft = match side {
                    "input" => draft.input_brick(mine),
                    _ => draft.output_brick(mine),
                };
                let what = format!("{what} {side} brick of rank {culprit}");
                let error = everywhere(comm, &what, draft.build())?;
                let (a, b) = if first { (0, 1) } else { (culprit - 1, culprit) };
                let brick = |rank| if rank == culprit { bad } else { slab(rank) }.to_string();
                let wanted = if bad == grown {
                    let row = if first { good.hi[0] } else { grown.lo[0] };
                    format!(
                        "brick {} of rank {a} and brick {} of rank {b} overlap in [{row}..{}, 0..10]",
                        brick(a),
                        brick(b),
                        row + 1
                    )
                } else if bad == shrunk {
                    "belongs to no rank (110 of 120 points are covered)".into()
                } else {
                    format!("brick {bad} of rank {culprit} is not inside the grid 12x10")
                };
                let Error::Geometry(text) = error else { panic!("{what}: {error}") };
                assert!(text.ends_with(&wanted), "{what}: {text}, expected {wanted}");
            }
        }
    }
    Ok(())
}

/// One rank passes a slice that is one element too short or too long. The plan works again right
/// afterwards.
pub(crate) fn lengths(comm: &dyn Comm) -> Done {
    let case = Case::new(SHAPE, [Kind::C2C, Kind::R2C]);
    let mut plan = case.plan::<R2c>(comm)?;
    let (real, complex, both) = (plan.input_len(), plan.output_len(), plan.in_place_len());
    for culprit in culprits(comm) {
        for change in [-1, 1] {
            let len = |right: usize, wrong: bool| {
                if wrong && comm.rank() == culprit {
                    right.saturating_add_signed(change)
                } else {
                    right
                }
            };
            for (what, wrong) in [("input", [true, false]), ("output", [false, true])] {
                let mut x = vec![1.0; len(real, wrong[0])];
                let mut y = vec![C64::default(); len(complex, wrong[1])];
                let result = plan.forward_into(&x, &mut y);
                length_error(comm, culprit, what, result, len, [real, complex], wrong)?;
                (x, y) =
                    (vec![1.0; len(real, wrong[1])], vec![C64::default(); len(complex, wrong[0])]);
                let result = plan.inverse_into(&y, &mut x);
                length_error(comm, culprit, what, result, len, [complex, real], wrong)?;
            }
            let mut data = vec![C64::default(); len(both, true)];
            let result = plan.forward_in_place(&mut data);
            length_error(comm, culprit, "array in place", result, len, [both; 2], [true; 2])?;
            let result = plan.inverse_in_place(&mut data);
            length_error(comm, culprit, "array in place", result, len, [both; 2], [true; 2])?;
        }
    }
    let mut spectrum = vec![C64::default(); complex];
    // A rank that has no arrays at all reports an error while others transform.
    for culprit in culprits(comm) {
        let result = if comm.rank() == culprit {
            plan.agree(Err(Error::argument("input", "none", "an array")))
        } else {
            plan.forward_into(&vec![1.0; real], &mut spectrum)
        };
        let error = everywhere(comm, "no array", result)?;
        assert!(error.to_string().starts_with(&format!("rank {culprit}: ")), "{error}");
    }
    plan.forward_into(&vec![1.0; real], &mut spectrum)?;
    let mean = if plan.output_brick().lo == [0, 0] { 120.0 } else { 0.0 };
    let sum: C64 = spectrum.iter().sum();
    assert!((sum - mean).norm() < 1e-12, "the plan no longer works: {sum} instead of {mean}");
    check::<R2c, 2>(comm, &case)
}

/// Checks an error about lengths: it has the length of the culprit's slices, and every rank must
/// have its text.
fn length_error(
    comm: &dyn Comm,
    culprit: usize,
    what: &str,
    result: Result<(), Error>,
    len: impl Fn(usize, bool) -> usize,
    right: [usize; 2],
    wrong: [bool; 2],
) -> Done {
    match everywhere(comm, what, result)? {
        Error::OnRank { rank, kind: ErrorKind::Argument, message } if rank == culprit => {
            if comm.rank() == culprit {
                let right = if wrong[0] { right[0] } else { right[1] };
                let found = len(right, true);
                let expected =
                    format!("the {what} of rank {rank} has {found} elements, expected {right}");
                assert_eq!(message, expected);
            }
            Ok(())
        }
        other => panic!("wrong length of the {what} on rank {culprit}: {other:?}"),
    }
}

/// One rank drafts another transform.
pub(crate) fn options(comm: &dyn Comm) -> Done {
    let grid = Grid::new(SHAPE)?;
    for culprit in culprits(comm) {
        let other = comm.rank() == culprit;
        let draft = || Plan::<C2c, 2>::c2c(comm, grid);
        let differs = |what: &str, result: Done| -> Done {
            match everywhere(comm, what, result)? {
                Error::Disagreement { what: found, rank_a, a, rank_b, b } => {
                    assert_eq!(found, what);
                    assert_eq!((rank_a, rank_b), (0, culprit.max(1)), "{what}");
                    assert_ne!(a, b, "{what}");
                    Ok(())
                }
                error => panic!("rank {culprit} differs in {what}: {error:?}"),
            }
        };
        let or = |usual: Draft<'_>, unusual: Draft<'_>| {
            if other { unusual.build().map(drop) } else { usual.build().map(drop) }
        };
        let kinds = [Kind::C2C, Kind::Dct2];
        let exchange = Exchange::Alltoallv;
        differs("grid", or(draft(), Plan::c2c(comm, Grid::new([12, 11])?)))?;
        differs("kinds", or(draft(), draft().kinds(kinds)))?;
        differs("input_order", or(draft(), draft().input_order([1, 0])))?;
        differs("output_order", or(draft(), draft().output_order([1, 0])))?;
        differs("batch", or(draft(), draft().batch(2)))?;
        differs("inverse_scale", or(draft(), draft().inverse_scale(Scale::None)))?;
        differs("exchange", or(draft(), draft().exchange(exchange)))?;
        differs("shared_arrays", or(draft(), draft().shared_arrays(true)))?;
        let result = if other {
            Plan::<C2c<f32>, 2>::c2c(comm, grid).build().map(drop)
        } else {
            draft().build().map(drop)
        };
        differs("precision in bytes", result)?;
        let result = if other {
            Plan::<R2r, 2>::r2r(comm, grid).build().map(drop)
        } else {
            draft().build().map(drop)
        };
        differs("numbers per point", result)?;
        let result = if other {
            Plan::<C2c, 4>::c2c(comm, Grid::new([12, 10, 2, 2])?).build().map(drop)
        } else {
            draft().build().map(drop)
        };
        differs("number of axes", result)?;
    }
    Ok(())
}

type Draft<'a> = thriffty::Draft<'a, C2c, 2>;

/// What makes no sense on any rank is the same error on all of them, too.
pub(crate) fn nonsense(comm: &dyn Comm) -> Done {
    let grid = Grid::new(SHAPE)?;
    let argument = |what: &str, result: Done| -> Done {
        match everywhere(comm, what, result)? {
            Error::Argument { .. } | Error::TooLarge { .. } => Ok(()),
            error => panic!("{what}: {error:?}"),
        }
    };
    let draft = || Plan::<C2c, 2>::c2c(comm, grid);
    argument("no batches", draft().batch(0).build().map(drop))?;
    argument("too many batches", draft().batch(1 << 60).build().map(drop))?;
    argument("twice the same axis", draft().input_order([0, 0]).build().map(drop))?;
    argument("an axis that is not there", draft().output_order([0, 2]).build().map(drop))?;
    argument("halving complex data", draft().kinds([Kind::R2C, Kind::C2C]).build().map(drop))?;
    let real = || Plan::<R2c, 2>::r2c(comm, grid);
    argument("nothing halved", real().kinds([Kind::Dct2; 2]).build().map(drop))?;
    argument("halved twice", real().kinds([Kind::R2C; 2]).build().map(drop))?;
    let thin = Plan::<R2r, 2>::r2r(comm, Grid::new([12, 1])?);
    argument("a cosine of one point", thin.kinds([Kind::Dct1; 2]).build().map(drop))
}

/// All of them.
pub(crate) fn all(comm: &dyn Comm) -> Done {
    bricks(comm)?;
    lengths(comm)?;
    options(comm)?;
    nonsense(comm)?;
    injected::memory(comm)?;
    injected::shared(comm)?;
    injected::damage(comm)?;
    injected::sizes(comm)?;
    unequal::messages(comm)?;
    unequal::recipes(comm)
}
