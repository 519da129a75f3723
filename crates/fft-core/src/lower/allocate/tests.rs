//! A checker of allocations, which must accept every allocation and refuse changed ones.

use super::*;
use crate::lower::allocate::Action::{Copy, Run};

/// A generator of random numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }
}

/// Any operations between values of 1 to 3 sizes.
fn random(random: &mut Random) -> MemoryNeeds {
    let ops = random.below(7);
    let op = |random: &mut Random| match random.below(5) {
        0 => MemoryUse { in_place: true, ..MemoryUse::default() },
        1 => MemoryUse { peers_read: true, ..MemoryUse::default() },
        2 => MemoryUse {
            in_place: true,
            peers_read: true,
            peers_write: true,
            ..MemoryUse::default()
        },
        3 => MemoryUse { destroys_source: true, ..MemoryUse::default() },
        _ => MemoryUse::default(),
    };
    let uses: Vec<_> = (0..ops).map(|_| op(random)).collect();
    let sizes = 1 + random.below(3);
    let reals = (0..=ops).map(|_| 10 + random.below(sizes)).collect();
    let exposes_all = random.below(2) == 0;
    MemoryNeeds { uses, reals, spare: 0, exposes_all, has_exclusive: false }
}

/// Simulates an allocation. The error gives the step that reads, writes or leaves out a wrong
/// value.
fn check(needs: &MemoryNeeds, in_place: bool, allocation: &Allocation) -> Result<(), String> {
    let last = needs.uses.len();
    let (first_len, last_len) = (needs.reals[0], needs.reals[last]);
    let output = if in_place { first_len.max(last_len) } else { last_len };
    let given = if in_place { Place::Output } else { Place::Input };
    // The value in each place, as long as nothing else is written there.
    let mut contents = vec![(given, 0)];
    let mut done = 0;
    for step in &allocation.steps {
        let PlacedStep { action, from, to, window } = *step;
        let (before, after) = match action {
            Run(op) => (op, op + 1),
            Copy(value) => (value, value),
        };
        if !contents.contains(&(from, before)) {
            return Err(format!("{step:?} reads value {before}, which is not there"));
        }
        if let Run(op) = action {
            let uses = needs.uses[op];
            if op != done {
                return Err(format!("operation {op} is not the next"));
            }
            done += 1;
            if from == to && window.is_none() && !uses.in_place {
                return Err(format!("{step:?} cannot run in place"));
            }
            if from == Place::Input && uses.destroys_source {
                return Err(format!("{step:?} overwrites the input"));
            }
            let accessed = [(from, uses.peers_read), (to, uses.peers_write)];
            let is_hidden = |place: Place| matches!(place, Place::Work(_)) || needs.exposes_all;
            let seen = match window {
                Some(window) => is_hidden(window),
                None => {
                    accessed.iter().all(|(place, is_accessed)| !is_accessed || is_hidden(*place))
                }
            };
            if !seen {
                return Err(format!("other ranks do not access the memory of {step:?}"));
            }
        }
        let written = [Some(to), window];
        for place in written.into_iter().flatten() {
            if place == Place::Input {
                return Err("the input is written".into());
            }
            if place == Place::Output && needs.reals[after] > output {
                return Err(format!("value {after} does not fit into the output"));
            }
            contents.retain(|(stored, _)| *stored != place);
        }
        contents.push((to, after));
    }
    if done != last || !contents.contains(&(Place::Output, last)) {
        return Err("the result is not in the output".into());
    }
    Ok(())
}

#[test]
fn every_value_is_read_where_it_was_written() {
    let mut numbers = Random(1);
    for case in 0..2_000 {
        let needs = random(&mut numbers);
        for in_place in [false, true] {
            let allocation = Allocation::new(&needs, in_place);
            let checked = check(&needs, in_place, &allocation);
            assert_eq!(checked, Ok(()), "{case}: {needs:?} {allocation:?}");
        }
    }
}

/// Allocations with one place changed, or one step left out, are refused unless the change does
/// not matter: an operation may also run in place, or between other places that are free.
#[test]
fn the_checker_refuses_changed_allocations() {
    let use_of = |in_place, peers| MemoryUse {
        in_place,
        peers_read: peers,
        peers_write: peers && in_place,
        ..MemoryUse::default()
    };
    let needs = MemoryNeeds {
        uses: vec![
            use_of(true, false),
            use_of(false, true),
            use_of(true, true),
            use_of(false, false),
        ],
        reals: vec![10, 10, 12, 12, 8],
        spare: 0,
        exposes_all: false,
        has_exclusive: false,
    };
    let right = Allocation::new(&needs, false);
    assert_eq!(check(&needs, false, &right), Ok(()));
    let places = [Place::Input, Place::Output, Place::Work(0), Place::Work(1)];
    for number in 0..right.steps.len() {
        let changed = |change: &dyn Fn(&mut Vec<PlacedStep>)| {
            let mut steps = right.steps.clone();
            change(&mut steps);
            check(&needs, false, &Allocation { places: right.places.clone(), steps })
        };
        assert!(changed(&|steps| _ = steps.remove(number)).is_err());
        for place in places {
            let step = right.steps[number];
            assert!(step.from == place || changed(&|steps| steps[number].from = place).is_err());
            assert!(step.to == place || changed(&|steps| steps[number].to = place).is_err());
        }
    }
}

/// An operation in memory that all ranks write takes its data from the caller's arrays, and puts
/// it back.
#[test]
fn operations_in_the_plan_s_memory_copy_in_and_out() {
    let local = MemoryUse { in_place: true, ..MemoryUse::default() };
    let shared = MemoryUse { peers_read: true, peers_write: true, ..local };
    // The operations, the places that the first reads from and the last writes to, and whether
    // these work in a window.
    let cases = [
        (vec![local, shared], [false, true]),
        (vec![shared, local], [true, false]),
        (vec![shared, shared], [true, true]),
        (vec![shared], [true, true]),
    ];
    for (uses, windows) in cases {
        let reals = vec![10; uses.len() + 1];
        let needs = MemoryNeeds { uses, reals, spare: 0, exposes_all: false, has_exclusive: false };
        for (in_place, given) in [(false, Place::Input), (true, Place::Output)] {
            let Allocation { steps, .. } = Allocation::new(&needs, in_place);
            let (first, last) = (steps[0], steps[steps.len() - 1]);
            assert_eq!(steps.len(), needs.uses.len(), "{steps:?}");
            assert_eq!((first.from, last.to), (given, Place::Output), "{steps:?}");
            assert_eq!([first, last].map(|step| step.window.is_some()), windows, "{steps:?}");
        }
        let needs = MemoryNeeds { exposes_all: true, ..needs };
        let Allocation { steps, .. } = Allocation::new(&needs, false);
        assert!(steps.iter().all(|step| step.window.is_none()), "{steps:?}");
    }
}
