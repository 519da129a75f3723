//! cuFFT plans. What a plan reads and writes is computed with it, so that running it checks lengths and is safe.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Arc;

use bytemuck::Pod;
use cudarc::cufft::{result, sys};
use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaContext, CudaStream, DevicePtr, DevicePtrMut};

use super::memory::Block;
use super::peer_get::Place;
use super::tried;
use crate::abi::pieces::Cuts;
use crate::base::GpuError;

/// `kernels/scaled.cu`, `kernels/gather.cu` and `kernels/scatter.cu`, for cuFFT to link.
static SCALED: &[u8] = include_bytes!("../../kernels/scaled.fatbin");
static GATHER: &[u8] = include_bytes!("../../kernels/gather.fatbin");
static SCATTER: &[u8] = include_bytes!("../../kernels/scatter.fatbin");
/// The first version in which `cufftXtSetJITCallback` takes what [`SetCallback`] says: that of CUDA 13.
const LINKS: c_int = 12_000;

/// `cufftXtSetJITCallback`: the plan, the function's name, its code and how long that is, what it is called for, and what it is told.
type SetCallback = unsafe extern "C" fn(
    sys::cufftHandle,
    *const c_char,
    *const c_void,
    usize,
    c_int,
    *mut *mut c_void,
) -> c_int;

/// What cuFFT calls a real number's transforms.
pub trait FftReal: Sized {
    /// The types of plans: complex, real to complex, complex to real.
    #[doc(hidden)]
    const TYPES: [sys::cufftType; 3];

    /// The functions that store a real number and a complex one times a factor, and what cuFFT calls their kinds
    /// (`cufftXtCallbackType`).
    #[doc(hidden)]
    const STORES: [(&CStr, c_int); 2];

    /// The functions that load and store a complex number where a table says, for few cuts to many ([`Cuts`]), and their kinds. With one in
    /// single precision cuFFT's kernels lost more than a pass takes, so there is none.
    #[doc(hidden)]
    const PIECEWISE: Option<[([&CStr; 3], c_int); 2]>;

    /// Runs a plan of the given one of these types.
    ///
    /// # Safety
    /// The plan is of this type, has its stream and work area, and reads and writes within memory that starts at the two
    /// addresses, aligned to complex numbers where they are complex.
    #[doc(hidden)]
    unsafe fn exec(
        plan: sys::cufftHandle,
        run: Run,
        src: CUdeviceptr,
        dst: CUdeviceptr,
    ) -> Result<(), result::CufftError>;
}

/// What a plan does.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// Complex to complex, with exp(-2πi jk/n).
    Forward,
    /// Complex to complex, with exp(2πi jk/n).
    Inverse,
    /// Real to complex.
    RealToComplex,
    /// Complex to real.
    ComplexToReal,
}

impl Run {
    /// Which of [`FftReal::TYPES`].
    fn type_of(self) -> usize {
        match self {
            Self::Forward | Self::Inverse => 0,
            Self::RealToComplex => 1,
            Self::ComplexToReal => 2,
        }
    }
}

const FORWARD: i32 = -1;
const INVERSE: i32 = 1;

macro_rules! fft_real {
    ($real:ty, $types:expr, $stores:expr, $piecewise:expr, $c2c:ident, $r2c:ident, $c2r:ident) => {
        impl FftReal for $real {
            const TYPES: [sys::cufftType; 3] = $types;
            const STORES: [(&CStr, c_int); 2] = $stores;
            const PIECEWISE: Option<[([&CStr; 3], c_int); 2]> = $piecewise;

            unsafe fn exec(
                plan: sys::cufftHandle,
                run: Run,
                src: CUdeviceptr,
                dst: CUdeviceptr,
            ) -> Result<(), result::CufftError> {
                // SAFETY: what the caller promises is what cuFFT asks for.
                unsafe {
                    match run {
                        Run::Forward => result::$c2c(plan, src as *mut _, dst as *mut _, FORWARD),
                        Run::Inverse => result::$c2c(plan, src as *mut _, dst as *mut _, INVERSE),
                        Run::RealToComplex => result::$r2c(plan, src as *mut _, dst as *mut _),
                        Run::ComplexToReal => result::$c2r(plan, src as *mut _, dst as *mut _),
                    }
                }
            }
        }
    };
}

