//! Measures what one field's transform costs, and how exact it is.

use thriffty::{Clock, Comm, Element, Error, Grid, Kind, Plan, Reduce, Transform, WireError};

use crate::family::Family;
use crate::fields::{Field, Source};
use crate::reference::{self, ratio};
use crate::wires::{Encoding, relative};
use crate::world::{Failure, zeros};

/// What was measured of one format.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// Bits per real number sent, by the forward transform.
    pub(super) bits: f64,
    /// How often that sends each number, on average.
    pub(super) passes: f64,
    /// The relative l2 error of the forward transform.
    pub(super) forward: f64,
    /// That of forward and inverse.
    pub(super) roundtrip: f64,
    /// What the library says of the forward transform, if it has something to say.
    pub(super) lost: Option<WireError>,
}

/// One field on one set of ranks, with its transform in double precision.
pub(super) struct Lab<'a, K: Family, const D: usize> {
    comm: &'a dyn Comm,
    grid: Grid<D>,
    kind: Kind,
    plan: Plan<K, D>,
    source: Source<D>,
    exact: Vec<K::Spectral>,
}

impl<'a, K: Family, const D: usize> Lab<'a, K, D> {
    /// Transforms the field. Collective.
    pub(super) fn new(
        comm: &'a dyn Comm,
        shape: [usize; D],
        kind: Kind,
        field: Field,
    ) -> Result<Self, Failure> {
        let grid = Grid::new(shape)?;
        let mut plan = K::draft(comm, grid, kind).wire_everywhere().build()?;
        let source = Source::new(field, &plan)?;
        let mut physical = zeros(comm, plan.input_len())?;
        let mut exact = zeros(comm, plan.output_len())?;
        source.fill(&mut physical);
        plan.forward_into(&physical, &mut exact)?;
        Ok(Self { comm, grid, kind, plan, source, exact })
    }

    /// Double precision itself, against the definition of the transform at 32 points. Collective.
    pub(super) fn double(&mut self) -> Result<Found, Failure> {
        let plan = K::draft(self.comm, self.grid, self.kind).wire_everywhere().build()?;
        self.there_and_back::<K>(plan, |lab, spectrum| {
            let mut physical = zeros(lab.comm, lab.plan.input_len())?;
            lab.source.fill(&mut physical);
            Ok(reference::error(&lab.plan, &physical, spectrum)?)
        })
    }

    /// Single precision throughout, of the field rounded to it. Collective.
    pub(super) fn single(&mut self) -> Result<Found, Failure> {
        let plan = K::Single::draft(self.comm, self.grid, self.kind).wire_everywhere().build()?;
        self.there_and_back::<K::Single>(plan, Self::far)
    }

    /// Double precision with messages encoded. Collective.
    pub(super) fn encoded(&mut self, encoding: Encoding) -> Result<Found, Failure> {
        let draft = K::draft(self.comm, self.grid, self.kind).wire_everywhere();
        self.there_and_back::<K>(encoding.draft(draft).build()?, Self::far)
    }

    /// How far a spectrum is from that of double precision. Collective.
    fn far<E: Element>(&self, spectrum: &[E]) -> Result<f64, Failure> {
        Ok(relative(&self.plan, spectrum, &self.exact)?)
    }

    fn there_and_back<L: Transform>(
        &self,
        mut plan: Plan<L, D>,
        error: impl Fn(&Self, &[L::Spectral]) -> Result<f64, Failure>,
    ) -> Result<Found, Failure> {
        let mut physical: Vec<L::Physical> = zeros(self.comm, plan.input_len())?;
        let mut spectral = zeros(self.comm, plan.output_len())?;
        self.source.fill(&mut physical);
        plan.forward_into(&physical, &mut spectral)?;
        let (lost, [bits, passes]) = (plan.last_error(), self.sent(&plan.clock())?);
        let forward = error(self, &spectral)?;
        plan.inverse_into(&spectral, &mut physical)?;
        let mut squares = self.source.distance(&physical).squares;
        self.comm.allreduce(Reduce::Sum, &mut squares)?;
        Ok(Found { bits, passes, forward, roundtrip: ratio(squares), lost })
    }

    /// Bits per real number sent, and how often each is. Collective.
    fn sent(&self, clock: &Clock) -> Result<[f64; 2], Error> {
        let mut sums = [clock.sent as f64, clock.reals as f64];
        self.comm.allreduce(Reduce::Sum, &mut sums)?;
        let reals = (self.grid.points() * K::Physical::WIDTH) as f64;
        Ok([8.0 * sums[0] / sums[1], sums[1] / reals])
    }
}
