//! Launches of kernels that were compiled for columns of one length.

use cudarc::driver::{
    CudaFunction, CudaSlice, CudaStream, DevicePtr, DevicePtrMut, DeviceSlice, LaunchConfig,
    PushKernelArg,
};
use fft_core::Direction;

use super::launch::check;
use super::memory::DeviceMemory;
use crate::abi::batch::Reach;
use crate::base::{GpuError, GpuReal, tried};

/// Columns of arrays `[outer][n][pitch]`, `inner` of them side by side, and the kernel that
/// transforms them.
pub(crate) struct Columns {
    pub(crate) forward: CudaFunction,
    pub(crate) inverse: CudaFunction,
    /// Columns and threads of a block, and its bytes of shared memory.
    pub(crate) columns: usize,
    pub(crate) threads: usize,
    pub(crate) shared_bytes: usize,
    /// The lengths of the arrays.
    pub(crate) outer: usize,
    pub(crate) n: usize,
    pub(crate) inner: usize,
    pub(crate) pitch: usize,
}

/// Transforms columns; without a source, in place. `roots` are the roots of unity for `n`.
pub(crate) fn run_columns<T: GpuReal>(
    stream: &CudaStream,
    kernel: &Columns,
    direction: Direction,
    roots: &CudaSlice<T>,
    src: Option<&DeviceMemory<T>>,
    dst: &mut DeviceMemory<T>,
    factor: T,
) -> Result<(), GpuError> {
    let Columns { columns, threads, shared_bytes, outer, n, inner, pitch, .. } = kernel;
    let reals = 2 * ((outer * n).saturating_sub(1) * pitch + inner);
    let reach = Reach { bytes: reals * size_of::<T>(), align: 2 * size_of::<T>() };
    let groups = inner.div_ceil(*columns);
    let (found, space) = (src.map(|src| src.num_bytes()), dst.num_bytes());
    let (to, _writes) = dst.device_ptr_mut(stream);
    let from = src.map_or(to, DeviceMemory::address);
    check("the source", (from, found.unwrap_or(space)), reach)?;
    check("the destination", (to, space), reach)?;
    assert!(roots.len() >= 2 * n, "a root for each point");
    let (roots, _reads) = roots.device_ptr(stream);
    let grid = LaunchConfig {
        grid_dim: ((outer * groups) as u32, 1, 1),
        block_dim: (*threads as u32, 1, 1),
        shared_mem_bytes: *shared_bytes as u32,
    };
    let [inner, pitch, groups] = [*inner, *pitch, groups].map(|count| count as u32);
    let function = direction.choose(&kernel.forward, &kernel.inverse);
    let mut launch = stream.launch_builder(function);
    launch.arg(&from).arg(&to).arg(&roots).arg(&inner).arg(&pitch).arg(&groups).arg(&factor);
    // SAFETY: the arguments match `forward` and `inverse`. A block reads its own columns before it
    // writes them; all are inside the arrays. The guards outlive the launch.
    unsafe { launch.launch(grid) }.map(|_| ()).map_err(tried("launching transforms of columns"))
}
