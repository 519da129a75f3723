//! One direction of a bound recipe: operations and their buffers.

use super::buffer_assignment::{BufferAssignment, BufferId, Instruction, Map};
use super::device::Operations;
use super::device::{Device, Operation};
use super::error_budget::Budget;
use crate::base::{Error, Real, WireError};
use crate::comm::Comm;

pub(crate) struct BoundProgram<T: Real, Dev: Device<T>> {
    pub(crate) ops: Vec<Dev::Op>,
    /// Real numbers on this rank before, between and after the operations.
    sizes: Vec<usize>,
    out_of_place: BufferAssignment,
    in_place: BufferAssignment,
    pub(crate) budget: Option<Budget>,
}

impl<T: Real, Dev: Device<T>> BoundProgram<T, Dev> {
    pub(crate) fn new(bound: Operations<Dev::Op>) -> Self {
        let Operations { ops, sizes, exposes_all } = bound;
        let requirements: Vec<_> = ops.iter().map(Operation::buffer_requirement).collect();
        let map = Map { requirements: &requirements, sizes: &sizes, exposes_all };
        let (out_of_place, in_place) =
            (BufferAssignment::out_of_place(&map), BufferAssignment::in_place(&map));
        Self { ops, sizes, out_of_place, in_place, budget: None }
    }

    /// The operations, and the instructions for a run out of place or in place.
    pub(crate) fn split(&mut self, has_input: bool) -> (&mut [Dev::Op], &[Instruction]) {
        let assignment = if has_input { &self.out_of_place } else { &self.in_place };
        (&mut self.ops, &assignment.instructions)
    }

    /// Sets the steps of all encoders for this input. Collective.
    pub(crate) fn open(
        &mut self,
        device: &mut Dev,
        input: &Dev::Memory,
        comm: &dyn Comm,
    ) -> Result<(), Error> {
        match &mut self.budget {
            Some(budget) => budget.open::<T, Dev>(&mut self.ops, device, input, comm),
            None => Ok(()),
        }
    }

    /// The error of the run, if messages may be lossy. Collective.
    pub(crate) fn close(
        &mut self,
        device: &mut Dev,
        comm: &dyn Comm,
    ) -> Result<Option<WireError>, Error> {
        let Self { budget, ops, .. } = self;
        budget.as_mut().map(|budget| budget.close::<T, Dev>(ops, device, comm)).transpose()
    }

    /// Real numbers that a work buffer must hold.
    pub(crate) fn work(&self, which: usize) -> usize {
        let in_route = |route: &BufferAssignment| {
            let at = route.places.iter().zip(&self.sizes);
            at.filter(|(place, _)| **place == BufferId::Work(which)).map(|(_, size)| *size).max()
        };
        in_route(&self.out_of_place).max(in_route(&self.in_place)).unwrap_or(0)
    }
}
