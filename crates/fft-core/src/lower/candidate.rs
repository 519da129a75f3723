//! The choice among candidates: programs of one recipe that need different memory.
//!
//! ```text
//! one shared pass in place, if ranks have data that no other rank transforms
//! to save memory: the first candidate with one buffer besides the output
//! if all ranks read each other's memory: the same, unless two buffers are not needed anyway
//! otherwise two buffers
//! ```
//!
//! A value that exceeds the output of some rank may be split (redistribute/spill.rs): its first
//! part is stored in the output, and only the second in memory of the plan.

use std::ops::RangeInclusive;

use super::allocate::{MemoryUse, Place, is_accessed, places};
use super::lowering::Lowering;
use super::ops::Op;
use super::program::Program;
use crate::geometry::exclusive::Exclusive;
use crate::problem::Memory;
use crate::redistribute::spill::{BufferSplit, Spill};

/// The properties in which candidates differ.
#[derive(Debug, Default)]
pub(crate) struct Candidate {
    /// Whether transforms may run in shared memory.
    pub(crate) shares: bool,
    /// Whether they are also used if data is moved to another layout afterwards, which saves
    /// memory.
    pub(crate) saves: bool,
    /// Whether real transforms join them.
    pub(crate) halves: bool,
    /// Whether ranks of a host read each other's memory in exchanges. Otherwise they send messages.
    pub(crate) reads_peers: bool,
    /// Whether the result is copied from the plan's memory to the output.
    pub(crate) copies_out: bool,
    /// The data kept in the output, if all operations are shared passes on one layout.
    pub(crate) exclusive: Option<Exclusive>,
}

/// The candidates with one buffer besides the output, in order of preference.
const WITH_ONE_BUFFER: [Candidate; 6] = {
    const fn of(shares: bool, reads_peers: bool, copies_out: bool) -> Candidate {
        let (saves, halves, exclusive) = (true, false, None);
        Candidate { shares, saves, halves, reads_peers, copies_out, exclusive }
    }
    [
        of(true, true, false),
        of(true, true, true),
        of(false, true, false),
        of(false, true, true),
        of(false, false, false),
        of(false, false, true),
    ]
};

impl<'a> Lowering<'a> {
    /// The program of the direction.
    pub(crate) fn program(&self) -> Program<'a> {
        if !self.capabilities.fuses_in_cache() {
            return self.build(Candidate { reads_peers: true, ..Candidate::default() });
        }
        if let exclusive @ Some(_) = self.exclusive() {
            return self.build(Candidate { exclusive, reads_peers: true, ..Candidate::default() });
        }
        let mut candidates = WITH_ONE_BUFFER.into_iter();
        if self.problem().options.memory == Memory::Least {
            let found = candidates.find_map(|candidate| self.with_one_buffer(candidate));
            return found.unwrap_or_else(|| self.with_two_buffers());
        }
        let program = self.with_two_buffers();
        if !self.policy.all_near || !program.reads_peers() || self.needs_one_buffer(&program) {
            return program;
        }
        let mut reading = candidates.filter(|candidate| candidate.reads_peers);
        reading.find_map(|candidate| self.with_one_buffer(candidate)).unwrap_or(program)
    }

    /// A program that may need both buffers.
    fn with_two_buffers(&self) -> Program<'a> {
        let exposes_all = self.capabilities.exposes_all;
        let least = self.problem().options.memory == Memory::Least;
        self.build(Candidate {
            shares: true,
            // If only the plan's memory is exposed, one buffer costs no time.
            saves: !exposes_all || least,
            halves: exposes_all,
            reads_peers: true,
            ..Candidate::default()
        })
    }

    /// Whether a program needs no more than the output and one buffer, or would if its result were
    /// copied to the output. A second buffer is better than that copy.
    fn needs_one_buffer(&self, program: &Program<'_>) -> bool {
        let (uses, last) = (program.uses(), program.ops.len());
        let fits = |value: usize| value == 0 || !program.exceeds(value);
        [false, true].into_iter().any(|copies_out| {
            let in_output = |value: usize| {
                let is_copied = copies_out && value == last;
                fits(value) && !(is_copied || self.hides(&uses, value))
            };
            !places(&uses, in_output).contains(&Place::Work(1))
        })
    }

    /// The program of a candidate, if the output and one buffer suffice.
    fn with_one_buffer(&self, candidate: Candidate) -> Option<Program<'a>> {
        let mut program = self.build(candidate);
        let uses = program.uses();
        // Planes of a brick have several sizes between two exchanges if lines are resized.
        let splits = !self.problem().is_any_resized();
        let fits = |value: usize| {
            let is_split =
                || splits && !is_accessed(&uses, value) && program.spill(value).is_some();
            value == 0 || !program.exceeds(value) || is_split()
        };
        let places = places(&uses, |value| !self.hides(&uses, value) && fits(value));
        if places.contains(&Place::Work(1)) {
            return None;
        }
        let is_split = |value: &usize| places[*value] == Place::Output && program.exceeds(*value);
        let split: Vec<_> = (1..places.len()).filter(is_split).collect();
        // Halves stay where they are while an operation runs in place.
        let moves = |op: usize| uses[op].in_place && places[op] != places[op + 1];
        if !split.is_empty() && (1..uses.len()).any(moves) {
            return None;
        }
        for value in split {
            program.split(value, &places);
        }
        Some(program)
    }

    /// Whether a value must be in the plan's memory.
    fn hides(&self, uses: &[MemoryUse], value: usize) -> bool {
        let exposes_all = self.policy.all_near && self.capabilities.exposes_all;
        !exposes_all && is_accessed(uses, value)
    }
}

