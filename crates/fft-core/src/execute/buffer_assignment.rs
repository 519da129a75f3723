//! Where each operation of a program reads and writes.

use crate::geometry::Transfer;

/// A piece of memory that data passes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BufferId {
    /// The caller's input, which is only read.
    Input,
    /// The caller's output, or the caller's only array.
    Output,
    /// The plan's own.
    Work(usize),
}

/// What an operation asks of the places it reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferRequirement {
    /// In place or from one place to another.
    Either,
    /// From one place to another.
    Redistribution,
    /// From one place to another, the first of which may be destroyed.
    Spends,
    /// From one place to another, the first of which other ranks read; they write the second only where they see the caller's.
    MovesShown,
    /// In place or from one place to another; other ranks read and write both.
    EitherShown,
    /// All of a direction together, from the caller's input to the output: what other ranks read and write is in the plan's own
    /// memory in between, and the rest in the output.
    InBoth,
}

/// Where the data is before, between and after the operations.
pub(crate) struct BufferAssignment {
    pub(crate) places: Vec<BufferId>,
    pub(crate) first: Option<Copy>,
    pub(crate) last: Option<Copy>,
    /// Where the first operation copy_in from what it works on in memory that others reach.
    pub(crate) copy_in: Option<BufferId>,
    /// Whether the last copy_out that to the output.
    pub(crate) copy_out: bool,
    /// Whether a part of it is in the output in between.
    pub(crate) in_both: bool,
}

/// A plain copy before the first operation or after the last.
pub(crate) struct Copy {
    pub(crate) from: BufferId,
    pub(crate) to: BufferId,
    pub(crate) all: Transfer,
}

/// What routes are made from.
pub(crate) struct Map<'a> {
    pub(crate) requirements: &'a [BufferRequirement],
    /// Real numbers before, between and after the operations.
    pub(crate) sizes: &'a [usize],
    /// Whether other ranks can see any memory, or only the plan's own.
    pub(crate) exposes_all: bool,
}

impl BufferAssignment {
    /// For an output apart from the input, which nothing destroys.
    pub(crate) fn out_of_place(map: &Map<'_>) -> Self {
        let n = map.requirements.len();
        if map.in_both() {
            return Self::in_both(n, BufferId::Input);
        }
        let mut places = map.backwards(map.sizes[n]);
        let mut first = None;
        if n > 0 && !map.must_show(0) && map.requirements[0] != BufferRequirement::Spends {
            places[0] = BufferId::Input;
        } else {
            first = Some(Copy::new(BufferId::Input, places[0], map.sizes[0]));
        }
        let last = map.last(&places);
        Self { places, first, last, copy_in: None, copy_out: false, in_both: false }.joined(map)
    }

    /// For an output that is also the input.
    pub(crate) fn in_place(map: &Map<'_>) -> Self {
        let n = map.requirements.len();
        if map.in_both() {
            return Self::in_both(n, BufferId::Output);
        }
        let mut places = map.backwards(map.sizes[0].max(map.sizes[n]));
        let mut first = None;
        if places[0] != BufferId::Output {
            if places[1] != BufferId::Output && !map.must_show(0) {
                places[0] = BufferId::Output;
            } else {
                first = Some(Copy::new(BufferId::Output, places[0], map.sizes[0]));
            }
        }
        let last = map.last(&places);
        Self { places, first, last, copy_in: None, copy_out: false, in_both: false }.joined(map)
    }

    fn in_both(operations: usize, copy_in: BufferId) -> Self {
        let places = vec![BufferId::Work(0); operations + 1];
        Self {
            places,
            first: None,
            last: None,
            copy_in: Some(copy_in),
            copy_out: true,
            in_both: true,
        }
    }

