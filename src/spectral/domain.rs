//! A box with physical lengths under a plan's spectrum.

use std::fmt;
use std::sync::{Arc, Mutex};

use fft_core::{DividedAxis, Error, Modes, Operator, Scheme, Spectrum, Tridiagonal};
#[cfg(feature = "cuda")]
use fft_gpu::{DeviceModes, Gpu, GpuError, cudarc::driver::CudaStream};

use crate::field::DynArray;

/// A box with physical lengths, and the wavenumbers of this rank's part of a plan's spectrum.
///
/// Made by [`Plan::domain`](crate::Plan::domain). It serves all plans whose spectra have the same
/// kinds, bricks and order, in the same place, whatever their number of arrays. Its methods
/// allocate nothing.
///
/// A domain is not collective, with one exception: if ranks divide the axis of kind
/// [`Tridiagonal`](crate::Kind::Tridiagonal), all ranks must apply the same operators in the same
/// order, and an error on one rank is reported on every rank.
pub struct Domain {
    modes: Modes,
    #[cfg(feature = "cuda")]
    device: Option<OnDevice>,
}

/// The modes on a device, and the stream that operators are queued on.
#[cfg(feature = "cuda")]
struct OnDevice {
    gpu: Gpu,
    modes: DeviceModes,
    stream: Arc<CudaStream>,
}

impl Domain {
    /// A domain with the components of vectors in the order of axes, or in reverse.
    ///
    /// # Errors
    /// [`Error::Argument`] for lengths that are not positive, or of other axes than the grid's.
    pub(crate) fn new(
        spectrum: Spectrum,
        rank: usize,
        lengths: &[f64],
        reversed: bool,
    ) -> Result<Self, Error> {
        let modes = Modes::new(spectrum, rank, lengths)?;
        let modes = if reversed { modes.reversed() } else { modes };
        Ok(Self {
            modes,
            #[cfg(feature = "cuda")]
            device: None,
        })
    }

    /// The same, for ranks that divide the axis of tridiagonal systems.
    pub(crate) fn with_divided_axis(mut self, divided: Arc<Mutex<DividedAxis>>) -> Self {
        self.modes = self.modes.with_divided_axis(divided);
        self
    }

    /// The same, for arrays on a device.
    #[cfg(feature = "cuda")]
    pub(crate) fn on(mut self, gpu: &Gpu, stream: &Arc<CudaStream>) -> Result<Self, Error> {
        let modes = DeviceModes::new(gpu, stream, &self.modes).map_err(|why| self.failed(why))?;
        self.device = Some(OnDevice { gpu: gpu.clone(), modes, stream: stream.clone() });
        Ok(self)
    }

    /// The same domain with difference schemes, one for each axis: operators use their symbols
    /// instead of wavenumbers, and their discrete equations hold to rounding.
    ///
    /// The spacing of points follows from the length of an axis. For cosine and sine transforms the
    /// length is the distance between the ends where a value or a slope is 0, as described by
    /// [`Ends`](crate::Ends); otherwise it is the period. A truncated spectrum has as many points
    /// as modes.
    ///
    /// ```
    /// use thriffty::spectral::{Operator, Scheme};
    /// thriffty::threads(2, |world| {
    ///     let mut plan = thriffty::r2c(&world, [8, 8]).batch(2).build()?;
    ///     let mut scalar = thriffty::r2c(&world, [8, 8]).like(&plan).build()?;
    ///     let domain = plan.domain([1.0; 2])?.with_schemes(&[Scheme::Staggered2; 2])?;
    ///     let mut flow = plan.input();
    ///     flow.fill(|[i, j]| ((3 * i + 5 * j * j) % 7) as f64);
    ///     let mut flow = plan.forward(flow)?;
    ///     domain.apply_in_place(Operator::Project, &mut flow);
    ///     // What flows out of each cell through its faces is 0.
    ///     let mut divergence = scalar.output();
    ///     domain.apply(Operator::Divergence, &flow, &mut divergence);
    ///     let divergence = scalar.inverse(divergence)?;
    ///     assert!(divergence.as_slice().iter().all(|v| v.abs() < 1e-13));
    ///     Ok::<(), thriffty::Error>(())
    /// })?;
    /// # Ok::<(), thriffty::Error>(())
    /// ```
    ///
    /// On devices, operators with first derivatives refuse staggered schemes.
    ///
    /// # Errors
    /// [`Error::Argument`] for schemes of other axes than the grid's; [`Error::Transport`] when a
    /// driver fails.
    pub fn with_schemes(self, schemes: &[Scheme]) -> Result<Self, Error> {
        self.with_modes(|modes| modes.with_schemes(schemes))
    }

