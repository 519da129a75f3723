//! Cosine and sine transforms on a device.

use thriffty::Kind::Dct1;

use super::*;

fn real<const D: usize>(comm: &dyn Comm, gpu: &impl Place, case: &Case<D>) -> Done {
    check::<R2r<f64>, D>(comm, gpu, case)?;
    check::<R2r<f32>, D>(comm, gpu, case)
}

/// Each kind of every small length, along each axis, combined with other kinds, for complex data;
/// with batches, scales, orders and uneven bricks.
fn all_kinds(comm: &dyn Comm, gpu: &impl Place) -> Done {
    let p2p = Exchange::P2p;
    let kinds: Vec<_> = Kind::ALL.into_iter().filter(|kind| kind.is_real()).collect();
    for &kind in &kinds {
        let least = if kind == Dct1 { 2 } else { 1 };
        for n in [1, 2, 3, 4, 5, 6, 12, 31, 64, 101].into_iter().filter(|n| *n >= least) {
            real(comm, gpu, &Case::new([n], [kind]).exchange(p2p))
                .unwrap_or_else(|why| panic!("{kind} of {n}: {why}"));
        }
        // Few arrays of many lines side by side, which stay so inside; others lie in rows there.
        for n in [5, 6] {
            let kinds = [Kind::None, kind, Kind::None];
            real(comm, gpu, &Case::new([3, n, 45], kinds).exchange(p2p))?;
        }
        for axis in 0..3 {
            let mut kinds = [Kind::None; 3];
            kinds[axis] = kind;
            real(comm, gpu, &Case::new([5, 7, 6], kinds).tiling(axis as u64).exchange(p2p))
                .unwrap_or_else(|why| panic!("{kind} along axis {axis}: {why}"));
            let mut kinds = [C2C; 3];
            kinds[axis] = kind;
            complex(comm, gpu, &Case::new([6, 5, 4], kinds).exchange(p2p))
                .unwrap_or_else(|why| panic!("{kind} along axis {axis} of complex data: {why}"));
        }
    }
    for some in kinds.windows(3) {
        let case = Case::new([8, 9, 10], [some[0], some[1], some[2]]);
        let case = case.scales(Scale::Symmetric, Scale::Symmetric).batch(2);
        real(comm, gpu, &case.orders([1, 2, 0], [2, 1, 0]).exchange(p2p))?;
        halved(comm, gpu, &Case::new([4, 9, 7], [some[0], C2C, R2C]).exchange(p2p))?;
    }
    Ok(())
}

#[test]
fn cosine_and_sine_transforms_are_as_defined() {
    let Some(gpu) = gpu() else { return };
    for ranks in if few() { &RANKS[..1] } else { &RANKS[..4] } {
        thriffty::threads(*ranks, |comm| all_kinds(&comm, &gpu)).unwrap();
    }
}
