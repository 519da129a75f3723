//! Messages of the device against those of the CPU, bit for bit.

use fft_core::{BadMessage, Codec, Packed, Real, Transfer, Wire};
use fft_gpu::cudarc::driver::CudaStream;
use fft_gpu::{Decoder, Encoder, Gpu, GpuError, GpuReal, PlacedTransfer};
use std::sync::Arc;

use super::{data, gpu};

const WIRES: [(Wire, f64); 23] = [
    (Wire::F32, 0.0),
    (Wire::Bits(2), 0.0),
    (Wire::Bits(3), 0.0),
    (Wire::Bits(5), 0.0),
    (Wire::Bits(6), 0.0),
    (Wire::Bits(7), 0.0),
    (Wire::Bits(8), 0.0),
    (Wire::Bits(11), 0.0),
    (Wire::Bits(13), 0.0),
    (Wire::Bits(14), 0.0),
    (Wire::Bits(15), 0.0),
    (Wire::Bits(16), 0.0),
    (Wire::Bits(17), 0.0),
    (Wire::Bits(18), 0.0),
    (Wire::Bits(31), 0.0),
    (Wire::Bits(32), 0.0),
    (Wire::Bits(45), 0.0),
    (Wire::Bits(52), 0.0),
    (Wire::Tolerance, 0.3),
    (Wire::Tolerance, 1e-3),
    (Wire::Tolerance, 1e-7),
    (Wire::Tolerance, 1e-14),
    (Wire::Tolerance, 0.0),
];

/// Whether a wire is tested: those named in `THRIFFTY_WIRES`, separated by spaces, or all that
/// encode.
///
/// A tool that makes everything slow may watch a few.
///
/// # Panics
/// If one of the names is no wire's.
fn asked<T: GpuReal>(wire: Wire) -> bool {
    if wire == Wire::F32 && size_of::<T>() == 4 {
        return false;
    }
    let Ok(names) = std::env::var("THRIFFTY_WIRES") else { return true };
    let wires = names.split_whitespace();
    let mut wires =
        wires.map(|name| name.parse::<Wire>().expect("THRIFFTY_WIRES has names of wires"));
    wires.any(|asked| asked == wire)
}

/// The outcomes of the last run of an encoder.
fn packed<T: GpuReal>(stream: &Arc<CudaStream>, encoder: &Encoder<T>) -> Vec<Packed> {
    encoder.report(stream).unwrap();
    stream.synchronize().unwrap();
    encoder.reported().collect()
}

/// The first message of the last run of a decoder that did not decode.
fn undecoded<T: GpuReal>(stream: &Arc<CudaStream>, decoder: &Decoder<T>) -> Option<usize> {
    decoder.report(stream).unwrap();
    stream.synchronize().unwrap();
    decoder.reported()
}

/// Boxes with the places of their messages.
fn placed<'a>(parts: &'a [Transfer], places: &[usize]) -> Vec<PlacedTransfer<'a>> {
    let place = |(transfer, &place): (&'a Transfer, &usize)| PlacedTransfer { transfer, place };
    parts.iter().zip(places).map(place).collect()
}

/// The same bits, except that one NaN is as good as another.
fn same<T: Real>(x: &[T], y: &[T]) -> bool {
    let nan = |x: T| x.as_f64().is_nan();
    let bits = |x: &T| bytemuck::bytes_of(x).to_vec();
    x.len() == y.len() && x.iter().zip(y).all(|(x, y)| bits(x) == bits(y) || nan(*x) && nan(*y))
}

/// The bytes that a message needs.
fn room<T: GpuReal>(codec: &dyn Codec<T>, elements: usize, width: usize) -> usize {
    codec.fixed(elements, width).unwrap_or(codec.bound(elements * width))
}

/// The places of these boxes' messages, and bytes in all: every other one is made fastest there.
fn places<T: GpuReal>(wire: Wire, width: usize, parts: &[Transfer]) -> (Vec<usize>, usize) {
    let (codec, mut end) = (wire.codec::<T>(), 0usize);
    let place = |(i, part): (usize, &Transfer)| {
        let place = match i % 2 {
            0 => Encoder::<T>::place(wire, width, part.elements(), end).unwrap(),
            _ => end.next_multiple_of(16),
        };
        end = place + room(&*codec, part.elements(), width);
        place
    };
    (parts.iter().enumerate().map(place).collect(), end)
}

