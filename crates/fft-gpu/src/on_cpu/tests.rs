//! Kernels compiled for a CPU, where the threads of a block run in a random order.
//!
//! Messages are bit for bit the same as the codecs', boxes are copied as transfers do, and tiles
//! compute where they begin. The programs at the other end of the pipe are in `tests/on_cpu`.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

mod systems;

use fft_core::{Packed, Transfer, Wire};

use crate::abi::coded::{RawMessages, messages};
use crate::abi::copies::TiledCopies;
use crate::abi::form::Form;
use crate::abi::message::StateRecord;
use crate::abi::{Move, PlacedTransfer};
use crate::base::GpuReal;

#[path = "../../tests/gpu/data.rs"]
mod data;

const WIRES: [(Wire, f64); 11] = [
    (Wire::F32, 0.0),
    (Wire::Bits(5), 0.0),
    (Wire::Bits(11), 0.0),
    (Wire::Bits(14), 0.0),
    (Wire::Bits(16), 0.0),
    (Wire::Bits(45), 0.0),
    (Wire::Tolerance, 0.3),
    (Wire::Tolerance, 1e-3),
    (Wire::Tolerance, 1e-7),
    (Wire::Tolerance, 1e-14),
    (Wire::Tolerance, 0.0),
];

/// Whether programs look for data races, which is slow.
#[derive(Clone, Copy, PartialEq)]
enum Races {
    Unseen,
    Found,
}

/// The programs that run kernels of messages and boxes; none without `c++`.
fn programs(races: Races) -> Option<&'static [PathBuf; 4]> {
    static PROGRAMS: [OnceLock<Option<[PathBuf; 4]>>; 2] = [OnceLock::new(), OnceLock::new()];
    let compile = |name: &str| compile(name, races);
    let all =
        || Some([compile("encode")?, compile("decode")?, compile("transfer")?, compile("places")?]);
    PROGRAMS[races as usize].get_or_init(all).as_ref()
}

/// A program that runs kernels, compiled if its source has changed; none without `c++`.
fn compile(name: &str, races: Races) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/on_cpu/{name}.cpp"));
    // Products and sums round twice, as in the kernels and on the CPU. A jump to another stack
    // is allowed.
    let mut flags = vec!["-std=c++17", "-O1", "-w", "-g1", "-pthread", "-ffp-contract=off"];
    flags.push("-U_FORTIFY_SOURCE");
    // Its callbacks are in races.hpp, so that the linker gets no library.
    flags.extend((races == Races::Found).then_some("-fsanitize=thread"));
    let read = Command::new("c++").args(&flags).arg("-E").arg(&source).output();
    if read.as_ref().is_err_and(|why| why.kind() == std::io::ErrorKind::NotFound) {
        eprintln!("not run: there is no c++ (Debian's package g++)");
        return None;
    }
    // The hash is of the preprocessed source, so that nothing is compiled twice.
    let mut hash = DefaultHasher::new();
    (&flags, read.unwrap().stdout).hash(&mut hash);
    let program = std::env::current_exe().unwrap();
    let program = program.with_file_name(format!("on-cpu-{name}-{:016x}", hash.finish()));
    if program.exists() {
        return Some(program);
    }
    // Renamed when complete, because other tests may run at the same time.
    let made = program.with_extension(std::process::id().to_string());
    let object = made.with_extension(format!("{}.o", std::process::id()));
    let mut compiler = Command::new("c++");
    let status = compiler.args(&flags).args(["-c", "-o"]).args([&object, &source]).status();
    assert!(status.unwrap().success(), "{name}: kernels do not compile for a CPU");
    let linked = Command::new("c++").args(["-pthread", "-o"]).args([&made, &object]).status();
    assert!(linked.unwrap().success(), "{name}: kernels do not link for a CPU");
    std::fs::remove_file(object).unwrap();
    std::fs::rename(made, &program).unwrap();
    Some(program)
}

thread_local! {
    /// Programs that wait for the next launch of this test, because starting one is slow.
    static WAITING: RefCell<Waiting> = RefCell::default();
}

#[derive(Default)]
struct Waiting(HashMap<PathBuf, Child>);

impl Drop for Waiting {
    fn drop(&mut self) {
        for child in self.0.values_mut() {
            // There is no other launch.
            drop(child.stdin.take());
            let _ = child.wait();
        }
    }
}

