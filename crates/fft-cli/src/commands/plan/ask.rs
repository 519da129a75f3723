//! Problems of options, without ranks.

use std::sync::Arc;

use thriffty::Kind;
use thriffty::machine::{How, Machine, Quantity};
use thriffty::planning::{
    Access, DeviceChoice, DynGrid, DynTransform, Exchange, GlobalArrays, Layout, MachineChoice,
    Options, Precision, Problem,
};

use super::options::{Forecast, Where};
use crate::args::kinds;
use crate::args::options::{Grids, TransformArgs};
use crate::args::shape::Shape;
#[cfg(not(feature = "cuda"))]
use crate::engine::place::NO_CUDA;
use crate::output::units;
use crate::ranks::world::Failure;
#[cfg(not(feature = "cuda"))]
use crate::ranks::world::refused;

/// The most ranks of a forecast, which lists their hosts.
const MOST_RANKS: usize = 1 << 20;

/// A transform on a number of ranks of a machine.
#[derive(Clone)]
pub(crate) struct Ask {
    pub(crate) transform: TransformArgs<Forecast>,
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
        let mut ask = Self {
            transform: options.transform.clone(),
            chunk: options.chunk.map(std::num::NonZeroUsize::get),
            grids: Grids::default(),
            ranks,
            per_host: per_host.min(ranks),
            machine: Arc::new(machine),
        };
        if ask.machine.launch.value > 0.0 && ask.options().exchange.is_none() {
            // On GPUs, kernels do not read the memory of other ranks.
            ask.options_mut().exchange = Some(Exchange::P2p);
        }
        Ok(ask)
    }

    /// The options of the plan.
    pub(crate) fn options(&self) -> &Options {
        &self.transform.choices.options
    }

    pub(crate) fn options_mut(&mut self) -> &mut Options {
        &mut self.transform.choices.options
    }

    /// The precision of all numbers.
    pub(crate) fn precision(&self) -> Precision {
        self.transform.choices.placement.precision
    }

    /// The same with raw messages.
    pub(crate) fn raw(&self) -> Self {
        let mut raw = self.clone();
        (raw.options_mut().wire, raw.options_mut().tolerance) = (None, None);
        raw
    }

    pub(crate) fn hosts(&self) -> usize {
        self.ranks.div_ceil(self.per_host)
    }

    fn reals(&self) -> usize {
        if self.transform.kind == Kind::C2C { 2 } else { 1 }
    }

    /// Bytes of a real number, of all batches.
    pub(crate) fn real_bytes(&self) -> usize {
        self.precision().bytes().saturating_mul(self.options().batch)
    }

    /// Bytes of a point, of all batches.
    pub(crate) fn width(&self) -> usize {
        self.reals().saturating_mul(self.real_bytes())
    }

    /// Operations by the convention of FFTW's benchmarks.
    pub(crate) fn flops(&self) -> f64 {
        let points = self.transform.lens().iter().map(|n| *n as f64).product();
        units::flops(self.reals(), points, self.options().batch)
    }

    pub(crate) fn problem(&self) -> Result<Problem, Failure> {
        let TransformArgs { kind, shape, .. } = &self.transform;
        let (grid, transform) = (shape.grid()?, kinds::transform(*kind));
        let mut options = kinds::with_kinds(self.options(), *kind, grid.axes());
        options.machine = Some(MachineChoice::Given(Arc::clone(&self.machine)));
        options.check_axes(grid)?;
        let spectral = options.spectral_grid(grid, transform);
        let mut problem = options.problem(GlobalArrays {
            grid,
            ranks: self.ranks,
            transform,
            precision: self.precision(),
            input: self.layout(grid, "--input-grid", self.grids.input_grid.as_ref())?,
            output: self.layout(spectral, "--output-grid", self.grids.output_grid.as_ref())?,
            hosts: (0..self.ranks).map(|rank| rank / self.per_host).collect(),
            access: self.access((transform, self.precision()), &options, grid)?,
        })?;
        problem.options.chunk = self.chunk.unwrap_or(problem.options.chunk);
        Ok(problem)
    }

    /// Whether ranks have GPUs of their own.
    pub(crate) fn is_on_devices(&self) -> bool {
        self.transform.choices.placement.device != DeviceChoice::Host
    }

    /// How transforms get at their data.
    fn access(
        &self,
        what: (DynTransform, Precision),
        options: &Options,
        grid: DynGrid,
    ) -> Result<Access, Failure> {
        if !self.is_on_devices() {
            return Ok(Access::default());
        }
        #[cfg(feature = "cuda")]
        return Ok(thriffty::gpu::planned_access(
            options,
            what,
            grid,
            self.ranks,
            self.hosts() == 1,
        ));
        #[cfg(not(feature = "cuda"))]
        {
            let _ = (what, options, grid);
            refused(NO_CUDA)
        }
    }

    fn layout(
        &self,
        grid: DynGrid,
        name: &str,
        cut: Option<&Shape>,
    ) -> Result<Option<Layout>, Failure> {
        let cut = cut.map(|ranks| ranks.proc_grid(name, grid.axes(), self.ranks)).transpose()?;
        Ok(cut.map(|cut| Layout::even(grid, cut, self.ranks)))
    }
}

/// The machine of the options, with the links between hosts that they name.
fn machine(options: &Where) -> Result<Machine, Failure> {
    let mut machine = match &options.transform.options().machine {
        Some(MachineChoice::Named(name)) => thriffty::machine::read_file(name)?,
        _ => Machine::default(),
    };
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