use sys::cufftType_t as t;
fft_real!(
    f32,
    [t::CUFFT_C2C, t::CUFFT_R2C, t::CUFFT_C2R],
    [(c"scaled_f32x1", 6), (c"scaled_f32x2", 4)],
    None,
    exec_c2c,
    exec_r2c,
    exec_c2r
);
fft_real!(
    f64,
    [t::CUFFT_Z2Z, t::CUFFT_D2Z, t::CUFFT_Z2D],
    [(c"scaled_f64x1", 7), (c"scaled_f64x2", 5)],
    Some([
        ([c"gather_1_1", c"gather_7_1", c"gather_7_3"], 1),
        ([c"scatter_1_1", c"scatter_7_1", c"scatter_7_3"], 5)
    ]),
    exec_z2z,
    exec_d2z,
    exec_z2d
);

/// One side of a plan, in elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Span<const D: usize> {
    /// Points that are there along each axis.
    pub(crate) lens: [usize; D],
    /// Points from one index of an axis to the next of the one before, as if they were there.
    pub(crate) embed: [usize; D],
    pub(crate) stride: usize,
    pub(crate) distance: usize,
    /// Real numbers of an element.
    pub(crate) width: usize,
}

impl<const D: usize> Span<D> {
    /// One more than the last element of so many transforms; nothing if that cannot be counted.
    pub(crate) fn reach(&self, batch: usize) -> Option<usize> {
        let (mut last, mut stride) = ((batch - 1).checked_mul(self.distance)?, self.stride);
        for axis in (0..D).rev() {
            last = last.checked_add((self.lens[axis] - 1).checked_mul(stride)?)?;
            stride = stride.checked_mul(self.embed[axis])?;
        }
        last.checked_add(1).filter(|reach| *reach < 1 << 58)
    }
}

/// So many transforms of these lengths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Many<const D: usize> {
    pub(crate) run: Run,
    pub(crate) n: [usize; D],
    pub(crate) batch: usize,
    /// Before and after.
    pub(crate) sides: [Span<D>; 2],
}

/// Whether there is a cuFFT that links functions into its kernels.
pub(crate) fn links() -> bool {
    // SAFETY: as in `driver_is_present`, for the library of cuFFT.
    let present = unsafe { sys::is_culib_present() };
    present && result::get_version().is_ok_and(|version| version >= LINKS)
}

/// A cuFFT plan with no work area of its own.
pub(crate) struct Handle {
    plan: sys::cufftHandle,
    context: Arc<CudaContext>,
    /// Of [`FftReal::TYPES`], and bytes of a real number.
    type_of: usize,
    real: usize,
    /// Bytes that it reads, writes, and works with.
    reads: usize,
    writes: usize,
    work: usize,
    /// What each function linked into cuFFT's kernels reads, and where that is, as cuFFT was told.
    told: Vec<(Block, Box<CUdeviceptr>)>,
}

fn fft_tried(what: &'static str) -> impl Fn(result::CufftError) -> GpuError {
    move |why| GpuError::Driver { what, why: why.to_string() }
}

impl Handle {
    /// Plans transforms.
    pub(crate) fn new<T: FftReal, const D: usize>(
        context: &Arc<CudaContext>,
        many: &Many<D>,
    ) -> Result<Self, GpuError> {
        Self::create::<T, D>(context, many)?.make::<T, D>(many)
    }

    /// The same with results times a factor; `None` where cuFFT has no such plan.
    pub(crate) fn scaled<T: FftReal + Pod, const D: usize>(
        context: &Arc<CudaContext>,
        many: &Many<D>,
        factor: T,
    ) -> Result<Option<Self>, GpuError> {
        if !links() {
            return Ok(None);
        }
        let block = Block::new(context, size_of::<T>())?;
        block.write(&context.default_stream(), 0, bytemuck::bytes_of(&factor))?;
        let store = T::STORES[many.sides[1].width - 1];
        // SAFETY: the functions read one number of this type from what they are told.
        unsafe { Self::linked::<T, D>(context, many, [Some((SCALED, store, block))]) }
    }