/// Writes a program's input, and reads its output.
///
/// # Panics
/// If it fails or says something else.
fn run(program: &Path, what: &str, input: &[&[u8]], output: &mut [&mut [u8]]) {
    let begin = || {
        let mut program = Command::new(program);
        program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts")
    };
    let waiting = WAITING.with_borrow_mut(|all| all.0.remove(program));
    let mut child = waiting.unwrap_or_else(begin);
    let mut end = [0; 8];
    let (to, from) = (child.stdin.as_mut().unwrap(), child.stdout.as_mut().unwrap());
    // A program that does not read all input prints why, and ends.
    let _ = input.iter().try_for_each(|part| to.write_all(part));
    let found = output.iter_mut().try_for_each(|part| from.read_exact(part));
    let found = found.and_then(|()| from.read_exact(&mut end));
    if found.is_err() || end != *b"all done" {
        // It ends when its pipes are closed.
        drop((child.stdin.take(), child.stdout.take()));
        let status = child.wait().unwrap();
        panic!("{what}: {} ended with {status}", program.display());
    }
    WAITING.with_borrow_mut(|all| all.0.insert(program.to_owned(), child));
}

/// Padding to a multiple of 16 bytes.
fn rest(bytes: &[u8]) -> &'static [u8] {
    &[0; 16][..bytes.len().next_multiple_of(16) - bytes.len()]
}

/// Parameters of a launch: the first part of `Told` of `tests/on_cpu/pipe.hpp`.
fn parameters<T: GpuReal>(form: &Form, (step, seed): (f64, u64), raw: RawMessages) -> [u64; 9] {
    let names = ["bits", "tolerance", "f32"];
    let wire = names.iter().position(|wire| *wire == form.name).unwrap() as u64;
    let (real, width, bits) = (size_of::<T>() as u64, form.width as u64, form.bits().into());
    // As `Encoder::encode` has it.
    let step = if form.varies() { form.wire.step::<T>(step) } else { 0.0 };
    let blocks = 1 + seed % 4;
    let (part, step) = (form.part().to_bits(), step.to_bits());
    [real, width, wire, blocks, seed, bits, part, step, raw as u64]
}

/// All boxes with all wires, each with another field: by turns of real and of complex numbers.
fn as_the_codecs<T: GpuReal>(width: usize) {
    let Some(programs) = programs(Races::Unseen) else { return };
    for (turn, case) in data::all().iter().enumerate() {
        for number in (0..WIRES.len()).filter(|number| (turn + number + width).is_multiple_of(2)) {
            one_as_the_codecs::<T>(programs, width, case, (turn, number));
        }
    }
}

/// Each wire with some boxes, others for each kind of numbers, in programs that find races.
fn without_races<T: GpuReal>(width: usize) {
    let Some(programs) = programs(Races::Found) else { return };
    let cases = data::all();
    let kind = width + size_of::<T>();
    for number in 0..WIRES.len() {
        let turn = (kind * 5 + number) % cases.len();
        one_as_the_codecs::<T>(programs, width, &cases[turn], (turn, number));
    }
    // Tiles with rows, whose codes replace numbers that other warps read; and long rows.
    let more =
        [("reversed", Wire::Bits(14)), ("skewed", Wire::Bits(14)), ("long rows", Wire::Bits(14))];
    for (name, wire) in more {
        let turn = cases.iter().position(|case| case.name == name).unwrap();
        let number = WIRES.iter().position(|&(found, _)| found == wire).unwrap();
        one_as_the_codecs::<T>(programs, width, &cases[turn], (turn, number));
    }
}

