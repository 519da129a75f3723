//! Problems of options, without ranks.

use std::sync::Arc;

use thriffty::machine::{How, Machine, Quantity};
use thriffty::planning::{Algorithm, DynGrid, Family, Layout, Problem, ProcGrid};
use thriffty::{Kind, Wire};

use super::options::Where;
use crate::args::encoding::Encoding;
use crate::args::options::{Grids, Transform};
use crate::args::shape::Shape;
use crate::engine::family::kinds_of;
use crate::output::units;
use crate::ranks::world::Failure;

/// The most ranks of a forecast, which lists their hosts.
const MOST_RANKS: usize = 1 << 20;

/// A transform on a number of ranks of a machine.
#[derive(Clone)]
pub(crate) struct Ask {
    pub(crate) transform: Transform,
    /// If given, or the usual one of the machine.
    pub(crate) exchange: Option<Algorithm>,
    pub(crate) layouts: Family,
    pub(crate) encoding: Encoding,
    pub(crate) chunk: Option<usize>,
    pub(crate) grids: Grids,
    pub(crate) ranks: usize,
    pub(crate) per_host: usize,
    pub(crate) machine: Arc<Machine>,
}

impl Ask {
    pub(crate) fn new(options: &Where, ranks: usize) -> Result<Self, Failure> {
        if ranks > MOST_RANKS {
            let what = format!("{ranks} ranks: forecasts are for at most {MOST_RANKS}");
            return Err(Failure::Usage(what));
        }
        let machine = machine(options)?;
        let per_host = match options.per_host {
            Some(per_host) => per_host.get(),
            None => (machine.cores.value.round() as usize).max(1),
        };
        // On GPUs, kernels do not read the memory of other ranks.
        let usual = (machine.launch.value > 0.0).then_some(Algorithm::P2p);
        Ok(Self {
            transform: options.transform.clone(),
            exchange: options.exchange.or(usual),
            layouts: options.layouts,
            encoding: Encoding::of(&options.transform.wires),
            chunk: options.chunk.map(std::num::NonZeroUsize::get),
            grids: Grids::default(),
            ranks,
            per_host: per_host.min(ranks),
            machine: Arc::new(machine),
        })
    }

    pub(crate) fn hosts(&self) -> usize {
        self.ranks.div_ceil(self.per_host)
    }

    fn reals(&self) -> usize {
        if self.transform.kind == Kind::C2C { 2 } else { 1 }
    }

    /// Bytes of a real number, of all batches.
    pub(crate) fn real_bytes(&self) -> usize {
        self.transform.precision.bytes().saturating_mul(self.transform.batch.get())
    }

    /// Bytes of a point, of all batches.
    pub(crate) fn width(&self) -> usize {
        self.reals().saturating_mul(self.real_bytes())
    }

    /// Operations by the convention of FFTW's benchmarks.
    pub(crate) fn flops(&self) -> f64 {
        let points = self.transform.lens().iter().map(|n| *n as f64).product();
        units::flops(self.reals(), points, self.transform.batch.get())
    }

    pub(crate) fn problem(&self) -> Result<Problem, Failure> {
        let Transform { kind, axes, shape, lengths, precision, batch, wires } = &self.transform;
        let (grid, kinds) = (shape.grid()?, kinds_of(shape.axes(), *kind, axes)?);
        let input = self.layout(grid, "--in-grid", self.grids.in_grid.as_ref())?;
        let [padded, modes] = lengths.of_axes(grid.axes())?;
        let padded = padded.unwrap_or(grid.shape());
        let modes = modes.unwrap_or(padded);
        let spectral = Problem::spectral_grid(DynGrid::new(modes)?, kinds);
        let output = self.layout(spectral, "--out-grid", self.grids.out_grid.as_ref())?;
        let complex = *kind == Kind::C2C;
        let lens = [padded, modes];
        let mut problem = Problem::resized(kinds, complex, *precision, input, output, lens)?;
        problem.batch = batch.get();
        problem.options.exchange = self.exchange.unwrap_or_default();
        problem.options.tolerance = self.encoding.tolerance;
        problem.options.wire = self.encoding.wire.unwrap_or(match self.encoding.tolerance {
            Some(_) => Wire::Tolerance,
            None => Wire::Raw,
        });
        problem.options.chunk = self.chunk.unwrap_or(problem.options.chunk);
        problem.machine = Arc::clone(&self.machine);
        if !wires.ignore_shared_memory {
            problem.hosts = (0..self.ranks).map(|rank| rank / self.per_host).collect();
        }
        Ok(problem)
    }

    fn layout(&self, grid: DynGrid, name: &str, cut: Option<&Shape>) -> Result<Layout, Failure> {
        let cut = match cut {
            None => ProcGrid::cubic(grid, self.ranks),
            Some(ranks) => ranks.proc_grid(name, grid.axes(), self.ranks)?,
        };
        Ok(Layout::even(grid, cut, self.ranks))
    }
}

/// The machine of the options, with the links between hosts that they name.
fn machine(options: &Where) -> Result<Machine, Failure> {
    let mut machine = thriffty::machine::read_file(&options.machine)?;
    let mut links = Vec::new();
    if let Some(bandwidth) = options.bandwidth {
        let given = Quantity::new(bandwidth, How::Assumed, "--bandwidth");
        (machine.host, machine.far.bandwidth) = (given.clone(), given);
        links.push(format!("{:.2} GB/s", bandwidth / 1e9));
    }
    if let Some(latency) = options.latency {
        machine.far.latency = Quantity::new(latency, How::Assumed, "--latency");
        links.push(units::time(latency));
    }
    if !links.is_empty() {
        machine.name = format!("{} with {} between hosts", machine.name, links.join(" and "));
    }
    Ok(machine)
}
