//! Launches of kernels.
//!
//! A batch records which memory its kernels access, so that each function checks the buffers and is
//! safe.

use std::ffi::c_void;
use std::ptr::null_mut;

use cudarc::driver::sys::{self, CUdeviceptr};
use cudarc::driver::{
    CudaStream, DevicePtr, DevicePtrMut, DeviceRepr, DeviceSlice, DriverError, LaunchConfig,
    PushKernelArg,
};
use fft_core::Transfer;

use super::memory::DeviceMemory;
use super::pinned::Pinned;
use crate::abi::batch::{Batch, Reach};
use crate::abi::coded::{DecodeBuffers, EncodeBuffers, RawMessages};
use crate::abi::form::Form;
use crate::abi::records::{
    BatchRecord, DecodeJob, EncodeJob, LinesRecord, PartRecord, QueueRecord,
};
use crate::base::modules::blocks;
use crate::base::{GpuError, GpuReal, Kernel, THREADS, tried};

// SAFETY: plain data without references, laid out as the struct of `kernels/` that it names.
unsafe impl DeviceRepr for BatchRecord {}
// SAFETY: as for `BatchRecord`.
unsafe impl DeviceRepr for EncodeJob {}
// SAFETY: as for `BatchRecord`.
unsafe impl DeviceRepr for DecodeJob {}
// SAFETY: as for `BatchRecord`.
unsafe impl DeviceRepr for PartRecord {}
// SAFETY: as for `BatchRecord`.
unsafe impl DeviceRepr for LinesRecord {}

/// Launches a kernel on a grid with these arguments; unsafe as that is.
macro_rules! launch {
    ($stream:expr, $kernel:expr, $grid:expr, $what:expr, $($argument:expr),+) => {{
        let mut launch = $stream.launch_builder(&$kernel.function);
        $(launch.arg($argument);)+
        launch.launch($grid).map(|_| ()).map_err(tried($what))
    }};
}
pub(super) use launch;

/// The grid of a kernel with one thread for each element.
pub(super) fn grid_of(kernel: &Kernel, elements: usize) -> LaunchConfig {
    kernel.grid(elements.div_ceil(THREADS as usize))
}

/// Checks that a buffer has the memory that a kernel accesses, aligned.
pub(super) fn check(
    what: &'static str,
    (pointer, found): (CUdeviceptr, usize),
    reach: Reach,
) -> Result<(), GpuError> {
    GpuError::at_least(what, found, reach.bytes)?;
    match reach.bytes {
        0 => Ok(()),
        _ => GpuError::aligned(what, pointer, reach.align),
    }
}

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
    check("the source", (src, found), batch.reads)?;
    check("the destination", (dst, space), batch.writes)?;
    if batch.tiles == 0 {
        return Ok(());
    }
    let (record, _guards) = batch.record(stream);
    let (grid, what) = (blocks(batch.tiles), "launching a transfer");
    // SAFETY: the arguments match `transfer_*`, which accesses the boxes, found inside the buffers,
    // and the descriptors. The guards outlive the launch.
    unsafe { launch!(stream, kernel, grid, what, &record, &src, &dst) }
}

/// Copies boxes whose sources are addresses.
///
/// # Safety
/// The boxes' sources may be read until the launch is done.
pub(super) unsafe fn run_peer_get<T>(
    stream: &CudaStream,
    kernel: &Kernel,
    batch: &Batch,
    dst: &mut DeviceMemory<T>,
) -> Result<(), GpuError> {
    // SAFETY: it goes to this launch alone; the caller vouches for what that reads.
    let everywhere = unsafe { DeviceMemory::<u8>::everywhere(dst.stream()) };
    run_transfer::<u8, T>(stream, kernel, batch, &everywhere, dst)
}