/// Boxes with the wire of this number, and one of the fields: messages, and the values read from
/// them.
fn one_as_the_codecs<T: GpuReal>(
    [encode, decode, ..]: &[PathBuf; 4],
    width: usize,
    case: &data::Boxes,
    (turn, number): (usize, usize),
) {
    let fields = data::fields::<T>(case.elements * width);
    let (wire, step) = WIRES[number];
    let seed = (turn * WIRES.len() + number) as u64;
    // Each wire has another one with each case.
    let (field, src) = &fields[(turn + number) % fields.len()];
    let what = format!("{wire} step {step:e} {}x{width}, {}, {field}", T::NAME, case.name);
    // Numbers of single precision are raw.
    let Ok(form) = Form::new::<T>(wire, width) else {
        return assert_eq!((wire, size_of::<T>()), (Wire::F32, 4));
    };
    let codec = wire.codec::<T>();
    let mut room = 0;
    let mut place = |elements: usize| {
        let place = form.place(elements, room);
        room = place + form.bound(elements);
        place
    };
    let places: Vec<_> = case.gathers.iter().map(|part| place(part.elements())).collect();
    let gathers = placed(&case.gathers, &places);
    let source: &[u8] = bytemuck::cast_slice(src);

    let all = messages(&form, &gathers, true).unwrap();
    let raw = RawMessages::of(&form, &all.items).with(&form, form.wire.step::<T>(step));
    let head = parameters::<T>(&form, (step, seed), raw);
    let sizes = [all.items.len(), all.tiles.len(), source.len(), room].map(|n| n as u64);
    let mut memory = vec![0; room];
    let mut states = vec![StateRecord::default(); all.items.len()];
    let input = [
        bytemuck::cast_slice(&head),
        bytemuck::cast_slice(&sizes),
        bytemuck::cast_slice(&all.items),
        bytemuck::cast_slice(&all.tiles),
        bytemuck::cast_slice(&all.firsts),
        source,
        rest(source),
    ];
    run(encode, &what, &input, &mut [&mut memory, bytemuck::cast_slice_mut(&mut states)]);
    let mut expected = vec![T::of(-777.0); case.scattered * width];
    for (i, ((gather, scatter), place)) in
        case.gathers.iter().zip(&case.scatters).zip(&places).enumerate()
    {
        let mut message = vec![0; codec.bound(gather.elements() * width)];
        let twin = codec.pack(src, gather, width, step, &mut message);
        let Packed { bytes, squared_error: sum } = states[i].packed();
        assert_eq!(bytes, twin.bytes, "{what}, message {i}");
        let found = &memory[*place..place + bytes];
        let wrong = found.iter().zip(&message).position(|(a, b)| a != b);
        assert_eq!(wrong, None, "{what}, message {i}: the first byte that differs");
        let close = (sum - twin.squared_error).abs() <= 1e-12 * twin.squared_error;
        let close = close || sum == twin.squared_error;
        assert!(close, "{what}, message {i}: {sum:e}, not {:e}", twin.squared_error);
        codec.unpack(found, scatter, width, &mut expected).unwrap();
    }

    let lengths: Vec<_> = states.iter().map(|state| state.bytes).collect();
    let incoming = (&case.scatters[..], &places[..], &lengths[..]);
    let (numbers, states) =
        decoded::<T>(decode, &what, &form, &head, incoming, &memory, expected.len());
    assert!(states.iter().all(|state| state.bad == 0), "{what}: refused");
    let same = |(x, y): (&T, &T)| {
        let nans = x.as_f64().is_nan() && y.as_f64().is_nan();
        nans || bytemuck::bytes_of(x) == bytemuck::bytes_of(y)
    };
    let wrong = numbers.iter().zip(&expected).position(|pair| !same(pair));
    assert_eq!(wrong, None, "{what}: the first number that differs");
}

/// Boxes with the places of their messages.
fn placed<'a>(parts: &'a [Transfer], places: &[usize]) -> Vec<PlacedTransfer<'a>> {
    let place = |(transfer, &place): (&'a Transfer, &usize)| PlacedTransfer { transfer, place };
    parts.iter().zip(places).map(place).collect()
}

/// The numbers and states that messages with these boxes, places and lengths decode to.
fn decoded<T: GpuReal>(
    program: &Path,
    what: &str,
    form: &Form,
    head: &[u64],
    (scatters, places, lengths): (&[Transfer], &[usize], &[u64]),
    memory: &[u8],
    len: usize,
) -> (Vec<T>, Vec<StateRecord>) {
    let all = messages(form, &placed(scatters, places), false).unwrap();
    let (mut numbers, mut states) =
        (vec![T::of(0.0); len], vec![StateRecord::default(); lengths.len()]);
    let sizes = [all.items.len(), all.tiles.len(), memory.len(), len * size_of::<T>()];
    let sizes = sizes.map(|n| n as u64);
    let input = [
        bytemuck::cast_slice(head),
        bytemuck::cast_slice(&sizes),
        bytemuck::cast_slice(&all.items),
        bytemuck::cast_slice(&all.tiles),
        bytemuck::cast_slice(&all.firsts),
        bytemuck::cast_slice(lengths),
        memory,
        rest(memory),
    ];
    let output = bytemuck::cast_slice_mut(&mut numbers);
    run(program, what, &input, &mut [output, bytemuck::cast_slice_mut(&mut states)]);
    (numbers, states)
}

