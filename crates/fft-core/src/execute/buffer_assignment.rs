//! Assignment of buffers to the operations of a program.

use crate::geometry::Transfer;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BufferId {
    /// The caller's input, which is only read.
    Input,
    /// The caller's output, or the caller's only array.
    Output,
    Work(usize),
}

/// The requirements of an operation on its buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferRequirement {
    /// In place or out of place.
    Either,
    /// Out of place.
    OutOfPlace,
    /// Out of place; the source may be overwritten.
    DestroysInput,
    /// Out of place. Other ranks read the source; they write the destination only if they see the
    /// caller's arrays.
    OutOfPlaceExposed,
    /// In place or out of place; other ranks read and write both buffers.
    EitherExposed,
    /// The whole direction, from the caller's input to the output. Exposed data is in the plan's
    /// memory meanwhile, the rest in the output.
    InBoth,
}

pub(crate) enum Instruction {
    Copy { all: Transfer, from: BufferId, to: BufferId },
    Run { op: usize, from: BufferId, to: BufferId, caller: CallerData },
}

/// An operation's use of the caller's arrays while it works in exposed memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CallerData {
    /// The buffer from which this rank's data is copied in.
    pub(crate) copy_in: Option<BufferId>,
    pub(crate) copy_out: bool,
    /// Whether a part of the data is in the output throughout.
    pub(crate) in_both: bool,
}

impl CallerData {
    pub(crate) fn is_used(&self) -> bool {
        *self != Self::default()
    }
}

/// The buffers before, between and after the operations.
pub(crate) struct BufferAssignment {
    pub(crate) places: Vec<BufferId>,
    pub(crate) instructions: Vec<Instruction>,
}

pub(crate) struct Map<'a> {
    pub(crate) requirements: &'a [BufferRequirement],
    /// Real numbers before, between and after the operations.
    pub(crate) sizes: &'a [usize],
    /// Whether other ranks can see all memory, or only the plan's.
    pub(crate) exposes_all: bool,
}

impl BufferAssignment {
    /// For an output apart from the input, which stays unchanged.
    pub(crate) fn out_of_place(map: &Map<'_>) -> Self {
        let n = map.requirements.len();
        if map.in_both() {
            return Self::in_both(n, BufferId::Input);
        }
        let mut places = map.backwards(map.sizes[n]);
        let reads_input =
            n > 0 && !map.must_expose(0) && map.requirements[0] != BufferRequirement::DestroysInput;
        if reads_input {
            places[0] = BufferId::Input;
        }
        Self::new(map, places, (!reads_input).then_some(BufferId::Input))
    }

    /// For an output that is also the input.
    pub(crate) fn in_place(map: &Map<'_>) -> Self {
        let n = map.requirements.len();
        if map.in_both() {
            return Self::in_both(n, BufferId::Output);
        }
        let mut places = map.backwards(map.sizes[0].max(map.sizes[n]));
        let there = places[0] == BufferId::Output;
        let reads_output = !there && places[1] != BufferId::Output && !map.must_expose(0);
        if reads_output {
            places[0] = BufferId::Output;
        }
        Self::new(map, places, (!there && !reads_output).then_some(BufferId::Output))
    }

    fn in_both(operations: usize, copy_in: BufferId) -> Self {
        let work = BufferId::Work(0);
        let run = |op| {
            let copy_in = (op == 0).then_some(copy_in);
            let caller = CallerData { copy_in, copy_out: op + 1 == operations, in_both: true };
            Instruction::Run { op, from: work, to: work, caller }
        };
        let instructions = (0..operations).map(run).collect();
        Self { places: vec![work; operations + 1], instructions }
    }

    /// The operations with these buffers, and the copies that they do not do themselves.
    fn new(map: &Map<'_>, places: Vec<BufferId>, first: Option<BufferId>) -> Self {
        let n = map.requirements.len();
        let works_there = |op: usize| {
            map.must_expose(op)
                && map.requirements[op] == BufferRequirement::EitherExposed
                && places[op] == places[op + 1]
        };
        let leaves = places[n] != BufferId::Output;
        let copy_out = n > 0 && leaves && works_there(n - 1);
        let copy_in = first.filter(|_| n > 0 && works_there(0));
        let copy = |from, to, reals| Instruction::Copy { all: Transfer::run_of(reals), from, to };
        let mut instructions = Vec::with_capacity(n + 2);
        if let Some(from) = first.filter(|_| copy_in.is_none()) {
            instructions.push(copy(from, places[0], map.sizes[0]));
        }
        for op in 0..n {
            let copy_in = copy_in.filter(|_| op == 0);
            let copy_out = copy_out && op + 1 == n;
            let caller = CallerData { copy_in, copy_out, in_both: false };
            let (from, to) = (places[op], places[op + 1]);
            instructions.push(Instruction::Run { op, from, to, caller });
        }
        if leaves && !copy_out {
            instructions.push(copy(places[n], BufferId::Output, map.sizes[n]));
        }
        Self { places, instructions }
    }
}

