//! Transforms of lines depend on the line only: not on scratch, earlier runs or neighbours in the
//! tile.

use crate::tiling::Rng;
use fft_core::{Direction, Kind, LineFft, LinePlanner, Real};

fn random<T: Real>(n: usize, rng: &mut Rng) -> Vec<T> {
    (0..n).map(|_| T::of(rng.signed())).collect()
}

/// The first `line.len_out()` numbers of every line.
fn results<T: Real>(line: &dyn LineFft<T>, tile: &[T]) -> Vec<T> {
    let places = tile.chunks_exact(line.pitch());
    places.flat_map(|place| place[..line.len_out()].to_vec()).collect()
}

fn check<T: Real>(kind: Kind, direction: Direction, n: usize, complex: bool) {
    const LINES: usize = 3;
    let what = format!("{kind} {direction:?} of {n}, {}", T::PRECISION);
    let mut planner = LinePlanner::<T>::default();
    let line = planner.plan(kind, direction, n, complex);
    let line = line.expect("only axes that are left alone have no transform");
    let input: Vec<T> = random(LINES * line.pitch(), &mut Rng(n as u64));
    let run = |scratch: &mut [T]| {
        let mut tile = input.clone();
        line.run(&mut tile, scratch, T::of(1.0));
        results(line.as_ref(), &tile)
    };
    let mut clean = vec![T::default(); line.scratch_len()];
    let expected = run(&mut clean);
    assert!(expected.iter().all(|x| x.as_f64().is_finite()), "{what}");
    assert_eq!(run(&mut clean), expected, "{what}: a second run gives something else");
    let mut dirty = vec![T::of(f64::NAN); line.scratch_len()];
    assert_eq!(run(&mut dirty), expected, "{what}: something else with NaN in the scratch");
    for (number, place) in input.chunks_exact(line.pitch()).enumerate() {
        let mut alone = place.to_vec();
        line.run(&mut alone, &mut clean, T::of(1.0));
        let among = &expected[number * line.len_out()..][..line.len_out()];
        for (alone, among) in alone.iter().zip(among) {
            let error = (alone.as_f64() - among.as_f64()).abs();
            // Vector code may take lines two at a time, and round otherwise than for one.
            let allowed = 4.0 * T::EPSILON * n as f64;
            assert!(error <= allowed, "{what}: line {number} is off by {error:.1e} alone");
        }
    }
}

#[test]
fn lines_depend_on_nothing_else() {
    for kind in Kind::ALL.into_iter().filter(|kind| kind.is_transform()) {
        for n in [2, 3, 4, 5, 7, 8, 16, 24, 25, 26, 31, 32, 49, 60, 64, 97, 101, 128, 210] {
            for direction in [Direction::Forward, Direction::Inverse] {
                for complex in [false, true] {
                    check::<f64>(kind, direction, n, complex);
                    check::<f32>(kind, direction, n, complex);
                }
            }
        }
    }
}
