//! Launches of kernels. What a kernel reads and writes is known from its batch, so that each function here checks the
//! lengths of the buffers and is safe to call.

use std::ffi::c_void;
use std::ptr::null_mut;

use cudarc::driver::sys::{self, CUdeviceptr};
use cudarc::driver::{
    CudaStream, DevicePtr, DevicePtrMut, DeviceRepr, DeviceSlice, DriverError, LaunchConfig,
    PushKernelArg,
};

use fft_core::{DIMS, Transfer};

use super::memory::DeviceMemory;
use super::modules::{Kernel, THREADS, blocks};
use super::pinned::Pinned;
use super::tried;
use crate::abi::batch::{Batch, Reach};
use crate::base::{GpuError, GpuReal};
use crate::device::LinesRecord;
use crate::kernel::decoder::DecodeArguments;
use crate::kernel::encoder::{EncodeArguments, Raw};
use crate::kernel::modes::ModesRecord;

/// `Batch` of `kernels/box.cuh`.
#[derive(Clone, Copy)]
#[repr(C)]
struct BatchRecord {
    items: CUdeviceptr,
    list: CUdeviceptr,
    firsts: CUdeviceptr,
    count: u32,
    tiles: u32,
}

/// Tiles of a message that are counted together: `SERIES` of `kernels/places.cuh`.
const SERIES: usize = 64;

/// `Queue` of `kernels/places.cuh`.
#[repr(C)]
struct QueueRecord {
    words: CUdeviceptr,
    series: CUdeviceptr,
}

impl QueueRecord {
    /// Where series begin in the memory of a queue, in words: what is before them, and whole pairs.
    fn series(tiles: usize) -> usize {
        (tiles + 1).next_multiple_of(2)
    }

    /// That of a batch, in memory of [`queue_words`].
    fn of(batch: &Batch, words: CUdeviceptr) -> Self {
        Self { words, series: words + (size_of::<u64>() * Self::series(batch.tiles())) as u64 }
    }
}

/// Words of memory of a queue: one, one for each tile, and two for each series, of which an item's begin with number
/// `first / SERIES + item`.
pub(crate) fn queue_words(batch: &Batch) -> usize {
    QueueRecord::series(batch.tiles()) + 2 * (batch.tiles() / SERIES + batch.count() + 1)
}

/// `Job` of `kernels/job.cuh`.
#[repr(C)]
struct EncodeJob {
    batch: BatchRecord,
    src: CUdeviceptr,
    messages: CUdeviceptr,
    states: CUdeviceptr,
    errors: CUdeviceptr,
    bits: u32,
    part: f64,
    step: f64,
    inverse: f64,
    queue: QueueRecord,
}

/// `Rest` of `kernels/settle.cu`.
#[repr(C)]
struct SettleJob {
    batch: BatchRecord,
    src: CUdeviceptr,
    messages: CUdeviceptr,
    states: CUdeviceptr,
    errors: CUdeviceptr,
    step: f64,
    raw: u32,
}

/// `Job` of `kernels/decode.cu`.
#[repr(C)]
struct DecodeJob {
    batch: BatchRecord,
    messages: CUdeviceptr,
    dst: CUdeviceptr,
    states: CUdeviceptr,
    lengths: CUdeviceptr,
    bits: u32,
    begins: CUdeviceptr,
    queue: QueueRecord,
    groups: CUdeviceptr,
}

// SAFETY: plain data without references, laid out as C lays out the struct of the same fields in the kernels.
unsafe impl DeviceRepr for BatchRecord {}
// SAFETY: as for `BatchRecord`.
unsafe impl DeviceRepr for EncodeJob {}
// SAFETY: as for `BatchRecord`.
unsafe impl DeviceRepr for SettleJob {}
// SAFETY: as for `BatchRecord`.
unsafe impl DeviceRepr for DecodeJob {}
// SAFETY: as for `BatchRecord`; it is the `Lines` of `kernels/trig.cu`.
unsafe impl DeviceRepr for LinesRecord {}
// SAFETY: as for `BatchRecord`; it is the `Modes` of `kernels/spectral.cu`.
unsafe impl DeviceRepr for ModesRecord {}

