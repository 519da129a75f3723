//! Requests of programs: numbers become options.

use std::time::Duration;

use thriffty::local::DynLocalDraft;
use thriffty::planning::{
    DynBrick, DynTransform, Family, MAX_AXES, Memory, Options, PerAxis, Precision,
};
use thriffty::{Error, Kind, Scale, Tolerance, Tune};

use crate::values::{self, Brick, Transform};

/// Where the data of a plan on a device is.
#[cfg(feature = "cuda")]
pub(crate) type Place = thriffty::gpu::DeviceOptions;

/// There are no devices.
#[cfg(not(feature = "cuda"))]
#[derive(Clone, Debug)]
pub(crate) enum Place {}

#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) transform: DynTransform,
    pub(crate) shape: PerAxis<usize>,
    pub(crate) precision: Precision,
    pub(crate) options: Options,
    /// The name or the file of a machine.
    pub(crate) machine: Option<String>,
    /// Threads of this process, if the program chooses.
    pub(crate) threads: Option<usize>,
    /// Where the data is: `None` for the host.
    pub(crate) place: Option<Place>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Texts {
    pub(crate) exchange: Option<String>,
    pub(crate) wire: Option<String>,
    pub(crate) tune: Option<String>,
    pub(crate) memory: Option<String>,
    pub(crate) layouts: Option<String>,
    pub(crate) machine: Option<String>,
}

/// What must be known to lay a request out in memory: a family, and the number of axes.
pub(crate) fn family(transform: i32, axes: i32) -> Result<(Transform, usize), Error> {
    let known = [Transform::C2c, Transform::R2c, Transform::R2r].map(|it| (it as i32, it));
    let transform = one_of("transform", transform, &known)?;
    match usize::try_from(axes) {
        Ok(axes @ 1..=MAX_AXES) => Ok((transform, axes)),
        _ => Err(Error::argument("axes", axes, format!("1 to {MAX_AXES}"))),
    }
}

impl Request {
    /// A request in numbers that mean something.
    ///
    /// # Errors
    /// [`Error::Argument`] or [`Error::Geometry`] for those that do not.
    pub(crate) fn new(
        (transform, axes): (Transform, usize),
        shape: &[i64],
        [input, output]: [Option<Brick>; 2],
        options: &values::Options,
        texts: Texts,
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
        let mut asked = Options::new(transform, axes);
        for axis in 0..axes {
            if let Some(kind) = kind(axis, options.kinds[axis])? {
                asked.kinds[axis] = kind;
            }
        }
        (asked.input, asked.output) = (brick(input)?, brick(output)?);
        asked.input_order = order("input_order", &options.input_order[..axes])?;
        asked.output_order = order("output_order", &options.output_order[..axes])?;
        asked.forward = scale("forward_scale", options.forward_scale)?;
        asked.inverse = scale("inverse_scale", options.inverse_scale)?;
        asked.batch = usize::try_from(options.batch)
            .map_err(|_| Error::argument("batch", options.batch, "1 or more"))?;
        asked.exchange = texts.exchange.map(|name| name.parse()).transpose()?;
        asked.wire = texts.wire.map(|name| name.parse()).transpose()?;
        asked.layouts = texts.layouts.map_or(Ok(Family::Any), |name| name.parse())?;
        asked.memory = texts.memory.map_or(Ok(Memory::default()), |name| name.parse())?;
        asked.tolerance = tolerance(options.tolerance, options.strict != 0)?;
        asked.ignore_shared_memory = options.ignore_shared_memory != 0;
        asked.shared_arrays = options.shared_arrays != 0;
        asked.transposed_input = options.transposed_input != 0;
        asked.transposed_output = options.transposed_output != 0;
        let lens = &lens;
        asked.transform = lengths("transform", &options.transform[..axes], |axis| lens[axis])?;
        let longest = asked.transform.unwrap_or(*lens);
        asked.modes = lengths("modes", &options.modes[..axes], |axis| longest[axis])?;
        asked.tune = tune(options, texts.tune)?;
        let precision = precision(options.precision)?;
        let threads = match options.threads {
            0 => None,
            given => {
                let wrong = |_| Error::argument("threads", given, "0 or more");
                Some(usize::try_from(given).map_err(wrong)?)
            }
        };
        let machine = texts.machine;
        Ok(Self { transform, shape: *lens, precision, options: asked, machine, threads, place })
    }

