//! Results are stored at the places in a table, and nothing else is written.

use super::*;
use crate::abi::{Fft, FftRun, Spread};
use crate::ffi::{lend, lend_mut};
use cudarc::driver::CudaSlice;
use fft_core::{DIMS, LocalReadBox, View};

/// Planes of an array of three axes, in its own order in some memory.
fn planes(owner: usize, planes: std::ops::Range<usize>, [_, b, c]: [usize; 3]) -> LocalReadBox {
    let (mut ranges, mut stride) = (std::array::from_fn(|_| 0..1), [0; DIMS]);
    let axes = [(planes, b * c), (0..b, c), (0..c, 1)];
    for (i, (range, step)) in axes.into_iter().enumerate() {
        (ranges[DIMS - 3 + i], stride[DIMS - 3 + i]) = (range, step);
    }
    LocalReadBox { owner, ranges, source: View { offset: 0, stride } }
}

/// Transforms lines along the first of three axes or the last, out of one memory, times a half,
/// and stores halves of the first axis in two. Returns whether there is such a plan.
fn check(gpu: &Gpu, run: FftRun, n: usize, across: bool) -> bool {
    let lens @ [a, b, c] = if across { [n, 20, 16] } else { [20, 16, n] };
    let all = a * b * c;
    let spread = Spread { embed: [n], stride: b * c, distance: 1 };
    let lines = across.then_some(spread);
    let fft = if across {
        Fft { n: [n], batch: b * c, input: lines, output: lines }
    } else {
        Fft::rows([n], a * b)
    };
    let from = Pieces::new(&[planes(0, 0..a, lens)], 2, 16, 0.5).unwrap();
    let halves = [planes(0, 0..a / 2, lens), planes(1, a / 2..a, lens)];
    let to = Pieces::new(&halves, 2, 16, 1.0).unwrap();
    let many = fft.many(run).unwrap();
    let plan = Gathering::new::<f64, 1>(gpu, &many, from, Some(to)).unwrap();
    let Some(mut plan) = plan else { return false };
    let stream = gpu.new_stream().unwrap();
    let x: Vec<f64> = (0..2 * all).map(|i| (i as f64 * 0.7).sin()).collect();
    let x = stream.clone_htod(&x).unwrap();
    let mut targets: Vec<CudaSlice<f64>> =
        (0..2).map(|_| stream.alloc_zeros(all).unwrap()).collect();
    // Where results would be if they went there, and a target that is too short for that.
    let array = stream.clone_htod(&vec![7.0; 2 * all]).unwrap();
    let mut short = stream.clone_htod(&[7.0; 2]).unwrap();
    let mut work = stream.alloc_zeros::<u8>(1).unwrap();
    {
        let x = lend(&x, &stream);
        let held: Vec<_> = targets.iter_mut().map(|t| lend_mut(t, &stream)).collect();
        let (array, mut short) = (lend(&array, &stream), lend_mut(&mut short, &stream));
        let mut work = lend_mut(&mut work, &stream);
        let source = |_: usize| RankMemory::own(&*x);
        let target = |rank: usize| Some(RankMemory::own(&*held[rank]));
        let arrays = (&mut *short, &*array);
        plan.store(&stream, &source, &target, arrays, &mut work).unwrap();
    }
    let mut expected = stream.clone_dtod(&x).unwrap();
    let mut own = FftPlan::<f64>::new(gpu, run, &fft).unwrap();
    let mut space = stream.alloc_zeros::<u8>(own.work_bytes().max(1)).unwrap();
    own.run_in_place(&stream, &mut expected, &mut space).unwrap();
    let expected = stream.clone_dtoh(&expected).unwrap();
    let found: Vec<f64> =
        targets.iter().flat_map(|target| stream.clone_dtoh(target).unwrap()).collect();
    let away = found.iter().zip(&expected).map(|(f, e)| (f - 0.5 * e).abs());
    let worst = away.fold(0.0, f64::max);
    assert!(worst < 1e-11, "{run:?} of {n}, across: {across}: {worst:e}");
    let all = [&array, &short].map(|array| stream.clone_dtoh(array).unwrap());
    let untouched = all.iter().flatten().all(|x| *x == 7.0);
    assert!(untouched, "{run:?} of {n}, across: {across}: something else was written");
    true
}

#[test]
fn results_are_stored_where_a_table_says_and_nowhere_else() {
    let gpu = match Gpu::probe(0) {
        Ok(gpu) => gpu,
        Err(why) => return println!("not run: {why}"),
    };
    let mut stored = 0;
    for n in [2, 8, 64, 256, 512] {
        for run in [FftRun::Forward, FftRun::Inverse] {
            stored += usize::from(check(&gpu, run, n, true));
            stored += usize::from(check(&gpu, run, n, false));
        }
    }
    println!("{stored} of 20 plans store");
    assert!(stored > 0 || !crate::ffi::links(), "none stores, with a cuFFT that links");
}
