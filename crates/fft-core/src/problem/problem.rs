//! A transform as a mathematical problem with options.

use std::sync::Arc;

use super::kind::Kind;
use super::machine::Machine;
use super::memory::Access;
use super::one_axis::OneAxis;
use super::options::TransportOptions;
use super::scale::{Direction, Scale};
use crate::base::{Error, Precision};
use crate::codec::Wire;
use crate::geometry::{DynGrid, Layout, PerAxis};

/// Bytes of the largest chunk, which is effectively unlimited.
const MOST_CHUNK: usize = 1 << 40;

/// A transform: kinds, layouts and options. Equal on all ranks.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Problem {
    /// The transform along each axis.
    pub kinds: PerAxis<Kind>,
    /// Whether physical data is complex.
    pub complex: bool,
    /// Precision of all numbers.
    pub precision: Precision,
    /// Number of equal transforms, one array after the other in memory.
    pub batch: usize,
    /// Scale of the forward transform.
    pub forward_scale: Scale,
    /// Scale of the inverse transform.
    pub inverse_scale: Scale,
    /// The length of the transform along each axis. Physical data is 0 beyond its grid.
    pub zero_padded: PerAxis<usize>,
    /// The modes that are kept along each axis: the modes of a transform of this length.
    pub modes: PerAxis<usize>,
    /// Distribution of physical data.
    pub input: Layout,
    /// Distribution of spectral data.
    pub output: Layout,
    /// Execution options.
    pub options: TransportOptions,
    /// The [host](crate::SharesMemory::host) of each rank; empty to ignore shared memory.
    pub hosts: Vec<usize>,
    /// The machine of the cost model.
    pub machine: Arc<Machine>,
    /// The problem of one axis whose factors are the axes of this one ([`Problem::factored`]).
    pub one_axis: Option<OneAxis>,
}

impl Problem {
    /// A problem with default options: one transform, unscaled forward, fully scaled inverse, exact
    /// messages.
    ///
    /// # Errors
    /// [`Error::Argument`] for kinds or grids that do not match; [`Error::Geometry`] for layouts of
    /// different numbers of ranks.
    pub fn new(
        kinds: impl Into<PerAxis<Kind>>,
        complex: bool,
        precision: Precision,
        input: Layout,
        output: Layout,
    ) -> Result<Self, Error> {
        let shape = input.grid().shape();
        Self::resized(kinds, complex, precision, input, output, [shape, shape])
    }

    /// As [`Problem::new`], with the lengths of the transform and the numbers of modes that are
    /// kept.
    ///
    /// Physical data is padded by zeros up to the length of the transform, and the inverse discards
    /// what lies beyond. Spectral data has the lowest frequencies, in the order of a transform of
    /// as many points. If the number of modes is even and below the length, the middle one is 0.
    ///
    /// # Errors
    /// The errors of [`Problem::new`]; [`Error::Argument`] for transforms shorter than the data,
    /// more modes than points of a transform, and either for cosine and sine transforms.
    pub fn resized(
        kinds: impl Into<PerAxis<Kind>>,
        complex: bool,
        precision: Precision,
        input: Layout,
        output: Layout,
        [zero_padded, modes]: [PerAxis<usize>; 2],
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
        for (what, lens) in [("lengths of transforms", zero_padded), ("numbers of modes", modes)] {
            if lens.len() != grid.axes() {
                return Err(Error::argument(what, lens.len(), grid.axes()));
            }
        }
        for axis in 0..grid.axes() {
            let (n, given) = (grid.len(axis), [zero_padded[axis], modes[axis]]);
            check_lengths(axis, kinds[axis], n, given)?;
        }
        let spectral = Self::spectral_grid(DynGrid::new(modes)?, kinds);
        if output.grid() != spectral {
            return Err(Error::argument("grid of the output", output.grid(), spectral));
        }
        if kinds.iter().filter(|kind| **kind == Kind::Tridiagonal).count() > 1 {
            return Err(Error::argument("axes of kind tridiagonal", list(), "at most one"));
        }
        if input.ranks() != output.ranks() {
            return Err(Error::rank_count(output.ranks(), input.ranks()));
        }
        Ok(Self {
            kinds,
            complex,
            precision,
            batch: 1,
            zero_padded,
            modes,
            forward_scale: Scale::None,
            inverse_scale: Scale::Full,
            input,
            output,
            options: TransportOptions::default(),
            hosts: Vec::new(),
            machine: Arc::default(),
            one_axis: None,
        })
    }

