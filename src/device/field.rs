//! Fields on a device.

use std::ops::Range;

use fft_core::{Brick, Direction, Element, Error, Kind, Real, agree};
use fft_gpu::cudarc::driver::{CudaView, CudaViewMut, DeviceSlice, DriverError};
use fft_gpu::{Gpu, GpuError, GpuReal, Modes, lend_mut};

use super::DevicePlan;
use super::array::DeviceArray;
use crate::array::DynArray;
use crate::part::Part;
use crate::{Field, Physical, R2c, Side, Spectral, Transform};

/// This rank's part of a distributed array on a device, with room to be transformed in place: what [`Field`] is on the host.
///
/// What is done to it is queued on the stream of the plan that made it. A failure on the way, such as memory that is short, stays
/// in the field, and the next call of a plan that takes it returns it on every rank.
///
/// The state is part of the type: what has been transformed cannot be transformed again.
/// ```
/// use thriffty::gpu::Gpu;
/// use thriffty::{DeviceField, Error, Grid, Physical, Plan, Spectral};
/// let gpu = match Gpu::probe(0) {
///     Ok(gpu) => gpu,
///     Err(why) => return Ok(println!("without a GPU: {why}")),
/// };
/// thriffty::threads(2, |world| {
///     let mut plan = Plan::r2c(&world, Grid::new([8, 8, 8])?).on(&gpu).build()?;
///     let wave = |i: usize| (std::f64::consts::TAU * i as f64 / 8.0).sin();
///     let mut rho: DeviceField<Physical> = plan.input();
///     rho.fill(|[i, j, k]| 3.0 * wave(i) * wave(j) * wave(k));
///     let rho_hat: DeviceField<Spectral> = plan.forward(rho)?;
///     let phi_hat = rho_hat.poisson([std::f64::consts::TAU; 3]); // the lengths of the domain
///     let phi = plan.inverse(phi_hat)?;
///     let here = plan.download(&phi)?; // a `Field`
///     here.for_each(|[i, j, k], v| assert!((v - wave(i) * wave(j) * wave(k)).abs() < 1e-14));
///     Ok::<(), Error>(())
/// })?;
/// # Ok::<(), Error>(())
/// ```
/// A second forward transform does not compile:
/// ```compile_fail,E0308
/// # use thriffty::gpu::Gpu;
/// # use thriffty::{DeviceField, Error, Grid, Physical, Plan, Spectral};
/// # let gpu = match Gpu::probe(0) {
/// #     Ok(gpu) => gpu,
/// #     Err(why) => return Ok(println!("without a GPU: {why}")),
/// # };
/// # thriffty::threads(2, |world| {
/// let mut plan = Plan::r2c(&world, Grid::new([8, 8, 8])?).on(&gpu).build()?;
/// let rho: DeviceField<Physical> = plan.input();
/// let rho_hat: DeviceField<Spectral> = plan.forward(rho)?;
/// plan.forward(rho_hat).map(|_| ())
/// # })?;
/// # Ok::<(), Error>(())
/// ```
/// Neither does the use of a field that was transformed:
/// ```compile_fail,E0382
/// # use thriffty::gpu::Gpu;
/// # use thriffty::{DeviceField, Error, Grid, Physical, Plan, Spectral};
/// # let gpu = match Gpu::probe(0) {
/// #     Ok(gpu) => gpu,
/// #     Err(why) => return Ok(println!("without a GPU: {why}")),
/// # };
/// # thriffty::threads(2, |world| {
/// let mut plan = Plan::r2c(&world, Grid::new([8, 8, 8])?).on(&gpu).build()?;
/// let rho: DeviceField<Physical> = plan.input();
/// let rho_hat: DeviceField<Spectral> = plan.forward(rho)?;
/// plan.download(&rho)?;
/// plan.inverse(rho_hat).map(|_| ())
/// # })?;
/// # Ok::<(), Error>(())
/// ```
/// Nor Poisson's equation for physical data:
/// ```compile_fail,E0599
/// # use thriffty::gpu::Gpu;
/// # use thriffty::{DeviceField, Error, Grid, Physical, Plan, Spectral};
/// # let gpu = match Gpu::probe(0) {
/// #     Ok(gpu) => gpu,
/// #     Err(why) => return Ok(println!("without a GPU: {why}")),
/// # };
/// # thriffty::threads(2, |world| {
/// let mut plan = Plan::r2c(&world, Grid::new([8, 8, 8])?).on(&gpu).build()?;
/// let rho: DeviceField<Physical> = plan.input();
/// plan.forward(rho.poisson([1.0; 3])).map(|_| ())
/// # })?;
/// # Ok::<(), Error>(())
/// ```
pub struct DeviceField<S, K: Transform = R2c, const D: usize = 3> {
    /// Long enough for both states, as a field's on the host; or why there is none.
    data: Result<DeviceArray<K::Real>, Error>,
    part: Part<S>,
    gpu: Gpu,
}

