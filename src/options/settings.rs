//! Everything that can be set by name.

use fft_core::Error;

use super::placement::Placement;
use super::row::{OptionInfo, unknown};
use super::table::Options;

/// The options of a plan, and where it computes: everything that programs set by name.
///
/// ```
/// use thriffty::planning::Settings;
/// let mut settings = Settings::default();
/// settings.set("batch", "3")?;
/// settings.set("precision", "f32")?;
/// assert_eq!((settings.options.batch, settings.get("precision")?), (3, "f32".into()));
/// # Ok::<(), thriffty::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// What to transform, and how.
    pub options: Options,
    /// Where, and in what precision.
    pub placement: Placement,
}

impl Settings {
    /// All options, in the order of the documents.
    pub fn all() -> impl Iterator<Item = &'static OptionInfo> {
        let options = Options::TABLE.iter().map(|row| &row.info);
        options.chain(Placement::TABLE.iter().map(|row| &row.info))
    }

    /// The description of the option of this name.
    ///
    /// # Errors
    /// [`Error::Argument`] for an unknown name; it lists the known ones.
    pub fn find(name: &str) -> Result<&'static OptionInfo, Error> {
        Self::all().find(|info| info.name == name).ok_or_else(|| unknown(name, Self::all()))
    }

    /// Sets the option of this name to the value that the text describes; `default` is always
    /// allowed.
    ///
    /// # Errors
    /// [`Error::Argument`] for an unknown name or value; it lists the known ones.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), Error> {
        let Self { options, placement } = self;
        match Placement::TABLE.iter().find(|row| row.name == name) {
            Some(row) => row.set(placement, text),
            None => options.set(Self::find(name)?.name, text),
        }
    }

    /// The value of the option of this name as text; `default` where the library decides.
    ///
    /// # Errors
    /// [`Error::Argument`] for an unknown name; it lists the known ones.
    pub fn get(&self, name: &str) -> Result<String, Error> {
        let Self { options, placement } = self;
        match Placement::TABLE.iter().find(|row| row.name == name) {
            Some(row) => Ok(row.text(placement)),
            None => options.get(Self::find(name)?.name),
        }
    }
}
