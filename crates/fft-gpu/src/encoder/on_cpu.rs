//! Encoders' kernels compiled for a CPU, where threads of a block take turns by chance: without a GPU, messages are those of the
//! codecs bit for bit. The other side of the pipe is `tests/on_cpu/encode.cpp`.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use fft_core::{Packed, Wire};

use super::messages;
use crate::GpuReal;
use crate::boxes::Items;
use crate::message::{Form, Message, State};

// Its boxes have what decoders want, too.
#[allow(dead_code)]
#[path = "../../tests/gpu/data.rs"]
mod data;

const WIRES: [(Wire, f64); 15] = [
    (Wire::F32, 0.0),
    (Wire::F16, 0.0),
    (Wire::Bf16, 0.0),
    (Wire::Mantissa(0), 0.0),
    (Wire::Mantissa(7), 0.0),
    (Wire::Mantissa(40), 0.0),
    (Wire::Bits(5), 0.0),
    (Wire::Bits(11), 0.0),
    (Wire::Bits(16), 0.0),
    (Wire::Bits(45), 0.0),
    (Wire::Tolerance, 0.3),
    (Wire::Tolerance, 1e-3),
    (Wire::Tolerance, 1e-7),
    (Wire::Tolerance, 1e-14),
    (Wire::Tolerance, 0.0),
];

/// The program that runs the kernels, compiled once, or none where there is no C++ compiler.
fn program() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    let compile = || {
        let program = std::env::current_exe().unwrap().with_file_name("encode-on-cpu");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/on_cpu/encode.cpp");
        // A product and a sum round twice, as in the kernels and on the CPU.
        let flags = ["-std=c++17", "-O1", "-w", "-pthread", "-ffp-contract=off", "-o"];
        let status = Command::new("c++").args(flags).arg(&program).arg(source).status();
        if status.as_ref().is_err_and(|why| why.kind() == std::io::ErrorKind::NotFound) {
            eprintln!("not run: there is no c++ (Debian's package g++)");
            return None;
        }
        assert!(status.unwrap().success(), "kernels do not compile for a CPU");
        Some(program)
    };
    PROGRAM.get_or_init(compile).as_deref()
}

/// What the kernels make of an array: the memory of messages, and what became of each.
fn encoded<T: GpuReal>(
    program: &Path,
    form: &Form,
    (step, seed): (f64, u64),
    all: &Items<Message>,
    (src, room): (&[T], usize),
) -> (Vec<u8>, Vec<State>) {
    let name = form.name().unwrap();
    let wires = ["f32", "f16", "bf16", "mantissa", "bits", "tolerance"];
    let wire = wires.iter().position(|wire| *wire == name).unwrap();
    // As `Encoder::encode` tells it.
    let stepped = form.wire == Wire::Tolerance;
    let step = form.wire.step::<T>(step);
    let all_raw = stepped && !(step.is_normal() && step > 0.0);
    let source: &[u8] = bytemuck::cast_slice(src);
    let told = [
        size_of::<T>() as u64,
        form.width as u64,
        wire as u64,
        1 + seed % 4,
        seed,
        form.bits().into(),
        form.part().to_bits(),
        if stepped { step.to_bits() } else { 0 },
        all_raw.into(),
        all.items.len() as u64,
        all.tiles.len() as u64,
        source.len() as u64,
        room as u64,
    ];
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut input = child.stdin.take().unwrap();
    for part in [
        bytemuck::cast_slice(&told),
        bytemuck::cast_slice(&all.items),
        bytemuck::cast_slice(&all.tiles),
        bytemuck::cast_slice(&all.firsts),
        source,
        // It takes whole units of 16 bytes.
        &[0; 16][..source.len().next_multiple_of(16) - source.len()],
    ] {
        input.write_all(part).unwrap();
    }
    drop(input);
    let mut memory = vec![0; room];
    let mut states = vec![State::default(); all.items.len()];
    let mut output = child.stdout.take().unwrap();
    let found = output
        .read_exact(&mut memory)
        .and_then(|()| output.read_exact(bytemuck::cast_slice_mut(&mut states)));
    assert!(child.wait().unwrap().success() && found.is_ok(), "the program says why above");
    (memory, states)
}

/// All boxes with all wires, each time with another of the fields.
fn as_the_codecs<T: GpuReal>(width: usize) {
    let Some(program) = program() else { return };
    let mut seed = 0;
    for case in data::all() {
        let fields = data::fields::<T>(case.elements * width);
        for (wire, step) in WIRES {
            seed += 1;
            let (field, src) = &fields[seed as usize % fields.len()];
            let what = format!("{wire} step {step:e} {}x{width}, {}, {field}", T::NAME, case.name);
            let (codec, form) = (wire.codec::<T>(), Form::new::<T>(wire, width).unwrap());
            let mut room = 0;
            let mut place = |elements: usize| {
                let place = form.place(elements, room);
                room = place + form.bound(elements);
                place
            };
            let places: Vec<_> = case.gathers.iter().map(|part| place(part.elements())).collect();
            let parts = case.gathers.iter().zip(places.iter().copied());
            let all = messages(&form, parts, true).unwrap();
            let (memory, states) = encoded(program, &form, (step, seed), &all, (src, room));
            for (i, (gather, place)) in case.gathers.iter().zip(places).enumerate() {
                let mut message = vec![0; codec.bound(gather.elements() * width)];
                let twin = codec.pack(src, gather, width, step, &mut message);
                let Packed { bytes, squared_error: sum } = states[i].packed();
                assert_eq!(bytes, twin.bytes, "{what}, message {i}");
                let found = &memory[place..place + bytes];
                let wrong = found.iter().zip(&message).position(|(a, b)| a != b);
                assert_eq!(wrong, None, "{what}, message {i}: the first byte that differs");
                let expected = twin.squared_error;
                let close = (sum - expected).abs() <= 1e-12 * expected || sum == expected;
                assert!(close, "{what}, message {i}: squared error {sum:e}, not {expected:e}");
            }
        }
    }
}

#[test]
fn messages_of_f64_are_those_of_the_codecs() {
    as_the_codecs::<f64>(1);
}

#[test]
fn messages_of_complex_f64_are_those_of_the_codecs() {
    as_the_codecs::<f64>(2);
}

#[test]
fn messages_of_f32_are_those_of_the_codecs() {
    as_the_codecs::<f32>(1);
}

#[test]
fn messages_of_complex_f32_are_those_of_the_codecs() {
    as_the_codecs::<f32>(2);
}