    /// Leaves copies into memory that others reach, and out of it, to operations that work there.
    fn joined(mut self, map: &Map<'_>) -> Self {
        let n = map.requirements.len();
        let works_there = |op: usize| {
            map.must_show(op)
                && map.requirements[op] == BufferRequirement::EitherShown
                && self.places[op] == self.places[op + 1]
        };
        let copy_out = n > 0 && self.last.is_some() && works_there(n - 1);
        let copy_in = self.first.as_ref().map(|copy| copy.from).filter(|_| n > 0 && works_there(0));
        if copy_in.is_some() {
            (self.copy_in, self.first) = (copy_in, None);
        }
        if copy_out {
            (self.copy_out, self.last) = (true, None);
        }
        self
    }
}

impl Map<'_> {
    fn in_both(&self) -> bool {
        self.requirements.first() == Some(&BufferRequirement::InBoth)
    }

    fn is_either(&self, op: usize) -> bool {
        matches!(self.requirements[op], BufferRequirement::Either | BufferRequirement::EitherShown)
    }

    /// Whether data must be in the plan's own memory before operation `i`.
    fn must_show(&self, i: usize) -> bool {
        let read = self.requirements.get(i);
        let written = i.checked_sub(1).map(|before| self.requirements[before]);
        let shown =
            matches!(read, Some(BufferRequirement::MovesShown | BufferRequirement::EitherShown))
                || written == Some(BufferRequirement::EitherShown);
        shown && !self.exposes_all
    }

    /// From the end back: the last result goes to the output if it may; what is before an operation is where its
    /// result is if it may be, or else in the output if it may and that is large enough, or in a work buffer.
    fn backwards(&self, output: usize) -> Vec<BufferId> {
        let n = self.requirements.len();
        let mut places = vec![BufferId::Output; n + 1];
        for i in (0..=n).rev() {
            let after = places.get(i + 1).copied();
            let fits = |place: BufferId| {
                place != BufferId::Output || (!self.must_show(i) && self.sizes[i] <= output)
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

    fn last(&self, places: &[BufferId]) -> Option<Copy> {
        let n = self.requirements.len();
        let elsewhere = places[n] != BufferId::Output;
        elsewhere.then(|| Copy::new(places[n], BufferId::Output, self.sizes[n]))
    }
}

impl Copy {
    fn new(from: BufferId, to: BufferId, reals: usize) -> Self {
        Self { from, to, all: Transfer::run_of(reals) }
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

    #[test]
    fn what_others_reach_is_copied_by_who_works_there() {
        use BufferRequirement::{Either, EitherShown, InBoth};
        let work = BufferId::Work(0);
        let (input, output) = (Some(BufferId::Input), Some(BufferId::Output));
        // Operations; what they take from, out of place and in place; whether they bring.
        let cases = [
            (&[Either, EitherShown][..], [None, None], true),
            (&[EitherShown, Either], [input, output], false),
            (&[EitherShown, EitherShown], [input, output], true),
            (&[EitherShown], [input, output], true),
            (&[InBoth], [input, output], true),
            (&[InBoth, InBoth], [input, output], true),
        ];
        for (requirements, [copy_in, takes_in_place], copy_out) in cases {
            let [apart, in_place] = routes(requirements, false);
            assert_eq!((apart.copy_in, apart.copy_out), (copy_in, copy_out), "{requirements:?}");
            assert_eq!(
                (in_place.copy_in, in_place.copy_out),
                (takes_in_place, copy_out),
                "{requirements:?}"
            );
            for route in [&apart, &in_place] {
                assert!(route.last.is_none(), "{requirements:?}");
                assert!(route.copy_in.is_none() || route.first.is_none(), "{requirements:?}");
                assert!(route.places.contains(&work), "{requirements:?}");
                assert_eq!(route.in_both, requirements[0] == InBoth);
            }
        }
    }

    #[test]
    fn nothing_is_copied_where_others_reach_all() {
        for route in routes(&[BufferRequirement::Either, BufferRequirement::EitherShown], true) {
            assert!(route.first.is_none() && route.last.is_none());
            assert!(route.copy_in.is_none() && !route.copy_out);
        }
    }
}
