//! The command line.

use std::path::PathBuf;
use std::str::FromStr;

pub(crate) const HELP: &str = "The Taylor-Green vortex by a pseudo-spectral method.

  taylor_green [OPTIONS]

  --size N             points along each axis (64)
  --time T             the end (2)
  --step DT            the longest time step; by default a Courant number of 1/4
  --reynolds RE        the Reynolds number (1600)
  --every T            time between rows of the table (0.1)
  --out FOLDER         where taylor_green.csv, dissipation.svg, checkpoints and the vorticity
                       at the end, vorticity.png, go
  --checkpoint-every N writes the velocity at every Nth row
  --restart FILE       begins with a checkpoint, on any number of ranks
  --ranks N            threads; an MPI job has its own ranks (4)
  --device             computes on CUDA devices
  --shared-arrays      keeps fields in memory that processes of a host share
  --tolerance TOL      the relative error that each transform may have
  --ignore-shared-memory    sends messages within a host, too";

/// What to compute, and which files to write.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Options {
    pub(crate) size: usize,
    pub(crate) time: f64,
    pub(crate) step: Option<f64>,
    pub(crate) reynolds: f64,
    pub(crate) every: f64,
    pub(crate) out: Option<PathBuf>,
    pub(crate) checkpoint_every: Option<usize>,
    pub(crate) restart: Option<PathBuf>,
    pub(crate) ranks: usize,
    pub(crate) device: bool,
    pub(crate) shared_arrays: bool,
    pub(crate) tolerance: Option<f64>,
    pub(crate) ignore_shared_memory: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            size: 64,
            time: 2.0,
            step: None,
            reynolds: 1600.0,
            every: 0.1,
            out: None,
            checkpoint_every: None,
            restart: None,
            ranks: 4,
            device: false,
            shared_arrays: false,
            tolerance: None,
            ignore_shared_memory: false,
        }
    }
}

impl Options {
    /// Options from the arguments after the program's name.
    ///
    /// # Errors
    /// A text that describes the fault, or the help if it was requested.
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self::default();
        while let Some(name) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{name} needs a value"));
            match name.as_str() {
                "--size" => options.size = count(&name, value()?)?,
                "--time" => options.time = positive(&name, value()?)?,
                "--step" => options.step = Some(positive(&name, value()?)?),
                "--reynolds" => options.reynolds = positive(&name, value()?)?,
                "--every" => options.every = positive(&name, value()?)?,
                "--out" => options.out = Some(value()?.into()),
                "--checkpoint-every" => options.checkpoint_every = Some(count(&name, value()?)?),
                "--restart" => options.restart = Some(value()?.into()),
                "--ranks" => options.ranks = count(&name, value()?)?,
                "--device" => options.device = true,
                "--shared-arrays" => options.shared_arrays = true,
                "--tolerance" => options.tolerance = Some(positive(&name, value()?)?),
                "--ignore-shared-memory" => options.ignore_shared_memory = true,
                "--help" | "-h" => return Err(HELP.into()),
                _ => return Err(format!("unknown option {name}\n\n{HELP}")),
            }
        }
        match (&options.out, options.checkpoint_every) {
            (None, Some(_)) => Err("--checkpoint-every needs --out".into()),
            _ => Ok(options),
        }
    }

    /// The factor of the Laplacian, for velocities and lengths around 1.
    pub(crate) fn viscosity(&self) -> f64 {
        1.0 / self.reynolds
    }

    /// The longest time step. The velocity is at most about 1, and a step takes it at most a
    /// quarter of the way between points.
    pub(crate) fn longest_step(&self) -> f64 {
        self.step.unwrap_or(0.25 * std::f64::consts::TAU / self.size as f64)
    }
}

fn parsed<T: FromStr>(name: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{name}: found {text}, expected a number"))
}

fn count(name: &str, text: String) -> Result<usize, String> {
    match parsed(name, &text)? {
        0 => Err(format!("{name}: found 0, expected at least 1")),
        count => Ok(count),
    }
}

fn positive(name: &str, text: String) -> Result<f64, String> {
    match parsed::<f64>(name, &text)? {
        value if value > 0.0 && value.is_finite() => Ok(value),
        value => Err(format!("{name}: found {value}, expected a number above 0")),
    }
}
