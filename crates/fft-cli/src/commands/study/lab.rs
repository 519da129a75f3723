//! Errors and bits of one field's transform.

use bytemuck::{cast_slice, cast_slice_mut};
use thriffty::planning::{
    Direction, DynDraft, DynPlan, Element, Precision, Reduce, Timings, Transform,
};
use thriffty::{C2c, Comm, Error, Kind, R2c, R2r};

use super::options::Options;
use super::row::Found;
use crate::args::encoding::Encoding;
use crate::args::kinds;
use crate::args::options::TransformArgs;
use crate::check::reference::{self, ratio};
use crate::check::wires::relative;
use crate::data::fields::{Field, Source};
use crate::ranks::world::{Failure, zeros};

/// One field on one set of ranks, with its transform in double precision.
pub(super) struct Lab<'a, K: Transform> {
    comm: &'a dyn Comm,
    options: &'a Options,
    plan: DynPlan,
    source: Source,
    exact: Vec<K::Spectral>,
}

/// A draft that sends all data between ranks.
fn draft<'a>(
    comm: &'a dyn Comm,
    options: &Options,
    precision: Precision,
) -> Result<DynDraft<'a>, Failure> {
    let TransformArgs { kind, shape, choices } = &options.transform;
    let grid = shape.grid()?;
    let mut draft = kinds::draft(comm, grid, *kind, precision);
    draft.options = kinds::with_kinds(&choices.options, *kind, grid.axes());
    draft.options.tolerance = None;
    draft.options.ignore_shared_memory = true;
    Ok(draft)
}

impl<'a, K: Transform> Lab<'a, K> {
    /// Transforms the field. Collective.
    pub(super) fn new(
        comm: &'a dyn Comm,
        options: &'a Options,
        field: Field,
    ) -> Result<Self, Failure> {
        let mut plan = draft(comm, options, Precision::F64)?.build()?;
        let source = Source::new(field, &plan)?;
        let mut physical: Vec<K::Physical> = zeros(comm, plan.input_len())?;
        let mut exact: Vec<K::Spectral> = zeros(comm, plan.output_len())?;
        source.fill(&mut physical);
        plan.run(Direction::Forward, cast_slice(&physical), cast_slice_mut(&mut exact))?;
        Ok(Self { comm, options, plan, source, exact })
    }

    /// Double precision, against the definition of the transform at 32 points. Collective.
    pub(super) fn double(&self) -> Result<Found, Failure> {
        let plan = draft(self.comm, self.options, Precision::F64)?.build()?;
        self.there_and_back::<K>(plan, |lab, physical, spectrum| {
            Ok(reference::error::<K>(&lab.plan, physical, spectrum)?)
        })
    }

    /// Single precision, of the rounded field. Collective.
    pub(super) fn single(&self) -> Result<Found, Failure> {
        let plan = draft(self.comm, self.options, Precision::F32)?.build()?;
        match self.options.transform.kind {
            Kind::C2C => self.far_from_double::<C2c<f32>>(plan),
            Kind::R2C => self.far_from_double::<R2c<f32>>(plan),
            _ => self.far_from_double::<R2r<f32>>(plan),
        }
    }

    /// Double precision with messages encoded. Collective.
    pub(super) fn encoded(&self, encoding: Encoding) -> Result<Found, Failure> {
        let draft = draft(self.comm, self.options, Precision::F64)?;
        self.far_from_double::<K>(encoding.draft(draft).build()?)
    }

    /// The results of a plan, whose error is the distance from double precision. Collective.
    fn far_from_double<L: Transform>(&self, plan: DynPlan) -> Result<Found, Failure> {
        self.there_and_back::<L>(plan, |lab, _, spectrum| {
            Ok(relative(&lab.plan, spectrum, &lab.exact)?)
        })
    }

    fn there_and_back<L: Transform>(
        &self,
        mut plan: DynPlan,
        error: impl Fn(&Self, &[L::Physical], &[L::Spectral]) -> Result<f64, Failure>,
    ) -> Result<Found, Failure> {
        let mut physical: Vec<L::Physical> = zeros(self.comm, plan.input_len())?;
        let mut spectral: Vec<L::Spectral> = zeros(self.comm, plan.output_len())?;
        self.source.fill(&mut physical);
        plan.run(Direction::Forward, cast_slice(&physical), cast_slice_mut(&mut spectral))?;
        let (lost, [bits, passes]) = (plan.wire_error(), self.sent(&plan.timings())?);
        let forward = error(self, &physical, &spectral)?;
        plan.run(Direction::Inverse, cast_slice(&spectral), cast_slice_mut(&mut physical))?;
        let mut squares = self.source.distance(&physical).squares;
        self.comm.allreduce(Reduce::Sum, &mut squares)?;
        Ok(Found { bits, passes, forward, roundtrip: ratio(squares), lost })
    }

    /// Bits per real number sent, and how often each is sent. Collective.
    fn sent(&self, timings: &Timings) -> Result<[f64; 2], Error> {
        let mut sums = [timings.sent as f64, timings.reals as f64];
        self.comm.allreduce(Reduce::Sum, &mut sums)?;
        let reals = (self.plan.problem().grid().points() * K::Physical::WIDTH) as f64;
        Ok([8.0 * sums[0] / sums[1], sums[1] / reals])
    }
}