    /// The same domain with the coefficients of a difference scheme along the axis of kind
    /// [`Tridiagonal`](crate::Kind::Tridiagonal), for [`Operator::Laplacian`], and for
    /// [`Operator::Poisson`] and [`Operator::Helmholtz`], which solve a system for each mode of the
    /// other axes. Its length is not used. Memory is reserved here: for a few lines on a host, on a
    /// device for up to three lines of double precision for each thread that it runs at once.
    ///
    /// On hosts ranks may divide the axis. Each then eliminates its own points, and the ranks with
    /// the same modes solve a reduced system of two rows for each of them: operators are
    /// [collective](Domain).
    ///
    /// If no end fixes the mean of the solution, it is 0, and the mean of the right-hand side is
    /// ignored. Both are taken over the axis and weighted so that fluxes cancel, for example by the
    /// widths of cells.
    ///
    /// ```
    /// use thriffty::spectral::{Operator, Tridiagonal};
    /// use thriffty::Ends;
    /// thriffty::threads(2, |world| {
    ///     let ends = [Ends::Periodic, Ends::Periodic, Ends::Tridiagonal];
    ///     let draft = thriffty::r2c(&world, [8, 8, 3]).ends(ends);
    ///     let mut plan = draft.transposed_output(true).build()?;
    ///     // Cells that grow from a wall, where the value is 0, to an end without a slope.
    ///     let faces = [0.0, 1.0, 3.0, 7.0];
    ///     let scheme = Tridiagonal::second_derivative(&faces, Ends::DirichletNeumann)?;
    ///     let domain = plan.domain([8.0, 8.0, 7.0])?.with_tridiagonal(scheme)?;
    ///     let mut rho = plan.input();
    ///     rho.fill(|_| 1.0);
    ///     let mut rho = plan.forward(rho)?;
    ///     domain.apply_in_place(Operator::Poisson, &mut rho);
    ///     let phi = plan.inverse(rho)?;
    ///     // What flows to the wall is the sum of 1 over all cells: 7, over half a cell.
    ///     assert!(phi.iter().all(|([.., k], v)| k > 0 || (v - 3.5).abs() < 1e-13));
    ///     Ok::<(), thriffty::Error>(())
    /// })?;
    /// # Ok::<(), thriffty::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Argument`] without such an axis, and for coefficients of another number of points;
    /// [`Error::Memory`] and [`Error::Transport`] when a driver fails.
    pub fn with_tridiagonal(self, scheme: Tridiagonal) -> Result<Self, Error> {
        self.with_modes(|modes| modes.with_tridiagonal(scheme))
    }

    /// The same with other modes, also on the device.
    fn with_modes(self, change: impl FnOnce(Modes) -> Result<Modes, Error>) -> Result<Self, Error> {
        let changed = Self {
            modes: change(self.modes)?,
            #[cfg(feature = "cuda")]
            device: None,
        };
        #[cfg(feature = "cuda")]
        if let Some(OnDevice { gpu, stream, .. }) = self.device {
            return changed.on(&gpu, &stream);
        }
        Ok(changed)
    }

    /// The same for arrays where this one is.
    pub(super) fn beside(self, array: &DynArray) -> Result<Self, Error> {
        #[cfg(feature = "cuda")]
        if let Some(array) = array.device() {
            return self.on(array.gpu(), array.stream());
        }
        let _ = array;
        Ok(self)
    }

