//! One row of a table of options.

use std::fmt;
use std::ops::Deref;

use fft_core::Error;

use super::value::{DEFAULT, Form};

/// The subject of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scope {
    /// What to transform, and into what.
    Problem,
    /// Where the program's arrays are.
    Arrays,
    /// How the transform is done.
    Method,
    /// How the recipe is chosen.
    Choice,
    /// Where the plan computes, and in what precision.
    Placement,
}

impl Scope {
    /// Whether the environment may set the option, because arrays and results keep their form.
    pub fn is_in_environment(self) -> bool {
        matches!(self, Self::Method | Self::Choice)
    }

    /// Whether the option is part of the key of wisdom. The options of the problem are in the
    /// problem itself, and the others do not affect which recipe is fastest.
    pub(super) fn is_in_wisdom(self) -> bool {
        matches!(self, Self::Arrays | Self::Method)
    }
}

/// The description of one option.
pub struct OptionInfo {
    /// The name, which is the same in every language and on the command line.
    pub name: &'static str,
    /// How the value is written.
    pub form: Form,
    /// The subject of the option.
    pub scope: Scope,
    pub(super) lines: &'static str,
    pub(super) default: fn() -> String,
}

impl OptionInfo {
    /// What the option means, in sentences; an empty line divides paragraphs.
    pub fn meaning(&self) -> String {
        let lines: Vec<_> = self.lines.lines().map(str::trim).collect();
        lines.join("\n").trim().into()
    }

    /// The text of the default value.
    pub fn default_text(&self) -> String {
        (self.default)()
    }
}

impl fmt::Debug for OptionInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OptionInfo").field("name", &self.name).finish_non_exhaustive()
    }
}

/// One option of `O`: its description, and its value as text.
///
/// ```
/// use thriffty::planning::Options;
/// let mut options = Options::default();
/// options.set("batch", "3")?;
/// assert_eq!(options.batch, 3);
/// let changed: Vec<_> = Options::TABLE.iter().filter(|row| row.is_changed(&options)).collect();
/// assert_eq!((changed[0].name, changed[0].text(&options)), ("batch", "3".into()));
/// # Ok::<(), thriffty::Error>(())
/// ```
#[derive(Debug)]
pub struct OptionRow<O: 'static> {
    pub(super) info: OptionInfo,
    pub(super) get: fn(&O) -> String,
    pub(super) set: fn(&mut O, &str) -> Result<(), Error>,
    pub(super) reset: fn(&mut O),
}

impl<O> Deref for OptionRow<O> {
    type Target = OptionInfo;

    fn deref(&self) -> &OptionInfo {
        &self.info
    }
}

impl<O> OptionRow<O> {
    /// The value as text; `default` where the library decides.
    pub fn text(&self, options: &O) -> String {
        (self.get)(options)
    }

    /// Whether the value is not the default.
    pub fn is_changed(&self, options: &O) -> bool {
        self.text(options) != self.default_text()
    }

    /// Sets the value that a text describes. `default` is always allowed.
    ///
    /// # Errors
    /// [`Error::Argument`] with the name of the option.
    pub fn set(&self, options: &mut O, text: &str) -> Result<(), Error> {
        if text == DEFAULT {
            (self.reset)(options);
            return Ok(());
        }
        (self.set)(options, text)
    }
}

/// The row of this name in one of the tables of a caller's options.
///
/// # Errors
/// [`Error::Argument`] with the names of all rows.
pub(super) fn row<'a, O>(table: &'a [OptionRow<O>], name: &str) -> Result<&'a OptionRow<O>, Error> {
    let known = || unknown(name, table.iter().map(|row| &row.info));
    table.iter().find(|row| row.name == name).ok_or_else(known)
}

/// The error for a name that none of these options has.
pub(super) fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a OptionInfo>) -> Error {
    let names: Vec<_> = known.map(|info| info.name).collect();
    Error::argument("option", name, format!("one of {}", names.join(", ")))
}
