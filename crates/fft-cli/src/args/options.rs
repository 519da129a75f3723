//! Options that several commands take.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use thriffty::planning::{Algorithm, Family, Memory, PerAxis, Precision};
use thriffty::{Kind, Tune};

use super::encoding::Wires;
use super::parse::{choice, count, duration, kind, kind_of_axis, precision};
use super::shape::Shape;
use crate::ranks::world::Failure;

/// A batch of transforms, and how its messages are encoded.
#[derive(Args, Clone, Debug)]
pub(crate) struct Transform {
    /// The transform of each axis.
    #[arg(value_parser = kind())]
    pub(crate) kind: Kind,
    #[command(flatten)]
    pub(crate) axes: Axes,
    /// Points along each of 1 to 4 axes: 256x256x256, or 256^3.
    pub(crate) shape: Shape,
    #[command(flatten)]
    pub(crate) lengths: Lengths,
    #[arg(long, default_value = "f64", value_parser = precision())]
    pub(crate) precision: Precision,
    /// Number of equal transforms in a batch.
    #[arg(long, default_value = "1", value_name = "N")]
    #[arg(value_parser = count)]
    pub(crate) batch: NonZeroUsize,
    #[command(flatten)]
    pub(crate) wires: Wires,
}

/// Other transforms than that of the kind.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Axes {
    /// A kind for each axis: dct2,r2c,none. The kind of all axes then says what the data is: c2c
    /// complex, r2c real before and complex after, any other real.
    #[arg(long, value_name = "K,...", value_delimiter = ',', value_parser = kind_of_axis())]
    pub(crate) kinds: Vec<Kind>,
}

impl Transform {
    /// Its points, padding and modes: `64x64 padded=96x96`.
    pub(crate) fn grids(&self) -> String {
        format!("{}{}", self.shape, self.lengths)
    }

    /// The length of the transform along each axis.
    pub(crate) fn lens(&self) -> &[usize] {
        self.lengths.zero_padded.as_ref().unwrap_or(&self.shape).lengths()
    }
}

/// Padding by zeros, and truncation to the lowest modes.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Lengths {
    /// Length of the transform along each axis. Data is 0 beyond its points, and the inverse leaves
    /// that out. For axes of kind c2c and r2c, and messages that lose nothing.
    #[arg(long, value_name = "SHAPE")]
    pub(crate) zero_padded: Option<Shape>,
    /// Modes that are kept along each axis, the lowest; by default all. The spectrum has the shape
    /// of that of so many points.
    #[arg(long, value_name = "SHAPE")]
    pub(crate) modes: Option<Shape>,
}

impl Lengths {
    /// Lengths of transforms and numbers of modes, where given, for so many axes.
    pub(crate) fn of_axes(&self, axes: usize) -> Result<[Option<PerAxis<usize>>; 2], Failure> {
        let lens = |name, shape: &Option<Shape>| {
            shape.as_ref().map(|shape| shape.of_axes(name, axes)).transpose()
        };
        Ok([lens("--zero-padded", &self.zero_padded)?, lens("--modes", &self.modes)?])
    }

    pub(crate) fn are_given(&self) -> bool {
        self.zero_padded.is_some() || self.modes.is_some()
    }
}

/// As recipes have it, after a space: ` padded=96x96 modes=64x64`.
impl fmt::Display for Lengths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, shape) in [("padded", &self.zero_padded), ("modes", &self.modes)] {
            if let Some(shape) = shape {
                write!(f, " {name}={shape}")?;
            }
        }
        Ok(())
    }
}

/// A transform on ranks, and the machine of the cost model.
#[derive(Args, Debug)]
pub(crate) struct Problem {
    #[command(flatten)]
    pub(crate) transform: Transform,
    #[command(flatten)]
    pub(crate) grids: Grids,
    /// How data is exchanged: shared, hosts, p2p, pipelined, alltoallv, kway2, kway4, ..., ring or
    /// ring-flush; chosen by default.
    #[arg(long)]
    pub(crate) exchange: Option<Algorithm>,
    /// The layouts between input and output to choose from: any, slabs or pencils.
    #[arg(long, default_value_t)]
    pub(crate) layouts: Family,
    /// Memory of the plan beside input and output: ample; or least, little more than once the data.
    #[arg(long, default_value = "ample", value_parser = choice([("ample", Memory::Ample), ("least", Memory::Least)]))]
    pub(crate) memory: Memory,
    /// Keep input and output in memory that the ranks of a host share.
    #[arg(long)]
    pub(crate) shared_arrays: bool,
    /// The machine of the cost model: a file of `fft-cli calibrate`, or default, summit, frontier
    /// or ethernet; by default the file of THRIFFTY_MACHINE, if it is of this machine.
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) machine: Option<PathBuf>,
}

/// How the recipe is chosen.
#[derive(Args, Debug)]
pub(crate) struct Choosing {
    /// Choose by the model, or measure its best few.
    #[arg(long, default_value = "model", value_parser = choice([("model", By::Model), ("measure", By::Timings)]))]
    #[arg(value_name = "HOW")]
    tuning: By,
    /// The time limit of measurements: 10s, 500ms.
    #[arg(long, default_value = "10s", value_parser = duration, value_name = "TIME")]
    pub(crate) budget: Duration,
    /// Use the recipe that `fft-cli tune` stored in this file; with --device cuda, one that a
    /// program stored, as `tune` runs on the host.
    #[arg(long, value_name = "FILE", conflicts_with = "tuning")]
    pub(crate) wisdom: Option<PathBuf>,
    /// Use the recipe that prints as this text.
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["tuning", "wisdom"])]
    pub(crate) recipe: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Model,
    Timings,
}

impl Choosing {
    /// The same in the library's terms.
    pub(crate) fn tune(&self) -> Tune {
        match (&self.wisdom, &self.recipe) {
            (Some(path), _) => Tune::Wisdom(path.clone()),
            (None, Some(text)) => Tune::Recipe(text.clone()),
            (None, None) if self.tuning == By::Timings => Tune::Measure { budget: self.budget },
            (None, None) => Tune::Model,
        }
    }
}

/// How arrays are divided among ranks.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Grids {
    /// Ranks along each axis of the input: 1x2x2.
    #[arg(long, value_name = "GRID")]
    pub(crate) in_grid: Option<Shape>,
    /// Ranks along each axis of the output.
    #[arg(long, value_name = "GRID")]
    pub(crate) out_grid: Option<Shape>,
}
