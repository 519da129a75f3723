use std::thread;

use proptest::prelude::*;

use super::*;

/// A shape of 1 to 4 axes, and a box in it; either may be empty.
fn shape_and_brick() -> impl Strategy<Value = (Vec<usize>, Vec<usize>, Vec<usize>)> {
    let axis = (0..8usize, any::<prop::sample::Index>(), any::<prop::sample::Index>());
    prop::collection::vec(axis, 1..=4).prop_map(|axes| {
        let bounds = |&(n, a, b): &(usize, prop::sample::Index, prop::sample::Index)| {
            let (a, b) = (a.index(n + 1), b.index(n + 1));
            (n, a.min(b), a.max(b))
        };
        let bounds = axes.iter().map(bounds);
        let [shape, lo, hi] = bounds.fold([vec![], vec![], vec![]], |mut all, (n, lo, hi)| {
            all.iter_mut().zip([n, lo, hi]).for_each(|(list, value)| list.push(value));
            all
        });
        (shape, lo, hi)
    })
}

/// Reads one brick of the test array and compares it with the oracle.
fn check<E: Element>(path: &Path, header: &Header, lo: &[usize], hi: &[usize]) {
    let expected = numbered::<E>(header, lo, hi);
    let mut found = vec![E::numbered(usize::MAX); expected.len()];
    read_brick(path, header, lo, hi, &mut found).unwrap();
    assert!(found == expected, "{header:?} {lo:?}..{hi:?}: found {found:?}, expected {expected:?}");
}

fn round_trip<E: Element>(shape: &[usize], lo: &[usize], hi: &[usize], fortran_order: bool) {
    let (_folder, path) = place();
    let header = write_numbered::<E>(&path, shape, fortran_order);
    assert_eq!(Header::open(&path).unwrap(), header);
    check::<E>(&path, &header, lo, hi);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_brick_of_any_file(
        (shape, lo, hi) in shape_and_brick(),
        dtype in prop::sample::select(&Dtype::ALL[..]),
        fortran_order: bool,
    ) {
        match dtype {
            Dtype::F32 => round_trip::<f32>(&shape, &lo, &hi, fortran_order),
            Dtype::F64 => round_trip::<f64>(&shape, &lo, &hi, fortran_order),
            Dtype::C64 => round_trip::<Complex<f32>>(&shape, &lo, &hi, fortran_order),
            Dtype::C128 => round_trip::<Complex<f64>>(&shape, &lo, &hi, fortran_order),
        }
    }
}

#[test]
fn narrow_bricks_of_long_rows() {
    let (_folder, path) = place();
    for shape in [[5, 3000], [300, 700], [3, 20_000]] {
        for fortran_order in [false, true] {
            let shape = if fortran_order { [shape[1], shape[0]] } else { shape };
            let header = write_numbered::<f64>(&path, &shape, fortran_order);
            for fraction in [1, 2, 600] {
                let fast = usize::from(!fortran_order);
                let (mut lo, mut hi) = ([1, 1], [shape[0] - 1, shape[1] - 1]);
                (lo[fast], hi[fast]) =
                    (shape[fast] / 3, shape[fast] / 3 + (shape[fast] / 2 / fraction).max(1));
                check::<f64>(&path, &header, &lo, &hi);
            }
        }
    }
}

#[test]
fn ranks_write_and_read_at_the_same_time() {
    let (_folder, path) = place();
    for fortran_order in [false, true] {
        let shape = [6, 10, 9];
        let header = Header::new(&shape, Dtype::C128, fortran_order);
        let output = Output::create(&path, &header, false).unwrap();
        // Uneven cuts along every axis, one of the bricks empty along the last.
        let cuts = [vec![0, 2, 6], vec![0, 5, 9, 10], vec![0, 4, 4, 9]];
        let bricks: Vec<_> = indices(&[0; 3], &[2, 3, 3], false)
            .iter()
            .map(|at| ([0, 1, 2].map(|a| cuts[a][at[a]]), [0, 1, 2].map(|a| cuts[a][at[a] + 1])))
            .collect();
        let (header, temporary) = (&header, &output.open_by());
        thread::scope(|scope| {
            for (lo, hi) in &bricks {
                scope.spawn(move || {
                    let mine = numbered::<Complex<f64>>(header, lo, hi);
                    write_brick(temporary, header, lo, hi, &mine).unwrap();
                });
            }
        });
        output.commit().unwrap();
        assert_eq!(&Header::open(&path).unwrap(), header);
        thread::scope(|scope| {
            for (lo, hi) in &bricks {
                scope.spawn(|| check::<Complex<f64>>(&path, header, lo, hi));
            }
        });
        check::<Complex<f64>>(&path, header, &[0; 3], &shape);
    }
}
