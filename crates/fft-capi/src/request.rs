//! What a program asks for, once its numbers have become options.

use std::time::Duration;

use thriffty::{
    Algorithm, DynTransform, Error, Kind, Memory, Precision, Scale, Tolerance, Tune, Wire,
};

#[cfg(feature = "cuda")]
pub(crate) use crate::device::Place;
use crate::values::{self, Brick, Options, Transform};

pub(crate) use thriffty::MAX_AXES;

/// A plan that is wanted. Of each array as many entries count as there are axes.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) transform: DynTransform,
    pub(crate) axes: usize,
    pub(crate) shape: [usize; MAX_AXES],
    pub(crate) input: Option<Bounds>,
    pub(crate) output: Option<Bounds>,
    pub(crate) precision: Precision,
    /// `None`: as the transform does unless told otherwise.
    pub(crate) kinds: [Option<Kind>; MAX_AXES],
    pub(crate) orders: [[usize; MAX_AXES]; 2],
    pub(crate) scales: [Scale; 2],
    pub(crate) howmany: usize,
    pub(crate) exchange: Option<Algorithm>,
    pub(crate) wire: Option<Wire>,
    pub(crate) tolerance: Option<Tolerance>,
    pub(crate) everywhere: bool,
    pub(crate) memory: Memory,
    pub(crate) shared_arrays: bool,
    pub(crate) tune: Tune,
    /// Where the data is: `None` for the host.
    pub(crate) place: Option<Place>,
}

/// A device and a stream, of which there are none.
#[cfg(not(feature = "cuda"))]
#[derive(Clone)]
pub(crate) enum Place {}

/// First indices, and those past the last.
pub(crate) type Bounds = [[usize; MAX_AXES]; 2];

/// The texts that options point to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Texts {
    pub(crate) exchange: Option<String>,
    pub(crate) wire: Option<String>,
    pub(crate) tune: Option<String>,
    pub(crate) memory: Option<String>,
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
        options: &Options,
        texts: Texts,
        place: Option<Place>,
    ) -> Result<Self, Error> {
        let mut lens = [1; MAX_AXES];
        for (axis, (len, &given)) in lens.iter_mut().zip(shape).enumerate() {
            *len = usize::try_from(given).map_err(|_| {
                Error::argument(format!("points along axis {axis}"), given, "1 or more")
            })?;
        }
        let bounds = |brick: Option<Brick>| brick.map(|brick| bounds(brick, axes)).transpose();
        let exchange = texts.exchange.map(|name| name.parse()).transpose()?;
        let wire = texts.wire.map(|name| name.parse()).transpose()?;
        let memory = texts.memory.map_or(Ok(Memory::default()), |name| name.parse())?;
        let mut kinds = [None; MAX_AXES];
        for axis in 0..axes {
            kinds[axis] = kind(axis, options.kinds[axis])?;
        }
        let transform = match transform {
            Transform::C2c => DynTransform::C2c,
            Transform::R2c => DynTransform::R2c,
            Transform::R2r => DynTransform::R2r,
        };
        Ok(Self {
            transform,
            axes,
            shape: lens,
            input: bounds(input)?,
            output: bounds(output)?,
            precision: precision(options.precision)?,
            kinds,
            orders: [
                order("input_order", &options.input_order, axes)?,
                order("output_order", &options.output_order, axes)?,
            ],
            scales: [
                scale("forward_scale", options.forward_scale)?,
                scale("inverse_scale", options.inverse_scale)?,
            ],
            howmany: usize::try_from(options.howmany)
                .map_err(|_| Error::argument("howmany", options.howmany, "1 or more"))?,
            exchange,
            wire,
            tolerance: tolerance(options.tolerance, options.strict != 0)?,
            everywhere: options.wire_everywhere != 0,
            memory,
            shared_arrays: options.shared_arrays != 0,
            tune: tune(options, texts.tune)?,
            place,
        })
    }
}

/// What a number stands for.
fn one_of<V: Copy>(what: &str, found: i32, known: &[(i32, V)]) -> Result<V, Error> {
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
    use values::Kind as Number;
    let known = [
        (Number::Default, None),
        (Number::None, Some(Kind::Identity)),
        (Number::C2c, Some(Kind::C2C)),
        (Number::R2c, Some(Kind::R2C)),
        (Number::Dct1, Some(Kind::Dct1)),
        (Number::Dct2, Some(Kind::Dct2)),
        (Number::Dct3, Some(Kind::Dct3)),
        (Number::Dct4, Some(Kind::Dct4)),
        (Number::Dst1, Some(Kind::Dst1)),
        (Number::Dst2, Some(Kind::Dst2)),
        (Number::Dst3, Some(Kind::Dst3)),
        (Number::Dst4, Some(Kind::Dst4)),
    ];
    let what = format!("kinds[{axis}]");
    one_of(&what, found, &known.map(|(number, kind)| (number as i32, kind)))
}

/// Whether it is a permutation is for the library to say.
fn order(what: &str, found: &[i32; MAX_AXES], axes: usize) -> Result<[usize; MAX_AXES], Error> {
    let mut order = [0; MAX_AXES];
    for (axis, &found) in order.iter_mut().zip(&found[..axes]) {
        *axis = usize::try_from(found)
            .map_err(|_| Error::argument(what, found, format!("0 to {}", axes - 1)))?;
    }
    Ok(order)
}

fn bounds(brick: Brick, axes: usize) -> Result<Bounds, Error> {
    let mut bounds = [[0; MAX_AXES]; 2];
    for (place, found) in bounds.iter_mut().zip([brick.lo, brick.hi]) {
        for (bound, &found) in place.iter_mut().zip(&found[..axes]) {
            *bound = usize::try_from(found)
                .map_err(|_| Error::argument("bound of a brick", found, "0 or more"))?;
        }
    }
    Ok(bounds)
}

fn tolerance(relative: f64, strict: bool) -> Result<Option<Tolerance>, Error> {
    if relative == 0.0 {
        return Ok(None);
    }
    let tolerance = Tolerance::relative(relative)?;
    Ok(Some(if strict { tolerance.strict() } else { tolerance }))
}

fn tune(options: &Options, text: Option<String>) -> Result<Tune, Error> {
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