/// Encodes messages by two kernels; the second begins while the first ends.
pub(crate) fn run_encode<T: GpuReal>(
    stream: &CudaStream,
    (encode, settle): (&Kernel, &Kernel),
    (form, step, raw): (&Form, f64, RawMessages),
    buffers: &mut EncodeBuffers,
    src: &impl DevicePtr<T>,
    messages: &mut impl DevicePtrMut<u8>,
) -> Result<(), GpuError> {
    let EncodeBuffers { batch, states, errors, queue } = buffers;
    let (found, space) = (src.num_bytes(), messages.num_bytes());
    let (src, _reads) = src.device_ptr(stream);
    let (messages, _writes) = messages.device_ptr_mut(stream);
    check("the source", (src, found), batch.reads)?;
    check("the memory of messages", (messages, space), batch.writes)?;
    let (record, _guards) = batch.record(stream);
    let (states, _states) = states.device_ptr_mut(stream);
    let (errors, _errors) = errors.device_ptr_mut(stream);
    let (queue, _queue) = queue.device_ptr_mut(stream);
    let queue = QueueRecord::of(batch.tiles, queue);
    let job = EncodeJob {
        batch: record,
        src,
        messages,
        states,
        errors,
        bits: form.bits(),
        raw: raw as u32,
        part: form.part(),
        step,
        inverse: 1.0 / step,
        queue,
    };
    if batch.tiles > 0 && raw != RawMessages::All {
        let (grid, what) = (encode.grid(batch.tiles), "launching an encoder");
        // SAFETY: the argument matches `encode_*`. It reads the boxes and writes the messages'
        // fixed part, or their whole slots if lengths vary: both are inside the buffers. The
        // encoder made states, errors and queue for this batch. The guards outlive the launch.
        unsafe { launch!(stream, encode, grid, what, &job) }?;
    }
    let work = if raw == RawMessages::None { batch.count } else { batch.tiles.max(batch.count) };
    // SAFETY: as above, for `settle_*`, which writes headers and raw messages. Before it waits for
    // the encoder it reads descriptors only.
    unsafe { launch_early(stream, settle, work, job) }
        .map_err(tried("launching the end of an encoder"))
}

/// Launches a kernel that may begin before the previous one ends, if the device supports that.
///
/// # Safety
/// As any launch with this argument. All blocks must wait themselves (`await_last` of
/// `kernels/ptx.cuh`) before they access what earlier kernels do, and before they end.
unsafe fn launch_early<Job: DeviceRepr>(
    stream: &CudaStream,
    kernel: &Kernel,
    work: usize,
    mut job: Job,
) -> Result<(), DriverError> {
    let grid = kernel.grid(work);
    if !kernel.limits.overlaps {
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
    // SAFETY: the caller's. The driver copies attribute and argument before the call returns.
    unsafe { sys::cuLaunchKernelEx(&config, function, arguments.as_mut_ptr(), null_mut()) }.result()
}

/// Decodes messages. `measure` runs first, with one thread for each tile.
pub(crate) fn run_decode<T: GpuReal>(
    stream: &CudaStream,
    (measure, decode): (Option<&Kernel>, &Kernel),
    form: &Form,
    buffers: &mut DecodeBuffers,
    messages: &impl DevicePtr<u8>,
    dst: &mut impl DevicePtrMut<T>,
) -> Result<(), GpuError> {
    let DecodeBuffers { batch, states, queue, begins, groups, lengths } = buffers;
    let (found, space) = (messages.num_bytes(), dst.num_bytes());
    let (messages, _reads) = messages.device_ptr(stream);
    let (dst, _writes) = dst.device_ptr_mut(stream);
    check("the memory of messages", (messages, found), batch.reads)?;
    check("the destination", (dst, space), batch.writes)?;
    if batch.tiles == 0 {
        return Ok(());
    }
    let (record, _guards) = batch.record(stream);
    let (states, _states) = states.device_ptr_mut(stream);
    let (queue, _queue) = queue.device_ptr_mut(stream);
    let (begins, _begins) = begins.device_ptr_mut(stream);
    let (lengths, _lengths) = lengths.device_ptr(stream);
    let (groups, _groups) = groups.as_mut().map(|groups| groups.device_ptr_mut(stream)).unzip();
    let (queue, groups) = (QueueRecord::of(batch.tiles, queue), groups.unwrap_or_default());
    let (batch, bits) = (record, form.bits());
    let job = DecodeJob { batch, messages, dst, states, lengths, bits, begins, queue, groups };
    let tiles = batch.tiles as usize;
    let measure = measure.map(|kernel| (kernel, grid_of(kernel, tiles)));
    for (kernel, grid) in measure.into_iter().chain([(decode, decode.grid(tiles))]) {
        // SAFETY: the argument matches `measure_*` and `decode_*`. Whatever messages hold, these
        // read no more than the lengths, which the decoder checked, and write only the boxes: both
        // are inside the buffers. The decoder made the other arrays for this batch. The guards
        // outlive the launches.
        unsafe { launch!(stream, kernel, grid, "launching a decoder", &job) }?;
    }
    Ok(())
}

/// Writes sums of squares of a box at a byte of the pages, three for each block. Returns the number
/// of blocks.
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
    let record = PartRecord::new(part, width)?;
    let grid = grid_of(kernel, part.elements() * width);
    let (from, to, blocks) =
        (src.address(), sums.address() + place as u64, grid.grid_dim.0 as usize);
    let room = sums.bytes().saturating_sub(place);
    assert!(blocks * size_of::<[f64; 3]>() <= room, "room for the sums of all blocks");
    // SAFETY: the arguments match `energy_*`. It reads the box, found in the source, and writes
    // three numbers for each block; the host reads them after the stream.
    unsafe { launch!(stream, kernel, grid, "launching a sum", &record, &from, &to) }?;
    Ok(blocks)
}

