//! Measurements of one rank on its GPU: copies, local transforms, codecs.

use std::sync::Arc;
use std::time::Instant;

use fft_core::{
    Codecs, Direction, DynGrid, Error, How, Kind, Machine, PerAxis, Precision, Quantity, Rate,
    Transfer, Wire, median,
};
use fft_gpu::cudarc::driver::{
    CudaSlice, CudaStream, DevicePtrMut, DeviceRepr, DriverError, ValidAsZeroBits,
};
use fft_gpu::{Decoder, Encoder, Gpu, GpuError, Move, Noise, PlacedTransfer, Transfers};

use crate::bound::DeviceOptions;
use crate::field::{DynArray, DynTransform};
use crate::plan::{DynDraft, DynPlan};

/// Bytes of an array, far more than caches hold; fewer if memory is short.
const LARGE: usize = 512 << 20;
/// The part of the free memory that an array may take.
const PART: usize = 8;
/// Bytes of numbers that are encoded at once.
const CODED: usize = 64 << 20;
/// Lengths of lines whose transforms are timed, and the one that is timed along columns, too.
const LENGTHS: [usize; 7] = [16, 32, 64, 128, 256, 512, 1024];
const COLUMN: usize = 256;
/// Points along both axes of an array whose transform is a launch.
const SMALL: usize = 16;
/// Timings per measurement, whose median counts.
const TURNS: usize = 7;
/// Runs in one timing, of large and of small arrays.
const LONG: usize = 4;
pub(super) const SHORT: usize = 200;
/// The least share of a kernel's time that counts as arithmetic: short lines take no longer than a
/// copy.
const LEAST_SHARE: f64 = 1.0 / 32.0;
/// The least time that counts, so that rates are finite.
pub(super) const LEAST_SECONDS: f64 = 1e-9;
/// The step of `tolerance`.
const STEP: f64 = 1e-6;

/// Seconds of one run: the median of several turns of runs that are queued one after the other.
/// `wait` returns when they are done.
pub(super) fn time(
    runs: usize,
    run: &mut dyn FnMut() -> Result<(), Error>,
    wait: &dyn Fn() -> Result<(), Error>,
) -> Result<f64, Error> {
    run()?;
    wait()?;
    let mut turns = [0.0; TURNS];
    for seconds in &mut turns {
        let start = Instant::now();
        (0..runs).try_for_each(|_| run())?;
        wait()?;
        *seconds = start.elapsed().as_secs_f64() / runs as f64;
    }
    Ok(median(&mut turns))
}

/// Waits for a stream.
pub(super) fn wait(stream: &CudaStream, rank: usize) -> Result<(), Error> {
    let call = "waiting for the device";
    let failed = |why: DriverError| Error::Transport { rank, call, text: why.to_string() };
    stream.synchronize().map_err(failed)
}

/// The time that a kernel takes in addition to its pass over memory.
fn beyond(pass: f64, seconds: f64) -> f64 {
    (seconds - pass).max(LEAST_SHARE * seconds).max(LEAST_SECONDS)
}

/// A plan with its arrays.
pub(super) struct Timed {
    plan: DynPlan,
    arrays: [DynArray; 2],
}

impl Timed {
    /// Builds a draft, whose input on the device is noise. Collective, except for making the noise.
    pub(super) fn new(draft: DynDraft<'_>, gpu: &Gpu) -> Result<Self, Error> {
        let plan = draft.build()?;
        let rank = plan.comm().rank();
        let mut arrays = [plan.zeros()?, plan.zeros()?];
        let problem = plan.recipe().problem();
        let place = (&problem.grid(), &plan.input_brick());
        let noise = Noise::<f64>::new(gpu, place, plan.input_order(), 1, (2, 1.0));
        let noise = noise.map_err(|why| why.on(rank))?;
        let len = 2 * plan.input_len();
        let input = arrays[0].device_numbers_mut::<f64>(len).filter(|_| len > 0);
        if let (Some(mut input), Some(stream)) = (input, plan.stream()) {
            noise.fill(stream, &mut input).map_err(|why| why.on(rank))?;
        }
        Ok(Self { plan, arrays })
    }

    /// Queues a forward transform. Collective.
    pub(super) fn run(&mut self) -> Result<(), Error> {
        let [input, output] = &mut self.arrays;
        self.plan.run_arrays(Direction::Forward, input, output)
    }