/// Makes sure that what a kernel accesses of a buffer is there, and aligned.
fn check(
    what: &'static str,
    (pointer, found): (CUdeviceptr, usize),
    reach: Reach,
) -> Result<(), GpuError> {
    if found < reach.bytes {
        return Err(GpuError::Short { what, found, expected: reach.bytes });
    }
    if reach.bytes > 0 && !pointer.is_multiple_of(reach.align as u64) {
        return Err(GpuError::Unaligned { what, found: pointer, expected: reach.align });
    }
    Ok(())
}

/// Copies boxes.
pub(crate) fn run_transfer<S, D>(
    stream: &CudaStream,
    kernel: &Kernel,
    batch: &Batch,
    src: &impl DevicePtr<S>,
    dst: &mut impl DevicePtrMut<D>,
) -> Result<(), GpuError> {
    let (found, space) = (src.num_bytes(), dst.num_bytes());
    let (src, _reads) = src.device_ptr(stream);
    let (dst, _writes) = dst.device_ptr_mut(stream);
    check("the source", (src, found), batch.reads())?;
    check("the destination", (dst, space), batch.writes())?;
    if batch.tiles() == 0 {
        return Ok(());
    }
    let (items, _items) = batch.items().device_ptr(stream);
    let (list, _list) = batch.list().device_ptr(stream);
    let (firsts, _firsts) = batch.firsts().device_ptr(stream);
    let record = record(batch, items, (list, firsts));
    let mut launch = stream.launch_builder(&kernel.function);
    launch.arg(&record).arg(&src).arg(&dst);
    // SAFETY: the arguments are those of `transfer_*`. It reads and writes only what the boxes of the batch cover, which
    // `check` found in the buffers, and the descriptors, which the batch owns and nobody changes. The guards of the pointers
    // outlive the launch, so that the buffers' next users wait for it.
    unsafe { launch.launch(blocks(batch.tiles())) }.map_err(tried("launching a transfer"))?;
    Ok(())
}

/// Copies boxes whose sources are told as addresses.
///
/// # Safety
/// Beyond what [`run_transfer`] checks of the destination: what the boxes read may be read until the launch is done.
pub(super) unsafe fn run_pull<T>(
    stream: &CudaStream,
    kernel: &Kernel,
    batch: &Batch,
    dst: &mut DeviceMemory<T>,
) -> Result<(), GpuError> {
    // SAFETY: it goes to this launch alone, of which the caller says that.
    let everywhere = unsafe { DeviceMemory::<u8>::everywhere(dst.stream()) };
    run_transfer::<u8, T>(stream, kernel, batch, &everywhere, dst)
}

fn record(
    batch: &Batch,
    items: CUdeviceptr,
    (list, firsts): (CUdeviceptr, CUdeviceptr),
) -> BatchRecord {
    BatchRecord { items, list, firsts, count: batch.count() as u32, tiles: batch.tiles() as u32 }
}

/// Makes messages: both kernels, of which the second begins while the first ends.
pub(crate) fn run_encode<T: GpuReal>(
    stream: &CudaStream,
    (encode, settle): (&Kernel, &Kernel),
    arguments: EncodeArguments<'_>,
    src: &impl DevicePtr<T>,
    messages: &mut impl DevicePtrMut<u8>,
) -> Result<(), GpuError> {
    let EncodeArguments { batch, states, errors, queue, bits, part, step, raw } = arguments;
    let (found, space) = (src.num_bytes(), messages.num_bytes());
    let (src, _reads) = src.device_ptr(stream);
    let (messages, _writes) = messages.device_ptr_mut(stream);
    check("the source", (src, found), batch.reads())?;
    check("the memory of messages", (messages, space), batch.writes())?;
    let (items, _items) = batch.items().device_ptr(stream);
    let (list, _list) = batch.list().device_ptr(stream);
    let (firsts, _firsts) = batch.firsts().device_ptr(stream);
    let (states, _states) = states.device_ptr_mut(stream);
    let (errors, _errors) = errors.device_ptr_mut(stream);
    let (queue, _queue) = queue.device_ptr_mut(stream);
    let queue = QueueRecord::of(batch, queue);
    let batch_record = record(batch, items, (list, firsts));
    if batch.tiles() > 0 && raw != Raw::All {
        let batch = batch_record;
        let inverse = 1.0 / step;
        let job =
            EncodeJob { batch, src, messages, states, errors, bits, part, step, inverse, queue };
        let mut launch = stream.launch_builder(&encode.function);
        launch.arg(&job);
        // SAFETY: the argument is that of `encode_*`. It reads the boxes of the batch, and of messages that shrink it writes at
        // most what is fixed of them, or of those that vary what their room is: `check` found both in the buffers. States and
        // errors have an entry for each message and one more, and for each tile, and the queue has `queue_words`, as the encoder
        // made them with the batch. The guards outlive the launch.
        unsafe { launch.launch(encode.grid(batch_record.tiles as usize)) }
            .map_err(tried("launching an encoder"))?;
    }
    let work = if raw == Raw::None { batch.count() } else { batch.tiles().max(batch.count()) };
    let raw = raw as u32;
    let job = SettleJob { batch: batch_record, src, messages, states, errors, step, raw };
    // SAFETY: as above, for `settle_*`, which writes headers of messages that shrink, and numbers of others, which are their room. Before
    // it waits for the encoder it reads nothing but descriptors, which only copies have written.
    unsafe { launch_early(stream, settle, work, job) }
        .map_err(tried("launching the end of an encoder"))?;
    Ok(())
}

