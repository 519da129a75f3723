//! What is to be transformed, before anyone has thought about how.

use std::sync::Arc;

use super::algorithm::Algorithm;
use super::kind::{Direction, Kind, Scale};
use super::machine::Machine;
use super::options::{Access, TransportOptions};
use crate::base::{Error, Precision};
use crate::codec::Wire;
use crate::geometry::{DynGrid, Layout, PerAxis};

/// Bytes of the largest chunk: as good as none.
const MOST_CHUNK: usize = 1 << 40;

/// A transform to be done: shapes, kinds, layouts and options. Equal on all ranks.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Problem {
    /// What is done along each axis.
    pub kinds: PerAxis<Kind>,
    /// Whether physical data is complex.
    pub complex: bool,
    /// Of all numbers.
    pub precision: Precision,
    /// Equal transforms done together, one array after the other in each rank's memory.
    pub howmany: usize,
    /// Scale of the forward transform.
    pub forward: Scale,
    /// Scale of the inverse transform.
    pub inverse: Scale,
    /// Where physical data is.
    pub input: Layout,
    /// Where spectral data is.
    pub output: Layout,
    /// How it is executed.
    pub options: TransportOptions,
    /// A number for the host of each rank ([`Comm::host`](crate::Comm::host)); empty when nobody is to look at another
    /// rank's memory.
    pub hosts: Vec<usize>,
    /// What costs are computed for: the same on all ranks.
    pub machine: Arc<Machine>,
}

impl Problem {
    /// A problem with default options: one transform, unscaled forward and fully scaled inverse, nothing
    /// lost on the wire.
    ///
    /// # Errors
    /// [`Error::Argument`] when there are other kinds than axes, kinds do not go with the data or
    /// with each other, an axis is too short
    /// for its kind, or the output's grid is not [`Problem::spectral_grid`]; [`Error::Geometry`] when the
    /// layouts are for different numbers of ranks.
    pub fn new(
        kinds: impl Into<PerAxis<Kind>>,
        complex: bool,
        precision: Precision,
        input: Layout,
        output: Layout,
    ) -> Result<Self, Error> {
        let (kinds, grid) = (kinds.into(), input.grid());
        if kinds.len() != grid.axes() {
            return Err(Error::argument("axes with a kind", kinds.len(), grid.axes()));
        }
        for (axis, kind) in kinds.iter().enumerate() {
            kind.check(axis, grid.len(axis))?;
        }
        let halved = kinds.iter().filter(|kind| **kind == Kind::R2C).count();
        let list = || kinds.map(Kind::name).join(", ");
        if halved > usize::from(!complex) {
            let allowed = if complex { "none for complex data" } else { "at most one" };
            return Err(Error::argument("axes of kind r2c", list(), allowed));
        }
        if !complex && halved == 0 && kinds.contains(&Kind::C2C) {
            let expected = "one axis of kind r2c to make real data complex";
            return Err(Error::argument("kinds of a real transform", list(), expected));
        }
        let spectral = Self::spectral_grid(grid, kinds);
        if output.grid() != spectral {
            return Err(Error::argument("grid of the output", output.grid(), spectral));
        }
        if input.ranks() != output.ranks() {
            return Err(Error::rank_count(output.ranks(), input.ranks()));
        }
        Ok(Self {
            kinds,
            complex,
            precision,
            howmany: 1,
            forward: Scale::None,
            inverse: Scale::Full,
            input,
            output,
            options: TransportOptions::default(),
            hosts: Vec::new(),
            machine: Arc::default(),
        })
    }

    /// Whether two ranks read each other's memory on their host in a reshape; devices find that out when they connect.
    pub fn near(&self, a: usize, b: usize) -> bool {
        let shared =
            self.options.exchange == Algorithm::Shared && self.options.access == Access::Cached;
        a == b || shared && self.is_raw_link(a, b)
    }

    /// Whether all ranks do.
    pub fn all_near(&self) -> bool {
        (1..self.input.ranks()).all(|rank| self.near(0, rank))
    }

    /// The exchange that is bound where this one is named: windows are memory of the host, so that devices send chunks instead.
    pub(crate) fn bound_exchange(&self, named: Algorithm) -> Algorithm {
        match named {
            Algorithm::Ring(_) if self.options.access != Access::Cached => Algorithm::Pipelined,
            named => named,
        }
    }

    /// Whether a wire is that of one host's ranks among each other: every bit arrives, as nothing is gained there.
    pub fn is_raw_link(&self, a: usize, b: usize) -> bool {
        !self.hosts.is_empty() && self.hosts[a] == self.hosts[b]
    }

    /// What rounding may add to the result of a transform, as a share of its l2 norm: `2ε max(4, log₂ N)`, a few times
    /// what it does.
    pub fn rounding(&self) -> f64 {
        let epsilon = match self.precision {
            Precision::F32 => f64::from(f32::EPSILON),
            Precision::F64 => f64::EPSILON,
        };
        2.0 * epsilon * (self.grid().points() as f64).log2().max(4.0)
    }