    #[cfg(feature = "cuda")]
    fn failed(&self, why: GpuError) -> Error {
        why.on(self.modes.rank())
    }

    /// The modes, with their wavenumbers.
    pub(super) fn modes(&self) -> &Modes {
        &self.modes
    }

    /// The components of a vector: the number of axes that are transformed.
    pub fn dimensions(&self) -> usize {
        self.modes.dimensions()
    }

    /// The wavenumbers of this rank's brick along an axis of the grid, as
    /// [`Wavenumbers::k`](super::Wavenumbers), or the symbols of its
    /// [scheme](Domain::with_schemes).
    ///
    /// # Panics
    /// If there is no such axis.
    pub fn wavenumbers(&self, axis: usize) -> &[f64] {
        &self.modes.along(axis).k
    }

    /// The same for derivatives of odd order: 0 for the middle mode of an even number of points,
    /// unless the scheme is staggered.
    ///
    /// # Panics
    /// If there is no such axis.
    pub fn derivative_wavenumbers(&self, axis: usize) -> &[f64] {
        &self.modes.along(axis).odd
    }

    /// Applies an operator to the first bytes of an array, as
    /// [`DynPlan`](crate::planning::DynPlan) has them, and writes the result to another. A batch of
    /// several operands makes as many results.
    ///
    /// `mine` is an earlier error of this rank. If this is [collective](Domain), other ranks wait
    /// for it.
    ///
    /// # Errors
    /// The earlier error; [`Error::Length`] for arrays that do not have the lengths of the
    /// operator's components; [`Error::Argument`] for axes without derivatives, parameters that are
    /// not finite or, as [`Operator`] says, negative, and arrays that are elsewhere or not aligned;
    /// [`Error::Transport`] when a driver fails. If collective, the errors of all ranks,
    /// [`Error::Disagreement`] about the operator, and [`Error::OnRank`] when an exchange fails;
    /// the output is then undefined.
    pub fn apply_arrays(
        &self,
        operator: Operator,
        mine: Result<(), Error>,
        (input, from): (&DynArray, usize),
        (output, to): (&mut DynArray, usize),
    ) -> Result<(), Error> {
        #[cfg(feature = "cuda")]
        if let (Some(device), Some(input), Some(output)) =
            (&self.device, input.device(), output.device_mut())
        {
            mine?;
            return input.with(&device.stream, from, |input| {
                output.with_mut(&device.stream, to, |output| {
                    self.apply_on_device(operator, Some(input), output)
                })
            });
        }
        match mine.and(self.check_place(input, from)).and(self.check_place(output, to)) {
            Ok(()) => {
                let (input, output) = (&input.bytes()[..from], &mut output.bytes_mut()[..to]);
                self.modes.apply(operator, Ok(()), input, output)
            }
            wrong => self.modes.apply(operator, wrong, &[], &mut []),
        }
    }

    /// Applies an operator with as many components before as after within the first bytes of an
    /// array.
    ///
    /// # Errors
    /// The errors of [`Domain::apply_arrays`]; [`Error::Argument`] for another operator.
    pub fn apply_array_in_place(
        &self,
        operator: Operator,
        mine: Result<(), Error>,
        (data, bytes): (&mut DynArray, usize),
    ) -> Result<(), Error> {
        #[cfg(feature = "cuda")]
        if let (Some(device), Some(data)) = (&self.device, data.device_mut()) {
            mine?;
            return data.with_mut(&device.stream, bytes, |data| {
                self.apply_on_device(operator, None, data)
            });
        }
        match mine.and(self.check_place(data, bytes)) {
            Ok(()) => self.modes.apply_in_place(operator, Ok(()), &mut data.bytes_mut()[..bytes]),
            wrong => self.modes.apply_in_place(operator, wrong, &mut []),
        }
    }