/// The arguments of noise: where the points of an array are in the grid.
pub(crate) struct NoiseSource {
    /// From an array of the grid to one of the brick.
    pub(crate) part: Transfer,
    pub(crate) width: usize,
    pub(crate) scale: f64,
}

impl NoiseSource {
    fn reach<T>(&self) -> Reach {
        let align = size_of::<T>();
        Reach { bytes: self.part.elements() * self.width * align, align }
    }
}

/// Fills an array with noise.
pub(crate) fn run_noise<T: GpuReal>(
    stream: &CudaStream,
    kernel: &Kernel,
    noise: &NoiseSource,
    dst: &mut impl DevicePtrMut<T>,
) -> Result<(), GpuError> {
    let NoiseSource { part, width, scale } = noise;
    let (reach, space) = (noise.reach::<T>(), dst.num_bytes());
    if reach.bytes == 0 {
        return Ok(());
    }
    let record = PartRecord::new(part, *width)?;
    let (dst, _writes) = dst.device_ptr_mut(stream);
    check("the array", (dst, space), reach)?;
    let grid = grid_of(kernel, part.elements() * width);
    // SAFETY: the arguments match `noise_*`, which writes this number of numbers, found in the
    // array. The guard outlives the launch.
    unsafe { launch!(stream, kernel, grid, "launching noise", &record, scale, &dst) }
}

/// Writes the distance of an array from noise, four numbers for each block. Returns the number of
/// blocks.
pub(crate) fn run_distance<T: GpuReal>(
    stream: &CudaStream,
    kernel: &Kernel,
    noise: &NoiseSource,
    src: &impl DevicePtr<T>,
    found: &Pinned,
) -> Result<usize, GpuError> {
    let NoiseSource { part, width, scale } = noise;
    let (reach, space) = (noise.reach::<T>(), src.num_bytes());
    if reach.bytes == 0 {
        return Ok(0);
    }
    let record = PartRecord::new(part, *width)?;
    let (src, _reads) = src.device_ptr(stream);
    check("the array", (src, space), reach)?;
    let grid = grid_of(kernel, part.elements() * width);
    let (to, blocks) = (found.address(), grid.grid_dim.0 as usize);
    assert!(blocks * size_of::<[f64; 4]>() <= found.bytes(), "room for the sums of all blocks");
    // SAFETY: the arguments match `distance_*`. It reads this number of numbers, found in the
    // array, and writes four for each block; the host reads them after the stream. The guard
    // outlives the launch.
    unsafe { launch!(stream, kernel, grid, "launching a distance", &record, scale, &src, &to) }?;
    Ok(blocks)
}

/// Prepares the inner Fourier transform of a cosine or sine transform of `reals` numbers.
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
    let (grid, what) = (grid_of(kernel, lines.elements as usize), "launching a cosine transform");
    // SAFETY: the arguments match `before_*`. It reads the array, found in the source, and writes
    // the part of the work area that the plan has for it.
    unsafe { launch!(stream, kernel, grid, what, lines, &from, &to) }
}

/// Makes a cosine or sine transform, times a factor, of the inner Fourier transform.
pub(crate) fn after_trig<T: GpuReal>(
    stream: &CudaStream,
    kernel: &Kernel,
    lines: &LinesRecord,
    inside: &DeviceMemory<T>,
    (dst, reals): (&mut DeviceMemory<T>, usize),
    factor: f64,
) -> Result<(), GpuError> {
    let align = size_of::<T>();
    let reach = Reach { bytes: reals * align, align };
    check("the destination", (dst.address(), dst.num_bytes()), reach)?;
    let (from, to) = (inside.address(), dst.address());
    let (grid, what) = (grid_of(kernel, lines.elements as usize), "launching a cosine transform");
    // SAFETY: the arguments match `after_*`, the reverse of `before_*`.
    unsafe { launch!(stream, kernel, grid, what, lines, &from, &to, &factor) }
}

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
    let grid = grid_of(kernel, n as usize);
    // SAFETY: the arguments match `scale_*`, which accesses the buffer's `n` numbers.
    unsafe { launch!(stream, kernel, grid, "launching a scaling", &data, &n, &factor) }
}
