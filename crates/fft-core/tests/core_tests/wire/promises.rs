//! Sizes, errors, statistics.

use fft_core::{Precision, Real, Wire};

use super::{WIRES, data, oracle, pack, unpack, words};

/// Numbers of reals that are few, or near the ends of blocks, pieces and spans.
const COUNTS: [usize; 16] =
    [0, 2, 4, 62, 64, 66, 126, 128, 130, 254, 258, 1000, 2048, 4100, 8192, 8450];

fn each<T: Real>(mut check: impl FnMut(Wire, f64, &[T], usize)) {
    for (wire, step) in WIRES {
        for n in COUNTS {
            for x in data::all::<T>(n) {
                for width in [1, 2] {
                    check(wire, step, &x, width);
                }
            }
        }
    }
}

fn keeps_sizes<T: Real>() {
    each::<T>(|wire, step, x, width| {
        let codec = wire.codec::<T>();
        let (message, packed) = pack(&*codec, x, width, step);
        let name = format!("{wire} of {} reals, width {width}", x.len());
        assert!(packed.bytes <= size_of_val(x) && codec.bound(x.len()) == size_of_val(x), "{name}");
        if let Some(fixed) = codec.fixed(x.len() / width, width) {
            assert_eq!(packed.bytes, fixed, "{name}");
        }
        // Whatever was in the message before is gone.
        let mut again = vec![0x5A; codec.bound(x.len())];
        let transfer = fft_core::Transfer::run_of(x.len() / width);
        assert_eq!(codec.pack(x, &transfer, width, step, &mut again), packed, "{name}");
        assert!(again[..packed.bytes] == message, "{name}");
    });
}

#[test]
fn messages_keep_within_their_bound() {
    keeps_sizes::<f64>();
    keeps_sizes::<f32>();
}

fn agrees<T: Real>() {
    each::<T>(|wire, step, x, width| {
        let codec = wire.codec::<T>();
        let (message, packed) = pack(&*codec, x, width, step);
        let decoded = unpack(&*codec, &message, x.len(), width).unwrap();
        assert!(
            words(&decoded) == oracle::decode::<T>(&message, x.len()),
            "{wire} {step} {}",
            x.len()
        );
        let error = |(x, y): (&T, &T)| (x.as_f64() - y.as_f64()).powi(2);
        let measured: f64 = x.iter().zip(&decoded).map(error).sum();
        let off = (packed.squared_error - measured).abs();
        assert!(off <= 1e-12 * measured || measured.is_infinite(), "{wire} {step} {}", x.len());
    });
}

#[test]
fn a_decoder_from_the_document_reads_the_same() {
    agrees::<f64>();
    agrees::<f32>();
}

/// The most by which a number may be off.
fn allowed<T: Real>(wire: Wire, step: f64, block: &[f64], x: f64) -> f64 {
    let most = block.iter().fold(0f64, |most, x| most.max(x.abs()));
    // One rounding to the receiver's precision, one each for the reciprocal and the step.
    let rounding = x.abs() * (T::EPSILON / 2.0 + f64::EPSILON) + T::of(f64::MIN_POSITIVE).as_f64();
    let rounding = if T::PRECISION == Precision::F32 { rounding + 1e-45 } else { rounding };
    match wire {
        Wire::Raw | Wire::Lossless => 0.0,
        // Half an ulp, or half the smallest number of the format at the scale.
        Wire::F32 => x.abs() * 2f64.powi(-24) + most * 2f64.powi(-275) + rounding,
        Wire::F16 => x.abs() * 2f64.powi(-11) + most * 2f64.powi(-38) + rounding,
        Wire::Bf16 => x.abs() * 2f64.powi(-8) + most * 2f64.powi(-259) + rounding,
        // Below the normal numbers, half the distance there.
        Wire::Mantissa(bits) => {
            let normal = if T::PRECISION == Precision::F32 {
                f32::MIN_POSITIVE.into()
            } else {
                f64::MIN_POSITIVE
            };
            x.abs().max(normal) * 2f64.powi(-1 - i32::from(bits))
        }
        Wire::Bits(bits) => {
            let range = 2f64.powi(i32::from(bits) - 1);
            let step = most / if bits <= 5 { range - 0.5 } else { range - 1.0 };
            (step * (1.0 + 1.0 / 32.0)).max(f64::MIN_POSITIVE) / 2.0 + rounding
        }
        Wire::Tolerance => step / 2.0 + rounding,
        _ => panic!("{wire}"),
    }
}

fn is_near<T: Real>() {
    each::<T>(|wire, step, x, width| {
        let codec = wire.codec::<T>();
        let (message, _) = pack(&*codec, x, width, step);
        let decoded = unpack(&*codec, &message, x.len(), width).unwrap();
        // Blocks are spans of 256 reals, or 64 in one plane.
        let spans = matches!(wire, Wire::F32 | Wire::F16 | Wire::Bf16);
        let block_of = |i: usize| if spans { (i / 256, 0) } else { (i / width / 64, i % width) };
        let mut blocks = std::collections::HashMap::<_, Vec<f64>>::new();
        for (i, x) in x.iter().enumerate() {
            blocks.entry(block_of(i)).or_default().push(x.as_f64());
        }
        for (i, (x, y)) in x.iter().zip(&decoded).enumerate() {
            let (x, y) = (x.as_f64(), y.as_f64());
            let allowed = allowed::<T>(wire, step, &blocks[&block_of(i)], x);
            assert!((x - y).abs() <= allowed, "{wire} {step}: {x:e} became {y:e}, {allowed:e}");
        }
    });
}

