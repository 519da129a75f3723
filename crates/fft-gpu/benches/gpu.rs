//! Kernels against the card's own copy, local transforms against cuFFT's own three-dimensional plan.
//!
//! `cargo bench -p fft-gpu --features cuda [-- quick] [once]`. Rates are bytes moved (read and written) per second, 1 GB = 10^9 bytes;
//! each is the median of several runs, timed on the device. The array is one of 512³ complex numbers, or 256³ with `quick`.
//! With `once` each kernel runs once and no transform does, which is what profilers want.

use std::sync::Arc;

use fft_core::{Brick, Placed, Transfer, Wire};
use fft_gpu::cudarc::driver::{CudaSlice, CudaStream, DriverError, sys};
use fft_gpu::{
    C2c, C2r, Decoder, Encoder, Fft, FftPlan, Gpu, GpuError, GpuReal, Incoming, Move, Outgoing,
    R2c, Transfers, transposed_when_read,
};

type Done = Result<(), Box<dyn std::error::Error>>;

/// Whether an argument is given.
fn asked(argument: &str) -> bool {
    std::env::args().any(|found| found == argument)
}

/// Seconds of a run: the median of nine, after 50 ms that are not counted, in which clocks rise that fell while the host prepared.
fn seconds(
    stream: &Arc<CudaStream>,
    mut run: impl FnMut() -> Result<(), GpuError>,
) -> Result<f64, Box<dyn std::error::Error>> {
    let mut time = || -> Result<f64, Box<dyn std::error::Error>> {
        let begin = stream.record_event(Some(sys::CUevent_flags::CU_EVENT_DEFAULT))?;
        run()?;
        let end = stream.record_event(Some(sys::CUevent_flags::CU_EVENT_DEFAULT))?;
        Ok(f64::from(begin.elapsed_ms(&end)?) * 1e-3)
    };
    if asked("once") {
        return time();
    }
    let mut warm = 0.0;
    while warm < 0.05 {
        warm += time()?;
    }
    let mut times = (0..9).map(|_| time()).collect::<Result<Vec<_>, _>>()?;
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

/// Normal numbers: a few, over and over.
fn noise<T: GpuReal>(n: usize) -> Vec<T> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut uniform = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 11) + 1) as f64 / (1u64 << 53) as f64
    };
    let mut normal = || (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
    let some: Vec<T> = (0..n.min(1 << 20)).map(|_| T::of(normal())).collect();
    some.iter().copied().cycle().take(n).collect()
}

fn failed(why: DriverError) -> GpuError {
    GpuError::Driver { what: "copying", why: why.to_string() }
}

/// The card's own copy.
fn copied<T: GpuReal>(
    stream: &Arc<CudaStream>,
    src: &CudaSlice<T>,
    dst: &mut CudaSlice<T>,
) -> Result<(), GpuError> {
    stream.memcpy_dtod(src, dst).map_err(failed)
}

struct Bench {
    gpu: Gpu,
    stream: Arc<CudaStream>,
    /// The rate of the card's own copy, in bytes per second.
    copy: f64,
}

/// What is cut.
struct Array {
    name: &'static str,
    shape: [usize; 3],
}

/// How an array is cut into messages.
struct Cut {
    name: &'static str,
    pieces: [usize; 3],
    order: [usize; 3],
}

const CUTS: [Cut; 4] = [
    Cut { name: "one run", pieces: [1, 1, 1], order: [0, 1, 2] },
    Cut { name: "2x2x2 bricks", pieces: [2, 2, 2], order: [0, 1, 2] },
    Cut { name: "1x8x8, last axes swapped", pieces: [1, 8, 8], order: [0, 2, 1] },
    Cut { name: "8x1x8, axes reversed", pieces: [8, 1, 8], order: [2, 1, 0] },
];

impl Cut {
    /// The boxes, out of an array in natural order into messages, and from there into an array in this order. Messages are ordered as
    /// plans have it.
    fn boxes(&self, shape: [usize; 3], wire: Wire, element: usize) -> Vec<[Transfer; 2]> {
        let whole = Brick { lo: [0; 3], hi: shape };
        let from = Placed { brick: whole.into(), order: [0, 1, 2].into(), howmany: 1 };
        let to = Placed { brick: whole.into(), order: self.order.into(), howmany: 1 };
        let count: usize = self.pieces.iter().product();
        let part = |piece: usize| {
            let [_, b, c] = self.pieces;
            let index = [piece / c / b, piece / c % b, piece % c];
            let at = |axis: usize, i: usize| shape[axis] * i / self.pieces[axis];
            let brick: Brick<3> = Brick {
                lo: std::array::from_fn(|axis| at(axis, index[axis])),
                hi: std::array::from_fn(|axis| at(axis, index[axis] + 1)),
            };
            let order = match wire {
                Wire::Tolerance => {
                    transposed_when_read(element).order(&brick.into(), from.order, to.order)
                }
                _ => to.order,
            };
            let message = Placed::new(brick, order, 1);
            [
                Transfer::new(&brick.into(), 0..1, &from, &message),
                Transfer::as_read(&brick.into(), 0..1, &message, &to),
            ]
        };
        (0..count).map(part).collect()
    }
}