impl<S: Side, K: Transform, const D: usize> DeviceField<S, K, D>
where
    K::Real: GpuReal,
{
    /// The indices that this rank holds.
    pub fn brick(&self) -> Brick<D> {
        self.part.brick().typed()
    }

    /// Real numbers of this rank's points.
    fn reals(&self) -> usize {
        self.part.points() * S::Element::<K>::WIDTH
    }

    /// The points of this rank as real numbers, a complex one being two, in the plan's order of axes, one array after the other
    /// for batches.
    ///
    /// # Errors
    /// What failed before, on this rank.
    pub fn as_slice(&self) -> Result<CudaView<'_, K::Real>, Error> {
        let reals = self.reals();
        self.data.as_ref().map(|data| data.slice(0..reals)).map_err(Clone::clone)
    }

    /// The points of this rank, to be changed.
    ///
    /// # Errors
    /// As [`DeviceField::as_slice`].
    pub fn as_mut_slice(&mut self) -> Result<CudaViewMut<'_, K::Real>, Error> {
        let reals = self.reals();
        self.data.as_mut().map(|data| data.slice_mut(0..reals)).map_err(|error| error.clone())
    }

    /// Sets every point to a function of its global index, which is computed on the host and copied; in a batch every array
    /// gets the same.
    pub fn fill(&mut self, value: impl FnMut([usize; D]) -> S::Element<K>) {
        match DynArray::zeros(self.reals() * size_of::<K::Real>(), self.part.rank()) {
            Ok(array) => {
                let mut here = Field::<S, K, D>::new(self.part.clone(), array);
                here.fill(value);
                self.copy(&here);
            }
            Err(error) => self.record_error(Err(error)),
        }
    }

    fn copy(&mut self, from: &Field<S, K, D>) {
        let rank = self.part.rank();
        let copied = self.as_mut_slice().and_then(|mut to| {
            let from: &[K::Real] = bytemuck::cast_slice(from.as_slice());
            let stream = to.stream().clone();
            let copied = if from.is_empty() { Ok(()) } else { stream.memcpy_htod(from, &mut to) };
            copied.map_err(|why| failed("copying a field to the device", rank, why))
        });
        self.record_error(copied);
    }

    /// Keeps a failure.
    fn record_error(&mut self, result: Result<(), Error>) {
        if let (Err(error), true) = (result, self.data.is_ok()) {
            self.data = Err(error);
        }
    }
}

