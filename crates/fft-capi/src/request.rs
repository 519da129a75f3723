//! Requests of programs: numbers become options.

use thriffty::planning::{
    DynBrick, DynDraft, DynGrid, DynTransform, MAX_AXES, Options, PerAxis, Placement, Precision,
};
use thriffty::{Comm, Error};

use crate::values::{self, Brick, Transform};

/// Where the data of a plan on a device is.
#[cfg(feature = "cuda")]
pub(crate) type Place = thriffty::gpu::DeviceOptions;

/// There are no devices.
#[cfg(not(feature = "cuda"))]
#[derive(Clone, Debug)]
pub(crate) enum Place {}

/// The request of a program for a plan.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) transform: DynTransform,
    pub(crate) shape: PerAxis<usize>,
    pub(crate) precision: Precision,
    /// Threads of this process; `None` for the usual number.
    pub(crate) threads: Option<usize>,
    pub(crate) options: Options,
    /// Where the data is: `None` for the host.
    pub(crate) place: Option<Place>,
}

/// The family and the number of axes, which determine how a request is laid out in memory.
pub(crate) fn family(transform: i32, axes: i32) -> Result<(Transform, usize), Error> {
    let known = [Transform::C2c, Transform::R2c, Transform::R2r].map(|it| (it as i32, it));
    let transform = one_of("transform", transform, &known)?;
    match usize::try_from(axes) {
        Ok(axes @ 1..=MAX_AXES) => Ok((transform, axes)),
        _ => Err(Error::argument("axes", axes, format!("1 to {MAX_AXES}"))),
    }
}

impl Request {
    /// A request from valid numbers.
    ///
    /// # Errors
    /// [`Error::Argument`] or [`Error::Geometry`] for invalid ones.
    pub(crate) fn new(
        (transform, axes): (Transform, usize),
        shape: &[i64],
        [input, output]: [Option<Brick>; 2],
        options: &values::Options,
        place: Option<Place>,
    ) -> Result<Self, Error> {
        let transform = match transform {
            Transform::C2c => DynTransform::C2c,
            Transform::R2c => DynTransform::R2c,
            Transform::R2r => DynTransform::R2r,
        };
        let mut lens = PerAxis::splat(axes, 1);
        for (axis, (len, &given)) in lens.iter_mut().zip(shape).enumerate() {
            *len = usize::try_from(given).map_err(|_| {
                Error::argument(format!("points along axis {axis}"), given, "1 or more")
            })?;
        }
        let brick = |given: Option<Brick>| given.map(|given| brick(given, axes)).transpose();
        let (input, output) = (brick(input)?, brick(output)?);
        let Placement { precision, threads, .. } = options.settings.placement;
        let options = Options { input, output, ..options.settings.options.clone() };
        Ok(Self { transform, shape: lens, precision, threads, options, place })
    }

    /// The draft of its plan over a communicator, or of this process alone.
    ///
    /// # Errors
    /// [`Error::Geometry`] if there is no such grid.
    pub(crate) fn draft<'a>(&self, comm: Option<&'a dyn Comm>) -> Result<DynDraft<'a>, Error> {
        let grid = DynGrid::new(self.shape)?;
        let mut draft = match comm {
            Some(comm) => DynDraft::new(comm, grid, self.transform, self.precision),
            None => DynDraft::local(grid, self.transform, self.precision),
        };
        (draft.options, draft.threads) = (self.options.clone(), self.threads);
        #[cfg(feature = "cuda")]
        if let Some(place) = self.place.clone() {
            draft = draft.on(place);
        }
        Ok(draft)
    }
}

/// What a number stands for.
pub(crate) fn one_of<V: Copy>(what: &str, found: i32, known: &[(i32, V)]) -> Result<V, Error> {
    let value = known.iter().find(|(number, _)| *number == found).map(|(_, value)| *value);
    value.ok_or_else(|| {
        let numbers: Vec<_> = known.iter().map(|(number, _)| number.to_string()).collect();
        Error::argument(what, found, format!("one of {}", numbers.join(", ")))
    })
}

/// Reads an order of axes. The library checks that it is a permutation.
pub(crate) fn order(what: &str, found: &[i32]) -> Result<PerAxis<usize>, Error> {
    let mut order = PerAxis::splat(found.len(), 0);
    for (axis, &given) in order.iter_mut().zip(found) {
        let expected = || format!("0 to {}", found.len() - 1);
        *axis = usize::try_from(given).map_err(|_| Error::argument(what, given, expected()))?;
    }
    Ok(order)
}

pub(crate) fn brick(brick: Brick, axes: usize) -> Result<DynBrick, Error> {
    let bounds = |found: [i64; MAX_AXES]| {
        let mut bounds = PerAxis::splat(axes, 0);
        for (bound, given) in bounds.iter_mut().zip(found) {
            let wrong = |_| Error::argument("bound of a brick", given, "0 or more");
            *bound = usize::try_from(given).map_err(wrong)?;
        }
        Ok(bounds)
    };
    Ok(DynBrick::new(bounds(brick.lo)?, bounds(brick.hi)?))
}