impl Bench {
    fn line(&self, what: &str, bytes: f64, seconds: f64) {
        let rate = bytes / seconds;
        println!(
            "  {what:44} {:8.3} ms {:7.0} GB/s {:5.1} %",
            seconds * 1e3,
            rate * 1e-9,
            rate / self.copy * 100.0
        );
    }

    /// Packing and unpacking as it is.
    fn transfers<T: GpuReal>(&self, array: &Array, width: usize, cuts: &[&Cut]) -> Done {
        let reals = array.shape.iter().product::<usize>() * width;
        let src = self.stream.clone_htod(&noise::<T>(reals))?;
        let mut dst = self.stream.alloc_zeros::<T>(reals)?;
        let bytes = 2.0 * (reals * size_of::<T>()) as f64;
        // As much by the card itself: of less it moves less in a second.
        let time = seconds(&self.stream, || copied(&self.stream, &src, &mut dst))?;
        self.line(&format!("the card's own copy {}x{width}{}", T::NAME, array.name), bytes, time);
        for cut in cuts {
            let boxes = cut.boxes(array.shape, Wire::Raw, width * size_of::<T>());
            let mut at = 0;
            let (mut packs, mut unpacks) = (Vec::new(), Vec::new());
            for [gather, scatter] in &boxes {
                packs.push(Move { transfer: gather, from: 0, to: at });
                unpacks.push(Move { transfer: scatter, from: at, to: 0 });
                at += gather.elements();
            }
            for (what, moves) in [("pack", packs), ("unpack", unpacks)] {
                let transfers =
                    Transfers::new(&self.gpu, &self.stream, width * size_of::<T>(), &moves)?;
                let time = seconds(&self.stream, || transfers.run(&self.stream, &src, &mut dst))?;
                let name = format!("{what} {}x{width}, {}{}", T::NAME, cut.name, array.name);
                self.line(&name, bytes, time);
            }
        }
        Ok(())
    }

    /// Encoding and decoding.
    fn codecs<T: GpuReal>(
        &self,
        array: &Array,
        width: usize,
        wires: &[(Wire, f64)],
        cuts: &[&Cut],
    ) -> Done {
        let reals = array.shape.iter().product::<usize>() * width;
        let src = self.stream.clone_htod(&noise::<T>(reals))?;
        let mut dst = self.stream.alloc_zeros::<T>(reals)?;
        for &(wire, step) in wires {
            for cut in cuts {
                let boxes = cut.boxes(array.shape, wire, width * size_of::<T>());
                let bound = |part: &Transfer| wire.codec::<T>().bound(part.elements() * width);
                let mut end = 0;
                let (mut outgoing, mut incoming) = (Vec::new(), Vec::new());
                for [gather, scatter] in &boxes {
                    let place = Encoder::<T>::place(wire, width, gather.elements(), end)?;
                    outgoing.push(Outgoing { gather, place });
                    incoming.push(Incoming { scatter, place });
                    end = place + bound(gather);
                }
                let mut memory = self.stream.alloc_zeros::<u8>(end)?;
                let mut encoder =
                    Encoder::<T>::new(&self.gpu, &self.stream, wire, width, &outgoing)?;
                let mut decoder =
                    Decoder::<T>::new(&self.gpu, &self.stream, wire, width, &incoming)?;
                let time = seconds(&self.stream, || {
                    encoder.encode(&self.stream, &src, step, &mut memory)
                })?;
                let packed = encoder.packed(&self.stream)?;
                let lengths: Vec<usize> = packed.iter().map(|packed| packed.bytes).collect();
                let packed: usize = lengths.iter().sum();
                let bytes = (reals * size_of::<T>() + packed) as f64;
                let bits = 8.0 * packed as f64 / reals as f64;
                let name = format!("{wire} {}x{width}, {}{}", T::NAME, cut.name, array.name);
                self.line(&format!("encode {name} ({bits:.1} bits)"), bytes, time);
                let time = seconds(&self.stream, || {
                    decoder.decode(&self.stream, &lengths, &memory, &mut dst)
                })?;
                decoder.check(&self.stream, &memory)?;
                self.line(&format!("decode {name}"), bytes, time);
            }
        }
        Ok(())
    }