#[test]
fn no_number_is_off_by_more_than_half_a_step() {
    is_near::<f64>();
    is_near::<f32>();
}

/// Relative l2 error and bits per real for normal numbers.
fn measure<T: Real>(wire: Wire, step: f64) -> (f64, f64) {
    let x = data::gaussian::<T>(1 << 18);
    let (message, packed) = pack(&*wire.codec::<T>(), &x, 2, step);
    let norm: f64 = x.iter().map(|x| x.as_f64().powi(2)).sum();
    ((packed.squared_error / norm).sqrt(), 8.0 * message.len() as f64 / x.len() as f64)
}

#[test]
fn normal_numbers_come_near_the_limit_of_shannon() {
    // With a common step, widths are whole numbers of bits, which costs another half.
    let within = [
        (Wire::Bits(8), 0.0, 9e-3, 0.9),
        (Wire::Bits(16), 0.0, 3.5e-5, 0.9),
        (Wire::Bits(24), 0.0, 1.4e-7, 0.9),
        (Wire::Bits(32), 0.0, 5.5e-10, 0.9),
        (Wire::Tolerance, 1e-3, 3e-4, 1.4),
        (Wire::Tolerance, 1e-6, 3e-7, 1.4),
        (Wire::Tolerance, 1e-9, 3e-10, 1.4),
    ];
    for (wire, step, most, gap) in within {
        let (error, bits) = measure::<f64>(wire, step);
        // With `bits` bits no code can be better than 2^-bits.
        let above = bits + error.log2();
        println!("{wire} {step:e}: {bits:.3} bits, error {error:.3e}, {above:.3} above the limit");
        assert!(error <= most && above > 0.0 && above < gap, "{wire}: {error:e}, {above}");
    }
    let (single, _) = measure::<f32>(Wire::Bits(16), 0.0);
    assert!(single <= 3.5e-5, "{single:e}");
}

#[test]
fn shorter_numbers_are_as_good_as_their_formats() {
    for (wire, range) in [
        (Wire::F32, 2.0e-8..5.0e-8),
        (Wire::F16, 1.8e-4..4.0e-4),
        (Wire::Bf16, 1.4e-3..3.2e-3),
        (Wire::Mantissa(23), 2.0e-8..5.0e-8),
        (Wire::Mantissa(10), 1.8e-4..4.0e-4),
    ] {
        let (error, bits) = measure::<f64>(wire, 0.0);
        println!("{wire}: {bits:.3} bits, error {error:.3e}, {:.3} above", bits + error.log2());
        assert!(range.contains(&error), "{wire}: {error:e}");
    }
    assert_eq!(measure::<f32>(Wire::F32, 0.0).0, 0.0);
    let (_, bits) = measure::<f64>(Wire::Lossless, 0.0);
    assert!((55.0..59.0).contains(&bits), "{bits}");
}

#[test]
fn blocks_of_zeros_take_six_bits() {
    let zeros = vec![0.0; 1 << 16];
    let (message, packed) = pack(&*Wire::Tolerance.codec::<f64>(), &zeros, 2, 1e-3);
    assert_eq!((message.len(), packed.squared_error), (16 + 768, 0.0));
}

#[test]
fn a_step_that_cannot_be_used_loses_nothing() {
    let x = data::gaussian::<f64>(1000);
    for step in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-310, 1e-30] {
        let codec = Wire::Tolerance.codec::<f64>();
        let (message, packed) = pack(&*codec, &x, 1, step);
        assert_eq!(packed.squared_error, 0.0);
        assert_eq!(words(&unpack(&*codec, &message, 1000, 1).unwrap()), words(&x), "{step}");
    }
}

#[test]
fn halves_agree_with_another_implementation() {
    let x = data::gaussian::<f64>(4096);
    // The largest of 256 numbers around 1 becomes 2^14: numbers near 2^-28 of it are subnormal.
    // The other implementation ignores the last 32 bits of a number.
    let short = |x: f64| f64::from_bits(x.to_bits() >> 32 << 32);
    let tiny = |(i, x): (usize, &f64)| short(x * 2f64.powi(-(i as i32 % 40)));
    let x: Vec<f64> = x.iter().enumerate().map(tiny).collect();
    let mut expected = Vec::new();
    for span in x.chunks(256) {
        let most = span.iter().fold(0f64, |most, x| most.max(x.abs()));
        let scale = 2f64.powi(14 - most.log2().floor() as i32);
        expected.extend(span.iter().map(|x| half::f16::from_f64_const(x * scale).to_f64() / scale));
    }
    let codec = Wire::F16.codec::<f64>();
    let decoded = unpack(&*codec, &pack(&*codec, &x, 1, 0.0).0, 4096, 1).unwrap();
    let other = decoded.iter().zip(&expected).find(|(x, y)| x.to_bits() != y.to_bits());
    assert_eq!(other, None);
}
