//! Transforms that fetch what they read out of several ranks' memory, and may store what they make there: reshapes and a transform in
//! the passes of the transform.

use std::sync::Arc;

use cudarc::driver::CudaStream;

use super::cufft::{FftReal, Handle, Many, Run};
use super::memory::{Block, DeviceMemory};
use super::peer_get::{Place, Places};
use crate::abi::pieces::{Pieces, Table};
use crate::base::{Gpu, GpuError};

/// A plan of complex transforms, with the tables that it is told: where it reads, and where it writes if not in an array.
pub(crate) struct Gathering {
    handle: Handle,
    run: Run,
    sides: Vec<(Pieces, Places)>,
}

/// Where a rank's memory is.
type At<'a, 'v> = &'a dyn Fn(usize) -> Place<'v>;

impl Gathering {
    /// Plans transforms. `None` where cuFFT has no such plan, or a table is of another array than they transform; with a second table also
    /// where they would need a place for what is half done.
    ///
    /// # Errors
    /// As [`Handle::new`].
    pub(crate) fn new<T: FftReal, const D: usize>(
        gpu: &Gpu,
        many: &Many<D>,
        from: Pieces,
        to: Option<Pieces>,
    ) -> Result<Option<Self>, GpuError> {
        let [input, output] = &many.sides;
        let elements = input.reach(many.batch);
        let fits = |pieces: &Pieces| elements == Some(pieces.elements());
        if input != output || !fits(&from) || !to.iter().all(fits) {
            return Ok(None);
        }
        let table = |pieces: &Pieces| {
            Block::new(gpu.context(), size_of::<Table>()).map(|block| (block, pieces.cuts()))
        };
        let (source, target) = (table(&from)?, to.as_ref().map(table).transpose()?);
        // SAFETY: the tables are made for that code, and of as many elements. Before a run they name what was lent for it.
        let handle = unsafe { Handle::gathering::<T, D>(gpu.context(), many, source, target) }?;
        let side = |pieces: Pieces| {
            let places = Places::new(pieces.reaches().to_vec());
            (pieces, places)
        };
        let stores = to.is_some();
        let sides = [from].into_iter().chain(to).map(side).collect();
        // Lines for which no work area is needed in place are done at once, and nothing but results is written.
        let handle = handle.filter(|handle| !stores || D == 1 && handle.work() == 0);
        Ok(handle.map(|handle| Self { handle, run: many.run, sides }))
    }

    /// Bytes of the work area that it needs.
    pub(crate) fn work_bytes(&self) -> usize {
        self.handle.work()
    }

    /// Bytes of memory of the device beside that.
    pub(crate) fn memory(&self) -> usize {
        self.handle.told().map(Block::bytes).sum()
    }

