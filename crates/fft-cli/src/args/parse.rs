//! Parsers of option values.

use std::num::{IntErrorKind, NonZeroUsize};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use thriffty::Kind;

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
    let kinds = Kind::ALL.into_iter().filter(|kind| kind.is_transform());
    choice(kinds.map(|kind| (kind.name(), kind)).collect::<Vec<_>>())
}

/// A number of things, at least 1.
pub(crate) fn count(text: &str) -> Result<NonZeroUsize, String> {
    text.parse::<NonZeroUsize>().map_err(|error| match error.kind() {
        IntErrorKind::PosOverflow => format!("expected at most {}", usize::MAX),
        _ => "expected a whole number of 1 or more".into(),
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        let nanoseconds = |text| seconds(text).map(|time| (time * 1e9).round());
        let found = ["10s", "500ms", "2.5", "20 us", "20µs"].map(nanoseconds);
        assert_eq!(found, [1e10, 5e8, 2.5e9, 2e4, 2e4].map(Ok));
        for wrong in ["", "-1s", "s", "ten", "1e999", "nan", "inf", "1m"] {
            assert!(seconds(wrong).unwrap_err().starts_with("expected a time"), "{wrong}");
        }
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
    fn rates_are_above_zero() {
        assert_eq!(positive("2.5e9"), Ok(2.5e9));
        for wrong in ["0", "-1", "nan", "", "x", "inf"] {
            assert!(positive(wrong).unwrap_err().contains("above 0"), "{wrong}");
        }
    }
}
