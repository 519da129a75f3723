//! cuFFT plans. A plan records the bytes that it reads and writes, so that runs check buffers.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::sync::Arc;

use cudarc::cufft::{result, sys};
use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaContext, CudaStream, DevicePtr, DevicePtrMut};
use fft_core::Precision::{self, F32, F64};

use super::block::Block;
use super::rank_memory::RankMemory;
use crate::abi::fft::FftRun::{self, ComplexToReal, Forward, Inverse, RealToComplex};
use crate::abi::fft::{Fft, Many, Span};
use crate::abi::pieces::Cuts;
use crate::base::{Gpu, GpuError, GpuReal, tried};

/// `kernels/scaled.cu`, `kernels/gather.cu` and `kernels/scatter.cu`, which cuFFT links.
static SCALED: &[u8] = include_bytes!("../../kernels/scaled.fatbin");
static GATHER: &[u8] = include_bytes!("../../kernels/gather.fatbin");
static SCATTER: &[u8] = include_bytes!("../../kernels/scatter.fatbin");
/// The first version whose `cufftXtSetJITCallback` has the type [`SetCallback`]: CUDA 13's.
const LINKS: c_int = 12_000;

/// Names and kind of the functions that load complex numbers from [`Cuts`]; f64 only. In single
/// precision cuFFT's kernels lost more by them than a pass takes.
const LOADS: ([&CStr; 3], c_int) = ([c"gather_1_1", c"gather_7_1", c"gather_7_3"], 1);
/// The same for functions that store.
const STORES: ([&CStr; 3], c_int) = ([c"scatter_1_1", c"scatter_7_1", c"scatter_7_3"], 5);

/// `cufftXtSetJITCallback`: plan, name of the function, its code, bytes of that, kind, and data.
type SetCallback = unsafe extern "C" fn(
    sys::cufftHandle,
    *const c_char,
    *const c_void,
    usize,
    c_int,
    *mut *mut c_void,
) -> c_int;

fn plan_type(run: FftRun, precision: Precision) -> sys::cufftType {
    use sys::cufftType_t as t;
    match (run, precision) {
        (Forward | Inverse, F32) => t::CUFFT_C2C,
        (Forward | Inverse, F64) => t::CUFFT_Z2Z,
        (RealToComplex, F32) => t::CUFFT_R2C,
        (RealToComplex, F64) => t::CUFFT_D2Z,
        (ComplexToReal, F32) => t::CUFFT_C2R,
        (ComplexToReal, F64) => t::CUFFT_Z2D,
    }
}

/// The function that stores a number times a factor, and the kind of its callback.
fn scaled_store(precision: Precision, width: usize) -> (&'static CStr, c_int) {
    match (precision, width) {
        (F32, 1) => (c"scaled_f32x1", 6),
        (F32, _) => (c"scaled_f32x2", 4),
        (F64, 1) => (c"scaled_f64x1", 7),
        (F64, _) => (c"scaled_f64x2", 5),
    }
}

fn is_present() -> bool {
    // SAFETY: as in `driver_is_present`, for the library of cuFFT.
    unsafe { sys::is_culib_present() }
}

/// Whether there is a cuFFT that links functions into its kernels.
pub(crate) fn links() -> bool {
    is_present() && result::get_version().is_ok_and(|version| version >= LINKS)
}

