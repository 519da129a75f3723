//! Plans of one process: the same as of one rank, on any number of threads.

use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::prelude::*;
use thriffty::local;
use thriffty::planning::{
    Direction, DynDraft, DynGrid, DynTransform, Norm, Options, PerAxis, Precision,
};
use thriffty::{Brick, C2c, Complex, Draft, Error, ErrorKind, Kind, R2c};

/// Bytes of numbers between -0.5 and 0.5.
fn noise(bytes: usize, precision: Precision) -> Vec<u8> {
    let number = |i: usize| (i * 7919 % 1009) as f64 / 1009.0 - 0.5;
    match precision {
        Precision::F64 => (0..bytes / 8).flat_map(|i| number(i).to_ne_bytes()).collect(),
        Precision::F32 => (0..bytes / 4).flat_map(|i| (number(i) as f32).to_ne_bytes()).collect(),
    }
}

fn numbers(bytes: &[u8], precision: Precision) -> Vec<f64> {
    match precision {
        Precision::F64 => bytemuck::pod_collect_to_vec::<u8, f64>(bytes),
        Precision::F32 => {
            bytemuck::pod_collect_to_vec::<u8, f32>(bytes).into_iter().map(f64::from).collect()
        }
    }
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    let norm = |x: &mut dyn Iterator<Item = f64>| x.map(|x| x * x).sum::<f64>().sqrt();
    norm(&mut a.iter().zip(b).map(|(a, b)| a - b)) / norm(&mut a.iter().copied()).max(1e-300)
}

