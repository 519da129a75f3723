//! Parsers of option values.

use std::num::{IntErrorKind, NonZeroUsize};
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
    let kinds = Kind::ALL.into_iter().filter(|kind| *kind != Kind::None);
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

/// How many there are of something that cannot be missing.
pub(crate) fn count(text: &str) -> Result<NonZeroUsize, String> {
    text.parse::<NonZeroUsize>().map_err(|error| match error.kind() {
        IntErrorKind::PosOverflow => format!("expected at most {}", usize::MAX),
        _ => "expected a whole number of 1 or more".into(),
    })
}

pub(crate) fn tolerance(text: &str) -> Result<Tolerance, String> {
    let parsed = text.parse().ok().and_then(|error| Tolerance::relative(error).ok());
    parsed.ok_or_else(|| "expected a number above 0 and at most 1, for example 1e-6".into())
}

/// A number of some quantity that is above 0, such as a bandwidth.
pub(crate) fn positive(text: &str) -> Result<f64, String> {
    let parsed = text.parse::<f64>().ok().filter(|value| value.is_finite() && *value > 0.0);
    parsed.ok_or_else(|| "expected a number above 0".into())
}

/// A number of seconds of 0 or more, with or without its unit: 10s, 500ms, 2us, 2.5.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    let units = [("ms", 1e-3), ("us", 1e-6), ("µs", 1e-6), ("s", 1.0), ("", 1.0)];
    let mut read = units.into_iter().filter_map(|(unit, factor)| {
        Some(text.strip_suffix(unit)?.trim().parse::<f64>().ok()? * factor)
    });
    let time = read.next().filter(|time| time.is_finite() && *time >= 0.0);
    time.ok_or_else(|| "expected a time of 0 or more, for example 10s, 500ms or 2us".into())
}

/// The same as a [`Duration`].
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let seconds = seconds(text)?;
    let most = || "expected a time that can be waited for".into();
    Duration::try_from_secs_f64(seconds).map_err(|_| most())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        let read = |text| duration(text).map(|time| time.as_secs_f64());
        let found = ["10s", "500ms", "2.5", "20 us", "20µs"].map(read);
        assert_eq!(found, [10.0, 0.5, 2.5, 2e-5, 2e-5].map(Ok));
        for wrong in ["", "-1s", "s", "ten", "1e999", "nan", "inf", "1m"] {
            assert!(duration(wrong).unwrap_err().starts_with("expected a time"), "{wrong}");
        }
        assert!(duration("1e300").is_err());
    }

    #[test]
    fn counts_begin_at_one() {
        assert_eq!(count("7").map(NonZeroUsize::get), Ok(7));
        for wrong in ["0", "-1", "", "2.5", "two", "+", "0x10"] {
            assert_eq!(count(wrong).unwrap_err(), "expected a whole number of 1 or more");
        }
        let most = format!("expected at most {}", usize::MAX);
        assert_eq!(count("99999999999999999999").unwrap_err(), most);
    }

    #[test]
    fn tolerances_and_rates_are_above_zero() {
        assert_eq!(tolerance("1e-6").unwrap().value(), 1e-6);
        assert_eq!(positive("2.5e9"), Ok(2.5e9));
        for wrong in ["0", "-1", "nan", "", "x", "inf"] {
            assert!(tolerance(wrong).unwrap_err().contains("above 0"), "{wrong}");
            assert!(positive(wrong).unwrap_err().contains("above 0"), "{wrong}");
        }
        assert!(tolerance("1.5").is_err());
    }
}
