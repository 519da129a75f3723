//! The plans of 200 random problems do not change: recipe, prediction, messages and programs, to
//! the letter.
//!
//! A change that means to plan otherwise writes the files anew, and shows the difference to whoever
//! reviews it:
//! `THRIFFTY_BLESS=1 cargo test -p fft-core --test core_tests frozen`.

use std::fmt::Write;
use std::path::Path;

use crate::options::options;
use crate::programs::programs;
use crate::tiling::{Rng, layout};
use fft_core::{Grid, Kind, Precision, Prediction, Problem, Recipe, Schedule};

const PROBLEMS: u64 = 200;
/// Points along an axis, at most, of problems with 1 to 4 axes.
const LONGEST: [usize; 4] = [4096, 160, 48, 14];

/// The problem of a number: any kinds, bricks, orders, hosts, wires, exchanges, memory and machine.
fn problem<const D: usize>(rng: &mut Rng) -> Problem {
    let shape: [_; D] = std::array::from_fn(|_| 2 + rng.below(LONGEST[D - 1] - 1));
    let ranks = 1 + rng.below(20);
    let halved = rng.below(D + 2).min(D);
    let kinds: [Kind; D] =
        std::array::from_fn(|axis| match Kind::ALL[rng.below(Kind::Tridiagonal as usize)] {
            _ if axis == halved => Kind::R2C,
            _ if rng.below(2) == 0 => {
                if halved == D {
                    Kind::C2C
                } else {
                    Kind::Dct2
                }
            }
            Kind::R2C => Kind::C2C,
            kind => kind,
        });
    let grid = Grid::new(shape).unwrap();
    let spectral = Problem::spectral_grid(grid, kinds).typed::<D>();
    let (input, output) = (layout(grid, ranks, rng), layout(spectral, ranks, rng));
    let precision = [Precision::F32, Precision::F64][rng.below(2)];
    let mut problem = Problem::new(kinds, halved == D, precision, input, output).unwrap();
    options(&mut problem, rng);
    problem
}

/// Numbers are compared to the sixth digit, because libraries of mathematics differ in the last.
fn told(prediction: &Prediction) -> String {
    let step = |it: &fft_core::Expected| {
        let (spent, volume) = (it.spent, it.volume);
        let times = [it.seconds, it.memory, it.arithmetic, spent.pack, spent.flight, spent.unpack];
        let moved = [volume.own, volume.near, volume.far, volume.host];
        let messages = [spent.pieces, volume.near_messages, volume.far_messages];
        let numbers = times.iter().chain(&moved).chain(&messages);
        let numbers: Vec<_> = numbers.map(|number| format!("{number:.5e}")).collect();
        let line = numbers.join(" ").replace("0.00000e0", "0");
        if line.bytes().all(|byte| matches!(byte, b'0' | b' ')) { "nothing".into() } else { line }
    };
    let steps: Vec<_> = prediction.steps.iter().map(step).collect();
    format!("  {:.5e} s\n    {}\n", prediction.seconds, steps.join("\n    "))
}

/// A sum that changes when any byte does, or their order (FNV-1a).
pub(crate) fn checksum(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// A sum that changes when any message does, or their order.
fn checksum_of(schedule: &Schedule) -> u64 {
    let messages = schedule.messages().iter().flat_map(|it| {
        [u64::from(it.from), u64::from(it.to), u64::from(it.chunk), it.bytes, it.wire]
    });
    let kept = (0..schedule.ranks()).flat_map(|rank| [schedule.own(rank), schedule.read(rank)]);
    checksum(messages.chain(kept).flat_map(u64::to_le_bytes))
}

fn numbered(number: u64) -> Problem {
    let mut rng = Rng(number);
    match number % 4 {
        0 => problem::<1>(&mut rng),
        1 => problem::<2>(&mut rng),
        2 => problem::<3>(&mut rng),
        _ => problem::<4>(&mut rng),
    }
}

/// Recipe, prediction and messages.
fn planned(recipe: &Recipe) -> String {
    let mut text = format!("{recipe}\n{}", told(&recipe.predict()));
    for (step, schedule) in Schedule::of(recipe) {
        let it = schedule.summary();
        let sum = checksum_of(&schedule);
        writeln!(
            text,
            "  step {step}: {} messages of {} to {} bytes, {} own, {} read, {} near, {} far, {sum:016x}",
            it.messages, it.min, it.max, it.own, it.read, it.near, it.far
        )
        .unwrap();
    }
    text
}

/// Compares a text with a golden file, or writes the file.
pub(crate) fn compare(found: &str, golden: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(golden);
    if std::env::var_os("THRIFFTY_BLESS").is_some() {
        std::fs::write(&path, found).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    for (line, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, expected, "line {} of {golden}", line + 1);
    }
    assert_eq!(found.lines().count(), expected.lines().count());
}

#[test]
fn what_is_planned_stays_as_it_was() {
    let (mut plans, mut all_programs) = (String::new(), String::new());
    for number in 0..PROBLEMS {
        match Recipe::new(numbered(number)) {
            Ok(recipe) => {
                write!(plans, "{number}: {}", planned(&recipe)).unwrap();
                write!(all_programs, "{number}\n{}", programs(&recipe)).unwrap();
            }
            Err(error) => writeln!(plans, "{number}: {error}").unwrap(),
        }
    }
    compare(&plans, "tests/golden/problems.txt");
    compare(&all_programs, "tests/golden/programs.txt");
}