/// Launches a kernel that may begin while the one before it on the stream is not done, where the device can do that: it is there by the
/// time that is, some microseconds earlier.
///
/// # Safety
/// As any launch with this argument; and all blocks of the kernel must wait themselves (`await_last` of `kernels/ptx.cuh`) before they read
/// or write what kernels before it on the stream write or read, and before they end.
unsafe fn launch_early<Job: DeviceRepr>(
    stream: &CudaStream,
    kernel: &Kernel,
    work: usize,
    mut job: Job,
) -> Result<(), DriverError> {
    let grid = kernel.grid(work);
    if !kernel.card.overlaps {
        let mut launch = stream.launch_builder(&kernel.function);
        launch.arg(&job);
        // SAFETY: the caller's.
        return unsafe { launch.launch(grid) }.map(|_| ());
    }
    let LaunchConfig { grid_dim, block_dim, shared_mem_bytes } = grid;
    let mut early = sys::CUlaunchAttribute {
        id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
        pad: [0; 4],
        value: sys::CUlaunchAttributeValue { programmaticStreamSerializationAllowed: 1 },
    };
    let config = sys::CUlaunchConfig {
        gridDimX: grid_dim.0,
        gridDimY: grid_dim.1,
        gridDimZ: grid_dim.2,
        blockDimX: block_dim.0,
        blockDimY: block_dim.1,
        blockDimZ: block_dim.2,
        sharedMemBytes: shared_mem_bytes,
        hStream: stream.cu_stream(),
        attrs: &raw mut early,
        numAttrs: 1,
    };
    let mut arguments = [(&raw mut job).cast::<c_void>()];
    stream.context().bind_to_thread()?;
    let function = kernel.function.cu_function();
    // SAFETY: the caller's; attribute and argument live until the call returns, by when the driver has copied them.
    unsafe { sys::cuLaunchKernelEx(&config, function, arguments.as_mut_ptr(), null_mut()) }.result()
}

/// Reads messages.
pub(crate) fn run_decode<T: GpuReal>(
    stream: &CudaStream,
    kernel: &Kernel,
    told: DecodeArguments<'_>,
    messages: &impl DevicePtr<u8>,
    dst: &mut impl DevicePtrMut<T>,
) -> Result<(), GpuError> {
    let DecodeArguments { batch, states, queue, measure, begins, groups, lengths, bits } = told;
    let (found, space) = (messages.num_bytes(), dst.num_bytes());
    let (messages, _reads) = messages.device_ptr(stream);
    let (dst, _writes) = dst.device_ptr_mut(stream);
    check("the memory of messages", (messages, found), batch.reads())?;
    check("the destination", (dst, space), batch.writes())?;
    if batch.tiles() == 0 {
        return Ok(());
    }
    let (items, _items) = batch.items().device_ptr(stream);
    let (list, _list) = batch.list().device_ptr(stream);
    let (firsts, _firsts) = batch.firsts().device_ptr(stream);
    let (states, _states) = states.device_ptr_mut(stream);
    let (queue, _queue) = queue.device_ptr_mut(stream);
    let (begins, _begins) = begins.device_ptr_mut(stream);
    let (lengths, _lengths) = lengths.device_ptr(stream);
    let (groups, _groups) = groups.map(|groups| groups.device_ptr_mut(stream)).unzip();
    let job = DecodeJob {
        batch: record(batch, items, (list, firsts)),
        messages,
        dst,
        states,
        lengths,
        bits,
        begins,
        queue: QueueRecord::of(batch, queue),
        groups: groups.unwrap_or_default(),
    };
    // A block measures a tile with each of its threads.
    let measure = measure.map(|kernel| (kernel, batch.tiles().div_ceil(THREADS as usize)));
    for (kernel, work) in measure.into_iter().chain([(kernel, batch.tiles())]) {
        let mut launch = stream.launch_builder(&kernel.function);
        launch.arg(&job);
        // SAFETY: the argument is that of `measure_*` and `decode_*`. Whatever messages hold, these read no more of them than
        // their lengths, which the decoder found to be of this wire and within their slots, and write only the boxes of the
        // batch: `check` found both in the buffers. Lengths and states have an entry for each message, states one more,
        // `begins` one more than tiles, the queue `queue_words`, groups as many as tiles have. The guards outlive the launches.
        unsafe { launch.launch(kernel.grid(work)) }.map_err(tried("launching a decoder"))?;
    }
    Ok(())
}