    /// The draft of a plan on the host.
    pub(crate) fn local_draft(self) -> DynLocalDraft {
        let Self { transform, shape, precision, options, threads, .. } = self;
        DynLocalDraft { shape, transform, precision, options, threads }
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

fn precision(found: i32) -> Result<Precision, Error> {
    use values::Precision::{F32, F64};
    one_of("precision", found, &[(F32 as i32, Precision::F32), (F64 as i32, Precision::F64)])
}

fn scale(what: &str, found: i32) -> Result<Scale, Error> {
    use values::Scale::{Full, None, Symmetric};
    let known = [(None, Scale::None), (Full, Scale::Full), (Symmetric, Scale::Symmetric)];
    one_of(what, found, &known.map(|(number, scale)| (number as i32, scale)))
}

fn kind(axis: usize, found: i32) -> Result<Option<Kind>, Error> {
    // The numbers of `values::Kind`: 0, and all kinds in their order.
    if found == values::Kind::Default as i32 {
        return Ok(None);
    }
    let place = usize::try_from(found).ok().and_then(|number| number.checked_sub(1));
    let kind = place.and_then(|place| Kind::ALL.get(place));
    let expected = || format!("0 to {}", Kind::ALL.len());
    let wrong = || Error::argument(format!("kinds[{axis}]"), found, expected());
    kind.map(|kind| Some(*kind)).ok_or_else(wrong)
}

/// Whether it is a permutation is for the library to say.
pub(crate) fn order(what: &str, found: &[i32]) -> Result<PerAxis<usize>, Error> {
    let mut order = PerAxis::splat(found.len(), 0);
    for (axis, &given) in order.iter_mut().zip(found) {
        let expected = || format!("0 to {}", found.len() - 1);
        *axis = usize::try_from(given).map_err(|_| Error::argument(what, given, expected()))?;
    }
    Ok(order)
}

/// A length for each axis, if any is given; 0 stands for the usual one.
fn lengths(
    what: &str,
    found: &[i64],
    usual: impl Fn(usize) -> usize,
) -> Result<Option<PerAxis<usize>>, Error> {
    if found.iter().all(|given| *given == 0) {
        return Ok(None);
    }
    let mut lens = PerAxis::splat(found.len(), 0);
    for (axis, &given) in found.iter().enumerate() {
        let wrong = |_| Error::argument(format!("{what}[{axis}]"), given, "0 or more");
        let given = usize::try_from(given).map_err(wrong)?;
        lens[axis] = if given == 0 { usual(axis) } else { given };
    }
    Ok(Some(lens))
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

fn tolerance(relative: f64, strict: bool) -> Result<Option<Tolerance>, Error> {
    if relative == 0.0 {
        return Ok(None);
    }
    let tolerance = Tolerance::relative(relative)?;
    Ok(Some(if strict { tolerance.strict() } else { tolerance }))
}

fn tune(options: &values::Options, text: Option<String>) -> Result<Tune, Error> {
    use values::Tune::{Exact, Measure, Model, Wisdom};
    let known = [Model, Measure, Wisdom, Exact].map(|tune| (tune as i32, tune));
    let tune = one_of("tune", options.tune, &known)?;
    let text = text.ok_or_else(|| Error::argument("tune_text", "NULL", "a text"));
    Ok(match tune {
        Model => Tune::Model,
        Measure => {
            let found = options.tune_seconds;
            let budget = Duration::try_from_secs_f64(found);
            let expected = "seconds, 0 or more";
            let budget = budget.map_err(|_| Error::argument("tune_seconds", found, expected))?;
            Tune::Measure { budget }
        }
        Wisdom => Tune::Wisdom(text?.into()),
        Exact => Tune::Recipe(text?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_kinds_are_those_of_the_header() {
        use values::Kind as Number;
        for (number, expected) in [
            (Number::Default, None),
            (Number::None, Some(Kind::None)),
            (Number::C2c, Some(Kind::C2C)),
            (Number::R2c, Some(Kind::R2C)),
            (Number::Dct1, Some(Kind::Dct1)),
            (Number::Dct4, Some(Kind::Dct4)),
            (Number::Dst1, Some(Kind::Dst1)),
            (Number::Dst4, Some(Kind::Dst4)),
        ] {
            assert_eq!(kind(0, number as i32), Ok(expected));
        }
        assert!(kind(0, Number::Dst4 as i32 + 1).is_err() && kind(0, -1).is_err());
    }
}