/// Both directions, compared with a plan of one rank.
fn check(
    grid: DynGrid,
    transform: DynTransform,
    precision: Precision,
    options: &Options,
    threads: usize,
) -> Result<(), Error> {
    let alone = thriffty::alone();
    let mut one = DynDraft::new(&alone, grid, transform, precision);
    one.options = options.clone();
    let mut one = one.build()?;
    let mut draft = DynDraft::local(grid, transform, precision);
    (draft.options, draft.threads) = (options.clone(), Some(threads));
    let mut team = draft.build()?;
    assert!(team.threads() <= threads);
    let lens = [one.input_bytes(), one.output_bytes()];
    assert_eq!([team.input_bytes(), team.output_bytes()], lens);
    let bound = if precision == Precision::F64 { 1e-13 } else { 1e-5 };
    for direction in [Direction::Forward, Direction::Inverse] {
        let [from, to] = direction.choose(lens, [lens[1], lens[0]]);
        // In words, so that arrays are aligned.
        let words: Vec<u64> =
            bytemuck::pod_collect_to_vec(&noise(from.next_multiple_of(8), precision));
        let input = &bytemuck::cast_slice(&words)[..from];
        let [mut expected, mut found] = [(); 2].map(|()| vec![0_u64; to.div_ceil(8)]);
        one.run(direction, input, &mut bytemuck::cast_slice_mut(&mut expected)[..to])?;
        team.run(direction, input, &mut bytemuck::cast_slice_mut(&mut found)[..to])?;
        let found_words = found.clone();
        let [expected, found] =
            [expected, found].map(|words| numbers(&bytemuck::cast_slice(&words)[..to], precision));
        let off = distance(&expected, &found);
        let mut data = vec![0_u64; team.in_place_bytes().div_ceil(8)];
        let bytes = &mut bytemuck::cast_slice_mut(&mut data)[..team.in_place_bytes()];
        bytes[..from].copy_from_slice(input);
        team.run_in_place(direction, bytes)?;
        assert!(
            bytes[..to] == bytemuck::cast_slice::<_, u8>(&found_words)[..to],
            "{direction:?} in place"
        );
        assert!(off < bound, "{direction:?}: {off:e} of {grid:?} on {threads} threads");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn teams_transform_as_one_rank_does(
        shape in prop::collection::vec(1..9usize, 1..=4),
        family in 0..3usize,
        double in any::<bool>(),
        batch in 1..6usize,
        threads in 1..7usize,
        seed in any::<u64>(),
    ) {
        let grid = DynGrid::new(PerAxis::from_fn(shape.len(), |a| shape[a])).unwrap();
        let transform = [DynTransform::C2c, DynTransform::R2c, DynTransform::R2r][family];
        let precision = if double { Precision::F64 } else { Precision::F32 };
        let mut options = Options { batch, ..Options::default() };
        let axes = shape.len();
        let turn = |from: PerAxis<usize>, by: u64| {
            let axes = from.len();
            PerAxis::from_fn(axes, |place| from[(place + by as usize) % axes])
        };
        options.input_order = Some(turn(PerAxis::row_major(axes), seed % 4));
        options.output_order = Some(turn(PerAxis::row_major(axes), seed / 4 % 4));
        [options.forward_scale, options.inverse_scale] = [Norm::Backward, Norm::Ortho, Norm::Forward][(seed / 16 % 3) as usize].scales();
        if transform == DynTransform::C2c && seed % 5 == 0 {
            let kinds = |a| if a % 2 == 0 { Kind::None } else { Kind::C2C };
            options.kinds = Some(PerAxis::from_fn(axes, kinds));
            if axes == 1 { options.kinds = Some(PerAxis::splat(1, Kind::Dct2)); }
        }
        prop_assert_eq!(check(grid, transform, precision, &options, threads), Ok(()));
    }
}

#[test]
fn a_plan_transforms_slices_as_often_as_one_likes() {
    for threads in [1, 2, 3, 4, 6] {
        let mut plan = local::r2c([12, 10, 8]).threads(threads).build().unwrap();
        assert_eq!((plan.input_len(), plan.output_len()), (960, 600));
        let x: Vec<f64> = (0..960).map(|i| (i * i % 37) as f64).collect();
        let (mut y, mut back) = (vec![Complex::default(); 600], vec![0.0; 960]);
        for _ in 0..20 {
            plan.forward_into(&x, &mut y).unwrap();
            plan.inverse_into(&y, &mut back).unwrap();
        }
        assert!((y[0].re - x.iter().sum::<f64>()).abs() < 1e-9);
        assert!(x.iter().zip(&back).all(|(a, b)| (a - b).abs() < 1e-12));
    }
}

/// Fields have the process's whole arrays, however many threads transform them.
#[test]
fn fields_are_those_of_the_process() {
    for (threads, batch) in [(1, 1), (2, 1), (3, 1), (2, 4), (4, 4)] {
        let draft = local::r2c([6, 5, 8]).threads(threads).batch(batch);
        let mut plan = draft.build().unwrap();
        assert_eq!(plan.threads(), threads);
        let mut x = plan.input();
        assert_eq!(x.brick(), Brick { lo: [0; 3], hi: [6, 5, 8] });
        let x_len = x.as_slice().len();
        assert_eq!(x_len, 240 * batch);
        x.as_mut_slice().iter_mut().enumerate().for_each(|(i, x)| *x = (i * i % 37) as f64);
        let before = x.as_slice().to_vec();
        let mut expected = vec![Complex::default(); plan.output_len()];
        plan.forward_into(&before, &mut expected).unwrap();
        let spectrum = plan.forward(x).unwrap();
        assert_eq!(spectrum.brick(), Brick { lo: [0; 3], hi: [6, 5, 5] });
        assert_eq!(spectrum.as_slice(), expected);
        // Spectra of another precision's plan have the same layout.
        let alone = thriffty::alone();
        let other =
            thriffty::r2c(&alone, [6, 5, 8]).precision::<f32>().like(&plan).build().unwrap();
        assert_eq!(other.output_brick(), plan.output_brick());
        let x = plan.inverse(spectrum).unwrap();
        assert!(x.as_slice().iter().zip(&before).all(|(a, b)| (a - b).abs() < 1e-12));
    }
}

#[test]
fn arrays_of_other_lengths_and_no_threads_are_refused() {
    let mut plan = Draft::<C2c, 2>::local([4, 4]).threads(2).build().unwrap();
    let (x, mut y) = (vec![Complex::default(); 16], vec![Complex::default(); 16]);
    for (from, to) in [(15, 16), (16, 15), (0, 16)] {
        let error = plan.forward_into(&x[..from], &mut y[..to]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Argument, "{error}");
    }
    plan.forward_into(&x, &mut y).unwrap();
    let none = Draft::<R2c, 2>::local([4, 4]).threads(0).build();
    let none = none.unwrap_err().to_string();
    assert!(none.ends_with("threads: found 0, expected at least 1"), "{none}");
    let half = Brick { lo: [0, 0], hi: [2, 4] };
    let part = local::c2c([4, 4]).threads(2).input_brick(half).build();
    assert_eq!(part.map(drop).unwrap_err().kind(), ErrorKind::Geometry);
    assert!(local::c2c([0, 4]).build().is_err());
    assert!(local::c2c([4, 4]).batch(0).build().is_err());
    let error = local::c2c([4, 4]).batch(1 << 60).build().unwrap_err().to_string();
    assert!(error.contains("has more than 2^58 points"), "{error}");
}

#[test]
fn plans_are_used_from_several_threads_and_in_each_other() {
    std::thread::scope(|scope| {
        for seed in 0..3 {
            scope.spawn(move || {
                let mut outer = local::c2c([8, 8]).threads(2).build().unwrap();
                let x = vec![Complex::new(f64::from(seed), 0.0); 64];
                let mut y = x.clone();
                for _ in 0..50 {
                    outer.forward_into(&x, &mut y).unwrap();
                    let mut inner = local::c2c([4, 16]).threads(3).build().unwrap();
                    let mut z = y.clone();
                    inner.forward_into(&y, &mut z).unwrap();
                }
                assert_eq!(y[0].re, 64.0 * f64::from(seed));
            });
        }
    });
    // Dropped while unwinding, a plan ends its threads.
    let ended = catch_unwind(AssertUnwindSafe(|| {
        let _plan = local::c2c([8, 8]).threads(4).build().unwrap();
        panic!("as it should");
    }));
    assert!(ended.is_err());
}

#[test]
fn threads_transform_side_by_side_without_plans_of_their_own() {
    std::thread::scope(|scope| {
        for seed in 1..4 {
            scope.spawn(move || {
                for n in (2..40).chain(130..133) {
                    let x: Vec<_> =
                        (0..n * n).map(|i| Complex::new((i * seed % 101) as f64, 1.0)).collect();
                    let [mut planned, mut found] =
                        [(); 2].map(|()| vec![Complex::default(); n * n]);
                    // Small arrays are transformed on one thread.
                    let threads = if n < 128 { 1 } else { 1 + seed % 2 };
                    let draft = local::c2c([n, n]).threads(threads);
                    draft.clone().build().unwrap().forward_into(&x, &mut planned).unwrap();
                    for _ in 0..2 {
                        draft.forward_once(&x, &mut found).unwrap();
                        assert_eq!(found, planned, "{n}");
                    }
                    draft.inverse_once(&planned, &mut found).unwrap();
                    let most = 1e-13 * 101.0;
                    assert!(x.iter().zip(&found).all(|(a, b)| (a - b).norm() < most), "{n}");
                }
            });
        }
    });
    let error =
        local::c2c([4, 4]).forward_once(&[Complex::default(); 15], &mut [Complex::default(); 16]);
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Argument);
    assert!(local::c2c([4, 0]).forward_once(&[], &mut []).is_err());
    local::clear_plans();
}

/// A transform within a rank of another one must not wait for the threads of that one.
#[test]
fn a_rank_may_transform_on_threads_as_well() {
    let (done, wait) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let x = vec![Complex::new(1.0, 0.0); 160 * 160];
        let shown = |_| {
            let mut y = x.clone();
            local::c2c([160, 160]).threads(3).forward_once(&x, &mut y).unwrap();
            assert_eq!(y[0].re, 25600.0);
        };
        let budget = std::time::Duration::from_millis(50);
        let ranks = thriffty::threads(2, |world| {
            let draft = thriffty::c2c(&world, [8, 8]).watch(shown);
            draft.tuning(thriffty::Tuning::Measure { budget }).build().map(drop)
        });
        done.send(ranks.map(drop)).unwrap();
    });
    let ended = wait.recv_timeout(std::time::Duration::from_secs(60));
    assert_eq!(ended.expect("no deadlock"), Ok(()));
}