/// `Part` of `kernels/energy.cu`.
#[repr(C)]
struct PartRecord {
    offset: u64,
    elements: u64,
    stride: [u64; DIMS],
    shape: [u32; DIMS],
    width: u32,
    run: u32,
}

// SAFETY: as for `BatchRecord`.
unsafe impl DeviceRepr for PartRecord {}

/// Sums of squares of a box, three for each block of threads, of which it returns the number; at a byte of the pages.
pub(crate) fn run_energy<T: GpuReal>(
    stream: &CudaStream,
    kernel: &Kernel,
    part: &Transfer,
    width: usize,
    src: &DeviceMemory<T>,
    (sums, place): (&Pinned, usize),
) -> Result<usize, GpuError> {
    if part.elements() == 0 {
        return Ok(0);
    }
    let bytes = part.reach() * width * size_of::<T>();
    check("the input", (src.address(), src.num_bytes()), Reach { bytes, align: size_of::<T>() })?;
    let (shape, view) = (part.shape(), part.source());
    let record = PartRecord {
        offset: view.offset as u64,
        elements: part.elements() as u64,
        stride: view.stride.map(|stride| stride as u64),
        shape: shape.map(|n| n as u32),
        width: width as u32,
        run: u32::from(shape[..DIMS - 1].iter().all(|n| *n == 1) && view.stride[DIMS - 1] == 1),
    };
    if record.run == 0 && shape.iter().any(|n| *n > u32::MAX as usize) {
        let (found, expected) = (part.elements(), u32::MAX as usize);
        return Err(GpuError::TooLarge { what: "an axis of a box", found, expected });
    }
    let grid = kernel.grid((part.elements() * width).div_ceil(THREADS as usize));
    let (from, to, blocks) =
        (src.address(), sums.address() + place as u64, grid.grid_dim.0 as usize);
    let room = sums.bytes().saturating_sub(place);
    assert!(blocks * size_of::<[f64; 3]>() <= room, "room for the sums of all blocks");
    let mut launch = stream.launch_builder(&kernel.function);
    launch.arg(&record).arg(&from).arg(&to);
    // SAFETY: the arguments are those of `energy_*`. It reads the box, which `check` found in the source, and writes three numbers
    // for each block, for which there is room; the host reads them when it has waited for the stream.
    unsafe { launch.launch(grid) }.map_err(tried("launching a sum"))?;
    Ok(blocks)
}

/// Makes what is transformed inside of a cosine or sine transform, of an array of so many numbers.
pub(crate) fn before_trig<T: GpuReal>(
    stream: &CudaStream,
    kernel: &Kernel,
    lines: &LinesRecord,
    (src, reals): (&DeviceMemory<T>, usize),
    inside: &mut DeviceMemory<T>,
) -> Result<(), GpuError> {
    let align = size_of::<T>();
    check("the source", (src.address(), src.num_bytes()), Reach { bytes: reals * align, align })?;
    let (from, to) = (src.address(), inside.address());
    let grid = kernel.grid((lines.elements as usize).div_ceil(THREADS as usize));
    let mut launch = stream.launch_builder(&kernel.function);
    launch.arg(lines).arg(&from).arg(&to);
    // SAFETY: the arguments are those of `before_*`. It reads the array, which `check` found in the source, and writes what is
    // inside, which is a part of the work area, as long as the plan effective_exchange.
    unsafe { launch.launch(grid) }.map_err(tried("launching a cosine transform"))?;
    Ok(())
}

