//! One direction of a bound recipe: operations, and the steps that run them.

use std::ffi::CString;

use super::device::WorkReals;
use super::device::{Device, OpBuffers, Operation, Operations, Places, RunContext, Window};
use super::error_budget::Budget;
use super::trace::Activity;
use crate::base::{Error, Real, WireError};
use crate::comm::Comm;
use crate::lower::MemoryNeeds;
use crate::lower::allocate::{Action, Allocation, Place, PlacedStep};

pub(crate) struct BoundProgram<T: Real, Dev: Device<T>> {
    pub(crate) ops: Vec<Dev::Op>,
    pub(crate) texts: Vec<String>,
    /// The texts for profilers.
    ranges: Vec<CString>,
    needs: MemoryNeeds,
    out_of_place: Allocation,
    in_place: Allocation,
    pub(crate) budget: Option<Budget>,
}

/// The memory of a run.
pub(crate) struct Buffers<'a, M: ?Sized> {
    pub(crate) input: Option<&'a M>,
    pub(crate) places: Places<'a, M>,
}

impl<T: Real, Dev: Device<T>> BoundProgram<T, Dev> {
    pub(crate) fn new(bound: Operations<Dev::Op>) -> Self {
        let Operations { ops, needs, texts } = bound;
        let (out_of_place, in_place) =
            (Allocation::new(&needs, false), Allocation::new(&needs, true));
        let range = |text: &String| CString::new(text.as_str()).unwrap_or_default();
        let ranges = texts.iter().map(range).collect();
        Self { ops, texts, ranges, needs, out_of_place, in_place, budget: None }
    }

    /// Runs all operations, also after a failure, because other ranks depend on them.
    pub(crate) fn run(
        &mut self,
        context: &mut RunContext<Dev>,
        mut buffers: Buffers<'_, Dev::Memory>,
    ) -> Result<(), Error> {
        let in_place = buffers.input.is_none();
        let allocation = if in_place { &self.in_place } else { &self.out_of_place };
        let mut result = Ok(());
        mark(context);
        for step in &allocation.steps {
            let buffers = buffers.of(step);
            let begun = context.timings.begin();
            let (done, activity) = match step.action {
                Action::Run(op) => {
                    context.timings.begin_range(&self.ranges[op]);
                    let done = self.ops[op].run(context, buffers);
                    context.timings.end_range();
                    (done, Activity::Operation(op))
                }
                Action::Copy(value) => {
                    let src = buffers.src.expect("a copy is from another place");
                    context.device.copy(self.needs.reals[value], src, buffers.dst);
                    (Ok(()), Activity::Copy)
                }
            };
            context.timings.end(begun, activity);
            mark(context);
            result = result.and(done);
        }
        let finished = result.and(context.device.finish());
        if context.timings.is_tracing() {
            context.timings.set_device_times(&context.device.take_marks());
        }
        finished.and_then(|()| self.ops.iter().try_for_each(Operation::damage))
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

    /// Real numbers that the plan's memory must hold.
    pub(crate) fn work(&self) -> WorkReals {
        let most = |buffer| {
            let both = [&self.out_of_place, &self.in_place];
            both.map(|allocation| allocation.work(buffer, &self.needs)).into_iter().max()
        };
        WorkReals {
            buffers: [0, 1].map(|buffer| most(buffer).unwrap_or(0)),
            spare: self.needs.spare,
        }
    }
}

/// Marks a point between operations in the queue of the device, if the plan is traced.
fn mark<T: Real, Dev: Device<T>>(context: &mut RunContext<Dev>) {
    if context.timings.is_tracing() {
        context.device.mark();
    }
}

impl<M: ?Sized> Buffers<'_, M> {
    /// The buffers of a step.
    fn of(&mut self, step: &PlacedStep) -> OpBuffers<'_, M> {
        let PlacedStep { from, to, window, .. } = *step;
        let Places { output, work: [first, second], spare } = &mut self.places;
        let mut writable = [Some(&mut **output), Some(&mut **first), Some(&mut **second)];
        let mut lend = |place: Place| {
            let number = if let Place::Work(number) = place { 1 + number } else { 0 };
            writable[number].take().expect("a step uses each place once")
        };
        let dst = lend(if window.is_some() { Place::Output } else { to });
        let is_elsewhere = from != to && window.is_none();
        let window = window.map(|place| Window {
            memory: lend(place),
            copies_in: from != place,
            copies_out: to != place,
        });
        let src = match from {
            Place::Input => self.input,
            other => is_elsewhere.then(|| &*lend(other)),
        };
        OpBuffers { src, dst, window, spare: spare.as_deref_mut() }
    }
}