    /// The stream of the plan.
    pub(super) fn stream(&self) -> Arc<CudaStream> {
        self.plan.stream().expect("a plan on a device").clone()
    }
}

/// A GPU whose parts are measured.
pub(super) struct Bench<'a> {
    device: &'a DeviceOptions,
    stream: Arc<CudaStream>,
    rank: usize,
    /// Bytes of a large array.
    bytes: usize,
}

impl<'a> Bench<'a> {
    pub(super) fn new(device: &'a DeviceOptions, rank: usize) -> Result<Self, Error> {
        let stream = device.gpu.new_stream().map_err(|why| why.on(rank))?;
        let call = "asking for free memory";
        let failed = |why: DriverError| Error::Transport { rank, call, text: why.to_string() };
        let (free, _) = device.gpu.context().mem_get_info().map_err(failed)?;
        Ok(Self { device, stream, rank, bytes: large(free) })
    }

    /// The machine, without the numbers that several ranks measure.
    pub(super) fn machine(&self, source: &str) -> Result<Machine, Error> {
        let number = |value, how| Quantity::new(value, how, source);
        let measured = |value| number(value, How::Measured);
        let rate = self.copy()?;
        let pass = 2.0 * self.bytes as f64 / rate;
        let launch = self.transform([SMALL; 2], 1, SHORT)?;
        let seconds = |n: usize| self.transform([self.points() / n, n], 1, LONG);
        let flops = |n: usize| -> Result<_, Error> {
            let operations = 5.0 * self.points() as f64 * (n as f64).log2();
            let arithmetic = beyond(pass + launch, seconds(n)?);
            Ok(Rate { n, rate: number(operations / arithmetic, How::Fitted) })
        };
        let flops = LENGTHS.into_iter().map(flops).collect::<Result<_, _>>()?;
        let columns = self.transform([COLUMN, self.points() / COLUMN], 0, LONG)?;
        let strided = (columns / seconds(COLUMN)?).max(1.0);
        let codecs =
            [Wire::F32, Wire::Bits(16), Wire::Tolerance].map(|wire| self.codec(wire, rate));
        let [rounded, bits, tolerance] = codecs;
        let codecs = [rounded?, bits?, tolerance?];
        let default = Machine::default();
        let of = |side: usize, lossless: Quantity| Codecs {
            rounded: number(codecs[0][side], How::Fitted),
            bits: number(codecs[1][side], How::Fitted),
            tolerance: number(codecs[2][side], How::Fitted),
            lossless,
        };
        Ok(Machine {
            memory: measured(rate),
            strided: measured(strided),
            launch: measured(launch),
            flops,
            encode: of(0, default.encode.lossless.clone()),
            decode: of(1, default.decode.lossless.clone()),
            ..default
        })
    }

    /// Complex numbers of a large array.
    fn points(&self) -> usize {
        self.bytes / size_of::<[f64; 2]>()
    }

    fn array<E: DeviceRepr + ValidAsZeroBits>(&self, bytes: usize) -> Result<CudaSlice<E>, Error> {
        let missing = |_| Error::Memory { rank: self.rank, bytes };
        self.stream.alloc_zeros(bytes / size_of::<E>()).map_err(missing)
    }

    /// Fills an array with noise.
    fn fill(&self, array: &mut impl DevicePtrMut<f64>, points: usize) -> Result<(), Error> {
        let grid = DynGrid::new([points])?;
        let place = (&grid, &grid.whole());
        let noise = Noise::<f64>::new(&self.device.gpu, place, [0].into(), 1, (2, 1.0));
        noise.and_then(|noise| noise.fill(&self.stream, array)).map_err(|why| self.failed(why))
    }

    fn failed(&self, why: GpuError) -> Error {
        why.on(self.rank)
    }

    fn time(
        &self,
        runs: usize,
        mut run: impl FnMut() -> Result<(), GpuError>,
    ) -> Result<f64, Error> {
        let run = &mut || run().map_err(|why| self.failed(why));
        time(runs, run, &|| wait(&self.stream, self.rank))
    }

