//! Numbers at the edge.

use fft_core::{Real, Wire};

use super::{WIRES, data, oracle, pack, unpack, words};

/// Numbers that must not be lost or changed in kind, and must not harm their neighbours.
fn strange<T: Real>() -> Vec<T> {
    let most = if size_of::<T>() == 4 { f32::MAX.into() } else { f64::MAX };
    let least = if size_of::<T>() == 4 { 1e-45 } else { 5e-324 };
    let mut x: Vec<T> = data::gaussian(1280);
    x[3] = T::of(f64::INFINITY);
    x[5] = T::of(f64::NEG_INFINITY);
    x[300] = T::of(f64::NAN);
    x[301] = T::of(f64::from_bits(u64::MAX));
    x[640..704].fill(T::of(most));
    x[640] = T::of(-most);
    x[650] = T::of(0.99 * most);
    x[704..770].fill(T::of(-0.0));
    x[770..840].fill(T::of(least));
    x[780] = T::of(-3.0 * least);
    x[1024..1280].fill(T::of(0.0));
    x[1030] = T::of(most / 2.1);
    x[1031] = T::of(least);
    x
}

fn arrives<T: Real>() {
    for (wire, step) in WIRES {
        for width in [1, 2] {
            let (codec, x) = (wire.codec::<T>(), strange::<T>());
            let (message, packed) = pack(&*codec, &x, width, step);
            let decoded = unpack(&*codec, &message, x.len(), width).unwrap();
            for (x, y) in x.iter().zip(&decoded) {
                let (x, y) = (x.as_f64(), y.as_f64());
                assert_eq!(x.is_nan(), y.is_nan(), "{wire}: {x:e} became {y:e}");
                assert_eq!(x.is_infinite(), y.is_infinite(), "{wire}: {x:e} became {y:e}");
                assert!(x.is_finite() || x.is_nan() || x == y, "{wire}: {x:e} became {y:e}");
            }
            assert!(!packed.squared_error.is_nan(), "{wire}");
            let known = oracle::decode::<T>(&message, x.len());
            for (found, expected) in words(&decoded).into_iter().zip(known) {
                let nan = |word: u64| match size_of::<T>() {
                    4 => f32::from_bits(word as u32).is_nan(),
                    _ => f64::from_bits(word).is_nan(),
                };
                assert!(found == expected || nan(found) && nan(expected), "{wire}");
            }
        }
    }
}

#[test]
fn what_is_not_finite_arrives_and_nothing_else_becomes_so() {
    arrives::<f64>();
    arrives::<f32>();
}

/// Normal numbers, and in two blocks of ten some that are not finite.
fn not_finite() -> Vec<f64> {
    let mut x = data::gaussian::<f64>(640);
    x[100] = f64::from_bits(0x7FF0_0000_0000_0001);
    x[101] = f64::from_bits(0xFFF8_1234_5678_9ABC);
    x[600] = f64::NEG_INFINITY;
    x
}

#[test]
fn with_a_tolerance_blocks_that_are_not_finite_keep_every_bit() {
    let (codec, x) = (Wire::Tolerance.codec::<f64>(), not_finite());
    let (message, packed) = pack(&*codec, &x, 1, 1e-4);
    let decoded = unpack(&*codec, &message, 640, 1).unwrap();
    for raw in [64..128, 576..640] {
        assert_eq!(words(&x[raw.clone()]), words(&decoded[raw]));
    }
    assert!(packed.squared_error > 0.0 && packed.squared_error.is_finite());
}

#[test]
fn in_integers_of_a_fixed_number_of_bits_blocks_that_are_not_finite_have_one_bit_less() {
    for bits in [2, 3, 4, 8, 16, 52] {
        let (codec, x) = (Wire::Bits(bits).codec::<f64>(), not_finite());
        let (message, packed) = pack(&*codec, &x, 1, 0.0);
        assert_eq!(Some(packed.bytes), codec.fixed(640, 1), "{bits}");
        let decoded = unpack(&*codec, &message, 640, 1).unwrap();
        let mut squares = 0.0;
        for (block, found) in x.chunks(64).zip(decoded.chunks(64)) {
            let strange = block.iter().any(|x| !x.is_finite());
            let finite = block.iter().filter(|x| x.is_finite());
            let most = finite.fold(0f64, |most, x| most.max(x.abs()));
            // The largest integer of one bit less, and two codes less.
            let top = if strange { 2f64.powi(i32::from(bits) - 2) - 2.0 } else { 1.0 };
            for (x, y) in block.iter().zip(found) {
                assert!(x.is_finite() || x == y || x.is_nan() && y.is_nan(), "{bits}: {x} {y}");
                if x.is_finite() {
                    let allowed = if top > 0.0 { most / top } else { most };
                    assert!((x - y).abs() <= allowed, "{bits}: {x:e} became {y:e}");
                    squares += (x - y).powi(2);
                }
            }
        }
        assert!((packed.squared_error / squares - 1.0).abs() < 1e-12, "{bits}");
    }
}

