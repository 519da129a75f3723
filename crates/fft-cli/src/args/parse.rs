//! Parsers of option values.

use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use thriffty::planning::Precision;
use thriffty::{Kind, Tolerance};

/// One of `choices`, by name.
pub(crate) fn choice<T: Clone + Send + Sync + 'static>(
    choices: impl Into<Vec<(&'static str, T)>>,
) -> impl TypedValueParser<Value = T> {
    let choices: Vec<_> = choices.into();
    let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
    PossibleValuesParser::new(names).map(move |found| {
        let chosen = choices.iter().find(|(name, _)| *name == found);
        chosen.expect("clap lets only these names through").1.clone()
    })
}

pub(crate) fn kind() -> impl TypedValueParser<Value = Kind> {
    let kinds = Kind::ALL.into_iter().filter(|kind| *kind != Kind::Identity);
    // As in SciPy, type II is the default.
    let usual = [("dct", Kind::Dct2), ("dst", Kind::Dst2)];
    choice(kinds.map(|kind| (kind.name(), kind)).chain(usual).collect::<Vec<_>>())
}

/// Also `none`, of an axis among others.
pub(crate) fn kind_of_axis() -> impl TypedValueParser<Value = Kind> {
    let usual = [("dct", Kind::Dct2), ("dst", Kind::Dst2)];
    choice(Kind::ALL.map(|kind| (kind.name(), kind)).into_iter().chain(usual).collect::<Vec<_>>())
}

pub(crate) fn precision() -> impl TypedValueParser<Value = Precision> {
    choice([("f32", Precision::F32), ("f64", Precision::F64)])
}

pub(crate) fn tolerance(error: &str) -> Result<Tolerance, String> {
    let error = error.parse::<f64>().map_err(|what| what.to_string())?;
    Tolerance::relative(error).map_err(|what| what.to_string())
}

/// Seconds, or with a unit: 10s, 500ms, 2.5.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => (number, 1e-3),
        (None, number) => (number.unwrap_or(text), 1.0),
    };
    let seconds = number.trim().parse::<f64>().map_err(|error| error.to_string())?;
    Duration::try_from_secs_f64(seconds * unit).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        let seconds = |text| duration(text).map(|time| time.as_secs_f64());
        assert_eq!(["10s", "500ms", "2.5"].map(seconds), [Ok(10.0), Ok(0.5), Ok(2.5)]);
        assert!(["", "-1s", "s", "ten", "1e999"].iter().all(|text| duration(text).is_err()));
    }
}
