//! Tridiagonal systems of all modes as their kernels read them.

use bytemuck::{Pod, Zeroable};
use fft_core::Systems;

use super::divisor::{Divisor, MOST_ELEMENTS};
use crate::base::GpuError;

/// `Systems` of `kernels/systems.cu`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct SystemsRecord {
    pub(crate) n: u32,
    pub(crate) outer: u32,
    pub(crate) inner: u32,
    pub(crate) by_inner: Divisor,
    pub(crate) singular: u32,
    pub(crate) rows: u64,
    pub(crate) squares: u64,
    pub(crate) room: u64,
}

/// A record whose addresses are to be filled in, and what they point at.
pub(crate) struct SystemTables {
    pub(crate) record: SystemsRecord,
    /// Four numbers for each row: lower and upper coefficient, excess, weight.
    pub(crate) rows: Vec<f64>,
    pub(crate) squares: Vec<f64>,
}

impl SystemTables {
    /// The tables of systems.
    ///
    /// # Errors
    /// [`GpuError::Argument`] for 2^31 points or more.
    pub(crate) fn new(systems: &Systems) -> Result<Self, GpuError> {
        let (scheme, outer, inner) = (systems.scheme(), systems.outer(), systems.inner());
        let points = outer.len() * scheme.len() * inner.len();
        GpuError::at_most("the points of all systems", points, MOST_ELEMENTS)?;
        let rows = (0..scheme.len()).flat_map(|j| {
            let [lower, _, upper] = scheme.row(j);
            [lower, upper, scheme.excess()[j], scheme.weights()[j]]
        });
        let record = SystemsRecord {
            n: scheme.len() as u32,
            outer: outer.len() as u32,
            inner: inner.len() as u32,
            by_inner: Divisor::by(inner.len().max(1)),
            singular: u32::from(scheme.is_singular()),
            rows: 0,
            squares: 0,
            room: 0,
        };
        Ok(Self { record, rows: rows.collect(), squares: [outer, inner].concat() })
    }
}

impl SystemsRecord {
    /// The number of systems.
    pub(crate) fn count(&self) -> usize {
        self.outer as usize * self.inner as usize
    }

    /// The points of all systems.
    pub(crate) fn points(&self) -> usize {
        self.count() * self.n as usize
    }
}

/// Numbers in the room of a thread, for systems of `n` points of `width` real numbers.
pub(crate) fn room_of_thread(n: usize, width: usize, periodic: bool) -> usize {
    n * (width + 1 + usize::from(periodic))
}
