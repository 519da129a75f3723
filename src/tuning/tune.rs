//! How a recipe is to be chosen.

use std::path::PathBuf;
use std::time::Duration;

/// How a recipe is chosen, as [`Draft::tune`](crate::Draft::tune) takes it.
///
/// ```
/// use std::time::Duration;
/// use thriffty::Tune;
/// let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("wisdom.toml");
/// thriffty::threads(2, |world| {
///     let draft = || thriffty::c2c(&world, [16, 16, 16]);
///     let plan = draft().tune(Tune::Measure { budget: Duration::from_millis(200) }).build()?;
///     plan.save_wisdom(&path)?;
///     let again = draft().tune(Tune::Wisdom(path.clone())).build()?;
///     assert_eq!(again.recipe(), plan.recipe());
///     Ok::<_, thriffty::Error>(())
/// })?;
/// # Ok::<(), thriffty::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Tune {
    /// The recipe that the model expects to be fastest, of all recipes and, where none is given,
    /// exchanges; nothing is run. The exchange is `shared` unless another is clearly faster.
    #[default]
    Model,
    /// The recipe that is fastest by the clock, of the best eight by the model, which are run on
    /// noise: recipes, exchanges, sizes of chunks and, with a tolerance, raw messages. On a device,
    /// exchanges and chunks are as given.
    Measure {
        /// The time for that, beside binding the plan; the first recipe is tried whatever it takes.
        budget: Duration,
    },
    /// The recipe that was fastest when it was measured, from a file of
    /// [`save_wisdom`](crate::planning::DynPlan::save_wisdom).
    ///
    /// The entry must be of this transform, machine, library and version. Without one, or if the
    /// file cannot be read or was changed, there is a warning and the model chooses.
    Wisdom(PathBuf),
    /// The recipe that prints as this. The exchange, and with a tolerance the wire, are as it says,
    /// unless the draft has its own.
    Recipe(String),
}

impl Tune {
    /// What texts say of it, in all languages.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Model => "by the model".into(),
            Self::Measure { budget } => format!("by timings within {} s", budget.as_secs_f64()),
            Self::Wisdom(path) => format!("from {}", path.display()),
            Self::Recipe(text) => text.clone(),
        }
    }
}
