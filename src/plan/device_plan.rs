//! Plans with types whose data is on CUDA devices.

use std::sync::Arc;

use fft_core::{Direction, Error, agree};
use fft_gpu::cudarc::driver::{CudaStream, DevicePtr, DevicePtrMut};
use fft_gpu::{GpuReal, GpuTransport, lend, lend_mut};

use super::draft::Draft;
use super::plan::Plan;
use crate::field::{Device, Field, R2c, Side, Transform};

/// A [`Draft`] of a plan on a device: what [`Draft::on`] returns.
pub type DeviceDraft<'a, K, const D: usize> = Draft<'a, K, D, Device>;

/// A [`Field`] on a device.
pub type DeviceField<S, K = R2c, const D: usize = 3> = Field<S, K, D, Device>;

/// A [`Plan`] of data on CUDA devices.
///
/// Each rank has a device of its own, or shares one. Ranks of one host read each other's memory on
/// devices: threads by its address, processes by CUDA IPC. Messages to other ranks are sent from
/// the device if MPI or the process group can, otherwise through pinned memory of the host. Local
/// transforms use cuFFT. Devices encode messages of [`Wire::F32`](crate::Wire), `Bits` and
/// `Tolerance`; the host encodes all other wires.
///
/// A call returns when its work is queued on the plan's stream; if there are messages, or a wire is
/// lossy, when these are done.
///
/// Slices are of real numbers, and a complex number takes two, because cudarc has no complex type.
/// They begin at a multiple of 16 bytes, as all allocations do.
///
/// ```
/// use thriffty::gpu::Gpu;
/// let Ok(gpu) = Gpu::probe(0) else { return Ok(()) };
/// thriffty::threads(2, |world| {
///     let mut plan = thriffty::r2c(&world, [8, 8, 8]).on(&gpu).build()?;
///     let mut rho = plan.input();
///     rho.fill(|[i, _, _]| (std::f64::consts::TAU * i as f64 / 8.0).sin());
///     let phi_hat = plan.forward(rho)?.poisson([std::f64::consts::TAU; 3]);
///     let phi = plan.inverse(phi_hat)?;
///     plan.download(&phi)
/// })?;
/// # Ok::<(), thriffty::Error>(())
/// ```
pub type DevicePlan<K = R2c, const D: usize = 3> = Plan<K, D, Device>;

impl<K: Transform, const D: usize> Draft<'_, K, D, Device> {
    /// The stream that everything is queued on; a new one by default.
    pub fn stream(mut self, stream: Arc<CudaStream>) -> Self {
        if let Some(device) = self.dyn_mut().device_mut() {
            device.stream = Some(stream);
        }
        self
    }

    /// Sets how data gets to other ranks; it must be the same on all. The default is
    /// [`GpuTransport::PeerToPeer`]; the other transports send messages, even to ranks whose memory
    /// can be reached.
    pub fn transport(mut self, transport: GpuTransport) -> Self {
        if let Some(device) = self.dyn_mut().device_mut() {
            device.transport = transport;
        }
        self
    }
}

impl<K: Transform, const D: usize> Plan<K, D, Device> {
    /// The stream that everything is queued on.
    ///
    /// # Panics
    /// Never: a plan on a device has a stream.
    pub fn stream(&self) -> &Arc<CudaStream> {
        (**self).stream().expect("a plan on a device")
    }

    /// How data gets to the ranks that are hardest to reach: [`GpuTransport::PeerToPeer`] if there
    /// are no messages.
    pub fn transport(&self) -> GpuTransport {
        (**self).transport().unwrap_or_default()
    }

    /// Copies a field of the host to the device, as [`Field::copy_from`].
    pub fn upload<S: Side>(&self, field: &Field<S, K, D>) -> Field<S, K, D, Device> {
        let mut made = self.zeros();
        made.copy_from(field);
        made
    }

    /// Copies a field to the host, and waits for that. Collective.
    ///
    /// # Errors
    /// On every rank: what failed in the field; [`Error::OnRank`] when it is of another plan, or
    /// the driver fails.
    pub fn download<S: Side>(
        &self,
        field: &Field<S, K, D, Device>,
    ) -> Result<Field<S, K, D>, Error> {
        agree(self.comm(), self.fits(field.part()).and_then(|()| field.to_host()))
    }
}

impl<K: Transform<Real: GpuReal>, const D: usize> Plan<K, D, Device> {
    /// Transforms physical to spectral data. Collective.
    ///
    /// # Errors
    /// As on the host; also when the driver fails.
    pub fn forward_into(
        &mut self,
        input: &impl DevicePtr<K::Real>,
        output: &mut impl DevicePtrMut<K::Real>,
    ) -> Result<(), Error> {
        self.run(Direction::Forward, input, output)
    }

    /// Transforms spectral to physical data. Collective. The spectrum stays as it is.
    ///
    /// # Errors
    /// As [`Plan::forward_into`].
    pub fn inverse_into(
        &mut self,
        input: &impl DevicePtr<K::Real>,
        output: &mut impl DevicePtrMut<K::Real>,
    ) -> Result<(), Error> {
        self.run(Direction::Inverse, input, output)
    }

    /// Transforms physical to spectral data in one array, as on the host. Collective.
    ///
    /// # Errors
    /// As [`Plan::forward_into`].
    pub fn forward_in_place(&mut self, data: &mut impl DevicePtrMut<K::Real>) -> Result<(), Error> {
        self.run_in_place(Direction::Forward, data)
    }

    /// Transforms spectral to physical data in one array, as on the host. Collective.
    ///
    /// # Errors
    /// As [`Plan::forward_into`].
    pub fn inverse_in_place(&mut self, data: &mut impl DevicePtrMut<K::Real>) -> Result<(), Error> {
        self.run_in_place(Direction::Inverse, data)
    }

    fn run(
        &mut self,
        direction: Direction,
        input: &impl DevicePtr<K::Real>,
        output: &mut impl DevicePtrMut<K::Real>,
    ) -> Result<(), Error> {
        let stream = self.stream().clone();
        let (input, mut output) = (lend(input, &stream), lend_mut(output, &stream));
        self.dyn_mut().run_on_device(direction, &input.cast(), &mut output.cast_mut())
    }

    fn run_in_place(
        &mut self,
        direction: Direction,
        data: &mut impl DevicePtrMut<K::Real>,
    ) -> Result<(), Error> {
        let stream = self.stream().clone();
        let mut data = lend_mut(data, &stream);
        self.dyn_mut().run_in_place_on_device(direction, &mut data.cast_mut())
    }
}
