//! Plans whose types are values: they do the same as plans with types, and refuse impossible
//! combinations.

use bytemuck::{cast_slice, cast_slice_mut};
use thriffty::planning::{
    Direction, DynBrick, DynDraft, DynGrid, DynPlan, DynTransform, Options, Precision, Transform,
};
use thriffty::{Brick, C2c, Comm, Complex, Error, Grid, Kind, Plan, R2c, R2r};

use crate::common::RANKS;

/// Forward transforms of the same numbers, by a plan with types and by one without.
fn same<K: Transform, const D: usize>(comm: &dyn Comm, shape: [usize; D]) -> Result<(), Error> {
    let grid = Grid::new(shape)?;
    let mut typed = thriffty::Draft::<K, D>::new(comm, grid).build()?;
    let precision = typed.recipe().problem().precision;
    let mut erased = DynDraft::new(comm, grid, K::DYN, precision).build()?;
    assert_eq!(typed.recipe(), erased.recipe());
    assert_eq!(erased.input_brick(), typed.input_brick());
    assert_eq!(erased.in_place_len(), typed.in_place_len());

    let mut field = typed.input();
    field.fill(|index| {
        let number = index.iter().fold(1, |sum, i| 7 * sum + i);
        bytemuck::cast_slice::<K::Real, K::Physical>(
            &[<K::Real as thriffty::planning::Real>::of(number as f64); 2],
        )[0]
    });
    let mut output = erased.zeros()?;
    let bytes = erased.output_bytes();
    erased.run(
        Direction::Forward,
        cast_slice(field.as_slice()),
        &mut output.bytes_mut()[..bytes],
    )?;
    let mut in_place = erased.zeros()?;
    let input = cast_slice::<_, u8>(field.as_slice());
    in_place.bytes_mut()[..input.len()].copy_from_slice(input);
    let expected = typed.forward(field)?;
    assert_eq!(&output.bytes()[..bytes], cast_slice::<_, u8>(expected.as_slice()));
    erased.run_in_place(Direction::Forward, in_place.bytes_mut())?;
    assert_eq!(in_place.bytes()[..bytes], output.bytes()[..bytes]);
    let back = typed.inverse(expected)?;
    erased.run_in_place(Direction::Inverse, in_place.bytes_mut())?;
    let back = cast_slice::<_, u8>(back.as_slice());
    assert_eq!(&in_place.bytes()[..back.len()], back);
    Ok(())
}

#[test]
fn plans_with_and_without_types_are_the_same() {
    for ranks in RANKS {
        let found = thriffty::threads(ranks, |comm| {
            same::<C2c, 1>(&comm, [30])?;
            same::<C2c<f32>, 3>(&comm, [6, 5, 4])?;
            same::<R2c, 2>(&comm, [7, 12])?;
            same::<R2c<f32>, 4>(&comm, [3, 4, 2, 6])?;
            same::<R2r, 3>(&comm, [4, 3, 5])?;
            same::<R2r<f32>, 2>(&comm, [8, 9])
        });
        found.unwrap();
    }
}

/// What every rank says of a draft.
fn refused(change: impl Fn(&mut Options) + Sync) -> String {
    let found = thriffty::threads(3, |comm| {
        let grid = DynGrid::new([8, 6, 4])?;
        let mut draft = DynDraft::new(&comm, grid, DynTransform::C2c, Precision::F64);
        // One rank alone makes the mistake.
        if comm.rank() == 1 {
            change(&mut draft.options);
        }
        Ok::<_, Error>(draft.build().err().map(|error| error.to_string()))
    });
    let mut found = found.unwrap();
    found.dedup();
    let [Some(error)] = found.as_slice() else { panic!("{found:?}") };
    error.clone()
}

#[test]
fn what_has_other_axes_than_the_grid_is_refused() {
    for (error, expected) in [
        (
            refused(|options| options.kinds = Some([Kind::C2C; 2].into())),
            "axes of kinds: found 2, expected 3",
        ),
        (
            refused(|options| options.input_order = Some([1, 0].into())),
            "axes of input_order: found 2, expected 3",
        ),
        (
            refused(|options| options.output = Some(DynBrick::empty(4))),
            "axes of a brick: found 4, expected 3",
        ),
        (
            refused(|options| {
                let brick = DynBrick { hi: [8, 6].into(), ..DynBrick::empty(3) };
                options.input = Some(brick);
            }),
            "axes of a brick: found 2, expected 3",
        ),
    ] {
        assert!(error.contains(expected), "{error}");
    }
    let error = thriffty::threads(2, |comm| {
        let flat = Plan::<C2c, 2>::c2c(&comm, Grid::new([8, 6])?).recipe()?;
        Ok::<_, Error>(Plan::<C2c, 3>::bind(&comm, flat).err().map(|error| error.to_string()))
    });
    let error = error.unwrap()[0].clone().unwrap();
    assert!(error.contains("axes of the recipe: found 2, expected 3"), "{error}");
}