#[test]
fn where_too_many_blocks_go_raw_everything_does() {
    let x = vec![f64::NAN; 640];
    for wire in [Wire::Tolerance, Wire::Mantissa(0)] {
        let codec = wire.codec::<f64>();
        let (message, packed) = pack(&*codec, &x, 2, 1e-3);
        assert_eq!((packed.bytes, packed.squared_error), (640 * 8, 0.0));
        assert_eq!(words(&unpack(&*codec, &message, 640, 2).unwrap()), words(&x));
    }
}

#[test]
fn a_message_that_would_not_be_shorter_is_its_numbers_and_nothing_else() {
    // The number of reals from which a block of 64 pays: 8 bytes of header, 8 of scales or steps,
    // and the block.
    for (wire, step, least) in [
        (Wire::F32, 0.0, 35),
        (Wire::F16, 0.0, 19),
        (Wire::Mantissa(20), 0.0, 34),
        (Wire::Bits(16), 0.0, 19),
        (Wire::Bits(32), 0.0, 35),
        (Wire::Tolerance, 1e-3, 0),
        (Wire::Lossless, 0.0, 0),
    ] {
        for n in 0..200 {
            let (codec, x) = (wire.codec::<f64>(), data::gaussian::<f64>(n));
            let (message, packed) = pack(&*codec, &x, 1, step);
            assert!(message.len() <= 8 * n, "{wire} of {n}");
            if least > 0 && n <= 64 {
                assert_eq!(message.len() < 8 * n, n >= least, "{wire} of {n}");
            }
            if message.len() == 8 * n {
                assert!(message == bytemuck::cast_slice::<f64, u8>(&x), "{wire} of {n}");
                assert_eq!(packed.squared_error, 0.0);
            }
        }
    }
}

#[test]
fn zeros_lose_their_sign_in_integers_only() {
    let mut x = data::gaussian::<f64>(256);
    x[9] = -0.0;
    for (wire, step) in WIRES {
        let codec = wire.codec::<f64>();
        let y = unpack(&*codec, &pack(&*codec, &x, 1, step).0, 256, 1).unwrap()[9];
        let integers = matches!(wire, Wire::Bits(_)) || wire == Wire::Tolerance && step > 0.0;
        assert_eq!(y.to_bits(), if integers { 0 } else { (-0f64).to_bits() }, "{wire} {step}");
    }
}

#[test]
fn the_largest_number_does_not_round_to_infinity() {
    let short = [Wire::F32, Wire::F16, Wire::Bf16, Wire::Mantissa(20), Wire::Mantissa(0)];
    for wire in short.into_iter().chain([2, 5, 8, 16, 33, 52].map(Wire::Bits)) {
        let codec = wire.codec::<f64>();
        let x = vec![f64::MAX; 256];
        let y = unpack(&*codec, &pack(&*codec, &x, 1, 0.0).0, 256, 1).unwrap()[0];
        assert!(y.is_finite() && y > 0.8e308, "{wire}: {y:e}");
    }
}

#[test]
fn single_precision_takes_no_more_than_it_has() {
    let x = data::gaussian::<f32>(1024);
    for wire in [Wire::F32, Wire::Bits(32), Wire::Bits(52), Wire::Mantissa(23), Wire::Mantissa(52)]
    {
        let codec = wire.codec::<f32>();
        let (message, packed) = pack(&*codec, &x, 2, 0.0);
        assert_eq!((packed.bytes, packed.squared_error), (4096, 0.0), "{wire}");
        assert_eq!(words(&unpack(&*codec, &message, 1024, 2).unwrap()), words(&x));
    }
}