impl Map<'_> {
    fn in_both(&self) -> bool {
        self.requirements.first() == Some(&BufferRequirement::InBoth)
    }

    fn is_either(&self, op: usize) -> bool {
        matches!(
            self.requirements[op],
            BufferRequirement::Either | BufferRequirement::EitherExposed
        )
    }

    /// Whether data must be in the plan's memory before operation `i`.
    fn must_expose(&self, i: usize) -> bool {
        let read = self.requirements.get(i);
        let written = i.checked_sub(1).map(|before| self.requirements[before]);
        let shown = matches!(
            read,
            Some(BufferRequirement::OutOfPlaceExposed | BufferRequirement::EitherExposed)
        ) || written == Some(BufferRequirement::EitherExposed);
        shown && !self.exposes_all
    }

    /// Assigns buffers from the last operation back. The last result goes to the output if allowed.
    /// An operation works in place if allowed, else from the output, else from a work buffer.
    fn backwards(&self, output: usize) -> Vec<BufferId> {
        let n = self.requirements.len();
        let mut places = vec![BufferId::Output; n + 1];
        for i in (0..=n).rev() {
            let after = places.get(i + 1).copied();
            let fits = |place: BufferId| {
                place != BufferId::Output || (!self.must_expose(i) && self.sizes[i] <= output)
            };
            places[i] = match after {
                Some(same) if self.is_either(i) && fits(same) => same,
                Some(BufferId::Output) => BufferId::Work(0),
                Some(BufferId::Work(_)) | None if fits(BufferId::Output) => BufferId::Output,
                Some(BufferId::Work(k)) => BufferId::Work(1 - k),
                Some(BufferId::Input) | None => BufferId::Work(0),
            };
        }
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes(requirements: &[BufferRequirement], exposes_all: bool) -> [BufferAssignment; 2] {
        let sizes = vec![10; requirements.len() + 1];
        let map = Map { requirements, sizes: &sizes, exposes_all };
        [BufferAssignment::out_of_place(&map), BufferAssignment::in_place(&map)]
    }

    fn caller(assignment: &BufferAssignment) -> (Option<BufferId>, bool) {
        let runs = assignment.instructions.iter().filter_map(|instruction| match instruction {
            Instruction::Run { caller, .. } => Some(*caller),
            Instruction::Copy { .. } => None,
        });
        let runs: Vec<_> = runs.collect();
        (runs[0].copy_in, runs[runs.len() - 1].copy_out)
    }

    #[test]
    fn operations_in_exposed_memory_copy_in_and_out() {
        use BufferRequirement::{Either, EitherExposed, InBoth};
        let work = BufferId::Work(0);
        let (input, output) = (Some(BufferId::Input), Some(BufferId::Output));
        // Operations; the buffer copied in, out of place and in place; whether the last one copies
        // out.
        let cases = [
            (&[Either, EitherExposed][..], [None, None], true),
            (&[EitherExposed, Either], [input, output], false),
            (&[EitherExposed, EitherExposed], [input, output], true),
            (&[EitherExposed], [input, output], true),
            (&[InBoth], [input, output], true),
            (&[InBoth, InBoth], [input, output], true),
        ];
        for (requirements, [copy_in, copy_in_place], copy_out) in cases {
            let [apart, in_place] = routes(requirements, false);
            assert_eq!(caller(&apart), (copy_in, copy_out), "{requirements:?}");
            assert_eq!(caller(&in_place), (copy_in_place, copy_out), "{requirements:?}");
            for route in [&apart, &in_place] {
                let last = route.instructions.last();
                assert!(matches!(last, Some(Instruction::Run { .. })), "{requirements:?}");
                assert!(route.places.contains(&work), "{requirements:?}");
            }
        }
    }

    #[test]
    fn nothing_is_copied_where_all_memory_is_exposed() {
        for route in routes(&[BufferRequirement::Either, BufferRequirement::EitherExposed], true) {
            assert_eq!(route.instructions.len(), 2);
            assert_eq!(caller(&route), (None, false));
        }
    }
}