    /// Multiplies the first bytes of an array by a kernel of one component, or by its conjugate.
    ///
    /// # Errors
    /// As [`Domain::apply_arrays`].
    pub fn convolve_arrays(
        &self,
        (kernel, from): (&DynArray, usize),
        correlate: bool,
        (data, bytes): (&mut DynArray, usize),
    ) -> Result<(), Error> {
        #[cfg(feature = "cuda")]
        if let (Some(device), Some(kernel), Some(data)) =
            (&self.device, kernel.device(), data.device_mut())
        {
            return kernel.with(&device.stream, from, |kernel| {
                data.with_mut(&device.stream, bytes, |data| {
                    self.convolve_on_device(kernel, correlate, data)
                })
            });
        }
        self.check_place(kernel, from)?;
        self.check_place(data, bytes)?;
        self.modes.multiply(&kernel.bytes()[..from], correlate, &mut data.bytes_mut()[..bytes])
    }

    /// Applies an operator to arrays of the host; without input, within the output.
    ///
    /// # Errors
    /// As [`Domain::apply_arrays`].
    pub fn apply_bytes(
        &self,
        operator: Operator,
        input: Option<&[u8]>,
        output: &mut [u8],
    ) -> Result<(), Error> {
        match input {
            Some(input) => self.modes.apply(operator, Ok(()), input, output),
            None => self.modes.apply_in_place(operator, Ok(()), output),
        }
    }

    /// Multiplies an array of the host, as [`Domain::convolve_arrays`].
    ///
    /// # Errors
    /// As [`Domain::apply_arrays`].
    pub fn convolve_bytes(
        &self,
        kernel: &[u8],
        correlate: bool,
        data: &mut [u8],
    ) -> Result<(), Error> {
        self.modes.multiply(kernel, correlate, data)
    }

    /// Applies an operator to arrays on the domain's device; without input, within the output.
    ///
    /// # Errors
    /// As [`Domain::apply_arrays`].
    #[cfg(feature = "cuda")]
    pub fn apply_on_device(
        &self,
        operator: Operator,
        input: Option<&fft_gpu::DeviceMemory<u8>>,
        output: &mut fft_gpu::DeviceMemory<u8>,
    ) -> Result<(), Error> {
        use fft_gpu::cudarc::driver::DeviceSlice;
        let counts = match input {
            Some(input) => self.modes.components(operator, [input.len(), output.len()])?,
            None => [self.modes.components_in_place(operator, output.len())?; 2],
        };
        let device = self.there()?;
        let applied =
            device.modes.apply(&device.stream, &self.modes, (operator, counts), input, output);
        applied.map_err(|why| self.failed(why))
    }

    /// Multiplies an array on the domain's device, as [`Domain::convolve_arrays`].
    ///
    /// # Errors
    /// As [`Domain::apply_arrays`].
    #[cfg(feature = "cuda")]
    pub fn convolve_on_device(
        &self,
        kernel: &fft_gpu::DeviceMemory<u8>,
        correlate: bool,
        data: &mut fft_gpu::DeviceMemory<u8>,
    ) -> Result<(), Error> {
        use fft_gpu::cudarc::driver::DeviceSlice;
        self.modes.check_kernel([kernel.len(), data.len()])?;
        let device = self.there()?;
        let multiplied = device.modes.multiply(&device.stream, kernel, correlate, data);
        multiplied.map_err(|why| self.failed(why))
    }

    #[cfg(feature = "cuda")]
    fn there(&self) -> Result<&OnDevice, Error> {
        let wrong = || Error::argument("spectrum", "one on a device", "one on the host");
        self.device.as_ref().ok_or_else(wrong)
    }

    /// Checks that an array is on the host, where the domain then is, and has this number of bytes.
    fn check_place(&self, array: &DynArray, bytes: usize) -> Result<(), Error> {
        let there = array.device_address().is_some();
        #[cfg(feature = "cuda")]
        let there = there || self.device.is_some();
        if there {
            let found = "arrays in several places, or not where the domain is";
            return Err(Error::argument("spectra", found, "all on the host or all on its device"));
        }
        let (rank, found) = (self.modes.rank(), array.bytes().len());
        if bytes <= found {
            Ok(())
        } else {
            Err(Error::Length { what: "spectrum", rank, found, expected: bytes })
        }
    }
}

impl fmt::Debug for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Domain({:?})", self.modes)
    }
}
