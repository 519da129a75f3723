//! How messages are encoded.

use std::fmt;

use thriffty::planning::{DynDraft, Options};
use thriffty::{Tolerance, Wire};

/// The wire and the tolerance that the command line sets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Encoding {
    pub(crate) wire: Option<Wire>,
    pub(crate) tolerance: Option<Tolerance>,
}

impl Encoding {
    pub(crate) fn of(options: &Options) -> Self {
        Self { wire: options.wire, tolerance: options.tolerance }
    }

    pub(crate) fn is_asked_for(&self) -> bool {
        self.wire.is_some() || self.tolerance.is_some()
    }

    pub(crate) fn draft<'a>(&self, mut draft: DynDraft<'a>) -> DynDraft<'a> {
        (draft.options.wire, draft.options.tolerance) = (self.wire, self.tolerance);
        draft
    }
}

/// `bits:16`, `1e-6`, `1e-6 strict`, `f32, 1e-6`.
impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = [self.wire.map(|it| it.to_string()), self.tolerance.map(|it| it.to_string())];
        f.pad(&words.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}
