//! Allocation: where each value of a program is stored.
//!
//! A program is a chain: each operation reads the value that the one before it wrote. Two work
//! buffers besides the caller's arrays suffice for any chain, because no value is needed any more
//! once the next one is written. Most chains need only one.
//!
//! ```text
//! from the last value back, store each value in the first of these that is allowed:
//!     the place of the next value, if the operation between them can run in place
//!     the output, then the two work buffers, without the place of the next value
//! the output is allowed for a value that fits in it,
//!     and that no other rank accesses unless ranks access each other's output
//! read the input where it is, or else copy it to the place of the first value
//! an operation in memory that other ranks write does copies at both ends of the chain itself
//! ```

use std::fmt;

/// A place of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The caller's input, which is only read.
    Input,
    /// The caller's output, or the caller's only array.
    Output,
    /// One of the plan's two buffers.
    Work(usize),
}

/// How an operation uses the memory of the values that it reads and writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Whether it can run in place.
    pub in_place: bool,
    /// Whether it may overwrite its source when it runs out of place.
    pub destroys_source: bool,
    /// Whether other ranks read its source.
    pub peers_read: bool,
    /// Whether other ranks write its destination.
    pub peers_write: bool,
}

/// The memory that the operations of a program need on one rank.
#[derive(Debug)]
pub struct MemoryNeeds {
    /// The use of memory by each operation.
    pub uses: Vec<MemoryUse>,
    /// Real numbers of each value: before, between and after the operations. For a split value, of
    /// its first part.
    pub reals: Vec<usize>,
    /// Real numbers of the second parts of split values at most.
    pub spare: usize,
    /// Whether other ranks access the caller's arrays, not only the plan's memory.
    pub exposes_all: bool,
    /// Whether a part of the data stays in the output while other ranks access the rest.
    pub has_exclusive: bool,
}

/// One step of a run, from one place to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlacedStep {
    pub(crate) action: Action,
    pub(crate) from: Place,
    pub(crate) to: Place,
    /// Memory of the plan that the operation works in. It copies its data there first if `from` is
    /// another place, and copies its result from there if `to` is another place.
    pub(crate) window: Option<Place>,
}

/// The action of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Runs the operation of this number.
    Run(usize),
    /// Copies the value of this number.
    Copy(usize),
}

/// The steps of a run, and the places of values.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Allocation {
    pub(crate) places: Vec<Place>,
    pub(crate) steps: Vec<PlacedStep>,
}

/// The places of all values, from the last back.
pub(crate) fn places(uses: &[MemoryUse], in_output: impl Fn(usize) -> bool) -> Vec<Place> {
    let last = uses.len();
    let mut places = vec![Place::Output; last + 1];
    if !in_output(last) {
        places[last] = Place::Work(0);
    }
    for value in (0..last).rev() {
        let next = places[value + 1];
        let allowed = |place: &Place| *place != Place::Output || in_output(value);
        if uses[value].in_place && allowed(&next) {
            places[value] = next;
        } else {
            let mut all = [Place::Output, Place::Work(0), Place::Work(1)].into_iter();
            let free = all.find(|place| *place != next && allowed(place));
            places[value] = free.expect("of two work buffers one is free");
        }
    }
    places
}

impl Allocation {
    /// For a run from the input, which stays unchanged, to the output; or for a run in place.
    pub(crate) fn new(needs: &MemoryNeeds, in_place: bool) -> Self {
        let (uses, last) = (&needs.uses, needs.uses.len());
        if needs.has_exclusive {
            return Self::with_exclusive(last, in_place);
        }
        let ends = [needs.reals[0], needs.reals[last]];
        let output = if in_place { ends[0].max(ends[1]) } else { ends[1] };
        let in_output = |value: usize| !needs.hides(value) && needs.reals[value] <= output;
        let mut places = places(uses, in_output);
        let given = if in_place { Place::Output } else { Place::Input };
        let keeps = in_place || last > 0 && !uses[0].destroys_source;
        let is_read_there = last > 0 && !needs.hides(0) && keeps && places[1] != given;
        if is_read_there {
            places[0] = given;
        }
        Self::with_copies(needs, places, given)
    }

    fn with_exclusive(ops: usize, in_place: bool) -> Self {
        let (given, work) = (if in_place { Place::Output } else { Place::Input }, Place::Work(0));
        let run = |op| {
            let from = if op == 0 { given } else { work };
            let to = if op + 1 == ops { Place::Output } else { work };
            PlacedStep { action: Action::Run(op), from, to, window: Some(work) }
        };
        Self { places: vec![work; ops + 1], steps: (0..ops).map(run).collect() }
    }

    /// The steps with these places, and copies from the given input and to the output.
    fn with_copies(needs: &MemoryNeeds, places: Vec<Place>, given: Place) -> Self {
        let last = needs.uses.len();
        let (mut first_copy, mut last_copy) = (places[0] != given, places[last] != Place::Output);
        let mut steps = Vec::with_capacity(last + 2);
        for op in 0..last {
            let (place, mut from, mut to) = (places[op], places[op], places[op + 1]);
            let mut window = None;
            if needs.uses[op].peers_write && needs.hides(op) && from == to {
                if op == 0 && std::mem::take(&mut first_copy) {
                    (from, window) = (given, Some(place));
                }
                if op + 1 == last && std::mem::take(&mut last_copy) {
                    (to, window) = (Place::Output, Some(place));
                }
            }
            if op == 0 && first_copy {
                steps.push(PlacedStep::copy(0, given, place));
            }
            steps.push(PlacedStep { action: Action::Run(op), from, to, window });
        }
        if last == 0 && first_copy {
            steps.push(PlacedStep::copy(0, given, places[0]));
        }
        if last_copy {
            steps.push(PlacedStep::copy(last, places[last], Place::Output));
        }
        Self { places, steps }
    }

    /// Real numbers that a work buffer holds.
    pub(crate) fn work(&self, number: usize, needs: &MemoryNeeds) -> usize {
        let stored = self.places.iter().zip(&needs.reals);
        let there = stored.filter(|(place, _)| **place == Place::Work(number));
        there.map(|(_, reals)| *reals).max().unwrap_or(0)
    }
}

impl PlacedStep {
    fn copy(value: usize, from: Place, to: Place) -> Self {
        Self { action: Action::Copy(value), from, to, window: None }
    }
}

impl MemoryNeeds {
    /// Whether a value must be in the plan's memory, because other ranks access it there.
    fn hides(&self, value: usize) -> bool {
        !self.exposes_all && is_accessed(&self.uses, value)
    }
}

/// Whether other ranks access a value.
pub(crate) fn is_accessed(uses: &[MemoryUse], value: usize) -> bool {
    let read = uses.get(value).is_some_and(|next| next.peers_read);
    read || value > 0 && uses[value - 1].peers_write
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input => f.write_str("input"),
            Self::Output => f.write_str("output"),
            Self::Work(number) => write!(f, "work {number}"),
        }
    }
}

#[cfg(test)]
mod tests;