impl<K: Transform, const D: usize> DeviceField<Spectral, K, D>
where
    K::Real: GpuReal,
{
    /// Solves -∇²φ = ρ on a periodic domain of these lengths: divides every mode by the square of its wavenumber
    /// 2π·index/length, and makes the mean 0. What an axis of kind [`Kind::Identity`] carries along is solved for each index by
    /// itself. One read and one write.
    pub fn poisson(mut self, lengths: [f64; D]) -> Self {
        let (rank, batches) = (self.part.rank(), self.batches());
        let modes = self.modes(lengths);
        self.data = self.data.and_then(|mut data| {
            let (modes, stream) = (modes?, data.stream().clone());
            for batch in batches {
                let solved = modes.poisson(&stream, &mut data.slice_mut(batch), K::Real::of(1.0));
                solved.map_err(|why| why.on(rank))?;
            }
            Ok(data)
        });
        self
    }

    /// The derivative along an axis, on a periodic domain of these lengths, as a field of its own: every mode times i times its
    /// wavenumber along the axis, and 0 for the mode in the middle of an axis of even length, which stands for both signs. One
    /// read and two writes, as memory is made for it. An axis of kind [`Kind::Identity`] has no wavenumbers: that is an error.
    ///
    /// # Panics
    /// If there is no such axis.
    pub fn gradient(&self, axis: usize, lengths: [f64; D]) -> Self {
        let (rank, kind) = (self.part.rank(), self.part.problem().kinds[axis]);
        let data = self.data.as_ref().map_err(Clone::clone).and_then(|from| {
            if kind == Kind::Identity {
                return Err(Error::argument(format!("kind of axis {axis}"), kind, "c2c or r2c"));
            }
            let (modes, stream) = (self.modes(lengths)?, from.stream());
            let mut to =
                stream.alloc_zeros(from.len()).map_err(allocating::<K::Real>(from.len(), rank))?;
            for batch in self.batches() {
                let (from, mut to) = (from.slice(batch.clone()), to.slice_mut(batch));
                let done = modes.gradient(stream, axis, &from, &mut to, K::Real::of(1.0));
                done.map_err(|why| why.on(rank))?;
            }
            Ok(DeviceArray::own(to))
        });
        Self { data, part: self.part.clone(), gpu: self.gpu.clone() }
    }

    /// The real numbers of each batch.
    fn batches(&self) -> impl Iterator<Item = Range<usize>> + use<K, D> {
        let reals = self.brick().points() * K::Spectral::WIDTH;
        (0..self.part.problem().howmany).map(move |batch| batch * reals..(batch + 1) * reals)
    }

    fn modes(&self, lengths: [f64; D]) -> Result<Modes<K::Real>, Error> {
        let (problem, layout) = (self.part.problem(), self.part.layout());
        let mut waves = lengths;
        for axis in 0..D {
            if lengths[axis].is_nan() || lengths[axis] <= 0.0 {
                let what = format!("length of axis {axis}");
                return Err(Error::argument(what, lengths[axis], "a positive one"));
            }
            if problem.kinds[axis] == Kind::Identity {
                waves[axis] = f64::INFINITY;
            }
        }
        let grid = problem.input.grid();
        Modes::new(&self.gpu, &grid, &self.part.brick(), layout.order(), waves.into())
            .map_err(|why| why.on(self.part.rank()))
    }
}