/// Makes a cosine or sine transform of what is inside, times a factor.
pub(crate) fn after_trig<T: GpuReal>(
    stream: &CudaStream,
    kernel: &Kernel,
    lines: &LinesRecord,
    inside: &DeviceMemory<T>,
    (dst, reals): (&mut DeviceMemory<T>, usize),
    factor: f64,
) -> Result<(), GpuError> {
    let reach = Reach { bytes: reals * size_of::<T>(), align: size_of::<T>() };
    check("the destination", (dst.address(), dst.num_bytes()), reach)?;
    let (from, to) = (inside.address(), dst.address());
    let grid = kernel.grid((lines.elements as usize).div_ceil(THREADS as usize));
    let mut launch = stream.launch_builder(&kernel.function);
    launch.arg(lines).arg(&from).arg(&to).arg(&factor);
    // SAFETY: the arguments are those of `after_*`, the reverse of `before_*`.
    unsafe { launch.launch(grid) }.map_err(tried("launching a cosine transform"))?;
    Ok(())
}

/// Multiplies all numbers of a buffer.
pub(crate) fn scale<T: GpuReal>(
    stream: &CudaStream,
    kernel: &Kernel,
    data: &mut impl DevicePtrMut<T>,
    factor: T,
) -> Result<(), GpuError> {
    let n = data.len() as u64;
    if n == 0 {
        return Ok(());
    }
    let (data, _writes) = data.device_ptr_mut(stream);
    let mut launch = stream.launch_builder(&kernel.function);
    launch.arg(&data).arg(&n).arg(&factor);
    // SAFETY: the arguments are those of `scale_*`, which touches the first `n` numbers, all that the buffer has.
    unsafe { launch.launch(kernel.grid((n as usize).div_ceil(THREADS as usize))) }
        .map_err(tried("launching a scaling"))?;
    Ok(())
}

/// Bytes and alignment of the modes of a spectrum.
fn modes_reach<T>(modes: &ModesRecord) -> Reach {
    Reach { bytes: modes.elements as usize * 2 * size_of::<T>(), align: 2 * size_of::<T>() }
}

/// Divides a spectrum by the squares of its wavenumbers.
pub(crate) fn poisson<T: GpuReal>(
    stream: &CudaStream,
    kernel: &Kernel,
    modes: &ModesRecord,
    data: &mut impl DevicePtrMut<T>,
    factor: T,
) -> Result<(), GpuError> {
    let found = data.num_bytes();
    let (data, _writes) = data.device_ptr_mut(stream);
    check("the spectrum", (data, found), modes_reach::<T>(modes))?;
    if modes.elements == 0 {
        return Ok(());
    }
    let mut launch = stream.launch_builder(&kernel.function);
    launch.arg(modes).arg(&data).arg(&factor);
    // SAFETY: the arguments are those of `poisson_*`, which touches as many complex numbers as there are modes: `check`
    // found them in the buffer.
    unsafe { launch.launch(kernel.grid((modes.elements as usize).div_ceil(THREADS as usize))) }
        .map_err(tried("launching a Poisson multiplication"))?;
    Ok(())
}

/// Multiplies a spectrum by i times the wavenumber along one axis.
pub(crate) fn gradient<T: GpuReal>(
    stream: &CudaStream,
    kernel: &Kernel,
    modes: &ModesRecord,
    src: &impl DevicePtr<T>,
    dst: &mut impl DevicePtrMut<T>,
    factor: T,
) -> Result<(), GpuError> {
    let (found, space) = (src.num_bytes(), dst.num_bytes());
    let (src, _reads) = src.device_ptr(stream);
    let (dst, _writes) = dst.device_ptr_mut(stream);
    check("the spectrum", (src, found), modes_reach::<T>(modes))?;
    check("the gradient", (dst, space), modes_reach::<T>(modes))?;
    if modes.elements == 0 {
        return Ok(());
    }
    let mut launch = stream.launch_builder(&kernel.function);
    launch.arg(modes).arg(&src).arg(&dst).arg(&factor);
    // SAFETY: the arguments are those of `gradient_*`, which reads and writes as many complex numbers as there are modes:
    // `check` found them in both buffers.
    unsafe { launch.launch(kernel.grid((modes.elements as usize).div_ceil(THREADS as usize))) }
        .map_err(tried("launching a gradient"))?;
    Ok(())
}