/// A function to be linked into cuFFT's kernels: code, name, kind, and the block that it reads.
type Linked<'n> = (&'static [u8], (&'n CStr, c_int), Block);

/// Planned transforms. Buffers are arrays of real numbers; a complex number is two.
///
/// Plans have no work area of their own. One area, as large as the largest need, serves all plans
/// that run one after the other.
pub struct FftPlan<T> {
    plan: sys::cufftHandle,
    context: Arc<CudaContext>,
    run: FftRun,
    /// Bytes that it reads, writes, and works with.
    reads: usize,
    writes: usize,
    work: usize,
    /// The blocks that linked functions read, and their addresses, which cuFFT points to.
    linked: Vec<(Block, Box<CUdeviceptr>)>,
    real: PhantomData<T>,
}

fn fft_tried(what: &'static str) -> impl Fn(result::CufftError) -> GpuError {
    move |why| GpuError::Driver { what, why: why.to_string() }
}

impl<T: GpuReal> FftPlan<T> {
    /// Plans transforms.
    ///
    /// # Errors
    /// [`GpuError::NoCuFft`], [`GpuError::Argument`] for bad sizes, [`GpuError::Driver`].
    pub fn new<const D: usize>(gpu: &Gpu, run: FftRun, fft: &Fft<D>) -> Result<Self, GpuError> {
        let many = fft.many(run)?;
        Self::create(gpu.context(), &many)?.make(&many)
    }

    /// Plans transforms whose results are multiplied by a factor as they are stored.
    ///
    /// `None` if cuFFT cannot link kernels: before version 12 (CUDA 13) and without `nvJitLink`.
    /// [`Scaling`](crate::Scaling) does the same in a separate pass.
    ///
    /// # Errors
    /// As [`FftPlan::new`].
    pub fn scaled<const D: usize>(
        gpu: &Gpu,
        run: FftRun,
        fft: &Fft<D>,
        factor: T,
    ) -> Result<Option<Self>, GpuError> {
        let (context, many) = (gpu.context(), fft.many(run)?);
        if !links() {
            return Ok(None);
        }
        let block = Block::new(context, size_of::<T>())?;
        block.write(&context.default_stream(), [(0, bytemuck::bytes_of(&factor))])?;
        let store = scaled_store(T::PRECISION, many.sides[1].width);
        // SAFETY: the functions read one number of this type from their block.
        unsafe { Self::with_linked(context, &many, [Some((SCALED, store, block))]) }
    }

    /// Plans transforms that load elements, and may store results, at the places in tables. `None`
    /// if cuFFT cannot do this, and in single precision.
    ///
    /// # Safety
    /// The blocks hold tables of `kernels/pieces.cuh` with at most these cuts, for an array of as
    /// many elements as the plan's, whenever it runs. The memory that they name is accessible until
    /// the run is done.
    pub(super) unsafe fn gathering<const D: usize>(
        context: &Arc<CudaContext>,
        many: &Many<D>,
        (from, cuts): (Block, Cuts),
        to: Option<(Block, Cuts)>,
    ) -> Result<Option<Self>, GpuError> {
        if T::PRECISION == F32 || !links() {
            return Ok(None);
        }
        let of = |(names, kind): ([&'static CStr; 3], _), cuts| (names[cuts as usize], kind);
        let load = (GATHER, of(LOADS, cuts), from);
        let store = to.map(|(block, cuts)| (SCATTER, of(STORES, cuts), block));
        // SAFETY: the caller's.
        unsafe { Self::with_linked(context, many, [Some(load), store]) }
    }

    /// The blocks that linked functions read, in the order in which they were linked.
    pub(super) fn linked_blocks(&self) -> impl ExactSizeIterator<Item = &Block> {
        self.linked.iter().map(|(block, _)| block)
    }

    fn create<const D: usize>(
        context: &Arc<CudaContext>,
        many: &Many<D>,
    ) -> Result<Self, GpuError> {
        if !is_present() {
            return Err(GpuError::NoCuFft);
        }
        context.bind_to_thread().map_err(tried("choosing a device"))?;
        let bytes = |side: &Span<D>| {
            let elements = side.reach(many.batch).ok_or_else(|| {
                GpuError::argument("the array of a transform", "more", "less than 2^58 elements")
            })?;
            Ok::<_, GpuError>(elements * side.width * size_of::<T>())
        };
        let (reads, writes) = (bytes(&many.sides[0])?, bytes(&many.sides[1])?);
        let plan = result::create().map_err(fft_tried("planning a transform"))?;
        let (context, run, linked) = (context.clone(), many.run, Vec::new());
        Ok(Self { plan, context, run, reads, writes, work: 0, linked, real: PhantomData })
    }

    /// Plans transforms with functions that cuFFT links into its kernels. `None` if cuFFT refuses
    /// one, or does not find `nvJitLink` in its version.
    ///
    /// # Safety
    /// Each code has that function, which reads within its block, or what the block says.
    unsafe fn with_linked<'n, const D: usize>(
        context: &Arc<CudaContext>,
        many: &Many<D>,
        functions: impl IntoIterator<Item = Option<Linked<'n>>>,
    ) -> Result<Option<Self>, GpuError> {
        let mut handle = Self::create(context, many)?;
        for (code, (name, kind), block) in functions.into_iter().flatten() {
            let mut address = Box::new(block.address());
            let at = (&raw mut *address).cast::<*mut c_void>();
            handle.linked.push((block, address));
            // SAFETY: the type is declared as in CUDA 13's header, which later versions keep. The
            // plan is created and not made yet. The code is static; block and address, which has
            // the size of a pointer, live as long as the plan. The caller vouches for the function.
            let set = unsafe {
                sys::culib().get::<SetCallback>(b"cufftXtSetJITCallback\0").map(|set| {
                    set(handle.plan, name.as_ptr(), code.as_ptr().cast(), code.len(), kind, at)
                })
            };
            if !matches!(set, Ok(0)) {
                return Ok(None);
            }
        }
        Ok(handle.make(many).ok())
    }

    fn make<const D: usize>(mut self, many: &Many<D>) -> Result<Self, GpuError> {
        let failed = fft_tried("planning a transform");
        let [input, output] = &many.sides;
        let long = |lens: &[usize; D]| lens.map(|n| n as i64);
        let (mut n, mut from, mut to) = (long(&many.n), long(&input.embed), long(&output.embed));
        // SAFETY: the plan is created and not made, and each array has `D` numbers.
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
                plan_type(self.run, T::PRECISION),
                many.batch as i64,
            )
            .map_err(&failed)?
        };
        Ok(self)
    }

    /// Bytes of the work area that runs need.
    pub fn work_bytes(&self) -> usize {
        self.work
    }

    /// Queues the transforms, from one array to another.
    ///
    /// [`FftRun::ComplexToReal`] overwrites the source.
    ///
    /// # Errors
    /// [`GpuError::Short`], [`GpuError::Argument`] for buffers not aligned to complex numbers,
    /// [`GpuError::Driver`].
    pub fn run(
        &mut self,
        stream: &CudaStream,
        src: &impl DevicePtr<T>,
        dst: &mut impl DevicePtrMut<T>,
        work: &mut impl DevicePtrMut<u8>,
    ) -> Result<(), GpuError> {
        let (found, space) = (src.num_bytes(), dst.num_bytes());
        let (src, _reads) = src.device_ptr(stream);
        let (dst, _writes) = dst.device_ptr_mut(stream);
        self.exec(stream, (src, found), (dst, space), work)
    }

    /// Queues the transforms in place. Both sides should have the same layout.
    ///
    /// # Errors
    /// As [`FftPlan::run`].
    pub fn run_in_place(
        &mut self,
        stream: &CudaStream,
        data: &mut impl DevicePtrMut<T>,
        work: &mut impl DevicePtrMut<u8>,
    ) -> Result<(), GpuError> {
        let bytes = data.num_bytes();
        let (data, _writes) = data.device_ptr_mut(stream);
        self.exec(stream, (data, bytes), (data, bytes), work)
    }

    /// Runs it in place on this memory.
    ///
    /// # Safety
    /// The plan has tables for loads and stores, and leaves this memory alone; or nobody else
    /// accesses the memory until the run is done.
    pub(super) unsafe fn run_at(
        &mut self,
        stream: &CudaStream,
        memory: RankMemory<'_>,
        work: &mut impl DevicePtrMut<u8>,
    ) -> Result<(), GpuError> {
        let data = (memory.at, memory.bytes);
        self.exec(stream, data, data, work)
    }

    fn exec(
        &mut self,
        stream: &CudaStream,
        src: (CUdeviceptr, usize),
        dst: (CUdeviceptr, usize),
        work: &mut impl DevicePtrMut<u8>,
    ) -> Result<(), GpuError> {
        let room = work.num_bytes();
        let (work, _work) = work.device_ptr_mut(stream);
        // cuFFT accesses real numbers as complex ones.
        let align = 2 * size_of::<T>();
        for (what, (pointer, found), expected, align) in [
            ("the source", src, self.reads, align),
            ("the destination", dst, self.writes, align),
            ("the work area", (work, room), self.work, 1),
        ] {
            GpuError::at_least(what, found, expected)?;
            GpuError::aligned(what, pointer, align)?;
        }
        self.context.bind_to_thread().map_err(tried("choosing a device"))?;
        let failed = fft_tried("running a transform");
        // SAFETY: the plan lives and is borrowed mutably. The buffers are as long as it needs and
        // aligned; their guards outlive the launch, or the caller of `run_at` vouches for them.
        unsafe {
            result::set_stream(self.plan, stream.cu_stream() as sys::cudaStream_t)
                .map_err(&failed)?;
            result::set_work_area(self.plan, work as *mut c_void).map_err(&failed)?;
            self.launch(src.0, dst.0).map_err(&failed)
        }
    }

    /// Queues the plan.
    ///
    /// # Safety
    /// It has its stream and work area, and the addresses are of aligned memory that is as long as
    /// the plan reads and writes.
    unsafe fn launch(&self, src: CUdeviceptr, dst: CUdeviceptr) -> Result<(), result::CufftError> {
        let Self { plan, run, .. } = *self;
        let sign = if run == Inverse { 1 } else { -1 };
        // SAFETY: the plan is of this kind and precision; the caller vouches for the rest.
        unsafe {
            match (run, T::PRECISION) {
                (Forward | Inverse, F32) => result::exec_c2c(plan, src as _, dst as _, sign),
                (Forward | Inverse, F64) => result::exec_z2z(plan, src as _, dst as _, sign),
                (RealToComplex, F32) => result::exec_r2c(plan, src as _, dst as _),
                (RealToComplex, F64) => result::exec_d2z(plan, src as _, dst as _),
                (ComplexToReal, F32) => result::exec_c2r(plan, src as _, dst as _),
                (ComplexToReal, F64) => result::exec_z2d(plan, src as _, dst as _),
            }
        }
    }
}

impl<T> Drop for FftPlan<T> {
    fn drop(&mut self) {
        // SAFETY: the plan is destroyed once. Its runs end before its tables are freed, because
        // freeing device memory waits for them. A failure cannot be reported.
        let _ = self.context.bind_to_thread().map(|()| unsafe { result::destroy(self.plan) });
    }
}
