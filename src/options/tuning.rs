//! How a recipe is chosen.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use fft_core::Error;

/// How a recipe is chosen, as [`Draft::tuning`](crate::Draft::tuning) takes it.
///
/// ```
/// use std::time::Duration;
/// use thriffty::Tuning;
/// let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("wisdom.toml");
/// thriffty::threads(2, |world| {
///     let draft = || thriffty::c2c(&world, [16, 16, 16]);
///     let measure = Tuning::Measure { budget: Duration::from_millis(200) };
///     let plan = draft().tuning(measure).build()?;
///     plan.save_wisdom(&path)?;
///     let again = draft().tuning(Tuning::Wisdom(path.clone())).build()?;
///     assert_eq!(again.recipe(), plan.recipe());
///     Ok::<_, thriffty::Error>(())
/// })?;
/// assert_eq!("measure:200ms".parse(), Ok(Tuning::Measure { budget: Duration::from_millis(200) }));
/// # Ok::<(), thriffty::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Tuning {
    /// The recipe that the model expects to be fastest, of all recipes and, where none is given,
    /// exchanges; nothing is run. The exchange is `shared` unless another is clearly faster.
    #[default]
    Model,
    /// The recipe that is measured to be fastest among the best eight by the model, which are run
    /// on noise: recipes, exchanges, sizes of chunks and, with a tolerance, raw messages. On a
    /// device, exchanges and chunks are as given.
    Measure {
        /// The time for measuring, in addition to binding the plan. The first recipe is timed
        /// however long it takes.
        budget: Duration,
    },
    /// The recipe that was fastest when it was measured, from a file of
    /// [`save_wisdom`](crate::planning::DynPlan::save_wisdom).
    ///
    /// The entry must be of this transform, machine, library and version. Without one, or if the
    /// file cannot be read or was changed, there is a warning and the model chooses.
    Wisdom(PathBuf),
    /// The recipe that prints as this text. It also sets the exchange, and with a tolerance the
    /// wire, unless the draft has its own.
    Recipe(String),
}

impl Tuning {
    /// Measurements within the default time.
    pub const MEASURE: Self = Self::Measure { budget: Duration::from_secs(10) };
}

/// `model`, `measure:10s`, `wisdom:FILE` or `recipe:TEXT`.
impl fmt::Display for Tuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Model => f.write_str("model"),
            Self::Measure { budget } => write!(f, "measure:{}s", budget.as_secs_f64()),
            Self::Wisdom(path) => write!(f, "wisdom:{}", path.display()),
            Self::Recipe(text) => write!(f, "recipe:{text}"),
        }
    }
}

/// Parses what [`Display`](fmt::Display) writes, and `measure`, which is [`Tuning::MEASURE`].
impl FromStr for Tuning {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (name, argument) = text.split_once(':').unwrap_or((text, ""));
        match name {
            "model" if argument.is_empty() => Ok(Self::Model),
            "measure" if argument.is_empty() => Ok(Self::MEASURE),
            "measure" => Ok(Self::Measure { budget: time(argument)? }),
            "wisdom" if !argument.is_empty() => Ok(Self::Wisdom(argument.into())),
            "recipe" if !argument.is_empty() => Ok(Self::Recipe(argument.into())),
            _ => {
                let expected = "model, measure, measure:TIME, wisdom:FILE or recipe:TEXT";
                Err(Error::argument("tuning", text, expected))
            }
        }
    }
}

/// A time of 0 or more, in seconds or with its unit: `2.5`, `10s`, `500ms`.
fn time(text: &str) -> Result<Duration, Error> {
    let (number, unit) = if let Some(number) = text.strip_suffix("ms") {
        (number, 1e-3)
    } else {
        (text.strip_suffix('s').unwrap_or(text), 1.0)
    };
    let seconds = number.trim().parse::<f64>().ok();
    let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds * unit).ok());
    let expected = "a time of 0 or more, for example 10s or 500ms";
    time.ok_or_else(|| Error::argument("tuning", text, expected))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_parse_to_what_printed_them() {
        let budget = Duration::from_millis(500);
        for (text, tuning) in [
            ("model", Tuning::Model),
            ("measure:0.5s", Tuning::Measure { budget }),
            ("wisdom:a:b.toml", Tuning::Wisdom("a:b.toml".into())),
            ("recipe:(c2c 8 f64)", Tuning::Recipe("(c2c 8 f64)".into())),
        ] {
            assert_eq!((text.parse(), tuning.to_string()), (Ok(tuning.clone()), text.into()));
        }
        assert_eq!("measure:500ms".parse(), Ok(Tuning::Measure { budget }));
        assert_eq!("measure".parse(), Ok(Tuning::MEASURE));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "Model", "model:1", "wisdom", "wisdom:", "recipe:", "measured"] {
            assert!(text.parse::<Tuning>().is_err(), "{text}");
        }
        for text in ["soon", "-1s", "1 hour", "nan", "1e300", "s"] {
            let error = format!("measure:{text}").parse::<Tuning>().unwrap_err().to_string();
            assert!(error.contains("expected a time of 0 or more"), "{text}: {error}");
        }
    }
}