/// All boxes and fields with one wire.
fn as_on_the_cpu<T: GpuReal>(gpu: &Gpu, wire: Wire, step: f64, width: usize) {
    let stream = gpu.stream();
    let codec = wire.codec::<T>();
    for case in data::all() {
        let (places, bytes) = places::<T>(wire, width, &case.gathers);
        let outgoing = placed(&case.gathers, &places);
        let incoming = placed(&case.scatters, &places);
        let mut encoder = Encoder::<T>::new(gpu, &stream, wire, width, &outgoing).unwrap();
        let mut decoder = Decoder::<T>::new(gpu, &stream, wire, width, &incoming).unwrap();
        for (field, src) in data::fields::<T>(case.elements * width) {
            let what = format!("{wire} step {step:e} {}x{width}, {}, {field}", T::NAME, case.name);
            let on_device = stream.clone_htod(&src).unwrap();
            let mut memory = stream.clone_htod(&vec![0xA5u8; bytes]).unwrap();
            encoder.encode(&stream, &on_device, step, &mut memory).unwrap();
            let packed = packed(&stream, &encoder);
            let messages = stream.clone_dtoh(&memory).unwrap();
            stream.synchronize().unwrap();

            let mut expected = vec![T::of(-777.0); case.scattered * width];
            for (i, (&PlacedTransfer { transfer: gather, place }, scatter)) in
                outgoing.iter().zip(&case.scatters).enumerate()
            {
                let mut message = vec![0xA5; codec.bound(gather.elements() * width)];
                let twin = codec.pack(&src, gather, width, step, &mut message);
                assert_eq!(packed[i].bytes, twin.bytes, "{what}, message {i}");
                if let Some(at) = (0..twin.bytes).find(|&at| messages[place + at] != message[at]) {
                    let (found, expected) = (messages[place + at], message[at]);
                    panic!(
                        "{what}, message {i}, byte {at} of {}: {found:#04x}, expected {expected:#04x}",
                        twin.bytes
                    );
                }
                let (found, sum) = (packed[i].squared_error, twin.squared_error);
                let close = (found - sum).abs() <= 1e-12 * sum || found == sum;
                assert!(close, "{what}, message {i}: squared error {found:e}, expected {sum:e}");
                codec.unpack(&message[..twin.bytes], scatter, width, &mut expected).unwrap();
            }

            let mut dst = stream.clone_htod(&vec![T::of(-777.0); case.scattered * width]).unwrap();
            let lengths: Vec<usize> = packed.iter().map(|packed| packed.bytes).collect();
            decoder.decode(&stream, &lengths, &memory, &mut dst).unwrap();
            assert_eq!(undecoded(&stream, &decoder), None, "{what}");
            let dst = stream.clone_dtoh(&dst).unwrap();
            stream.synchronize().unwrap();
            assert!(same(&dst, &expected), "{what} decoded");
        }
    }
}

/// All wires, in one precision and width.
fn all_as_on_the_cpu<T: GpuReal>(width: usize) {
    let Some(gpu) = gpu() else { return };
    for (wire, step) in WIRES.into_iter().filter(|(wire, _)| asked::<T>(*wire)) {
        as_on_the_cpu::<T>(&gpu, wire, step, width);
    }
}

#[test]
fn messages_of_f64_are_those_of_the_cpu() {
    all_as_on_the_cpu::<f64>(1);
}

#[test]
fn messages_of_complex_f64_are_those_of_the_cpu() {
    all_as_on_the_cpu::<f64>(2);
}

#[test]
fn messages_of_f32_are_those_of_the_cpu() {
    all_as_on_the_cpu::<f32>(1);
}

#[test]
fn messages_of_complex_f32_are_those_of_the_cpu() {
    all_as_on_the_cpu::<f32>(2);
}

/// One message of 10,000 complex numbers.
fn run() -> data::Boxes {
    data::boxes("one run", [10, 10, 100], [1; 3], [[0, 1, 2]; 2], 1)
}

/// One of 10,240, transposed when it is read.
fn transposed() -> data::Boxes {
    data::boxes_as_sent("turned", [5, 32, 64], [1; 3], [[0, 1, 2], [2, 1, 0]], 1)
}