    /// The same with elements loaded from where a table says, and stored where another does if there is one; tables are uploaded before it is
    /// run. `None` where cuFFT has no such plan.
    ///
    /// # Safety
    /// The tables in the blocks are those of `kernels/pieces.cuh`, with no more cuts than are told, for an array of as many elements as the
    /// plan reads and writes. Whenever it is run, what the first names can be read and what the second names written until that is done.
    pub(super) unsafe fn gathering<T: FftReal, const D: usize>(
        context: &Arc<CudaContext>,
        many: &Many<D>,
        (from, cuts): (Block, Cuts),
        to: Option<(Block, Cuts)>,
    ) -> Result<Option<Self>, GpuError> {
        let Some([loads, stores]) = T::PIECEWISE.filter(|_| links()) else { return Ok(None) };
        let of = |(names, kind): ([&'static CStr; 3], _), cuts| (names[cuts as usize], kind);
        let load = (GATHER, of(loads, cuts), from);
        let store = to.map(|(block, cuts)| (SCATTER, of(stores, cuts), block));
        // SAFETY: what the caller promises.
        unsafe { Self::linked::<T, D>(context, many, [Some(load), store]) }
    }

    /// What the functions linked into it read, in the order in which they were.
    pub(super) fn told(&self) -> impl ExactSizeIterator<Item = &Block> {
        self.told.iter().map(|(block, _)| block)
    }

    fn create<T: FftReal, const D: usize>(
        context: &Arc<CudaContext>,
        many: &Many<D>,
    ) -> Result<Self, GpuError> {
        // SAFETY: as in `driver_is_present`, for the library of cuFFT.
        if !unsafe { sys::is_culib_present() } {
            return Err(GpuError::NoCuFft);
        }
        context.bind_to_thread().map_err(tried("choosing a device"))?;
        let bytes = |side: &Span<D>| {
            let elements = side.reach(many.batch).ok_or(GpuError::TooLarge {
                what: "the array of a transform",
                found: usize::MAX,
                expected: (1 << 58) - 1,
            })?;
            Ok::<_, GpuError>(elements * side.width * size_of::<T>())
        };
        let (reads, writes) = (bytes(&many.sides[0])?, bytes(&many.sides[1])?);
        let plan = result::create().map_err(fft_tried("planning a transform"))?;
        let (context, type_of, real) = (context.clone(), many.run.type_of(), size_of::<T>());
        Ok(Self { plan, context, type_of, real, reads, writes, work: 0, told: Vec::new() })
    }

    /// Plans transforms with functions that cuFFT, which [`links`], links into its kernels: each of a code and name, for loads or stores of
    /// this kind, with what it is told. `None` where cuFFT does not take that, or does not find what links, or not in the version that it wants.
    ///
    /// # Safety
    /// Each code has that function, which reads what it is told within the block, or what the block says.
    unsafe fn linked<'n, T: FftReal, const D: usize>(
        context: &Arc<CudaContext>,
        many: &Many<D>,
        functions: impl IntoIterator<Item = Option<(&'static [u8], (&'n CStr, c_int), Block)>>,
    ) -> Result<Option<Self>, GpuError> {
        let mut handle = Self::create::<T, D>(context, many)?;
        for (code, (name, kind), block) in functions.into_iter().flatten() {
            let mut told = Box::new(block.address());
            let at = (&raw mut *told).cast::<*mut c_void>();
            handle.told.push((block, told));
            // SAFETY: the type is that of CUDA 13's header, which later versions keep. The plan has been created, and is not made yet.
            // The code is there for good. Block and address, which is as long as a pointer, stay where they are as long as the plan.
            // Of the function the caller promises.
            let set = unsafe {
                sys::culib().get::<SetCallback>(b"cufftXtSetJITCallback\0").map(|set| {
                    set(handle.plan, name.as_ptr(), code.as_ptr().cast(), code.len(), kind, at)
                })
            };
            if !matches!(set, Ok(0)) {
                return Ok(None);
            }
        }
        Ok(handle.make::<T, D>(many).ok())
    }