/// Two messages of `tolerance`: the second does not decode, and the first is read.
fn refuses<T: GpuReal>(width: usize) {
    let Some([_, decode, ..]) = programs(Races::Unseen) else { return };
    let (wire, step) = (Wire::Tolerance, 1e-3);
    let (codec, form) = (wire.codec::<T>(), Form::new::<T>(wire, width).unwrap());
    let shape = [5, 64, 64];
    let cases = [
        data::boxes("two runs", shape, [1, 2, 1], [[0, 1, 2]; 2], 1),
        data::boxes_as_sent("turned", shape, [1, 2, 1], [[0, 1, 2], [2, 1, 0]], 1),
        data::boxes_as_sent("torn", [40, 22, 21], [1, 2, 1], [[0, 1, 2], [2, 1, 0]], 1),
        data::boxes_as_sent("folded", [40, 22, 5], [1, 2, 1], [[0, 1, 2], [2, 1, 0]], 1),
    ];
    // A bad header, step or width; and other lengths.
    type Change = (&'static [(usize, u8)], i64);
    let changes: [Change; 7] = [
        (&[(0, 3)], 0),
        (&[(14, 0), (15, 0)], 0),
        (&[(16, 1)], 0),
        (&[(16, 60)], 0),
        (&[(16, 0)], 0),
        (&[], -8),
        (&[], 8),
    ];
    for case in &cases {
        let (_, src) = data::fields::<T>(case.elements * width).swap_remove(0);
        let room = form.bound(case.gathers[0].elements());
        let places = [0, (room + 8).next_multiple_of(16)];
        let mut memory = vec![0; 2 * places[1]];
        let mut lengths = [0; 2];
        let mut expected = vec![T::of(0.0); case.scattered * width];
        for (i, gather) in case.gathers.iter().enumerate() {
            let message = &mut memory[places[i]..places[i] + room];
            let bytes = codec.pack(&src, gather, width, step, message).bytes;
            lengths[i] = bytes as u64;
            if i == 0 {
                let read = codec.unpack(&message[..bytes], &case.scatters[0], width, &mut expected);
                read.unwrap();
            }
        }
        for (turn, (bytes, longer)) in changes.into_iter().enumerate() {
            let what = format!("{}x{width}, {}: {bytes:?}, {longer} longer", T::NAME, case.name);
            let mut memory = memory.clone();
            bytes.iter().for_each(|(at, byte)| memory[places[1] + at] = *byte);
            let lengths = [lengths[0], lengths[1].saturating_add_signed(longer)];
            let whole = &memory[places[1]..places[1] + lengths[1] as usize];
            let mut sink = vec![T::of(0.0); case.scattered * width];
            assert!(codec.unpack(whole, &case.scatters[1], width, &mut sink).is_err(), "{what}");
            let head = parameters::<T>(&form, (step, turn as u64), RawMessages::None);
            let incoming = (&case.scatters[..], &places[..], &lengths[..]);
            let (numbers, states) =
                decoded::<T>(decode, &what, &form, &head, incoming, &memory, expected.len());
            assert_eq!([states[0].bad, states[1].bad.min(1)], [0, 1], "{what}");
            let wrong = |i: &usize| expected[*i].as_f64() != 0.0 && numbers[*i] != expected[*i];
            assert_eq!((0..expected.len()).find(wrong), None, "{what}: the other one");
        }
    }
}

#[test]
fn what_does_not_decode_is_refused() {
    refuses::<f64>(2);
    refuses::<f32>(1);
}

#[test]
fn threads_that_make_and_read_messages_do_not_race() {
    without_races::<f64>(1);
    without_races::<f64>(2);
    without_races::<f32>(1);
    without_races::<f32>(2);
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

#[test]
fn tiles_find_where_they_begin() {
    let Some([.., program]) = programs(Races::Unseen) else { return };
    // Many series, whole ones, none, and partial ones.
    let counts = [1, 64, 2400, 0, 65, 63, 128, 1];
    let mut state = 1_u64;
    let mut length = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Up to 2^48, and often nothing.
        if state >> 62 == 0 { 0 } else { state >> (16 + state % 40) }
    };
    let (mut items, mut firsts, mut lengths, mut expected) = (vec![], vec![], vec![], vec![]);
    for (item, count) in counts.into_iter().enumerate() {
        firsts.push(items.len() as u32);
        let mut end = 0;
        for _ in 0..count {
            items.push(item as u32);
            lengths.push(length());
            expected.push(end);
            end += lengths[lengths.len() - 1];
        }
    }
    // In the order of encoders; or, when all have been counted, some forwards and the others
    // backwards.
    let asked = [(1, 0), (1, 1000), (1, u64::MAX), (2, u64::MAX), (5, u64::MAX)];
    for (seed, (blocks, forwards)) in asked.into_iter().enumerate() {
        let asked = [blocks, seed as u64, items.len() as u64, counts.len() as u64, forwards];
        let (asked, lengths) = (bytemuck::cast_slice(&asked), bytemuck::cast_slice(&lengths));
        let input = [asked, lengths, bytemuck::cast_slice(&items), bytemuck::cast_slice(&firsts)];
        let mut begins = vec![u64::MAX; items.len()];
        let what = format!("{blocks} blocks, {forwards} forwards");
        run(program, &what, &input, &mut [bytemuck::cast_slice_mut(&mut begins)]);
        let wrong = (0..items.len()).find(|&tile| begins[tile] != expected[tile]);
        assert_eq!(wrong, None, "{what}: the first tile that begins elsewhere");
    }
}

#[test]
fn boxes_are_copied_as_transfers_do() {
    let Some([_, _, program, _]) = programs(Races::Unseen) else { return };
    let Some([_, _, watched, _]) = programs(Races::Found) else { return };
    for (seed, case) in data::all().iter().enumerate() {
        as_transfers::<u64>(watched, case, seed);
        as_transfers::<u32>(program, case, seed);
        as_transfers::<u64>(program, case, seed);
        as_transfers::<u128>(program, case, seed);
    }
}

/// Elements of some size, packed and unpacked.
fn as_transfers<E: bytemuck::Pod + From<u32> + PartialEq>(
    program: &Path,
    case: &data::Boxes,
    seed: usize,
) {
    let what = format!("{} bytes, {}", size_of::<E>(), case.name);
    // Arrays may begin at any element.
    let begin = seed % 2;
    let source: Vec<E> = (1..=(case.elements + begin) as u32).map(E::from).collect();
    let mut packed = vec![E::from(0); case.elements];
    let mut unpacked = vec![E::from(0); case.scattered];
    let (mut packs, mut unpacks, mut at) = (Vec::new(), Vec::new(), 0);
    for (gather, scatter) in case.gathers.iter().zip(&case.scatters) {
        let message = &mut packed[at..at + gather.elements()];
        gather.run(&source[begin..], message);
        scatter.run(message, &mut unpacked);
        packs.push(Move { transfer: gather, from: begin, to: at });
        unpacks.push(Move { transfer: scatter, from: at, to: 0 });
        at += gather.elements();
    }
    let differs = |x: &[E], y: &[E]| x.iter().zip(y).position(|(x, y)| x != y);
    let found = copied(program, &what, seed, &packs, &source, packed.len());
    assert_eq!(differs(&found, &packed), None, "{what}, packed: the first that differs");
    let found = copied(program, &what, seed, &unpacks, &packed, unpacked.len());
    assert_eq!(differs(&found, &unpacked), None, "{what}, unpacked: the first that differs");
}

/// The kernel's copies of an array.
fn copied<E: bytemuck::Pod>(
    program: &Path,
    what: &str,
    seed: usize,
    moves: &[Move<'_>],
    src: &[E],
    len: usize,
) -> Vec<E> {
    let tiles = TiledCopies::new(size_of::<E>(), moves).unwrap().between_two();
    let (all, mut dst) = (tiles.all, vec![E::zeroed(); len]);
    let source: &[u8] = bytemuck::cast_slice(src);
    let (items, count, room) = (all.items.len(), all.tiles.len(), size_of_val(&dst[..]));
    let sizes = [tiles.unit, seed, items, count, source.len(), room].map(|n| n as u64);
    let input = [
        bytemuck::cast_slice(&sizes),
        bytemuck::cast_slice(&all.items),
        bytemuck::cast_slice(&all.tiles),
        bytemuck::cast_slice(&all.firsts),
        source,
        rest(source),
    ];
    run(program, what, &input, &mut [bytemuck::cast_slice_mut(&mut dst)]);
    dst
}