/// The same with rows that cut blocks.
fn torn() -> data::Boxes {
    data::boxes_as_sent("torn", [64, 10, 16], [1; 3], [[0, 1, 2], [2, 1, 0]], 1)
}

/// The CPU's and the device's errors of a changed message with so many bytes more or fewer.
///
/// The device has none of its own for a message of a possible length.
fn refused(
    gpu: &Gpu,
    (wire, step): (Wire, f64),
    case: &data::Boxes,
    longer: isize,
    change: impl Fn(&mut [u8]),
) -> (BadMessage, Option<BadMessage>) {
    let (stream, codec) = (gpu.stream(), wire.codec::<f64>());
    let (gather, scatter, reals) = (&case.gathers[0], &case.scatters[0], 2 * case.elements);
    let (_, x) = data::fields::<f64>(reals).swap_remove(0);
    let mut message = vec![0; codec.bound(reals) + 8];
    let packed = codec.pack(&x, gather, 2, step, &mut message);
    change(&mut message[..packed.bytes]);
    let length = packed.bytes.checked_add_signed(longer).unwrap();
    let mut y = vec![0.0; reals];
    let twin = codec.unpack(&message[..length], scatter, 2, &mut y).unwrap_err();

    let incoming = [PlacedTransfer { transfer: scatter, place: 0 }];
    let mut decoder = Decoder::<f64>::new(gpu, &stream, wire, 2, &incoming).unwrap();
    let memory = stream.clone_htod(&message).unwrap();
    let mut dst = stream.alloc_zeros::<f64>(reals).unwrap();
    match decoder.decode(&stream, &[length], &memory, &mut dst) {
        Ok(()) => {
            assert_eq!(undecoded(&stream, &decoder), Some(0), "{wire}: decoded");
            (twin, None)
        }
        Err(GpuError::Message { index: 0, why }) => (twin, Some(why)),
        Err(other) => panic!("{wire}: {other}"),
    }
}

#[test]
fn what_does_not_decode_is_refused() {
    let Some(gpu) = gpu() else { return };
    // What is put where.
    type Changes = &'static [(usize, &'static [u8])];
    let cases: [(Wire, f64, Changes); 14] = [
        (Wire::F32, 0.0, &[(0, &[1])]),
        (Wire::F32, 0.0, &[(1, &[2])]),
        (Wire::F32, 0.0, &[(3, &[0x18])]),
        (Wire::F32, 0.0, &[(4, &[1])]),
        (Wire::F32, 0.0, &[(9, &[0x7F])]),
        (Wire::Bits(16), 0.0, &[(7, &[1])]),
        (Wire::Bits(16), 0.0, &[(2, &[15])]),
        (Wire::Bits(16), 0.0, &[(8, &[0xF0, 0xFF])]),
        // The last of 314 blocks as one that is not finite, with a scale of its own that is none.
        (Wire::Bits(16), 0.0, &[(8 + 626, &[0xFF; 2]), (640 + 313 * 128 + 120, &[0xFE, 0xFF])]),
        (Wire::Tolerance, 1e-3, &[(15, &[0xFF])]),
        (Wire::Tolerance, 1e-3, &[(14, &[0, 0])]),
        (Wire::Tolerance, 1e-3, &[(16, &[1])]),
        (Wire::Tolerance, 1e-3, &[(16, &[60])]),
        (Wire::Tolerance, 1e-3, &[(19, &[52])]),
    ];
    for (wire, step, changes) in cases {
        for case in [run(), transposed(), torn()] {
            // A block's place is that in one run.
            if case.name != "one run" && wire != Wire::Tolerance {
                continue;
            }
            let (_, found) = refused(&gpu, (wire, step), &case, 0, |message| {
                for (at, bytes) in changes {
                    message[*at..at + bytes.len()].copy_from_slice(bytes);
                }
            });
            assert_eq!(found, None, "{wire}, {}, {changes:?}", case.name);
        }
    }
}

