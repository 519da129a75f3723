//! The bytes of tables that planners tell, against the allocator's count.

#[path = "../../../tests/common/counting.rs"]
mod counting;

use fft_lines::TrigonometricType::{I, II, III, IV};
use fft_lines::{Layout, Number, Planner, Trigonometric, TrigonometricType};

/// What is not counted: the planner and the structs of transforms.
const SMALL: usize = 4 << 10;

/// Makes transforms of lines of `n` numbers.
type Make<T> = fn(&mut dyn Planner<T>, usize);

fn check<T: Number>(name: &str, n: usize, make: Make<T>) {
    let before = counting::bytes();
    let mut planner = T::planner();
    make(planner.as_mut(), n);
    let (found, told) = (counting::bytes() - before, planner.table_bytes());
    let off = found.abs_diff(told);
    assert!(off <= found / 20 + SMALL, "{name} of {n}: {told} bytes are told, {found} taken");
    drop(planner);
    // The cache of the process has room for the names of more tables.
    assert!(counting::bytes() < before + SMALL, "{name} of {n}");
}

fn cosines(kind: TrigonometricType) -> Trigonometric {
    Trigonometric { kind, sine: false }
}

fn sines(kind: TrigonometricType) -> Trigonometric {
    Trigonometric { kind, sine: true }
}

fn check_all<T: Number>(n: usize) {
    check::<T>("complex", n, |planner, n| drop(planner.complex(n, true)));
    check::<T>("both directions", n, |planner, n| {
        drop((planner.complex(n, true), planner.complex(n, false)));
    });
    check::<T>("real", n, |planner, n| drop(planner.real(n)));
    check::<T>("real of even length", 2 * n, |planner, n| drop(planner.real(n)));
    check::<T>("I", n, |planner, n| {
        drop(planner.trigonometric(cosines(I), n + 1));
        drop(planner.trigonometric(sines(I), n));
    });
    check::<T>("II", n, |planner, n| drop(planner.trigonometric(cosines(II), n)));
    check::<T>("III", n, |planner, n| drop(planner.trigonometric(cosines(III), n)));
    check::<T>("IV", n, |planner, n| drop(planner.trigonometric(cosines(IV), n)));
    check::<T>("IV of even length", 2 * n, |planner, n| {
        drop(planner.trigonometric(cosines(IV), n))
    });
    check::<T>("batch", n, |planner, n| drop(planner.complex_batch(n, true, Layout::Columns)));
    check::<T>("real batches", 2 * n, |planner, n| {
        drop((planner.real_to_complex_batch(n), planner.complex_to_real_batch(n)));
    });
    for kind in [I, II, III, IV] {
        let before = counting::bytes();
        let mut planner = T::planner();
        let transform = Trigonometric { kind, sine: n.is_multiple_of(3) };
        drop(planner.trigonometric_batch(transform, 2 * n, false));
        let (found, told) = (counting::bytes() - before, planner.table_bytes());
        assert!(found.abs_diff(told) <= found / 20 + SMALL, "{kind:?} of {n}: {told}, {found}");
    }
}

/// One test, as what others allocate would be counted.
#[test]
fn what_is_told_is_what_is_taken() {
    let short = (1..64).chain((64..2000).step_by(7)).chain((2000..33_000).step_by(331));
    for n in short.chain([32_768, 65_537, 65_539, 100_003, 196_608, 200_006, 30_030 * 8]) {
        check_all::<f64>(n);
        check_all::<f32>(n);
    }
}
