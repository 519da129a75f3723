//! Copies and codecs on the device, against the card's own copy.
//!
//! `cargo bench -p fft-gpu --features cuda [-- quick]`. Rates are bytes read and written per
//! second; each is the median of several runs, timed on the device. The array has 512³ complex
//! numbers, or 256³ with `quick`.

use std::sync::Arc;

use fft_core::{Brick, Placed, Transfer, Wire};
use fft_gpu::cudarc::driver::{CudaSlice, CudaStream, sys};
use fft_gpu::{
    Decoder, Encoder, Gpu, GpuError, GpuReal, Move, PlacedTransfer, Transfers, transposed_when_read,
};

type Failure = Box<dyn std::error::Error>;
type Done = Result<(), Failure>;

/// Seconds of a run: the median of nine, after 50 ms in which clocks rise.
fn seconds(
    stream: &Arc<CudaStream>,
    mut run: impl FnMut() -> Result<(), GpuError>,
) -> Result<f64, Failure> {
    let mut time = || -> Result<f64, Failure> {
        let begin = stream.record_event(Some(sys::CUevent_flags::CU_EVENT_DEFAULT))?;
        run()?;
        let end = stream.record_event(Some(sys::CUevent_flags::CU_EVENT_DEFAULT))?;
        Ok(f64::from(begin.elapsed_ms(&end)?) * 1e-3)
    };
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

/// The card's own copy.
fn copied<T: GpuReal>(
    stream: &Arc<CudaStream>,
    src: &CudaSlice<T>,
    dst: &mut CudaSlice<T>,
) -> Result<(), GpuError> {
    let failed = |why: fft_gpu::cudarc::driver::DriverError| why.to_string();
    stream
        .memcpy_dtod(src, dst)
        .map_err(|why| GpuError::Driver { what: "copying", why: failed(why) })
}

struct Bench {
    gpu: Gpu,
    stream: Arc<CudaStream>,
    /// The rate of the card's own copy, in bytes per second.
    copy: f64,
}

/// An array to be cut.
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

const RUN: Cut = Cut { name: "one run", pieces: [1, 1, 1], order: [0, 1, 2] };
const BRICKS: Cut = Cut { name: "2x2x2 bricks", pieces: [2, 2, 2], order: [0, 1, 2] };
const SWAPPED: Cut = Cut { name: "1x8x8, last axes swapped", pieces: [1, 8, 8], order: [0, 2, 1] };
const REVERSED: Cut = Cut { name: "8x1x8, axes reversed", pieces: [8, 1, 8], order: [2, 1, 0] };

impl Cut {
    /// The boxes, from an array into messages and from there into another array.
    ///
    /// The first array has the natural order, the second has this one.
    fn boxes(&self, shape: [usize; 3], wire: Wire, element: usize) -> Vec<[Transfer; 2]> {
        let whole = Brick { lo: [0; 3], hi: shape };
        let from = Placed { brick: whole.into(), order: [0, 1, 2].into(), batch: 1 };
        let to = Placed { brick: whole.into(), order: self.order.into(), batch: 1 };
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

    /// Raw packing and unpacking.
    fn transfers<T: GpuReal>(&self, array: &Array, width: usize, cuts: &[Cut]) -> Done {
        let reals = array.shape.iter().product::<usize>() * width;
        let src = self.stream.clone_htod(&noise::<T>(reals))?;
        let mut dst = self.stream.alloc_zeros::<T>(reals)?;
        let bytes = 2.0 * (reals * size_of::<T>()) as f64;
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

    /// Encoding and decoding, by wires and cuts.
    fn codecs<T: GpuReal>(
        &self,
        array: &Array,
        width: usize,
        wires: &[(Wire, f64)],
        cuts: &[Cut],
    ) -> Done {
        let reals = array.shape.iter().product::<usize>() * width;
        let src = self.stream.clone_htod(&noise::<T>(reals))?;
        let mut dst = self.stream.alloc_zeros::<T>(reals)?;
        for &wire in wires {
            for cut in cuts {
                self.codec(array, width, wire, cut, (&src, &mut dst))?;
            }
        }
        Ok(())
    }

    fn codec<T: GpuReal>(
        &self,
        array: &Array,
        width: usize,
        (wire, step): (Wire, f64),
        cut: &Cut,
        (src, dst): (&CudaSlice<T>, &mut CudaSlice<T>),
    ) -> Done {
        let boxes = cut.boxes(array.shape, wire, width * size_of::<T>());
        let bound = |part: &Transfer| wire.codec::<T>().bound(part.elements() * width);
        let mut end = 0;
        let (mut outgoing, mut incoming) = (Vec::new(), Vec::new());
        for [gather, scatter] in &boxes {
            let place = Encoder::<T>::place(wire, width, gather.elements(), end)?;
            outgoing.push(PlacedTransfer { transfer: gather, place });
            incoming.push(PlacedTransfer { transfer: scatter, place });
            end = place + bound(gather);
        }
        let (gpu, stream) = (&self.gpu, &self.stream);
        let mut memory = stream.alloc_zeros::<u8>(end)?;
        let mut encoder = Encoder::<T>::new(gpu, stream, wire, width, &outgoing)?;
        let mut decoder = Decoder::<T>::new(gpu, stream, wire, width, &incoming)?;
        let time = seconds(stream, || encoder.encode(stream, src, step, &mut memory))?;
        encoder.report(stream)?;
        stream.synchronize()?;
        let lengths: Vec<usize> = encoder.reported().map(|packed| packed.bytes).collect();
        let packed: usize = lengths.iter().sum();
        let bytes = (src.num_bytes() + packed) as f64;
        let bits = 8.0 * packed as f64 / src.len() as f64;
        let name = format!("{wire} {}x{width}, {}{}", T::NAME, cut.name, array.name);
        self.line(&format!("encode {name} ({bits:.1} bits)"), bytes, time);
        let time = seconds(stream, || decoder.decode(stream, &lengths, &memory, dst))?;
        decoder.report(stream)?;
        stream.synchronize()?;
        if let Some(number) = decoder.reported() {
            return Err(format!("{name}: message {number} does not decode").into());
        }
        self.line(&format!("decode {name}"), bytes, time);
        Ok(())
    }

    /// Everything, of arrays of n³ elements.
    fn all(&self, n: usize) -> Done {
        let whole = Array { name: "", shape: [n; 3] };
        // Half a spectrum has rows of an odd length; messages of the uneven one have no whole
        // blocks in rows.
        let half = Array { name: ", half a spectrum", shape: [n, n, n / 2 + 1] };
        let uneven = Array { name: ", uneven", shape: [n - 7, n - 9, n - 13] };
        let all = [RUN, BRICKS, SWAPPED, REVERSED];
        self.transfers::<f64>(&whole, 2, &all)?;
        self.transfers::<f64>(&whole, 1, &all)?;
        self.transfers::<f32>(&whole, 2, &all)?;
        self.transfers::<f32>(&whole, 1, &all)?;
        self.transfers::<f64>(&half, 2, &[BRICKS, SWAPPED])?;
        self.transfers::<f64>(&uneven, 2, &[BRICKS, SWAPPED, REVERSED])?;
        self.transfers::<f32>(&uneven, 2, &[BRICKS, SWAPPED, REVERSED])?;
        let fixed = [Wire::F32, Wire::Bits(15), Wire::Bits(16), Wire::Bits(32)];
        let fixed = fixed.map(|wire| (wire, 0.0));
        let tolerance = |step| (Wire::Tolerance, step);
        let both = [(Wire::Bits(16), 0.0), tolerance(1e-4)];
        let narrow = [(Wire::Bits(16), 0.0), tolerance(1e-3)];
        self.codecs::<f64>(&whole, 2, &fixed, &[BRICKS])?;
        self.codecs::<f64>(&whole, 2, &[tolerance(1e-4), tolerance(1e-8)], &[BRICKS])?;
        self.codecs::<f64>(&whole, 2, &both, &[RUN, SWAPPED, REVERSED])?;
        self.codecs::<f64>(&whole, 1, &both, &[BRICKS])?;
        self.codecs::<f64>(&half, 2, &both, &[BRICKS])?;
        self.codecs::<f64>(&uneven, 2, &both, &[BRICKS, SWAPPED, REVERSED])?;
        self.codecs::<f32>(&whole, 2, &narrow, &[BRICKS, SWAPPED, REVERSED])?;
        self.codecs::<f32>(&whole, 1, &narrow, &[BRICKS, SWAPPED, REVERSED])?;
        self.codecs::<f32>(&half, 2, &narrow, &[BRICKS])?;
        self.codecs::<f32>(&uneven, 2, &narrow, &[BRICKS, SWAPPED, REVERSED])?;
        self.codecs::<f32>(&uneven, 1, &narrow, &[BRICKS])
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
    let quick = std::env::args().any(|argument| argument == "quick");
    let n = if quick { 256 } else { 512 };
    let stream = gpu.stream();
    let bytes = 16 * n * n * n;
    let copy = {
        let src = stream.clone_htod(&noise::<f64>(bytes / 8))?;
        let mut dst = stream.alloc_zeros::<f64>(bytes / 8)?;
        2.0 * bytes as f64 / seconds(&stream, || copied(&stream, &src, &mut dst))?
    };
    println!("{}, {n}³: the card's own copy moves {:.0} GB/s", gpu.name(), copy * 1e-9);
    Bench { gpu, stream, copy }.all(n)
}