    fn make<T: FftReal, const D: usize>(mut self, many: &Many<D>) -> Result<Self, GpuError> {
        let failed = fft_tried("planning a transform");
        let [input, output] = &many.sides;
        let long = |lens: &[usize; D]| lens.map(|n| n as i64);
        let (mut n, mut from, mut to) = (long(&many.n), long(&input.embed), long(&output.embed));
        // SAFETY: the plan has been created and not been made, and the three arrays have as many numbers as the rank says.
        self.work = unsafe {
            result::set_auto_allocation(self.plan, false).map_err(&failed)?;
            result::make_plan_many64(
                self.plan,
                D as i32,
                n.as_mut_ptr(),
                from.as_mut_ptr(),
                input.stride as i64,
                input.distance as i64,
                to.as_mut_ptr(),
                output.stride as i64,
                output.distance as i64,
                T::TYPES[many.run.type_of()],
                many.batch as i64,
            )
            .map_err(&failed)?
        };
        Ok(self)
    }

    /// Bytes of the work area that it needs.
    pub(crate) fn work(&self) -> usize {
        self.work
    }

    /// Runs it from one buffer to another.
    pub(crate) fn run<T: FftReal>(
        &mut self,
        run: Run,
        stream: &CudaStream,
        src: &impl DevicePtr<T>,
        dst: &mut impl DevicePtrMut<T>,
        work: &mut impl DevicePtrMut<u8>,
    ) -> Result<(), GpuError> {
        let (found, space) = (src.num_bytes(), dst.num_bytes());
        let (src, _reads) = src.device_ptr(stream);
        let (dst, _writes) = dst.device_ptr_mut(stream);
        self.exec::<T>(run, stream, (src, found), (dst, space), work)
    }

    /// Runs it in place.
    pub(crate) fn run_in_place<T: FftReal>(
        &mut self,
        run: Run,
        stream: &CudaStream,
        data: &mut impl DevicePtrMut<T>,
        work: &mut impl DevicePtrMut<u8>,
    ) -> Result<(), GpuError> {
        let bytes = data.num_bytes();
        let (data, _writes) = data.device_ptr_mut(stream);
        self.exec::<T>(run, stream, (data, bytes), (data, bytes), work)
    }

    /// Runs it in place there.
    ///
    /// # Safety
    /// The plan has tables for what it reads and for what it writes, and leaves this memory alone; or nobody else reads or writes it
    /// until what is queued now is done.
    pub(super) unsafe fn run_at<T: FftReal>(
        &mut self,
        run: Run,
        stream: &CudaStream,
        place: Place<'_>,
        work: &mut impl DevicePtrMut<u8>,
    ) -> Result<(), GpuError> {
        let data = (place.address(), place.bytes());
        self.exec::<T>(run, stream, data, data, work)
    }

    fn exec<T: FftReal>(
        &mut self,
        run: Run,
        stream: &CudaStream,
        src: (CUdeviceptr, usize),
        dst: (CUdeviceptr, usize),
        work: &mut impl DevicePtrMut<u8>,
    ) -> Result<(), GpuError> {
        assert!(
            self.type_of == run.type_of() && self.real == size_of::<T>(),
            "a plan of another kind"
        );
        let room = work.num_bytes();
        let (work, _work) = work.device_ptr_mut(stream);
        // Real numbers as complex ones.
        let align = 2 * self.real;
        for (what, (pointer, found), expected, align) in [
            ("the source", src, self.reads, align),
            ("the destination", dst, self.writes, align),
            ("the work area", (work, room), self.work, 1),
        ] {
            if found < expected {
                return Err(GpuError::Short { what, found, expected });
            }
            if !pointer.is_multiple_of(align as u64) {
                return Err(GpuError::Unaligned { what, found: pointer, expected: align });
            }
        }
        self.context.bind_to_thread().map_err(tried("choosing a device"))?;
        let failed = fft_tried("running a transform");
        // SAFETY: the plan lives, and nobody else uses it meanwhile, as it is borrowed for writing. It is of this kind and
        // precision. What it reads, writes and works with is inside the buffers, whose guards outlive the launch, or which the
        // caller of `run_at` vouches for.
        unsafe {
            result::set_stream(self.plan, stream.cu_stream() as sys::cudaStream_t)
                .map_err(&failed)?;
            result::set_work_area(self.plan, work as *mut c_void).map_err(&failed)?;
            T::exec(self.plan, run, src.0, dst.0).map_err(&failed)
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the plan was created by `create` and is destroyed once. What it has launched is done before its tables go, as
        // freeing memory of the device waits for it. There is nobody to tell of a failure.
        let _ = self.context.bind_to_thread().map(|()| unsafe { result::destroy(self.plan) });
    }
}