    /// Whether two ranks read each other's memory in a reshape. Devices decide when they connect.
    pub fn near(&self, a: usize, b: usize) -> bool {
        let shared = self.options.exchange.reads_peers() && self.options.access == Access::Cached;
        a == b || shared && self.is_raw_link(a, b)
    }

    /// Whether all ranks read each other's memory.
    pub fn all_near(&self) -> bool {
        (1..self.input.ranks()).all(|rank| self.near(0, rank))
    }

    /// Whether messages between two ranks stay unencoded, as between ranks of one host.
    pub fn is_raw_link(&self, a: usize, b: usize) -> bool {
        !self.hosts.is_empty() && self.hosts[a] == self.hosts[b]
    }

    /// Whether all ranks share a host, so that no message is encoded.
    pub fn is_on_one_host(&self) -> bool {
        (1..self.input.ranks()).all(|rank| self.is_raw_link(0, rank))
    }

    /// The encoding of messages that its recipes have.
    pub fn wire(&self) -> Wire {
        if self.is_on_one_host() { Wire::Raw } else { self.options.wire }
    }

    /// A bound of the rounding error, relative to the l2 norm of the result: `2ε max(4, log₂ N)`.
    pub fn rounding(&self) -> f64 {
        let epsilon = match self.precision {
            Precision::F32 => f64::from(f32::EPSILON),
            Precision::F64 => f64::EPSILON,
        };
        let points: f64 = self.zero_padded.iter().map(|n| *n as f64).product();
        2.0 * epsilon * points.log2().max(4.0)
    }

