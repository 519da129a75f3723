//! What a transform on one node is made of, one after the other: its passes through memory, and its lines, done in cache.
//!
//! `cargo bench --bench limit [-- N THREADS]`, of N³ points (256, by 2 threads): a copy of the data, and lines along three axes, of
//! double precision, each thread with its share; lines are transformed from one place in cache to another, always the same, 16 at a time if
//! complex, and one by one, each copied first, if real.
//! Milliseconds: the median of 15 rounds, and the fastest.

use std::error::Error;
use std::hint::black_box;
use std::sync::Barrier;
use std::time::Instant;

use realfft::RealFftPlanner;
use rustfft::FftPlanner;
use rustfft::num_complex::Complex64;

/// Lines that are in cache at a time.
const LINES: usize = 16;
const ROUNDS: usize = 15;

/// Rounds of what each thread makes for itself, in milliseconds: median and fastest.
fn timed<W: FnMut()>(threads: usize, make: impl Fn() -> W + Sync) -> [f64; 2] {
    let barrier = Barrier::new(threads);
    let rounds = || {
        let mut work = make();
        work();
        let round = |_| {
            barrier.wait();
            let start = Instant::now();
            work();
            barrier.wait();
            1e3 * start.elapsed().as_secs_f64()
        };
        let mut times: Vec<_> = (0..ROUNDS).map(round).collect();
        times.sort_by(f64::total_cmp);
        [times[ROUNDS / 2], times[0]]
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(rounds)).collect();
        let found = rounds();
        for other in others {
            other.join().expect("no thread panics");
        }
        found
    })
}

/// A copy of so many bytes by all threads.
fn copy(threads: usize, bytes: usize) -> [f64; 2] {
    timed(threads, || {
        let (from, mut to) = (vec![1u8; bytes / threads], vec![2u8; bytes / threads]);
        move || black_box(&mut to).copy_from_slice(black_box(&from))
    })
}

/// So many lines of `n` complex points.
fn complex(threads: usize, n: usize, lines: usize) -> [f64; 2] {
    timed(threads, || {
        let fft = FftPlanner::new().plan_fft_forward(n);
        let from = vec![Complex64::new(0.5, -0.25); LINES * n];
        let (mut to, mut scratch) = (from.clone(), vec![from[0]; fft.get_immutable_scratch_len()]);
        move || {
            for _ in 0..lines / threads / LINES {
                fft.process_immutable_with_scratch(black_box(&from), &mut to, &mut scratch);
                black_box(&mut to);
            }
        }
    })
}

/// So many lines of `n` real points.
fn real(threads: usize, n: usize, lines: usize) -> [f64; 2] {
    timed(threads, || {
        let fft = RealFftPlanner::new().plan_fft_forward(n);
        let (line, mut from, mut to) = (vec![0.5; n], vec![0.0; n], fft.make_output_vec());
        let mut scratch = fft.make_scratch_vec();
        move || {
            for _ in 0..lines / threads {
                // It is overwritten.
                from.copy_from_slice(black_box(&line));
                let done = fft.process_with_scratch(black_box(&mut from), &mut to, &mut scratch);
                done.expect("lengths are its own");
                black_box(&mut to);
            }
        }
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with('-'));
    let mut number = |otherwise: usize| words.next().map_or(Ok(otherwise), |word| word.parse());
    let (n, threads) = (number(256)?, number(2)?);
    let half = n / 2 + 1;
    let print = |what: &str, [median, fastest]: [f64; 2]| {
        println!("{what:<56} {median:8.2} {fastest:8.2}");
    };
    println!("{n}^3 by {threads} threads: milliseconds, median and fastest");
    print("c2c: a copy of the data", copy(threads, 16 * n * n * n));
    print("c2c: lines along three axes, in cache", complex(threads, n, 3 * n * n));
    print("r2c: a copy of the data", copy(threads, 8 * n * n * n));
    print("r2c: real lines, in cache", real(threads, n, n * n));
    print("r2c: complex lines along two axes, in cache", complex(threads, n, 2 * n * half));
    Ok(())
}