    /// Local transforms of n³: one plan along three axes, which is what cuFFT has, and what a slab or a pencil is done with.
    fn transforms(&self, n: usize) -> Done {
        let stream = &self.stream;
        let time = |what: &str, time: f64, own: f64| {
            println!("  {what:44} {:8.3} ms {:5.2} of cuFFT's own", time * 1e3, time / own);
        };
        let cube = n * n * n;
        let mut x = stream.clone_htod(&noise::<f64>(2 * cube))?;
        let mut own = FftPlan::<C2c<f64>>::new(&self.gpu, &Fft::rows([n; 3], 1))?;
        let mut planes = FftPlan::<C2c<f64>>::new(&self.gpu, &Fft::rows([n; 2], n))?;
        let mut columns = FftPlan::<C2c<f64>>::new(&self.gpu, &Fft::columns(n, n * n))?;
        let mut rows = FftPlan::<C2c<f64>>::new(&self.gpu, &Fft::rows([n], n * n))?;
        let work = [&own, &planes, &columns, &rows].map(|plan| plan.work_bytes()).into_iter().max();
        let mut work: CudaSlice<u8> = stream.alloc_zeros(work.unwrap_or(0).max(1))?;
        let whole = seconds(stream, || own.forward_in_place(stream, &mut x, &mut work))?;
        time(&format!("c2c {n}³ in one plan of three axes"), whole, whole);
        let apart = seconds(stream, || {
            planes.forward_in_place(stream, &mut x, &mut work)?;
            columns.forward_in_place(stream, &mut x, &mut work)
        })?;
        time(&format!("c2c {n}³ as planes and columns"), apart, whole);
        let one = seconds(stream, || columns.forward_in_place(stream, &mut x, &mut work))?;
        self.line(&format!("c2c {n}³ columns"), 32.0 * cube as f64, one);
        let one = seconds(stream, || rows.forward_in_place(stream, &mut x, &mut work))?;
        self.line(&format!("c2c {n}³ rows"), 32.0 * cube as f64, one);
        let turn = Cut { name: "", pieces: [1; 3], order: [1, 2, 0] };
        let turn = turn.boxes([n; 3], Wire::Raw, 16).remove(0);
        let moves = [Move { transfer: &turn[0], from: 0, to: 0 }];
        let turn = Transfers::new(&self.gpu, stream, 16, &moves)?;
        let mut y = stream.alloc_zeros::<f64>(2 * cube)?;
        let turned = seconds(stream, || {
            for _ in 0..3 {
                rows.forward_in_place(stream, &mut x, &mut work)?;
                turn.run(stream, &x, &mut y)?;
            }
            Ok(())
        })?;
        time(&format!("c2c {n}³ as three times rows, turned"), turned, whole);
        drop(y);

        let mut half = stream.alloc_zeros::<f64>(2 * n * n * (n / 2 + 1))?;
        let mut own = FftPlan::<R2c<f64>>::new(&self.gpu, &Fft::rows([n; 3], 1))?;
        let mut back = FftPlan::<C2r<f64>>::new(&self.gpu, &Fft::rows([n; 3], 1))?;
        let mut planes = FftPlan::<R2c<f64>>::new(&self.gpu, &Fft::rows([n; 2], n))?;
        let mut columns = FftPlan::<C2c<f64>>::new(&self.gpu, &Fft::columns(n, n * (n / 2 + 1)))?;
        let most = [own.work_bytes(), back.work_bytes(), planes.work_bytes(), columns.work_bytes()];
        drop(work);
        let mut work: CudaSlice<u8> =
            stream.alloc_zeros(most.into_iter().max().unwrap_or(0).max(1))?;
        let whole = seconds(stream, || own.run(stream, &x, &mut half, &mut work))?;
        time(&format!("r2c {n}³ in one plan of three axes"), whole, whole);
        let apart = seconds(stream, || {
            planes.run(stream, &x, &mut half, &mut work)?;
            columns.forward_in_place(stream, &mut half, &mut work)
        })?;
        time(&format!("r2c {n}³ as planes and columns"), apart, whole);
        let inverse = seconds(stream, || back.run(stream, &mut half, &mut x, &mut work))?;
        time(&format!("c2r {n}³ in one plan of three axes"), inverse, whole);
        Ok(())
    }
}

