//! What a transform on one node is made of, one after the other: its passes through memory, and its lines, done in cache.
//!
//! `cargo bench --bench limit [-- N THREADS]`, of N³ points (256, by 2 threads; N is a multiple of 8) of double precision, each thread
//! with its share. A copy of the data, of the standard library and past the caches. Passes, which bring tiles of 512 KiB into
//! cache and write them from there, back or to another place: of whole planes in long runs, read by turns, and written past the caches
//! where they go elsewhere; and of lines along the slowest axis, some side by side (of 256³ 2 KiB), of eight rows by turns, with the
//! next eight fetched ahead, through the caches also where they go elsewhere. And the lines,
//! transformed from one place in cache to another, always the same, 16 at a time if complex, and one by one, each copied first, if
//! real.
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
/// Bytes of a tile.
const TILE_BYTES: usize = 1 << 19;
/// Rows that are copied by turns, a line of memory of each.
const BY_TURNS: usize = 8;
/// Bytes of a line of memory.
const LINE_BYTES: usize = fft_stream::LINE;

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
fn copy(threads: usize, bytes: usize, copy: fn(&[u8], &mut [u8])) -> [f64; 2] {
    timed(threads, || {
        let (from, mut to) = (vec![1u8; bytes / threads], vec![2u8; bytes / threads]);
        move || copy(black_box(&from), black_box(&mut to))
    })
}

/// Where the runs of tiles are in an array.
#[derive(Clone, Copy)]
struct Runs {
    /// Bytes of each.
    len: usize,
    /// From one to the next of a tile, and of a tile so many, a multiple of [`BY_TURNS`].
    stride: usize,
    many: usize,
}

/// Calls `copy` with where lines of memory are in the tile and in the array, from its first, some runs by turns, and where the line of
/// the next turn is.
#[inline(always)]
fn by_lines(Runs { len, stride, many }: Runs, mut copy: impl FnMut(usize, usize, usize)) {
    for first in (0..many).step_by(BY_TURNS) {
        for at in (0..len).step_by(LINE_BYTES) {
            for run in first..first + BY_TURNS {
                copy(run * len + at, run * stride + at, (run + BY_TURNS) * stride + at);
            }
        }
    }
}

/// The largest part of a whole that is not more than so much.
fn part(whole: usize, most: usize) -> usize {
    (1..=most).rev().find(|part| whole.is_multiple_of(*part)).unwrap_or(1)
}

/// Arrays of each thread, of whole blocks: what is read, and what is written if that is elsewhere.
fn arrays(threads: usize, bytes: usize, block: usize, elsewhere: bool) -> [Vec<u8>; 2] {
    let all = bytes / threads / block * block;
    [vec![1; all], vec![2; if elsewhere { all } else { 0 }]]
}

/// Tiles of so many bytes side by side, brought into cache and written back, or elsewhere.
fn planes(threads: usize, bytes: usize, len: usize, elsewhere: bool) -> [f64; 2] {
    timed(threads, || {
        let [mut from, mut to] = arrays(threads, bytes, len, elsewhere);
        let mut tile = vec![0u8; len];
        move || {
            for first in (0..from.len()).step_by(len) {
                fft_stream::copy_near(&from[first..][..len], &mut tile);
                let tile = black_box(&tile);
                match elsewhere {
                    true => fft_stream::copy_past(tile, &mut to[first..][..len]),
                    false => from[first..][..len].copy_from_slice(tile),
                }
            }
            black_box((&mut from, &mut to));
        }
    })
}

/// Tiles of runs that lie apart, brought into cache and written back, or elsewhere.
fn lines(threads: usize, bytes: usize, runs: Runs, elsewhere: bool) -> [f64; 2] {
    let Runs { len, stride, many } = runs;
    timed(threads, || {
        let block = stride * many;
        let [mut from, mut to] = arrays(threads, bytes, block, elsewhere);
        let mut tile = vec![0u8; len * many];
        move || {
            let firsts = (0..from.len()).step_by(block);
            for first in firsts.flat_map(|block| (block..block + stride).step_by(len)) {
                by_lines(runs, |here, there, next| {
                    fft_stream::ahead(from.as_ptr().wrapping_add(first + next));
                    tile[here..][..LINE_BYTES]
                        .copy_from_slice(&from[first + there..][..LINE_BYTES]);
                });
                let (tile, to) = (black_box(&tile), if elsewhere { &mut to } else { &mut from });
                by_lines(runs, |here, there, next| {
                    fft_stream::ahead(to.as_ptr().wrapping_add(first + next));
                    to[first + there..][..LINE_BYTES].copy_from_slice(&tile[here..][..LINE_BYTES]);
                });
            }
            black_box((&mut from, &mut to));
        }
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
    if !n.is_multiple_of(8) {
        return Err(format!("{n} points are not whole lines of memory: a multiple of 8").into());
    }
    let half = n / 2 + 1;
    let print = |what: &str, [median, fastest]: [f64; 2]| {
        println!("{what:<56} {median:8.2} {fastest:8.2}");
    };
    println!("{n}^3 by {threads} threads: milliseconds, median and fastest");
    let passes = |kind: &str, bytes: usize| {
        print(
            &format!("{kind}: a copy of the data"),
            copy(threads, bytes, |from, to| to.copy_from_slice(from)),
        );
        print(
            &format!("{kind}: a copy past the caches"),
            copy(threads, bytes, fft_stream::copy_past),
        );
        // Rows and planes of each thread's share.
        let (row, plane) = (bytes / (n * n), bytes / n / threads);
        let whole = row * part(n * n / threads, TILE_BYTES / row);
        let plane = plane / LINE_BYTES * LINE_BYTES;
        let len = part(plane / LINE_BYTES, TILE_BYTES / n / LINE_BYTES) * LINE_BYTES;
        let runs = Runs { len, stride: plane, many: n };
        let places = [("in place", false), ("elsewhere", true)];
        for (to, elsewhere) in places {
            let what = format!("{kind}: a pass of whole planes, {to}");
            print(&what, planes(threads, bytes, whole, elsewhere));
        }
        for (to, elsewhere) in places {
            let what = format!("{kind}: a pass of lines across planes, {to}");
            print(&what, lines(threads, bytes, runs, elsewhere));
        }
    };
    passes("c2c", 16 * n * n * n);
    print("c2c: lines along three axes, in cache", complex(threads, n, 3 * n * n));
    passes("r2c", 8 * n * n * n);
    print("r2c: real lines, in cache", real(threads, n, n * n));
    print("r2c: complex lines along two axes, in cache", complex(threads, n, 2 * n * half));
    Ok(())
}
