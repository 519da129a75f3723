//! The default machine against the clock: times of this library that benches/records keeps.
//!
//! CONTRIBUTING.md says when the machine and these times are to be looked at again.

use Kind::{C2C, R2C};
use fft_core::{Grid, Kind, Layout, Precision, Problem, ProcGrid, Recipe};

/// The largest factor between a prediction and a measured time.
const WITHIN: f64 = 1.5;

/// The median time of a forward transform on ranks of one host: threads, or MPI processes where the
/// record says so.
struct Recorded {
    record: &'static str,
    kind: Kind,
    n: usize,
    ranks: usize,
    milliseconds: f64,
}

const fn recorded(
    record: &'static str,
    kind: Kind,
    n: usize,
    ranks: usize,
    milliseconds: f64,
) -> Recorded {
    Recorded { record, kind, n, ranks, milliseconds }
}

/// Times of runs in which nothing else slowed the machine, as the copy of memory in the same record
/// shows.
const TIMES: [Recorded; 24] = [
    recorded("Xeon, 2026-11-24-826119", C2C, 256, 1, 149.5),
    recorded("Xeon, 2026-11-24-826119", C2C, 256, 2, 79.0),
    recorded("Xeon, 2026-11-24-826119", R2C, 256, 1, 83.7),
    recorded("Xeon, 2026-11-24-826119", R2C, 256, 2, 42.0),
    recorded("Zen 3, 2026-11-23-epyc", C2C, 256, 1, 186.4),
    recorded("Zen 3, 2026-11-24-epyc", C2C, 256, 2, 93.4),
    recorded("Zen 3, 2026-11-27-826119", C2C, 256, 1, 163.3),
    recorded("Zen 3, 2026-11-27-826119", C2C, 256, 2, 94.3),
    recorded("Zen 3, 2026-11-27-826119", R2C, 256, 1, 87.3),
    recorded("Zen 3, 2026-11-27-826119", R2C, 256, 2, 48.6),
    recorded("Zen 3, 2026-11-27-826119", C2C, 64, 1, 1.29),
    recorded("Zen 3, 2026-11-27-826119", R2C, 64, 1, 0.94),
    recorded("Zen 3, 2026-11-27-826119, MPI", C2C, 64, 2, 1.2),
    recorded("Zen 3, 2026-11-27-826119, MPI", R2C, 64, 2, 0.7),
    recorded("Zen 4, 2026-11-25-zen4", C2C, 256, 1, 135.7),
    recorded("Zen 4, 2026-11-25-zen4", C2C, 256, 2, 76.8),
    recorded("Zen 4, 2026-11-25-zen4", R2C, 256, 1, 69.9),
    recorded("Zen 4, 2026-11-25-zen4", R2C, 256, 2, 41.0),
    recorded("Zen 4, 2026-11-29-zen4", C2C, 64, 1, 1.22),
    recorded("Zen 4, 2026-11-29-zen4", R2C, 64, 1, 0.67),
    recorded("Zen 4, 2026-11-29-zen4", C2C, 256, 1, 158.6),
    recorded("Zen 4, 2026-11-29-zen4", C2C, 256, 2, 89.9),
    recorded("Zen 4, 2026-11-29-zen4", R2C, 256, 1, 82.1),
    recorded("Zen 4, 2026-11-29-zen4", R2C, 256, 2, 47.0),
];

/// Milliseconds by the model.
fn predicted(kind: Kind, n: usize, ranks: usize, precision: Precision) -> f64 {
    let grid = Grid::new([n; 3]).unwrap();
    let complex = kind == C2C;
    let kinds = if complex { [C2C; 3] } else { [C2C, C2C, R2C] };
    let even = |grid: Grid<3>| Layout::even(grid, ProcGrid::cubic(grid, ranks), ranks);
    let spectral = Problem::spectral_grid(grid, kinds).typed::<3>();
    let mut problem = Problem::new(kinds, complex, precision, even(grid), even(spectral)).unwrap();
    problem.hosts = vec![0; ranks];
    1e3 * Recipe::new(problem).unwrap().predict().seconds
}

#[test]
fn the_default_machine_is_near_what_was_measured_on_three_kinds_of_processors() {
    for Recorded { record, kind, n, ranks, milliseconds } in TIMES {
        let expected = predicted(kind, n, ranks, Precision::F64);
        let ratio = expected / milliseconds;
        assert!(
            (1.0 / WITHIN..WITHIN).contains(&ratio),
            "{kind} {n}³ on {ranks}: {expected:.2} ms predicted, {milliseconds} measured ({record})"
        );
    }
}

/// Real and single-precision data is half of the bytes, and takes about half of the time.
#[test]
fn half_of_the_bytes_take_half_of_the_time() {
    for n in [64, 256] {
        let whole = predicted(C2C, n, 1, Precision::F64);
        for half in [predicted(R2C, n, 1, Precision::F64), predicted(C2C, n, 1, Precision::F32)] {
            assert!((0.45..0.6).contains(&(half / whole)), "{n}³: {half} of {whole} ms");
        }
    }
}
