//! How messages are encoded.

use std::fmt;

use clap::Args;
use thriffty::planning::DynDraft;
use thriffty::{Tolerance, Wire};

use super::parse::tolerance;

/// How messages to other hosts are encoded.
#[derive(Args, Clone, Debug)]
pub(crate) struct Wires {
    /// The relative l2 error that the transform may add: 1e-6.
    #[arg(long, value_name = "E", value_parser = tolerance)]
    pub(crate) tolerance: Option<Tolerance>,
    /// Keep the tolerance for any data.
    #[arg(long, requires = "tolerance")]
    pub(crate) strict: bool,
    /// raw, f32, f16, bf16, mantissa:0 to 52, bits:2 to 52, lossless, or tolerance, the default
    /// with --tolerance.
    #[arg(long)]
    pub(crate) wire: Option<Wire>,
    /// Treat every rank as on a host of its own, so that all data between ranks is sent.
    #[arg(long)]
    pub(crate) ignore_shared_memory: bool,
}

/// The wire and the tolerance that were asked for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Encoding {
    pub(crate) wire: Option<Wire>,
    pub(crate) tolerance: Option<Tolerance>,
}

impl Encoding {
    pub(crate) fn of(options: &Wires) -> Self {
        let strict = |it: Tolerance| if options.strict { it.strict() } else { it };
        Self { wire: options.wire, tolerance: options.tolerance.map(strict) }
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
