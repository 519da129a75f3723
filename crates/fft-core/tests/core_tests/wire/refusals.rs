//! Messages that are cut off, go on, or have other bytes.

use fft_core::{BadMessage, Real};

use super::{WIRES, data, pack, unpack, words};

/// Data with a block that is not finite.
fn numbers<T: Real>() -> Vec<T> {
    let mut x = data::gaussian::<T>(300);
    x[7] = T::of(f64::INFINITY);
    x
}

fn lengths<T: Real>() {
    for (wire, step) in WIRES {
        let (codec, x) = (wire.codec::<T>(), numbers::<T>());
        let (mut message, packed) = pack(&*codec, &x, 2, step);
        let raw = size_of_val(&*x);
        let fixed = codec.fixed(150, 2);
        for found in 0..packed.bytes {
            let error = unpack(&*codec, &message[..found], x.len(), 2).unwrap_err();
            if let Some(expected) = fixed {
                let expected = if found < 8 && expected < raw { 8 } else { expected };
                assert_eq!(error, BadMessage::Length { found, expected }, "{wire}");
            }
        }
        message.push(0);
        // One that is as long as its numbers is taken for them.
        if fixed.is_some() || message.len() != raw {
            let error = unpack(&*codec, &message, x.len(), 2).unwrap_err();
            let (found, expected) = (packed.bytes + 1, packed.bytes);
            assert_eq!(error, BadMessage::Length { found, expected }, "{wire}");
        }
    }
}

#[test]
fn a_message_of_another_length_is_refused() {
    lengths::<f64>();
    lengths::<f32>();
}

fn damage<T: Real>() {
    for (wire, step) in WIRES {
        let (codec, x) = (wire.codec::<T>(), numbers::<T>());
        let (message, _) = pack(&*codec, &x, 2, step);
        for place in 0..message.len() {
            for flip in [1, 0x80, 0xFF] {
                let mut message = message.clone();
                message[place] ^= flip;
                let result = unpack(&*codec, &message, x.len(), 2);
                let header = place < 8 && message.len() < size_of_val(&*x);
                assert!(!header || result.is_err(), "{wire}: byte {place}");
            }
        }
    }
}

#[test]
fn a_damaged_message_does_no_harm() {
    damage::<f64>();
    damage::<f32>();
}

#[test]
fn a_message_for_something_else_says_what() {
    let x = data::gaussian::<f64>(256);
    let wire = |name: &str| name.parse::<fft_core::Wire>().unwrap().codec::<f64>();
    let (message, _) = pack(&*wire("bits:16"), &x, 2, 0.0);
    let error = |codec: &str, reals, width| {
        unpack(&*wire(codec), &message, reals, width).unwrap_err().to_string()
    };
    assert_eq!(error("bits:15", 256, 2), "a message with bits 16, expected 15");
    assert_eq!(error("f16", 256, 2), "a message with wire 5, expected 2");
    assert_eq!(error("bits:16", 258, 2), "a message with elements 128, expected 129");
    assert_eq!(error("bits:16", 256, 1), "a message with reals per element 2, expected 1");
    let single = "bits:16".parse::<fft_core::Wire>().unwrap().codec::<f32>();
    let error = unpack(&*single, &message, 256, 2).unwrap_err();
    assert_eq!(error.to_string(), "a message with bytes per real 8, expected 4");
    let mut message = message.clone();
    message[8..10].copy_from_slice(&0xFFE0u16.to_le_bytes());
    let error = unpack(&*wire("bits:16"), &message, 256, 2).unwrap_err();
    let text = "a message whose scale number 0 is 65504, expected one of a finite number, or 65535";
    assert_eq!(error.to_string(), text);
}

#[test]
fn nothing_is_written_before_the_header_is_read() {
    let x = data::gaussian::<f64>(256);
    for (wire, step) in WIRES {
        let codec = wire.codec::<f64>();
        let (mut message, _) = pack(&*codec, &x, 1, step);
        if message.len() == size_of_val(&*x) {
            continue;
        }
        message[0] = 1;
        let mut y = x.clone();
        codec.unpack(&message, &fft_core::Transfer::run_of(256), 1, &mut y).unwrap_err();
        assert_eq!(words(&x), words(&y));
    }
}
