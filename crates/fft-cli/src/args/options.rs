//! Options that several commands take.

use clap::Args;
use thriffty::Kind;
use thriffty::planning::Options;

use super::choices::{Choices, Every, Offer};
use super::kinds;
use super::parse::kind;
use super::shape::{Shape, times};

/// A transform, and the options of its plan.
#[derive(Args, Clone, Debug)]
pub(crate) struct TransformArgs<O: Offer = Every> {
    /// The transform of each axis, unless --kinds has others. It also sets the type of the data:
    /// complex for c2c, real before and complex after for r2c, real for all others.
    #[arg(value_parser = kind())]
    pub(crate) kind: Kind,
    /// Points along each of 1 to 4 axes: 256x256x256, or 256^3; 2^28 is one axis.
    pub(crate) shape: Shape,
    #[command(flatten)]
    pub(crate) choices: Choices<O>,
}

impl<O: Offer> TransformArgs<O> {
    /// The options of the plan, as given on the command line.
    pub(crate) fn options(&self) -> &Options {
        &self.choices.options
    }

    /// Its kinds, points, padding and modes: `r2c 64x64 zero_padded=96x96`.
    pub(crate) fn name(&self) -> String {
        format!("{} {}", kinds::name(self.kind, self.options()), self.grids())
    }

    /// Its points, padding and modes: `64x64 zero_padded=96x96`.
    pub(crate) fn grids(&self) -> String {
        format!("{}{}", self.shape, lengths(self.options()))
    }

    /// The length of the transform along each axis.
    pub(crate) fn lens(&self) -> &[usize] {
        self.options().zero_padded.as_ref().map_or(self.shape.lengths(), |lens| lens)
    }
}

/// Padding and modes as in recipes, after a space: ` zero_padded=96x96 modes=64x64`.
pub(crate) fn lengths(options: &Options) -> String {
    let mut text = String::new();
    for (name, lens) in [("zero_padded", &options.zero_padded), ("modes", &options.modes)] {
        if let Some(lens) = lens {
            text += &format!(" {name}={}", times(lens));
        }
    }
    text
}

/// Whether data is padded, or some of its modes are left out.
pub(crate) fn is_resized(options: &Options) -> bool {
    options.zero_padded.is_some() || options.modes.is_some()
}

/// A transform on ranks.
#[derive(Args, Clone, Debug)]
pub(crate) struct Problem<O: Offer = Every> {
    #[command(flatten)]
    pub(crate) transform: TransformArgs<O>,
    #[command(flatten)]
    pub(crate) grids: Grids,
}

impl<O: Offer> Problem<O> {
    /// The options of the plan, as given on the command line.
    pub(crate) fn options(&self) -> &Options {
        self.transform.options()
    }
}

/// How arrays are divided among ranks.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Grids {
    /// Ranks along each axis of the input: 1x2x2.
    #[arg(long, value_name = "GRID")]
    pub(crate) input_grid: Option<Shape>,
    /// Ranks along each axis of the output.
    #[arg(long, value_name = "GRID")]
    pub(crate) output_grid: Option<Shape>,
}