fn plan(comm: &dyn Comm) -> Result<DynPlan, Error> {
    let grid = DynGrid::new([8, 4])?;
    // The last rank holds nothing.
    let brick = |rank| match rank {
        0 => Brick { lo: [0, 0], hi: [8, 4] },
        _ => Brick::EMPTY,
    };
    let mut draft = DynDraft::new(comm, grid, DynTransform::C2c, Precision::F64);
    let brick = brick(comm.rank()).into();
    (draft.options.input, draft.options.output) = (Some(brick), Some(brick));
    draft.build()
}

#[test]
fn arrays_that_do_not_fit_are_refused_on_all_ranks() {
    let found = thriffty::threads(2, |comm| {
        let mut plan = plan(&comm)?;
        let mut said = |from: std::ops::Range<usize>, first: usize| {
            let (numbers, mut output) = ([0.0f64; 66], plan.zeros().unwrap());
            let input = if plan.input_len() > 0 { from } else { 0..0 };
            let input = &cast_slice::<_, u8>(&numbers)[input.start + first..input.end + first];
            let error = plan.run(Direction::Forward, input, output.bytes_mut());
            error.err().map_or("none".into(), |error| error.to_string())
        };
        Ok::<_, Error>([said(0..512, 0), said(0..511, 0), said(0..513, 0), said(0..512, 1)])
    });
    for [fits, short, long, misplaced] in found.unwrap() {
        assert_eq!(fits, "none");
        assert!(short.contains("has 31 elements, expected 32"), "{short}");
        assert!(long.contains("has 33 elements, expected 32"), "{long}");
        assert!(misplaced.contains("address of the input"), "{misplaced}");
    }
}

#[test]
fn arrays_without_numbers_may_be_anywhere() {
    let found = thriffty::threads(2, |comm| {
        let mut plan = plan(&comm)?;
        let (mut bytes, one) = ([0u8; 17], [Complex::new(1.0, 0.0); 32]);
        if plan.input_len() == 0 {
            let at = (1..9).find(|at| bytes[*at..].as_ptr().align_offset(8) != 0).unwrap_or(1);
            let (input, output) = bytes.split_at_mut(at);
            plan.run(Direction::Forward, &input[at..], &mut output[..0])?;
            return Ok(32.0);
        }
        let mut spectrum = [Complex::<f64>::default(); 32];
        plan.run(Direction::Forward, cast_slice(&one), cast_slice_mut(&mut spectrum))?;
        Ok::<_, Error>(spectrum[0].re)
    });
    assert_eq!(found.unwrap(), [32.0; 2]);
}

/// Ranks whose drafts have other numbers of axes have the same error.
#[test]
fn drafts_of_other_numbers_of_axes_are_refused() {
    let found = thriffty::threads(3, |comm| {
        let shape = [4; 4];
        let grid = match comm.rank() {
            1 => DynGrid::new(shape)?,
            _ => DynGrid::new([4, 4])?,
        };
        let draft = DynDraft::new(&comm, grid, DynTransform::R2c, Precision::F64);
        Ok::<_, Error>(draft.build().map(drop).unwrap_err().to_string())
    });
    let expected = "the ranks disagree on the number of axes: rank 0 has 2, rank 1 has 4";
    assert_eq!(found.unwrap(), [expected; 3]);
}

/// An invalid shape is an error on all ranks, like any other option.
#[test]
fn shapes_without_points_are_refused_when_the_plan_is_made() {
    let found = thriffty::threads(2, |comm| {
        let shape = if comm.rank() == 1 { [4, 0] } else { [4, 4] };
        Ok::<_, Error>(thriffty::c2c(&comm, shape).build().map(drop).unwrap_err().to_string())
    });
    let found = found.unwrap();
    assert_eq!(found[0], found[1]);
    assert!(found[0].starts_with("rank 1: axis 1 of grid"), "{}", found[0]);
}