impl Program<'_> {
    /// Whether every exchange reads the memory of other ranks, if they are on one host.
    fn reads_peers(&self) -> bool {
        self.ops.iter().all(|op| match op {
            Op::Exchange(pass) => pass.exchange.reads_peers(),
            _ => true,
        })
    }

    /// Whether a value is larger than the output on some rank.
    fn exceeds(&self, value: usize) -> bool {
        let ranks = 0..self.recipe.problem().input.ranks();
        ranks.into_iter().any(|rank| self.reals(value, rank) > self.reals(self.ops.len(), rank))
    }

    /// The values between the exchange or copy before a value and the one after it.
    fn between_exchanges(&self, value: usize) -> RangeInclusive<usize> {
        let moves = |op: &Op<'_>| matches!(op, Op::Exchange(_) | Op::CopyOut);
        let before = self.ops[..value].iter().rposition(moves);
        let after = self.ops[value..].iter().position(moves);
        before.map_or(0, |op| op + 1)..=after.map_or(self.ops.len(), |op| value + op)
    }

    /// The cut of all ranks' bricks of a value such that first parts fit into the output. `None` if
    /// other ranks transform the data, or if it comes from the input.
    fn spill(&self, value: usize) -> Option<Spill> {
        let values = self.between_exchanges(value);
        let (first, last) = (*values.start(), *values.end());
        let arrives = first.checked_sub(1).map(|op| &self.ops[op]);
        let Some(Op::Exchange(arrives)) = arrives else { return None };
        let mut ffts = arrives.fuse_after.clone();
        for op in &self.ops[first..last] {
            match op {
                Op::LocalFft(local) => ffts.extend_from_slice(local),
                Op::SharedPass(_) => return None,
                _ => {}
            }
        }
        if let Some(Op::Exchange(leaves)) = self.ops.get(last) {
            ffts.extend_from_slice(&leaves.fuse_before);
        }
        let whole: Vec<_> = ffts.iter().map(|fft| fft.axis).collect();
        let room = |rank| self.reals(self.ops.len(), rank);
        Spill::new(self.values[value].node, self.recipe.problem().batch, &whole, room)
    }

    /// Splits a value and all others up to the next exchanges: those in the output are in two
    /// buffers, the others in one.
    fn split(&mut self, value: usize, places: &[Place]) {
        let spill = self.spill(value).expect("checked");
        for value in self.between_exchanges(value) {
            let spill = spill.clone().apart(places[value] == Place::Output);
            self.values[value].split = BufferSplit(Some(spill));
        }
    }
}
