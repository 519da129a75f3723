//! Where each operation of a program reads and writes.

use crate::geometry::Transfer;

/// A piece of memory that data passes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The caller's input, which is only read.
    Input,
    /// The caller's output, or the caller's only array.
    Output,
    /// The plan's own.
    Work(usize),
}

/// What an operation asks of the places it reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// In place or from one place to another.
    Either,
    /// From one place to another.
    Moves,
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
pub(crate) struct Route {
    pub(crate) places: Vec<Place>,
    pub(crate) first: Option<Copy>,
    pub(crate) last: Option<Copy>,
    /// Where the first operation copy_in from what it works on in memory that others reach.
    pub(crate) copy_in: Option<Place>,
    /// Whether the last copy_out that to the output.
    pub(crate) copy_out: bool,
    /// Whether a part of it is in the output in between.
    pub(crate) in_both: bool,
}

/// A plain copy before the first operation or after the last.
pub(crate) struct Copy {
    pub(crate) from: Place,
    pub(crate) to: Place,
    pub(crate) all: Transfer,
}

/// What routes are made from.
pub(crate) struct Map<'a> {
    pub(crate) manners: &'a [Manner],
    /// Real numbers before, between and after the operations.
    pub(crate) sizes: &'a [usize],
    /// Whether other ranks can see any memory, or only the plan's own.
    pub(crate) exposes_all: bool,
}

impl Route {
    /// For an output apart from the input, which nothing destroys.
    pub(crate) fn out_of_place(map: &Map<'_>) -> Self {
        let n = map.manners.len();
        if map.in_both() {
            return Self::in_both(n, Place::Input);
        }
        let mut places = map.backwards(map.sizes[n]);
        let mut first = None;
        if n > 0 && !map.must_show(0) && map.manners[0] != Manner::Spends {
            places[0] = Place::Input;
        } else {
            first = Some(Copy::new(Place::Input, places[0], map.sizes[0]));
        }
        let last = map.last(&places);
        Self { places, first, last, copy_in: None, copy_out: false, in_both: false }.joined(map)
    }

    /// For an output that is also the input.
    pub(crate) fn in_place(map: &Map<'_>) -> Self {
        let n = map.manners.len();
        if map.in_both() {
            return Self::in_both(n, Place::Output);
        }
        let mut places = map.backwards(map.sizes[0].max(map.sizes[n]));
        let mut first = None;
        if places[0] != Place::Output {
            if places[1] != Place::Output && !map.must_show(0) {
                places[0] = Place::Output;
            } else {
                first = Some(Copy::new(Place::Output, places[0], map.sizes[0]));
            }
        }
        let last = map.last(&places);
        Self { places, first, last, copy_in: None, copy_out: false, in_both: false }.joined(map)
    }

    fn in_both(operations: usize, copy_in: Place) -> Self {
        let places = vec![Place::Work(0); operations + 1];
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
        let n = map.manners.len();
        let works_there = |op: usize| {
            map.must_show(op)
                && map.manners[op] == Manner::EitherShown
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
        self.manners.first() == Some(&Manner::InBoth)
    }

    fn is_either(&self, op: usize) -> bool {
        matches!(self.manners[op], Manner::Either | Manner::EitherShown)
    }

    /// Whether data must be in the plan's own memory before operation `i`.
    fn must_show(&self, i: usize) -> bool {
        let read = self.manners.get(i);
        let written = i.checked_sub(1).map(|before| self.manners[before]);
        let shown = matches!(read, Some(Manner::MovesShown | Manner::EitherShown))
            || written == Some(Manner::EitherShown);
        shown && !self.exposes_all
    }

    /// From the end back: the last result goes to the output if it may; what is before an operation is where its
    /// result is if it may be, or else in the output if it may and that is large enough, or in a work buffer.
    fn backwards(&self, output: usize) -> Vec<Place> {
        let n = self.manners.len();
        let mut places = vec![Place::Output; n + 1];
        for i in (0..=n).rev() {
            let after = places.get(i + 1).copied();
            let fits = |place: Place| {
                place != Place::Output || (!self.must_show(i) && self.sizes[i] <= output)
            };
            places[i] = match after {
                Some(same) if self.is_either(i) && fits(same) => same,
                Some(Place::Output) => Place::Work(0),
                Some(Place::Work(_)) | None if fits(Place::Output) => Place::Output,
                Some(Place::Work(k)) => Place::Work(1 - k),
                Some(Place::Input) | None => Place::Work(0),
            };
        }
        places
    }

    fn last(&self, places: &[Place]) -> Option<Copy> {
        let n = self.manners.len();
        let elsewhere = places[n] != Place::Output;
        elsewhere.then(|| Copy::new(places[n], Place::Output, self.sizes[n]))
    }
}

impl Copy {
    fn new(from: Place, to: Place, reals: usize) -> Self {
        Self { from, to, all: Transfer::run_of(reals) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes(manners: &[Manner], exposes_all: bool) -> [Route; 2] {
        let sizes = vec![10; manners.len() + 1];
        let map = Map { manners, sizes: &sizes, exposes_all };
        [Route::out_of_place(&map), Route::in_place(&map)]
    }

    #[test]
    fn what_others_reach_is_copied_by_who_works_there() {
        use Manner::{Either, EitherShown, InBoth};
        let work = Place::Work(0);
        let (input, output) = (Some(Place::Input), Some(Place::Output));
        // Operations; what they take from, out of place and in place; whether they bring.
        let cases = [
            (&[Either, EitherShown][..], [None, None], true),
            (&[EitherShown, Either], [input, output], false),
            (&[EitherShown, EitherShown], [input, output], true),
            (&[EitherShown], [input, output], true),
            (&[InBoth], [input, output], true),
            (&[InBoth, InBoth], [input, output], true),
        ];
        for (manners, [copy_in, takes_in_place], copy_out) in cases {
            let [apart, in_place] = routes(manners, false);
            assert_eq!((apart.copy_in, apart.copy_out), (copy_in, copy_out), "{manners:?}");
            assert_eq!(
                (in_place.copy_in, in_place.copy_out),
                (takes_in_place, copy_out),
                "{manners:?}"
            );
            for route in [&apart, &in_place] {
                assert!(route.last.is_none(), "{manners:?}");
                assert!(route.copy_in.is_none() || route.first.is_none(), "{manners:?}");
                assert!(route.places.contains(&work), "{manners:?}");
                assert_eq!(route.in_both, manners[0] == InBoth);
            }
        }
    }

    #[test]
    fn nothing_is_copied_where_others_reach_all() {
        for route in routes(&[Manner::Either, Manner::EitherShown], true) {
            assert!(route.first.is_none() && route.last.is_none());
            assert!(route.copy_in.is_none() && !route.copy_out);
        }
    }
}