    /// Checks what may have been changed since the problem was made.
    ///
    /// # Errors
    /// [`Error::Argument`] and [`Error::TooLarge`].
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.howmany == 0 {
            return Err(Error::argument("howmany", 0, "at least 1"));
        }
        // Its fields may have been changed since it was made.
        let axes = self.grid().axes();
        for (what, found) in [
            ("axes with a kind", self.kinds.len()),
            ("axes of the output", self.output.grid().axes()),
        ] {
            if found != axes {
                return Err(Error::argument(what, found, axes));
            }
        }
        let (hosts, ranks) = (self.hosts.len(), self.input.ranks());
        if hosts != 0 && hosts != ranks {
            return Err(Error::argument("hosts of ranks", hosts, format!("{ranks}, or none")));
        }
        if !(1..=MOST_CHUNK).contains(&self.options.chunk) {
            let expected = format!("1 to {MOST_CHUNK}");
            return Err(Error::argument("bytes of a chunk", self.options.chunk, expected));
        }
        self.grid().checked_points(self.howmany)?;
        self.check_wires()?;
        self.machine.check()
    }

    /// Checks wires and tolerance.
    ///
    /// # Errors
    /// [`Error::Argument`].
    pub(crate) fn check_wires(&self) -> Result<(), Error> {
        let wire = self.options.wire;
        wire.check()?;
        let Some(tolerance) = self.options.tolerance else {
            return match wire {
                Wire::Tolerance => {
                    Err(Error::argument("wire without a tolerance", wire, "another"))
                }
                _ => Ok(()),
            };
        };
        if wire.is_lossy() && wire != Wire::Tolerance && tolerance.is_strict() {
            let expected = "only wire tolerance, or none that loses anything";
            return Err(Error::argument("wire beside a strict tolerance", wire, expected));
        }
        // Of what is less than twice the rounding nothing is left for the wire.
        let least = 2.0 * self.rounding();
        if tolerance.value() < least {
            // Rounded up, so that it can be had.
            let unit = 10f64.powf(least.log10().floor() - 1.0);
            let least = (least / unit).ceil() * unit;
            let expected = format!("at least {least:.1e}, as the numbers themselves are rounded");
            return Err(Error::argument("tolerance", tolerance, expected));
        }
        Ok(())
    }

    /// Real numbers of a point of physical and of spectral data.
    pub fn widths(&self) -> [usize; 2] {
        [self.complex, self.complex_spectrum()].map(|complex| if complex { 2 } else { 1 })
    }

    /// Real numbers that a rank holds of physical and of spectral data.
    pub fn reals(&self, rank: usize) -> [usize; 2] {
        let [physical, spectral] = self.widths();
        let points = |layout: &Layout| layout.brick(rank).points() * self.howmany;
        [points(&self.input) * physical, points(&self.output) * spectral]
    }

    /// Whether transforms fetch what they read from all other ranks, however messages travel: those of one host.
    pub fn fetches(&self) -> bool {
        let host = self.hosts.first();
        self.options.access == Access::Fetched
            && self.hosts.iter().all(|other| Some(other) == host)
            && host.is_some()
    }

    /// The grid after the forward transform: the axis of kind R2C has `n/2 + 1` points.
    ///
    /// # Panics
    /// If there are more kinds than axes.
    pub fn spectral_grid(grid: impl Into<DynGrid>, kinds: impl Into<PerAxis<Kind>>) -> DynGrid {
        let (grid, kinds) = (grid.into(), kinds.into());
        (0..kinds.len())
            .fold(grid, |grid, axis| grid.with_len(axis, kinds[axis].spectral_len(grid.len(axis))))
    }

    /// The index space of physical data.
    pub fn grid(&self) -> DynGrid {
        self.input.grid()
    }

    /// The axis of which half a spectrum is kept.
    pub(crate) fn halved_axis(&self) -> Option<usize> {
        self.kinds.iter().position(|kind| *kind == Kind::R2C)
    }

    /// Whether spectral data is complex.
    pub fn complex_spectrum(&self) -> bool {
        self.complex || self.kinds.contains(&Kind::R2C)
    }

    /// The product of the axes' logical lengths: what forward and inverse multiply by together, unscaled.
    pub fn logical_points(&self) -> f64 {
        let len = |axis: usize| self.kinds[axis].logical_len(self.grid().len(axis)) as f64;
        (0..self.kinds.len()).map(len).product()
    }

    /// What results are multiplied by.
    pub fn factor(&self, direction: Direction) -> f64 {
        match direction {
            Direction::Forward => self.forward.factor(self.logical_points()),
            Direction::Inverse => self.inverse.factor(self.logical_points()),
        }
    }
}
