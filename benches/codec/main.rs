//! The speed of encoding and decoding, beside copies and codecs of others.
//!
//! `cargo bench --bench codec [-- <reals in Ki> <rounds> <wires>...]`. One thread, complex double
//! precision. Candidates take turns in every round; a row is the median. Rates count numbers in
//! memory.

use std::hint::black_box;
use std::time::Instant;

use fft_core::{Transfer, Wire};

/// A benchmark that encodes or decodes.
struct Candidate<'a> {
    name: String,
    run: Box<dyn FnMut() + 'a>,
    /// Bits per real number, and relative l2 error.
    result: Option<(f64, f64)>,
    seconds: Vec<f64>,
}

impl<'a> Candidate<'a> {
    fn new(name: impl ToString, result: Option<(f64, f64)>, run: impl FnMut() + 'a) -> Self {
        Self { name: name.to_string(), run: Box::new(run), result, seconds: Vec::new() }
    }

    fn median(&mut self) -> f64 {
        self.seconds.sort_by(f64::total_cmp);
        self.seconds[self.seconds.len() / 2]
    }
}

/// Nearly normal numbers: sums of eight uniform ones.
fn gaussian(n: usize) -> Vec<f64> {
    let mut state = 1u64;
    let mut uniform = move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    };
    (0..n).map(|_| (0..8).map(|_| uniform()).sum()).collect()
}

/// A wave whose amplitude falls over twelve decades.
fn smooth(n: usize) -> Vec<f64> {
    (0..n).map(|i| i as f64 / n as f64).map(|x| (1e4 * x).sin() * (-27.6 * x).exp()).collect()
}

/// Wires and steps.
fn wires() -> Vec<(Wire, f64)> {
    let only: Vec<Wire> = std::env::args().filter_map(|name| name.parse().ok()).collect();
    let names = "raw f32 f16 bf16 mantissa:20 mantissa:40 bits:8 bits:12 bits:15 bits:16 bits:24 \
                 bits:32 bits:43 lossless";
    let named = |name: &str| (name.parse().expect("a wire"), 0.0);
    let steps = [1e-3, 1e-6, 1e-9].map(|step| (Wire::Tolerance, step));
    let mut wires: Vec<_> = names.split_whitespace().map(named).chain(steps).collect();
    wires.retain(|(wire, _)| only.is_empty() || only.contains(wire));
    wires
}

fn ours<'a>(wire: Wire, step: f64, data: &'a [f64], norm: f64) -> [Candidate<'a>; 2] {
    let n = data.len();
    let (codec, again) = (wire.codec::<f64>(), wire.codec::<f64>());
    let whole = || Transfer::run_of(n / 2);
    let mut message = vec![0u64; codec.bound(n).div_ceil(8)];
    let packed = codec.pack(data, &whole(), 2, step, bytemuck::cast_slice_mut(&mut message));
    let sent = message.clone();
    let result = Some((8.0 * packed.bytes as f64 / n as f64, (packed.squared_error / norm).sqrt()));
    let mut name = wire.to_string();
    if wire == Wire::Tolerance {
        name += &format!(" {step:.0e}");
    }
    let (gather, scatter, mut out) = (whole(), whole(), vec![0.0; n]);
    let encode = move || {
        let message = bytemuck::cast_slice_mut(&mut message);
        black_box(codec.pack(black_box(data), &gather, 2, step, message));
    };
    let decode = move || {
        let sent: &[u8] = &bytemuck::cast_slice(&sent)[..packed.bytes];
        again.unpack(black_box(sent), &scatter, 2, &mut out).expect("our own message");
        black_box(&mut out);
    };
    [
        Candidate::new(format!("{name} encode"), result, encode),
        Candidate::new(format!("{name} decode"), result, decode),
    ]
}

/// Pco: lossless and slow, with the shortest messages.
fn pco(data: &[f64]) -> [Candidate<'_>; 2] {
    use pco::standalone::{simple_compress, simple_decompress};
    let config = pco::ChunkConfig::default().with_compression_level(1);
    let sent = simple_compress(data, &config).expect("numbers");
    let result = Some((8.0 * sent.len() as f64 / data.len() as f64, 0.0));
    let encode = move || drop(black_box(simple_compress(black_box(data), &config)));
    let decode = move || drop(black_box(simple_decompress::<f64>(black_box(&sent))));
    [
        Candidate::new("pco level 1 encode", result, encode),
        Candidate::new("pco level 1 decode", result, decode),
    ]
}

fn table(title: &str, data: &[f64], rounds: usize) {
    let n = data.len();
    let norm = data.iter().map(|x| x * x).sum::<f64>();
    let (mut copy, mut short) = (vec![0.0; n], vec![0f32; n]);
    let mut rows = vec![
        Candidate::new("memcpy", None, || copy.copy_from_slice(black_box(data))),
        Candidate::new("f64 to f32", None, || {
            short.iter_mut().zip(black_box(data)).for_each(|(out, x)| *out = *x as f32);
        }),
    ];
    rows.extend(wires().into_iter().flat_map(|(wire, step)| ours(wire, step, data, norm)));
    rows.extend(pco(data));

    for round in 0..=rounds {
        for row in &mut rows {
            let start = Instant::now();
            (row.run)();
            // The first round touches the memory.
            if round > 0 {
                row.seconds.push(start.elapsed().as_secs_f64());
            }
        }
    }
    println!("{title}, {n} reals, median of {rounds}");
    let head = ["GB/s", "/ memcpy", "/ to f32", "bits/real", "rel. l2"];
    println!("{:<24}{}", "", head.map(|name| format!("{name:>10}")).concat());
    let medians: Vec<_> = rows.iter_mut().map(Candidate::median).collect();
    for (row, median) in rows.iter().zip(&medians) {
        let rate = 8.0 * n as f64 / median / 1e9;
        let [memcpy, single] = [medians[0] / median, medians[1] / median];
        print!("{:<24}{rate:>10.2}{memcpy:>10.2}{single:>10.2}", row.name);
        let result = row.result.map(|(bits, error)| format!("{bits:>10.2}{error:>10.1e}"));
        println!("{}", result.unwrap_or_default());
    }
    println!();
}

fn main() {
    let mut numbers = std::env::args().filter_map(|argument| argument.parse::<usize>().ok());
    let n = numbers.next().unwrap_or(16 << 10) << 10;
    let rounds = numbers.next().unwrap_or(9);
    table("Gaussian", &gaussian(n), rounds);
    table("smooth", &smooth(n), rounds);
}
