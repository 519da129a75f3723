//! Measurements of one rank: memory, local transforms, codecs.

use std::hint::black_box;
use std::time::Instant;

use fft_core::{Cpu, Direction, Error, Kind, LocalFft, Pass, Slot, Transfer, Wire};

use super::rates::{ALONE, Window, rate};
use crate::tuning::noise;

/// Bytes of lines that fit in the first-level cache.
const TILE: usize = 1 << 14;
/// Real numbers that are encoded at once, for the same reason.
const REALS: usize = 1 << 12;

pub(super) struct Copying {
    from: Slot,
    to: Slot,
}

impl Copying {
    /// Arrays of `bytes` bytes whose pages are mapped.
    pub(super) fn new(bytes: usize, rank: usize) -> Result<Self, Error> {
        let mut copying = Self { from: Slot::new(bytes, rank)?, to: Slot::new(bytes, rank)? };
        copying.from.bytes_mut().fill(1);
        copying.to.bytes_mut().fill(2);
        Ok(copying)
    }

    /// Bytes read and written per second, both counted.
    pub(super) fn rate(&mut self, window: Window) -> f64 {
        let Self { from, to } = self;
        let (from, to) = (from.bytes(), to.bytes_mut());
        let piece = from.len().min(1 << 20);
        let mut at = 0;
        rate(window, || {
            to[at..at + piece].copy_from_slice(black_box(&from[at..at + piece]));
            black_box(&mut *to);
            at = if at + 2 * piece > from.len() { 0 } else { at + piece };
            2.0 * piece as f64
        })
    }
}

/// Operations per second of transforms of length `n` in cache, `5 n log₂ n` each, as plans do them.
pub(super) fn flops(n: usize, window: Window) -> Result<f64, Error> {
    let lines = (TILE / (16 * n)).max(1);
    let passes = vec![Pass { outer: lines, ..complex_line(n) }];
    let shape = LocalFft { blocks: 1, passes, cached: true, to_cache: true };
    let mut device = Cpu::<f64>::default();
    let fft = device.plan_fft(&shape, 0)?;
    let (src, mut dst) = (vec![1.0; 2 * n * lines], vec![0.0; 2 * n * lines]);
    let each = 5.0 * (n * lines) as f64 * (n as f64).log2();
    Ok(rate(window, || {
        device.fft(&fft, 0..1, Some(black_box(&src)), black_box(&mut dst));
        each
    }))
}

/// A pass over one contiguous complex line.
fn complex_line(n: usize) -> Pass {
    Pass {
        kind: Kind::C2C,
        direction: Direction::Forward,
        n,
        resized: None,
        complex_before: true,
        complex_after: true,
        outer: 1,
        inner: 1,
        factor: 1.0,
        twiddles: None,
        strides: [1; 2],
    }
}

/// The time of transforms along the first axis relative to those along the last, at least 1.
pub(super) fn strided() -> f64 {
    let (n, lines) = (128, 1 << 12);
    let pass = complex_line(n);
    let columns = vec![Pass { inner: lines, ..pass.clone() }];
    let first = LocalFft { blocks: 1, passes: columns, cached: false, to_cache: false };
    let last = LocalFft { blocks: lines, passes: vec![pass], cached: false, to_cache: false };
    let (src, mut dst) = (vec![1.0f64; 2 * n * lines], vec![2.0; 2 * n * lines]);
    let mut device = Cpu::<f64>::default();
    let mut shapes = [first, last].map(|shape| {
        let fft = device.plan_fft(&shape, 0).expect("tables of a short line");
        (fft, shape.blocks)
    });
    // Alternately, so that other load affects both alike.
    let mut least = [f64::INFINITY; 2];
    for _ in 0..ALONE.turns {
        for ((fft, blocks), least) in shapes.iter_mut().zip(&mut least) {
            let start = Instant::now();
            device.fft(fft, 0..*blocks, Some(black_box(&src)), black_box(&mut dst));
            *least = least.min(start.elapsed().as_secs_f64().max(1e-9));
        }
    }
    let [gathered, contiguous] = least;
    (gathered / contiguous).max(1.0)
}

/// Bytes per second that a wire encodes and decodes in cache: noise, with a tolerance of about
/// 1e-6.
pub(super) fn codec(wire: Wire) -> Result<[f64; 2], Error> {
    let mut state = 1;
    let data: Vec<f64> = (0..REALS).map(|_| noise(&mut state)).collect();
    let (codec, whole, step) = (wire.codec::<f64>(), Transfer::run_of(REALS / 2), 1e-6);
    let mut message = Slot::new(codec.bound(REALS), 0)?;
    let bytes = codec.pack(&data, &whole, 2, step, message.bytes_mut()).bytes;
    let each = size_of_val(&data[..]) as f64;
    let encode = rate(ALONE, || {
        black_box(codec.pack(black_box(&data), &whole, 2, step, message.bytes_mut()));
        each
    });
    let (mut back, mut good) = (vec![0.0; REALS], Ok(()));
    let decode = rate(ALONE, || {
        let read = codec.unpack(black_box(&message.bytes()[..bytes]), &whole, 2, &mut back);
        good = good.and(read);
        black_box(&mut back);
        each
    });
    good.map_err(|bad| Error::argument("message of a codec's own", bad, "one that it reads"))?;
    Ok([encode, decode])
}
