//! Options that several commands take.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use thriffty::planning::{Algorithm, Family, Memory, Precision};
use thriffty::{Kind, Tune};

use super::encoding::Wires;
use super::parse::{choice, duration, kind, kind_of_axis, precision};
use super::shape::Shape;

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
    #[arg(long, default_value = "f64", value_parser = precision())]
    pub(crate) precision: Precision,
    /// Number of equal transforms in a batch.
    #[arg(long, default_value = "1", value_name = "N")]
    pub(crate) howmany: NonZeroUsize,
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

/// A transform on ranks, and the machine of the cost model.
#[derive(Args, Debug)]
pub(crate) struct Problem {
    #[command(flatten)]
    pub(crate) transform: Transform,
    #[command(flatten)]
    pub(crate) grids: Grids,
    /// How data is exchanged: shared, p2p, pipelined, alltoallv, kway2, kway4, ..., ring or
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
    /// The machine of the cost model: a file of `fft-cli calibrate`, or a known name;
    /// THRIFFTY_MACHINE by default, where that is of this machine.
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) machine: Option<PathBuf>,
}

/// How the recipe is chosen.
#[derive(Args, Debug)]
pub(crate) struct Choosing {
    /// Choose by the model, or measure its best few; under Open MPI's mpirun write
    /// `--tune=measure`.
    #[arg(long, default_value = "model", value_parser = choice([("model", By::Model), ("measure", By::Timings)]))]
    #[arg(value_name = "HOW")]
    tune: By,
    /// The time limit of measurements: 10s, 500ms.
    #[arg(long, default_value = "10s", value_parser = duration, value_name = "TIME")]
    pub(crate) budget: Duration,
    /// Use the recipe that `fft-cli tune` stored in this file.
    #[arg(long, value_name = "FILE", conflicts_with = "tune")]
    pub(crate) wisdom: Option<PathBuf>,
    /// Use the recipe that prints as this text.
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["tune", "wisdom"])]
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
            (None, None) if self.tune == By::Timings => Tune::Measure { budget: self.budget },
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