#[test]
fn messages_of_another_length_are_refused_as_on_the_cpu() {
    let Some(gpu) = gpu() else { return };
    for (wire, step) in [
        (Wire::F32, 0.0),
        (Wire::Bits(16), 0.0),
        (Wire::Bits(52), 0.0),
        (Wire::Tolerance, 1e-3),
        (Wire::Tolerance, 0.0),
    ] {
        for longer in [-8, -1, 1, 8] {
            for case in [run(), transposed(), torn()] {
                let (why, found) = refused(&gpu, (wire, step), &case, longer, |_| ());
                let what = format!("{wire}, {}, step {step}", case.name);
                // The kernels find a length that is possible, but not of these codes.
                let expected = found.as_ref().map(|_| &why);
                assert_eq!(found.as_ref(), expected, "{what}, {longer} bytes longer");
                let possible = wire == Wire::Tolerance;
                assert!(possible || found.is_some(), "{what}, {longer} bytes longer");
            }
        }
    }
}

#[test]
fn slots_that_cannot_be_are_refused() {
    let Some(gpu) = gpu() else { return };
    let (stream, part) = (gpu.stream(), Transfer::run_of(100));
    let encoder = |places: [usize; 2]| {
        let outgoing = places.map(|place| PlacedTransfer { transfer: &part, place });
        Encoder::<f64>::new(&gpu, &stream, Wire::Bits(16), 1, &outgoing)
    };
    let error = encoder([256, 0]).err().unwrap().to_string();
    let expected = "found message 0 at byte 256, expected 272 or more, behind message 1";
    assert_eq!(error, format!("the place of a message: {expected}"));
    let mut encoder = encoder([272, 0]).unwrap();
    let src = stream.alloc_zeros::<f64>(100).unwrap();
    let mut memory = stream.alloc_zeros::<u8>(272 + 271).unwrap();
    let error = encoder.encode(&stream, &src, 0.0, &mut memory).unwrap_err();
    assert_eq!(
        error,
        GpuError::Short { what: "the memory of messages", found: 543, expected: 544 }
    );
    let mut memory = stream.alloc_zeros::<u8>(544).unwrap();
    let error = encoder.encode(&stream, &src.slice(1..), 0.0, &mut memory).unwrap_err();
    assert_eq!(error, GpuError::Short { what: "the source", found: 792, expected: 800 });
    encoder.encode(&stream, &src, 0.0, &mut memory).unwrap();
    assert_eq!(packed(&stream, &encoder).len(), 2);

    let incoming = [272, 0].map(|place| PlacedTransfer { transfer: &part, place });
    let mut decoder = Decoder::<f64>::new(&gpu, &stream, Wire::Bits(16), 1, &incoming).unwrap();
    let mut dst = stream.alloc_zeros::<f64>(100).unwrap();
    let error = decoder.decode(&stream, &[272], &memory, &mut dst).unwrap_err().to_string();
    assert_eq!(error, "the number of lengths: found 1, expected 2");
    let error = decoder.decode(&stream, &[272, 280], &memory, &mut dst).unwrap_err();
    let why = BadMessage::Length { found: 280, expected: 272 };
    assert_eq!(error, GpuError::Message { index: 1, why });
    decoder.decode(&stream, &[272, 272], &memory, &mut dst).unwrap();
    assert_eq!(undecoded(&stream, &decoder), None);
}

#[test]
fn large_messages_of_f64_are_those_of_the_cpu() {
    large::<f64>(1);
}

#[test]
fn large_messages_of_complex_f64_are_those_of_the_cpu() {
    large::<f64>(2);
}

#[test]
fn large_messages_of_f32_are_those_of_the_cpu() {
    large::<f32>(1);
}

#[test]
fn large_messages_of_complex_f32_are_those_of_the_cpu() {
    large::<f32>(2);
}