    /// Bytes read and written per second by a copy, both counted.
    fn copy(&self) -> Result<f64, Error> {
        let (mut from, mut to) = (self.array::<f64>(self.bytes)?, self.array::<f64>(self.bytes)?);
        self.fill(&mut from, self.points())?;
        let whole = Transfer::run_of(self.points());
        let moves = [Move { transfer: &whole, from: 0, to: 0 }];
        let Self { device, stream, .. } = self;
        let copy = Transfers::new(&device.gpu, stream, size_of::<[f64; 2]>(), &moves);
        let copy = copy.map_err(|why| self.failed(why))?;
        let seconds = self.time(LONG, || copy.run(stream, &from, &mut to))?;
        Ok(2.0 * self.bytes as f64 / seconds)
    }

    /// Seconds of complex transforms along an axis of an array.
    fn transform(&self, shape: [usize; 2], axis: usize, runs: usize) -> Result<f64, Error> {
        let comm = fft_comm::alone();
        let kind = |other: usize| if other == axis { Kind::C2C } else { Kind::None };
        let kinds = PerAxis::from_fn(2, kind);
        let draft = DynDraft::new(&comm, DynGrid::new(shape)?, DynTransform::C2c, Precision::F64);
        let draft = draft.with(|options| options.kinds = Some(kinds)).on(self.device.clone());
        let mut timed = Timed::new(draft, &self.device.gpu)?;
        let stream = timed.stream();
        time(runs, &mut || timed.run(), &|| wait(&stream, self.rank))
    }

    /// Bytes of numbers encoded, and decoded, per second beyond a pass over memory.
    fn codec(&self, wire: Wire, rate: f64) -> Result<[f64; 2], Error> {
        let bytes = self.bytes.min(CODED);
        let points = bytes / size_of::<[f64; 2]>();
        let mut numbers = self.array::<f64>(bytes)?;
        self.fill(&mut numbers, points)?;
        let (codec, whole) = (wire.codec::<f64>(), Transfer::run_of(points));
        let room = codec.fixed(points, 2).unwrap_or(codec.bound(2 * points));
        let mut message = self.array::<u8>(room.next_multiple_of(16))?;
        let places = [PlacedTransfer { transfer: &whole, place: 0 }];
        let (gpu, stream) = (&self.device.gpu, &self.stream);
        let failed = |why| self.failed(why);
        let mut encoder = Encoder::<f64>::new(gpu, stream, wire, 2, &places).map_err(failed)?;
        let encode = self.time(LONG, || encoder.encode(stream, &numbers, STEP, &mut message))?;
        encoder.report(stream).map_err(failed)?;
        wait(stream, self.rank)?;
        let lengths: Vec<usize> = encoder.reported().map(|packed| packed.bytes).collect();
        let mut decoder = Decoder::<f64>::new(gpu, stream, wire, 2, &places).map_err(failed)?;
        let decode =
            self.time(LONG, || decoder.decode(stream, &lengths, &message, &mut numbers))?;
        let pass = (bytes + lengths.iter().sum::<usize>()) as f64 / rate;
        Ok([encode, decode].map(|seconds| bytes as f64 / beyond(pass, seconds)))
    }
}

/// Bytes of a large array on a device with `free` free bytes: a power of two.
fn large(free: usize) -> usize {
    let most = (free / PART).clamp(1, LARGE);
    // All lengths of lines are whole.
    (1 << most.ilog2()).max(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_shorter_where_memory_is_short() {
        assert_eq!(large(80 << 30), LARGE);
        assert_eq!(large(3 << 30), 256 << 20);
        assert_eq!(large(0), 1 << 20);
        let longest = LENGTHS[LENGTHS.len() - 1];
        assert!(large(0) / size_of::<[f64; 2]>() >= longest);
    }

    #[test]
    fn arithmetic_is_what_a_pass_leaves_and_never_nothing() {
        assert_eq!(beyond(1.0, 3.0), 2.0);
        assert_eq!(beyond(4.0, 3.2), 0.1);
        assert!(beyond(1.0, 0.0) > 0.0);
    }

    #[test]
    fn the_median_of_turns_counts_and_errors_end_them() {
        let (mut runs, waits) = (0, std::cell::Cell::new(0));
        let count = || {
            waits.set(waits.get() + 1);
            Ok(())
        };
        let counted = &mut || {
            runs += 1;
            Ok(())
        };
        assert!(time(3, counted, &count).unwrap() >= 0.0);
        assert_eq!((runs, waits.get()), (1 + 3 * TURNS, 1 + TURNS));
        let failing = &mut || Err(Error::argument("run", 1, 2));
        assert!(time(3, failing, &|| Ok(())).is_err());
    }
}
