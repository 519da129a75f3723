//! From options to problems on machines: without any ranks.

use std::sync::Arc;

use thriffty::machine::Machine;
use thriffty::planning::{Algorithm, DynGrid, Layout, Precision, Problem, ProcGrid};
use thriffty::{Kind, Wire};

use crate::args::cli;
use crate::args::shape::Shape;
use crate::check::wires::Encoding;
use crate::engine::family::kinds;
use crate::ranks::world::{Failure, refused};

/// What is asked about a transform on so many ranks.
#[derive(Clone)]
pub(crate) struct Ask {
    pub(crate) kind: Kind,
    pub(crate) shape: Shape,
    pub(crate) precision: Precision,
    pub(crate) howmany: usize,
    /// The exchange, if it was given.
    pub(crate) exchange: Option<Algorithm>,
    pub(crate) encoding: Encoding,
    /// Whether every rank is treated as on a host of its own.
    pub(crate) everywhere: bool,
    pub(crate) chunk: Option<usize>,
    pub(crate) in_grid: Option<Shape>,
    pub(crate) out_grid: Option<Shape>,
    pub(crate) ranks: usize,
    pub(crate) per_host: usize,
    pub(crate) machine: Arc<Machine>,
}

impl Ask {
    pub(crate) fn new(options: &cli::Where, ranks: usize) -> Result<Self, Failure> {
        let machine = &options.machine;
        let is_file = machine.ends_with(".toml") || machine.contains('/');
        let machine = if is_file {
            thriffty::machine::read_file(machine)
        } else {
            thriffty::machine::named(machine)
        }?;
        let per_host = match options.per_host {
            Some(per_host) => per_host.get(),
            None => (machine.cores.value.round() as usize).max(1),
        };
        // Where kernels are launched, memory of others is not read in the middle of them.
        let usual = (machine.launch.value > 0.0).then_some(Algorithm::P2p);
        Ok(Self {
            kind: options.kind,
            shape: options.shape.clone(),
            precision: options.precision,
            howmany: options.howmany.get(),
            exchange: options.exchange.or(usual),
            encoding: Encoding::of(&options.wires),
            everywhere: options.wires.ignore_shared_memory,
            chunk: options.chunk.map(std::num::NonZeroUsize::get),
            in_grid: None,
            out_grid: None,
            ranks,
            per_host: per_host.min(ranks),
            machine: Arc::new(machine),
        })
    }

    pub(crate) fn hosts(&self) -> usize {
        self.ranks.div_ceil(self.per_host)
    }

    /// Bytes of a point, of all batches.
    pub(crate) fn width(&self) -> usize {
        let numbers = if self.kind == Kind::C2C { 2 } else { 1 };
        (numbers * self.precision.bytes()).saturating_mul(self.howmany)
    }

    /// The convention of FFTW's benchmarks: `5 N log₂ N`, half for real data.
    pub(crate) fn flops(&self) -> f64 {
        let points: f64 = self.shape.lengths().iter().map(|n| *n as f64).product();
        let width = if self.kind == Kind::C2C { 2.0 } else { 1.0 };
        2.5 * width * points * self.howmany as f64 * points.log2()
    }

    /// What is to be transformed.
    pub(crate) fn problem(&self) -> Result<Problem, Failure> {
        let (grid, kinds) = (self.shape.grid()?, kinds(self.shape.axes(), self.kind));
        let input = self.layout(grid, "--in-grid", self.in_grid.as_ref())?;
        let spectral = Problem::spectral_grid(grid, kinds);
        let output = self.layout(spectral, "--out-grid", self.out_grid.as_ref())?;
        let complex = self.kind == Kind::C2C;
        let mut problem = Problem::new(kinds, complex, self.precision, input, output)?;
        problem.howmany = self.howmany;
        problem.options.exchange = self.exchange.unwrap_or_default();
        problem.options.tolerance = self.encoding.tolerance;
        problem.options.wire = self.encoding.wire.unwrap_or(match self.encoding.tolerance {
            Some(_) => Wire::Tolerance,
            None => Wire::Raw,
        });
        problem.options.chunk = self.chunk.unwrap_or(problem.options.chunk);
        problem.machine = Arc::clone(&self.machine);
        if !self.everywhere {
            problem.hosts = (0..self.ranks).map(|rank| rank / self.per_host).collect();
        }
        Ok(problem)
    }

    fn layout(&self, grid: DynGrid, name: &str, cut: Option<&Shape>) -> Result<Layout, Failure> {
        let cut = match cut {
            None => ProcGrid::cubic(grid, self.ranks),
            Some(ranks) if ranks.axes() != grid.axes() => {
                let (found, expected) = (ranks.axes(), grid.axes());
                return refused(format!("{name} {ranks} has {found} axes, expected {expected}"));
            }
            Some(ranks) if ranks.product() != Some(self.ranks) => {
                return refused(format!("{name} {ranks} is not a grid of {} ranks", self.ranks));
            }
            Some(ranks) => ProcGrid::new(ranks.per_axis()),
        };
        Ok(Layout::even(grid, cut, self.ranks))
    }
}
