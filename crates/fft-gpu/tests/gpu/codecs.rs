//! Messages of the device against those of the CPU, bit for bit.

use fft_core::{BadMessage, Real, Transfer, Wire};
use fft_gpu::{Decoder, Encoder, Gpu, GpuError, GpuReal, Incoming, Outgoing};

use super::{data, gpu};

const WIRES: [(Wire, f64); 25] = [
    (Wire::F32, 0.0),
    (Wire::F16, 0.0),
    (Wire::Bf16, 0.0),
    (Wire::Mantissa(0), 0.0),
    (Wire::Mantissa(7), 0.0),
    (Wire::Mantissa(20), 0.0),
    (Wire::Mantissa(23), 0.0),
    (Wire::Mantissa(40), 0.0),
    (Wire::Mantissa(51), 0.0),
    (Wire::Mantissa(52), 0.0),
    (Wire::Bits(2), 0.0),
    (Wire::Bits(5), 0.0),
    (Wire::Bits(8), 0.0),
    (Wire::Bits(13), 0.0),
    (Wire::Bits(15), 0.0),
    (Wire::Bits(16), 0.0),
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

/// The same bits, except that one NaN is as good as another.
fn same<T: Real>(x: &[T], y: &[T]) -> bool {
    let nan = |x: T| x.as_f64().is_nan();
    let bits = |x: &T| bytemuck::bytes_of(x).to_vec();
    x.len() == y.len() && x.iter().zip(y).all(|(x, y)| bits(x) == bits(y) || nan(*x) && nan(*y))
}

/// Where the messages of these boxes go, and bytes in all: every other one where it is made fastest.
fn places<T: GpuReal>(wire: Wire, width: usize, parts: &[Transfer]) -> (Vec<usize>, usize) {
    let (codec, mut end) = (wire.codec::<T>(), 0usize);
    let place = |(i, part): (usize, &Transfer)| {
        let place = match i % 2 {
            0 => Encoder::<T>::place(wire, width, part.elements(), end).unwrap(),
            _ => end.next_multiple_of(16),
        };
        end = place + codec.bound(part.elements() * width);
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
        let outgoing: Vec<_> = case
            .gathers
            .iter()
            .zip(&places)
            .map(|(gather, &place)| Outgoing { gather, place })
            .collect();
        let incoming: Vec<_> = case
            .scatters
            .iter()
            .zip(&places)
            .map(|(scatter, &place)| Incoming { scatter, place })
            .collect();
        let mut encoder = Encoder::<T>::new(gpu, &stream, wire, width, &outgoing).unwrap();
        let mut decoder = Decoder::<T>::new(gpu, &stream, wire, width, &incoming).unwrap();
        for (field, src) in data::fields::<T>(case.elements * width) {
            let what = format!("{wire} step {step:e} {}x{width}, {}, {field}", T::NAME, case.name);
            let on_device = stream.clone_htod(&src).unwrap();
            let mut memory = stream.clone_htod(&vec![0xA5u8; bytes]).unwrap();
            encoder.encode(&stream, &on_device, step, &mut memory).unwrap();
            let packed = encoder.packed(&stream).unwrap();
            let messages = stream.clone_dtoh(&memory).unwrap();
            stream.synchronize().unwrap();

            let mut expected = vec![T::of(-777.0); case.scattered * width];
            for (i, (&Outgoing { gather, place }, scatter)) in
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
            decoder.decode(&stream, &memory, &mut dst).unwrap();
            decoder.check(&stream, &memory).unwrap_or_else(|why| panic!("{what}: {why}"));
            let dst = stream.clone_dtoh(&dst).unwrap();
            stream.synchronize().unwrap();
            assert!(same(&dst, &expected), "{what} decoded");
        }
    }
}

/// All wires, in one precision and width.
fn all_as_on_the_cpu<T: GpuReal>(width: usize) {
    let Some(gpu) = gpu() else { return };
    for (wire, step) in WIRES {
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

/// One message of 10,000 complex numbers, and what the CPU and the device say of it after a change.
fn refused(gpu: &Gpu, wire: Wire, step: f64, change: impl Fn(&mut [u8])) -> (BadMessage, GpuError) {
    const ELEMENTS: usize = 10_000;
    let (stream, codec) = (gpu.stream(), wire.codec::<f64>());
    let part = Transfer::run_of(ELEMENTS);
    let (_, x) = data::fields::<f64>(2 * ELEMENTS).swap_remove(0);
    let mut message = vec![0; codec.bound(2 * ELEMENTS)];
    let packed = codec.pack(&x, &part, 2, step, &mut message);
    change(&mut message[..packed.bytes]);
    let mut y = vec![0.0; 2 * ELEMENTS];
    let twin = codec.unpack(&message[..packed.bytes], &part, 2, &mut y).unwrap_err();

    let incoming = [Incoming { scatter: &part, place: 0 }];
    let mut decoder = Decoder::<f64>::new(gpu, &stream, wire, 2, &incoming).unwrap();
    let memory = stream.clone_htod(&message).unwrap();
    let mut dst = stream.alloc_zeros::<f64>(2 * ELEMENTS).unwrap();
    decoder.decode(&stream, &memory, &mut dst).unwrap();
    (twin, decoder.check(&stream, &memory).unwrap_err())
}

#[test]
fn what_does_not_decode_is_refused_with_the_words_of_the_cpu() {
    let Some(gpu) = gpu() else { return };
    let cases: [(Wire, f64, usize, &[u8]); 11] = [
        (Wire::F16, 0.0, 0, &[9]),
        (Wire::F16, 0.0, 8, &[1]),
        (Wire::F16, 0.0, 33, &[0x7F]),
        (Wire::F32, 0.0, 24, &[1]),
        (Wire::Mantissa(20), 0.0, 4, &[2]),
        (Wire::Bits(16), 0.0, 2, &[15]),
        (Wire::Bits(16), 0.0, 32, &[0xF0, 0xFF]),
        (Wire::Tolerance, 1e-3, 31, &[0xFF]),
        (Wire::Tolerance, 1e-3, 40, &[1]),
        (Wire::Tolerance, 1e-3, 41, &[60]),
        (Wire::Tolerance, 1e-3, 41, &[52]),
    ];
    for (wire, step, at, bytes) in cases {
        let (why, found) = refused(&gpu, wire, step, |message| {
            message[at..at + bytes.len()].copy_from_slice(bytes);
        });
        let GpuError::Message { index: 0, why: said } = found else { panic!("{wire}: {found}") };
        let exact = !matches!(said, BadMessage::Length { .. });
        assert!(!exact || said == why, "{wire} byte {at}: {said}, expected {why}");
    }
}

#[test]
fn slots_that_cannot_be_are_refused() {
    let Some(gpu) = gpu() else { return };
    let (stream, part) = (gpu.stream(), Transfer::run_of(100));
    let encoder = |places: [usize; 2]| {
        let outgoing = places.map(|place| Outgoing { gather: &part, place });
        Encoder::<f64>::new(&gpu, &stream, Wire::Bits(16), 1, &outgoing)
    };
    let error = encoder([816, 0]).err().unwrap();
    assert_eq!(error, GpuError::Overlap { first: 1, second: 0, found: 816, expected: 832 });
    let mut encoder = encoder([832, 0]).unwrap();
    let src = stream.alloc_zeros::<f64>(100).unwrap();
    let mut memory = stream.alloc_zeros::<u8>(832 + 831).unwrap();
    let error = encoder.encode(&stream, &src, 0.0, &mut memory).unwrap_err();
    assert_eq!(
        error,
        GpuError::Short { what: "the memory of messages", found: 1663, expected: 1664 }
    );
    let mut memory = stream.alloc_zeros::<u8>(1664).unwrap();
    let error = encoder.encode(&stream, &src.slice(1..), 0.0, &mut memory).unwrap_err();
    assert_eq!(error, GpuError::Short { what: "the source", found: 792, expected: 800 });
    encoder.encode(&stream, &src, 0.0, &mut memory).unwrap();
    assert_eq!(encoder.packed(&stream).unwrap().len(), 2);
}