/// Launches of 2048 tiles or more, beside each other: no device has as many resident blocks.
fn large<T: GpuReal>(width: usize) {
    let Some(gpu) = &gpu() else { return };
    const SAME: [usize; 3] = [0, 1, 2];
    let few = std::env::var_os("THRIFFTY_FEW").is_some();
    let planes = 2 * 16 / (width * size_of::<T>()) * if few { 32 } else { 64 };
    let (shape, uneven) = ([planes, 128, 256], [planes - 1, 127, 257]);
    let cases = [
        data::boxes("halves", shape, [2, 1, 1], [SAME, SAME], 1),
        data::boxes("long rows", uneven, [1, 1, 2], [SAME, SAME], 1),
        data::boxes("last axis first", shape, [1, 1, 2], [SAME, [2, 1, 0]], 1),
        // Tiles of several rows that are whole, but those of `tolerance`.
        data::boxes("last axes swapped", shape, [1, shape[1] / 64, 1], [SAME, [0, 2, 1]], 1),
        data::boxes_as_sent("reversed when read", shape, [1, 1, 2], [SAME, [2, 1, 0]], 1),
        data::boxes("skewed", uneven, [1, 1, 2], [SAME, [2, 1, 0]], 1),
        data::boxes_as_sent("skewed when read", uneven, [1, 1, 2], [SAME, [2, 1, 0]], 1),
        data::boxes("short rows", uneven, [1, 4, 2], [SAME, [0, 2, 1]], 1),
    ];
    let wires =
        [(Wire::Bits(11), 0.0), (Wire::Bits(16), 0.0), (Wire::F32, 0.0), (Wire::Tolerance, 1e-4)];
    for (wire, step) in wires.into_iter().filter(|(wire, _)| asked::<T>(*wire)) {
        std::thread::scope(|scope| {
            for (number, case) in cases.iter().enumerate() {
                scope.spawn(move || {
                    let stream = gpu.new_stream().unwrap();
                    let codec = wire.codec::<T>();
                    let (places, bytes) = places::<T>(wire, width, &case.gathers);
                    let outgoing = placed(&case.gathers, &places);
                    let incoming = placed(&case.scatters, &places);
                    let mut encoder =
                        Encoder::<T>::new(gpu, &stream, wire, width, &outgoing).unwrap();
                    let mut decoder =
                        Decoder::<T>::new(gpu, &stream, wire, width, &incoming).unwrap();
                    let mut state = number as u64;
                    let src: Vec<T> = (0..width * case.elements)
                        .map(|_| {
                            state = state
                                .wrapping_mul(6_364_136_223_846_793_005)
                                .wrapping_add(1_442_695_040_888_963_407);
                            T::of((state >> 11) as f64 / (1u64 << 53) as f64 - 0.5)
                        })
                        .collect();
                    let mut expected = vec![T::of(0.0); width * case.scattered];
                    let mut twins = Vec::new();
                    for (gather, scatter) in case.gathers.iter().zip(&case.scatters) {
                        let mut message = vec![0; codec.bound(width * gather.elements())];
                        let bytes = codec.pack(&src, gather, width, step, &mut message).bytes;
                        message.truncate(bytes);
                        codec.unpack(&message, scatter, width, &mut expected).unwrap();
                        twins.push(message);
                    }
                    let on_device = stream.clone_htod(&src).unwrap();
                    for turn in 0..3 {
                        let what =
                            format!("{wire} {}x{width}, {}, turn {turn}", T::NAME, case.name);
                        let mut memory = stream.clone_htod(&vec![0xA5u8; bytes]).unwrap();
                        encoder.encode(&stream, &on_device, step, &mut memory).unwrap();
                        let packed = packed(&stream, &encoder);
                        let lengths: Vec<_> = packed.iter().map(|packed| packed.bytes).collect();
                        let messages = stream.clone_dtoh(&memory).unwrap();
                        stream.synchronize().unwrap();
                        for (twin, &place) in twins.iter().zip(&places) {
                            let found = &messages[place..place + twin.len()];
                            let wrong = found.iter().zip(twin).filter(|(a, b)| a != b).count();
                            let first = found.iter().zip(twin).position(|(a, b)| a != b);
                            assert!(wrong == 0, "{what}: {wrong} bytes, the first {first:?}");
                        }
                        let mut dst = stream.alloc_zeros::<T>(width * case.scattered).unwrap();
                        decoder.decode(&stream, &lengths, &memory, &mut dst).unwrap();
                        assert_eq!(undecoded(&stream, &decoder), None, "{what}");
                        let dst = stream.clone_dtoh(&dst).unwrap();
                        stream.synchronize().unwrap();
                        let wrong = dst.iter().zip(&expected).filter(|(a, b)| a != b).count();
                        assert!(wrong == 0, "{what}: {wrong} numbers decoded");
                    }
                });
            }
        });
    }
}