    /// Checks the fields, which are public and may have been changed.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.batch == 0 {
            return Err(Error::argument("batch", 0, "at least 1"));
        }
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
        self.grid().checked_points(self.batch)?;
        self.output.grid().checked_points(self.batch)?;
        for axis in 0..axes {
            let given = [self.zero_padded[axis], self.modes[axis]];
            check_lengths(axis, self.kinds[axis], self.grid().len(axis), given)?;
        }
        self.check_wires()?;
        self.machine.check()
    }

    /// Checks that systems can be solved in the output: along whole lines or, on hosts, along lines
    /// that ranks divide alike.
    ///
    /// # Errors
    /// [`Error::Argument`] otherwise.
    pub fn check_systems(&self) -> Result<(), Error> {
        match self.tridiagonal_axis().filter(|axis| !self.has_systems(&self.output, *axis)) {
            Some(axis) => {
                let what = format!("spectral data along the tridiagonal axis {axis}");
                let expected = if self.may_divide_systems() {
                    "whole lines on each rank, or intervals of 2 points or more, with the same \
                     parts of the other axes in each"
                } else {
                    "whole lines on each rank, as transposed_output leaves them on devices and in \
                     reproducible transforms"
                };
                Err(Error::argument(what, &self.output, expected))
            }
            None => Ok(()),
        }
    }

    /// Whether ranks may divide the lines of systems: devices do not reduce them, and rounding
    /// depends on the intervals.
    fn may_divide_systems(&self) -> bool {
        self.options.access == Access::Cached && !self.options.reproducible
    }

    /// Whether systems along an axis can be solved in a layout.
    pub(crate) fn has_systems(&self, layout: &Layout, axis: usize) -> bool {
        let divides = || self.may_divide_systems() && layout.count_intervals(axis).is_some();
        layout.is_whole(axis) || divides()
    }

    pub(crate) fn check_wires(&self) -> Result<(), Error> {
        let wire = self.options.wire;
        wire.check()?;
        if self.options.reproducible {
            self.check_reproducible()?;
        }
        if wire.is_lossy() && self.is_any_resized() {
            let expected = "one that loses nothing, as the norm of the result is not known";
            return Err(Error::argument("wire beside padding or truncation", wire, expected));
        }
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
        // A tolerance below twice the rounding error leaves nothing for the wire.
        let least = 2.0 * self.rounding();
        if tolerance.value() < least {
            // Rounded up, so that the printed value is accepted.
            let unit = 10f64.powf(least.log10().floor() - 1.0);
            let least = (least / unit).ceil() * unit;
            let expected = format!("at least {least:.1e}, as the numbers themselves are rounded");
            return Err(Error::argument("tolerance", tolerance, expected));
        }
        Ok(())
    }

    /// Checks that nothing but the recipe's arithmetic decides on the bits of results.
    fn check_reproducible(&self) -> Result<(), Error> {
        let wire = self.options.wire;
        if wire.is_lossy() {
            let expected = "a lossless one";
            return Err(Error::argument("wire of a reproducible transform", wire, expected));
        }
        if self.options.access != Access::Cached {
            let expected = "host memory, as the results of cuFFT depend on the layout";
            return Err(Error::argument("memory of a reproducible transform", "device", expected));
        }
        Ok(())
    }

    /// Real numbers per point of physical and of spectral data.
    pub fn widths(&self) -> [usize; 2] {
        [self.complex, self.complex_spectrum()].map(|complex| if complex { 2 } else { 1 })
    }

    /// Real numbers of a rank's physical and spectral data.
    pub fn reals(&self, rank: usize) -> [usize; 2] {
        let [physical, spectral] = self.widths();
        let points = |layout: &Layout| layout.brick(rank).points() * self.batch;
        [points(&self.input) * physical, points(&self.output) * spectral]
    }

    /// Whether transforms read their input from all other ranks, which share a host.
    pub fn fetches(&self) -> bool {
        let host = self.hosts.first();
        self.options.access == Access::Fetched
            && self.hosts.iter().all(|other| Some(other) == host)
            && host.is_some()
    }

    /// Whether transforms of columns take longer than transforms of contiguous lines.
    pub(crate) fn prefers_contiguous(&self) -> bool {
        self.options.access != Access::Strided
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

    /// The grid of physical data.
    pub fn grid(&self) -> DynGrid {
        self.input.grid()
    }

    /// Whether physical data is padded or spectral data truncated along an axis.
    pub fn is_resized(&self, axis: usize) -> bool {
        let n = self.zero_padded[axis];
        n != self.grid().len(axis) || n != self.modes[axis]
    }

    /// Whether any axis is resized.
    pub fn is_any_resized(&self) -> bool {
        (0..self.kinds.len()).any(|axis| self.is_resized(axis))
    }

    pub(crate) fn halved_axis(&self) -> Option<usize> {
        self.kinds.iter().position(|kind| *kind == Kind::R2C)
    }

    /// The axis of tridiagonal systems.
    pub(crate) fn tridiagonal_axis(&self) -> Option<usize> {
        self.kinds.iter().position(|kind| *kind == Kind::Tridiagonal)
    }

    /// Whether spectral data is complex.
    pub fn complex_spectrum(&self) -> bool {
        self.complex || self.kinds.contains(&Kind::R2C)
    }

    /// The product of the logical lengths.
    pub fn logical_points(&self) -> f64 {
        let len = |axis: usize| self.kinds[axis].logical_len(self.zero_padded[axis]) as f64;
        (0..self.kinds.len()).map(len).product()
    }

    /// The scale of results.
    pub fn factor(&self, direction: Direction) -> f64 {
        match direction {
            Direction::Forward => self.forward_scale.factor(self.logical_points()),
            Direction::Inverse => self.inverse_scale.factor(self.logical_points()),
        }
    }
}

/// Checks that data of `n` points may have transforms of this length, and this number of modes.
fn check_lengths(
    axis: usize,
    kind: Kind,
    n: usize,
    [transform, modes]: [usize; 2],
) -> Result<(), Error> {
    let what = |what| format!("{what} along axis {axis}");
    if transform < n {
        return Err(Error::argument(what("zero_padded"), transform, format!("{n} or more")));
    }
    if !(1..=transform).contains(&modes) {
        let expected = format!("1 to {transform}");
        return Err(Error::argument(what("modes"), modes, expected));
    }
    if kind.is_fourier() || transform == n && modes == n {
        return Ok(());
    }
    Err(Error::argument(what("kind of padding or truncation"), kind, "c2c or r2c"))
}
