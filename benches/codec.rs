//! How fast messages are made and read, beside copies of the same data and codecs of others.
//!
//! `cargo bench --bench codec [-- <reals in Ki> <rounds> <wires>...]`. One thread, complex double precision. All candidates take
//! turns in every round, so that what else the machine does hits them alike; a row has the median of the rounds. Rates
//! are bytes of numbers, not of messages, per second. With `--features baselines` also ZFP, which CMake builds.

use std::hint::black_box;
use std::time::Instant;

use fft_core::{Codec, Transfer, Wire};

/// Something that reads numbers and writes bytes, or back.
struct Candidate<'a> {
    name: String,
    run: Box<dyn FnMut() + 'a>,
    seconds: Vec<f64>,
}

impl<'a> Candidate<'a> {
    fn new(name: impl ToString, run: impl FnMut() + 'a) -> Self {
        Self { name: name.to_string(), run: Box::new(run), seconds: Vec::new() }
    }

    fn median(&mut self) -> f64 {
        self.seconds.sort_by(f64::total_cmp);
        self.seconds[self.seconds.len() / 2]
    }
}

/// Independent normal numbers: the sum of eight uniform ones is close enough for a codec.
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

fn wires() -> Vec<(Wire, f64)> {
    let only: Vec<_> = std::env::args().filter_map(|name| name.parse::<Wire>().ok()).collect();
    let plain =
        ["raw", "f32", "f16", "bf16", "mantissa:20", "mantissa:40", "bits:8", "bits:12", "bits:15"];
    let more = ["bits:16", "bits:24", "bits:32", "bits:43", "lossless"];
    let named = |name: &str| (name.parse().expect("a wire"), 0.0);
    let mut wires: Vec<_> = plain.into_iter().chain(more).map(named).collect();
    wires.extend([1e-3, 1e-6, 1e-9].map(|step| (Wire::Tolerance, step)));
    wires.retain(|(wire, _)| only.is_empty() || only.contains(wire));
    wires
}

fn table(title: &str, data: &[f64], rounds: usize) {
    let n = data.len();
    let transfer = Transfer::run_of(n / 2);
    let mut copy = vec![0.0; n];
    let mut short = vec![0f32; n];
    let codecs: Vec<(String, f64, Box<dyn Codec<f64>>)> = wires()
        .into_iter()
        .map(|(wire, step)| {
            let step_name = if step > 0.0 { format!(" {step:.0e}") } else { String::new() };
            (format!("{wire}{step_name}"), step, wire.codec::<f64>())
        })
        .collect();
    let copies = vec![
        Candidate::new("memcpy", || copy.copy_from_slice(black_box(data))),
        Candidate::new("f64 to f32", || {
            short.iter_mut().zip(black_box(data)).for_each(|(out, x)| *out = *x as f32);
        }),
    ];
    let mut rows: Vec<(Candidate<'_>, f64, f64)> =
        copies.into_iter().map(|row| (row, f64::NAN, f64::NAN)).collect();

    let norm = data.iter().map(|x| x * x).sum::<f64>();
    for (name, step, codec) in &codecs {
        let bytes = codec.bound(n).next_multiple_of(8);
        let mut message = vec![0u64; bytes / 8];
        let packed = codec.pack(data, &transfer, 2, *step, bytemuck::cast_slice_mut(&mut message));
        let bits = 8.0 * packed.bytes as f64 / n as f64;
        let error = (packed.squared_error / norm).sqrt();
        let sent = message.clone();
        let (step, transfer) = (*step, &transfer);
        let encode = Candidate::new(format!("{name} encode"), move || {
            let message = bytemuck::cast_slice_mut(&mut message);
            black_box(codec.pack(black_box(data), transfer, 2, step, message));
        });
        let mut out = vec![0.0; n];
        let decode = Candidate::new(format!("{name} decode"), move || {
            let sent = &bytemuck::cast_slice(&sent)[..packed.bytes];
            codec.unpack(black_box(sent), transfer, 2, &mut out).expect("a message");
            black_box(&mut out);
        });
        rows.push((encode, bits, error));
        rows.push((decode, bits, error));
    }
    for round in 0..=rounds {
        for (row, _, _) in &mut rows {
            let start = Instant::now();
            (row.run)();
            if round > 0 {
                row.seconds.push(start.elapsed().as_secs_f64());
            }
        }
    }
    println!("{title}, {n} reals, median of {rounds}");
    println!(
        "{:<24}{:>8}{:>10}{:>10}{:>11}{:>10}",
        "", "GB/s", "/ memcpy", "/ to f32", "bits/real", "rel. l2"
    );
    let medians: Vec<_> = rows.iter_mut().map(|(row, _, _)| row.median()).collect();
    for ((row, bits, error), median) in rows.iter().zip(&medians) {
        let rate = 8.0 * n as f64 / median / 1e9;
        let ratio = |other: usize| medians[other] / median;
        println!(
            "{:<24}{rate:>8.2}{:>10.2}{:>10.2}{bits:>11.2}{error:>10.1e}",
            row.name,
            ratio(0),
            ratio(1)
        );
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