fn main() -> Done {
    let gpu = match Gpu::probe(0) {
        Ok(gpu) => gpu,
        Err(why) => {
            println!("not run: {why}");
            return Ok(());
        }
    };
    let quick = asked("quick");
    let n = if quick { 256 } else { 512 };
    let stream = gpu.stream();
    let bytes = 16 * n * n * n;
    let (copy, fill) = {
        let src = stream.clone_htod(&noise::<f64>(bytes / 8))?;
        let mut dst = stream.alloc_zeros::<f64>(bytes / 8)?;
        let copy = seconds(&stream, || copied(&stream, &src, &mut dst))?;
        let fill = seconds(&stream, || stream.memset_zeros(&mut dst).map_err(failed))?;
        (2.0 * bytes as f64 / copy, bytes as f64 / fill)
    };
    println!("{}, {n}³: the card's own copy moves {:.0} GB/s", gpu.name(), copy * 1e-9);
    println!("the card's own fill writes {:.0} GB/s", fill * 1e-9);
    let bench = Bench { gpu, stream, copy };
    let whole = Array { name: "", shape: [n; 3] };
    // What real input becomes: rows of an odd length.
    let half = Array { name: ", half a spectrum", shape: [n, n, n / 2 + 1] };
    // Messages of which no rows have whole blocks of numbers.
    let uneven = Array { name: ", uneven", shape: [n - 7, n - 9, n - 13] };
    let [run, bricks, swapped, reversed] = CUTS.each_ref();
    let all = [run, bricks, swapped, reversed];
    bench.transfers::<f64>(&whole, 2, &all)?;
    bench.transfers::<f64>(&whole, 1, &all)?;
    bench.transfers::<f32>(&whole, 2, &all)?;
    bench.transfers::<f32>(&whole, 1, &all)?;
    bench.transfers::<f64>(&half, 2, &[bricks, swapped])?;
    bench.transfers::<f32>(&half, 2, &[bricks, swapped])?;
    let wires = [Wire::F32, Wire::F16, Wire::Bf16, Wire::Mantissa(20)];
    let wires = wires.into_iter().chain([16, 15, 32].map(Wire::Bits));
    let fixed: Vec<_> = wires.map(|wire| (wire, 0.0)).collect();
    let bits = fixed[4];
    let tolerance = |step| (Wire::Tolerance, step);
    bench.codecs::<f64>(&whole, 2, &fixed, &[bricks])?;
    bench.codecs::<f64>(&whole, 2, &[tolerance(1e-4), tolerance(1e-8)], &[bricks])?;
    bench.codecs::<f64>(&whole, 2, &[bits, tolerance(1e-4)], &[run, swapped, reversed])?;
    bench.codecs::<f64>(&whole, 1, &[bits, tolerance(1e-4)], &[bricks])?;
    bench.codecs::<f64>(&half, 2, &[bits, tolerance(1e-4)], &[bricks])?;
    let narrow = [(Wire::F16, 0.0), bits, tolerance(1e-3)];
    bench.codecs::<f32>(&whole, 2, &narrow, &[bricks, swapped])?;
    bench.codecs::<f32>(
        &whole,
        2,
        &[fixed[2], (Wire::Mantissa(10), 0.0), (Wire::Bits(11), 0.0)],
        &[bricks],
    )?;
    bench.codecs::<f32>(&whole, 1, &narrow, &[bricks])?;
    bench.codecs::<f32>(&whole, 2, &narrow[1..], &[reversed])?;
    bench.codecs::<f32>(&whole, 1, &narrow[1..], &[swapped, reversed])?;
    bench.codecs::<f32>(&half, 2, &[bits, tolerance(1e-3)], &[bricks])?;
    bench.transfers::<f64>(&uneven, 2, &[bricks, swapped, reversed])?;
    bench.codecs::<f64>(&uneven, 2, &[bits, tolerance(1e-4)], &[bricks, swapped, reversed])?;
    bench.transfers::<f32>(&uneven, 2, &[bricks, swapped, reversed])?;
    bench.codecs::<f32>(&uneven, 2, &[bits, tolerance(1e-3)], &[bricks, swapped, reversed])?;
    bench.transfers::<f32>(&uneven, 1, &[bricks])?;
    bench.codecs::<f32>(&uneven, 1, &narrow, &[bricks])?;
    if asked("once") {
        return Ok(());
    }
    match bench.transforms(n) {
        Err(why) if why.to_string() == GpuError::NoCuFft.to_string() => println!("not run: {why}"),
        other => other?,
    }
    if !quick {
        bench.transforms(1024)?;
    }
    Ok(())
}
