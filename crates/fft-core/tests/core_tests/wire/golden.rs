//! Version 2 of the format, as files: what it was once, it stays.

use std::path::PathBuf;

use fft_core::{Real, Wire};

use super::{oracle, pack, unpack, words};

/// 70 complex numbers that any machine computes alike: a full group and the beginning of another.
fn numbers<T: Real>() -> Vec<T> {
    let at = |i: u32| (f64::from(i * 37 % 101) - 50.0) / 7.0 * f64::from(1 << (i % 5));
    (0..140).map(|i| T::of(at(i))).collect()
}

/// With an infinity at 30, in the first block of real parts.
const INFINITE: usize = 30;

struct Golden {
    name: &'static str,
    wire: Wire,
    step: f64,
    infinite: bool,
    /// Whether an earlier encoder made it: it is read still, and made no more.
    former: bool,
    /// Numbers 0, 1 and 139, as version 2 decodes them.
    decoded: [f64; 3],
}

const fn golden(name: &'static str, wire: Wire, step: f64, decoded: [f64; 3]) -> Golden {
    Golden { name, wire, step, infinite: false, former: false, decoded }
}

const DOUBLE: [Golden; 10] = [
    golden("f32-f64", Wire::F32, 0.0, [-7.142857074737549, -3.7142856121063232, 98.28571319580078]),
    golden("f16-f64", Wire::F16, 0.0, [-7.14453125, -3.71484375, 98.3125]),
    golden("bf16-f64", Wire::Bf16, 0.0, [-7.15625, -3.71875, 98.5]),
    golden("mantissa13-f64", Wire::Mantissa(13), 0.0, [-7.14306640625, -3.71435546875, 98.2890625]),
    golden("bits3-f64", Wire::Bits(3), 0.0, [0.0, 0.0, 85.5]),
    golden("bits15-f64", Wire::Bits(15), 0.0, [-7.142578125, -3.711181640625, 98.284912109375]),
    golden("bits16-f64", Wire::Bits(16), 0.0, [-7.142578125, -3.7144775390625, 98.284912109375]),
    golden("tolerance-f64", Wire::Tolerance, 1e-4, [-7.1429, -3.7143, 98.2857]),
    golden(
        "tolerance-raw-f64",
        Wire::Tolerance,
        0.0,
        [-7.142857142857143, -3.7142857142857144, 98.28571428571429],
    ),
    golden(
        "lossless-f64",
        Wire::Lossless,
        0.0,
        [-7.142857142857143, -3.7142857142857144, 98.28571428571429],
    ),
];

const SINGLE: [Golden; 4] = [
    golden("f16-f32", Wire::F16, 0.0, [-7.1445313, -3.7148438, 98.3125]),
    golden("bits16-f32", Wire::Bits(16), 0.0, [-7.142578, -3.7144775, 98.28491]),
    // With a step of more digits than encoders take.
    Golden {
        former: true,
        ..golden("tolerance-f32", Wire::Tolerance, 1e-2, [-7.14, -3.71, 98.29])
    },
    golden("tolerance-six-digits-f32", Wire::Tolerance, 1e-2, [-7.138672, -3.7109375, 98.28125]),
];

const NOT_FINITE: [Golden; 2] = [
    Golden {
        infinite: true,
        ..golden(
            "bits16-infinite-f64",
            Wire::Bits(16),
            0.0,
            [-7.142578125, -3.7144775390625, 98.284912109375],
        )
    },
    Golden {
        infinite: true,
        ..golden(
            "tolerance-infinite-f64",
            Wire::Tolerance,
            1e-4,
            [-7.142857142857143, -3.7143, 98.2857],
        )
    },
];

fn check<T: Real>(golden: &Golden) {
    let path = format!("{}/tests/golden/wire/{}.bin", env!("CARGO_MANIFEST_DIR"), golden.name);
    let (path, codec) = (PathBuf::from(path), golden.wire.codec::<T>());
    let mut x = numbers::<T>();
    if golden.infinite {
        x[INFINITE] = T::of(f64::INFINITY);
    }
    let (message, _) = pack(&*codec, &x, 2, golden.step);
    if std::env::var_os("THRIFFTY_NEW_GOLDEN").is_some() && !golden.former {
        std::fs::write(&path, &message).unwrap();
        let y = unpack(&*codec, &message, 140, 2).unwrap();
        println!("{}: [{:?}, {:?}, {:?}]", golden.name, y[0], y[1], y[139]);
        return;
    }
    let stored = std::fs::read(&path).unwrap();
    // A raw message has no version.
    let version = if stored.len() < size_of_val(&*x) { stored[0] } else { 2 };
    assert_eq!(version, 2, "the version of the wire format that these files are of");
    let decoded = unpack(&*codec, &stored, 140, 2).unwrap();
    assert_eq!(words(&decoded), oracle::decode::<T>(&stored, 140), "{}", golden.name);
    let expected = golden.decoded.map(T::of);
    assert_eq!([decoded[0], decoded[1], decoded[139]], expected, "{}", golden.name);
    assert_eq!(decoded[INFINITE].as_f64().is_infinite(), golden.infinite, "{}", golden.name);
    // Another version of Zstandard may find another way to say the same.
    if golden.wire != Wire::Lossless && !golden.former {
        assert!(message == stored, "{} is encoded otherwise", golden.name);
    }
}

#[test]
fn version_2_of_the_wire_format_stays_as_it_is() {
    DOUBLE.iter().chain(&NOT_FINITE).for_each(check::<f64>);
    SINGLE.iter().for_each(check::<f32>);
}