    /// Transforms what the sources hold, into `dst`; returns when that is queued.
    ///
    /// # Errors
    /// As [`super::PeerGets::run`], and for a short destination or work area.
    ///
    /// # Panics
    /// If it was planned with a table of targets.
    pub(crate) fn run<'v, T: FftReal>(
        &mut self,
        stream: &Arc<CudaStream>,
        source: At<'_, 'v>,
        dst: &mut DeviceMemory<T>,
        work: &mut DeviceMemory<u8>,
    ) -> Result<(), GpuError> {
        assert!(self.sides.len() == 1, "a plan that stores is told where");
        self.tell(stream, [source, source])?;
        // What cuFFT takes for the input is never read.
        self.handle.run_in_place(self.run, stream, dst, work)
    }

    /// Transforms what the sources hold, into the targets; returns when that is queued. `dst` stands for the target that there is none of.
    ///
    /// cuFFT asks for an array of its own, too, which it neither reads nor writes: it is told of `dst`, or of `spare` where that is longer.
    ///
    /// # Errors
    /// As [`super::PeerGets::run`], and for a short array or work area.
    ///
    /// # Panics
    /// If it was planned without a table of targets.
    pub(crate) fn store<'v, T: FftReal>(
        &mut self,
        stream: &Arc<CudaStream>,
        source: At<'_, 'v>,
        target: &dyn Fn(usize) -> Option<Place<'v>>,
        (dst, spare): (&mut DeviceMemory<T>, &DeviceMemory<T>),
        work: &mut DeviceMemory<u8>,
    ) -> Result<(), GpuError> {
        assert!(self.sides.len() == 2, "a plan that does not store");
        let here = Place::own(dst);
        let target = |rank: usize| target(rank).unwrap_or(here);
        self.tell(stream, [&|rank| source(rank), &target])?;
        let spare = Place::own(spare);
        let array = if spare.bytes() > here.bytes() { spare } else { here };
        // SAFETY: cuFFT calls the tables' code in the place of loads and stores; of lines that it does at once, without a work area
        // (`new` has no others), nothing else is loaded or stored, which the test below looks at. `exec` makes sure that the array is long
        // enough for it all the same.
        unsafe { self.handle.run_at::<T>(self.run, stream, array, work) }
    }

    /// Tells the tables where ranks' memories are.
    fn tell(&mut self, stream: &Arc<CudaStream>, at: [At<'_, '_>; 2]) -> Result<(), GpuError> {
        let Self { handle, sides, .. } = self;
        for (((pieces, places), block), at) in sides.iter_mut().zip(handle.told()).zip(at) {
            places.follow(at, |bases| {
                block.update(stream, bytemuck::bytes_of(pieces.table(bases)))
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ffi::{lend, lend_mut};
    use crate::kernel::{C2c, Fft, FftPlan, Spread};
    use cudarc::driver::CudaSlice;
    use fft_core::{DIMS, LocalReadBox, View};

    /// Planes of an array of three axes, with the array's own order in some memory.
    fn planes(owner: usize, planes: std::ops::Range<usize>, [_, b, c]: [usize; 3]) -> LocalReadBox {
        let (mut ranges, mut stride) = (std::array::from_fn(|_| 0..1), [0; DIMS]);
        let axes = [(planes, b * c), (0..b, c), (0..c, 1)];
        for (i, (range, step)) in axes.into_iter().enumerate() {
            (ranges[DIMS - 3 + i], stride[DIMS - 3 + i]) = (range, step);
        }
        LocalReadBox { owner, ranges, source: View { offset: 0, stride } }
    }

    /// Lines of `n` points, along the first of three axes or the last, from one memory, times a half, to halves of the first axis in two.
    /// Whether there is such a plan.
    fn check(gpu: &Gpu, run: Run, n: usize, across: bool) -> bool {
        let lens @ [a, b, c] = if across { [n, 20, 16] } else { [20, 16, n] };
        let all = a * b * c;
        let spread = Spread { embed: [n], stride: b * c, distance: 1 };
        let lines = across.then_some(spread);
        let fft = match across {
            true => Fft { n: [n], batch: b * c, input: lines, output: lines },
            false => Fft::rows([n], a * b),
        };
        let from = Pieces::new(&[planes(0, 0..a, lens)], 2, 16, 0.5).unwrap();
        let halves = [planes(0, 0..a / 2, lens), planes(1, a / 2..a, lens)];
        let to = Pieces::new(&halves, 2, 16, 1.0).unwrap();
        let many = fft.many::<C2c<f64>>(run).unwrap();
        let plan = Gathering::new::<f64, 1>(gpu, &many, from, Some(to)).unwrap();
        let Some(mut plan) = plan else { return false };
        let stream = gpu.new_stream().unwrap();
        let x: Vec<f64> = (0..2 * all).map(|i| (i as f64 * 0.7).sin()).collect();
        let x = stream.clone_htod(&x).unwrap();
        let mut targets: Vec<CudaSlice<f64>> =
            (0..2).map(|_| stream.alloc_zeros(all).unwrap()).collect();
        // Where results would be if they went there, and a target that is too short for that.
        let array = stream.clone_htod(&vec![7.0; 2 * all]).unwrap();
        let mut short = stream.clone_htod(&[7.0; 2]).unwrap();
        let mut work = stream.alloc_zeros::<u8>(1).unwrap();
        {
            let x = lend(&x, &stream);
            let held: Vec<_> = targets.iter_mut().map(|t| lend_mut(t, &stream)).collect();
            let (array, mut short) = (lend(&array, &stream), lend_mut(&mut short, &stream));
            let mut work = lend_mut(&mut work, &stream);
            let source = |_: usize| Place::own(&*x);
            let target = |rank: usize| Some(Place::own(&*held[rank]));
            let arrays = (&mut *short, &*array);
            plan.store(&stream, &source, &target, arrays, &mut work).unwrap();
        }
        let mut expected = stream.clone_dtod(&x).unwrap();
        let mut own = FftPlan::<C2c<f64>>::new(gpu, &fft).unwrap();
        let mut space = stream.alloc_zeros::<u8>(own.work_bytes().max(1)).unwrap();
        match run {
            Run::Forward => own.forward_in_place(&stream, &mut expected, &mut space).unwrap(),
            _ => own.inverse_in_place(&stream, &mut expected, &mut space).unwrap(),
        }
        let expected = stream.clone_dtoh(&expected).unwrap();
        let found: Vec<f64> =
            targets.iter().flat_map(|target| stream.clone_dtoh(target).unwrap()).collect();
        let away = found.iter().zip(&expected).map(|(f, e)| (f - 0.5 * e).abs());
        let worst = away.fold(0.0, f64::max);
        assert!(worst < 1e-11, "{run:?} of {n}, across: {across}: {worst:e}");
        let all = [&array, &short].map(|array| stream.clone_dtoh(array).unwrap());
        let untouched = all.iter().flatten().all(|x| *x == 7.0);
        assert!(untouched, "{run:?} of {n}, across: {across}: something else was written");
        true
    }

    #[test]
    fn results_are_stored_where_a_table_says_and_nowhere_else() {
        let gpu = match Gpu::probe(0) {
            Ok(gpu) => gpu,
            Err(why) => return println!("not run: {why}"),
        };
        let mut stored = 0;
        for n in [2, 8, 64, 256, 512] {
            for run in [Run::Forward, Run::Inverse] {
                stored += usize::from(check(&gpu, run, n, true));
                stored += usize::from(check(&gpu, run, n, false));
            }
        }
        println!("{stored} of 20 plans store");
        assert!(stored > 0 || !crate::ffi::links(), "none stores, with a cuFFT that links");
    }
}