impl<K: Transform, const D: usize> DevicePlan<K, D>
where
    K::Real: GpuReal,
{
    /// A field of zeros to be filled with physical data.
    pub fn input(&self) -> DeviceField<Physical, K, D> {
        self.zeros()
    }

    /// A field of zeros to be filled with spectral data.
    pub fn output(&self) -> DeviceField<Spectral, K, D> {
        self.zeros()
    }

    /// As [`DevicePlan::input`], in memory that the ranks of a host see, as [`Draft::shared_arrays`](crate::Draft::shared_arrays) wants it.
    /// Collective.
    ///
    /// When the field is dropped, its memory is the plan's, for the next, and goes with the later of both; [`DevicePlan::memory`] does not
    /// count it. Other fields, those of [`DevicePlan::upload`] and [`DeviceField::gradient`] among them, are refused where other processes or
    /// devices look into fields: copy from their slices into this one's.
    ///
    /// # Errors
    /// On every rank: [`Error::OnRank`] when one does not get the memory, or cannot map another's.
    pub fn shared_input(&mut self) -> Result<DeviceField<Physical, K, D>, Error> {
        self.shared()
    }

    /// As [`DevicePlan::output`], in memory that the ranks of a host see: see [`DevicePlan::shared_input`]. Collective.
    ///
    /// # Errors
    /// As [`DevicePlan::shared_input`].
    pub fn shared_output(&mut self) -> Result<DeviceField<Spectral, K, D>, Error> {
        self.shared()
    }

    /// Copies a field of the host to the device. Of a field that another plan made, one for the same problem will do.
    pub fn upload<S: Side>(&self, field: &Field<S, K, D>) -> DeviceField<S, K, D> {
        let mut made = self.zeros();
        made.record_error(self.fits(field.part()));
        made.copy(field);
        made
    }

    /// Copies a field to the host, and waits for that. Collective.
    ///
    /// # Errors
    /// On every rank: what failed in the field; [`Error::OnRank`] when it is of another plan, or the driver fails.
    pub fn download<S: Side>(&self, field: &DeviceField<S, K, D>) -> Result<Field<S, K, D>, Error> {
        let copy = || {
            self.fits(&field.part)?;
            let bytes = self.plan.in_place_reals() * size_of::<K::Real>();
            let array = DynArray::zeros(bytes, self.comm().rank())?;
            let mut here = Field::new(field.part.clone(), array);
            let (from, to) = (field.as_slice()?, bytemuck::cast_slice_mut(here.as_mut_slice()));
            let copied = match to.is_empty() {
                true => Ok(()),
                false => from.stream().memcpy_dtoh(&from, to),
            };
            let done = copied.and_then(|()| from.stream().synchronize());
            done.map_err(|why| failed("copying a field to the host", self.comm().rank(), why))?;
            Ok(here)
        };
        agree(self.comm(), copy())
    }

    /// Transforms a field; its storage is used again. Collective.
    ///
    /// # Errors
    /// As [`DevicePlan::forward_into`]; the field is lost then. Also what failed in the field, and when it was made by a plan with
    /// other bricks, or on another device.
    pub fn forward(
        &mut self,
        field: DeviceField<Physical, K, D>,
    ) -> Result<DeviceField<Spectral, K, D>, Error> {
        self.transformed(Direction::Forward, field)
    }

    /// Transforms a field back; its storage is used again. Collective.
    ///
    /// # Errors
    /// As [`DevicePlan::forward`].
    pub fn inverse(
        &mut self,
        field: DeviceField<Spectral, K, D>,
    ) -> Result<DeviceField<Physical, K, D>, Error> {
        self.transformed(Direction::Inverse, field)
    }

    fn transformed<S, R>(
        &mut self,
        direction: Direction,
        field: DeviceField<S, K, D>,
    ) -> Result<DeviceField<R, K, D>, Error> {
        let DeviceField { data, part, gpu } = field;
        let same = match gpu.context() == self.plan.gpu.context() {
            true => Ok(()),
            false => Err(Error::argument("field", "one on another device", "one on the plan's")),
        };
        let fits = self.fits(&part).and(same).and(data);
        let (reals, stream) = (self.plan.in_place_reals(), self.stream().clone());
        let seen = fits.and_then(|mut data| {
            self.plan.sees(&lend_mut(&mut data.slice_mut(0..reals), &stream))?;
            Ok(data)
        });
        let mut data = self.agree(seen)?;
        self.plan.executor.run(
            direction,
            None,
            &mut lend_mut(&mut data.slice_mut(0..reals), &stream),
        )?;
        Ok(DeviceField { data: Ok(data), part: part.across(), gpu })
    }

    fn fits<S>(&self, part: &Part<S>) -> Result<(), Error> {
        part.fits(self.recipe().problem(), self.comm().rank())
    }

    fn zeros<S>(&self) -> DeviceField<S, K, D> {
        let part = Part::new(self.recipe().problem(), self.comm().rank());
        let data = self.plan.zeros();
        DeviceField { data, part, gpu: self.plan.gpu.clone() }
    }

    /// Zeros that the ranks of this host see. Collective.
    fn shared<S>(&mut self) -> Result<DeviceField<S, K, D>, Error> {
        let part = Part::new(self.recipe().problem(), self.comm().rank());
        let data = Ok(self.plan.shared_zeros()?);
        Ok(DeviceField { data, part, gpu: self.plan.gpu.clone() })
    }
}

fn allocating<T>(reals: usize, rank: usize) -> impl Fn(DriverError) -> Error {
    move |why| GpuError::allocating(reals * size_of::<T>(), why).on(rank)
}

fn failed(call: &'static str, rank: usize, why: DriverError) -> Error {
    Error::Transport { rank, call, text: why.to_string() }
}
