//! Launches of operators on spectra.

use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{
    CudaSlice, CudaStream, DevicePtr, DevicePtrMut, DeviceRepr, DeviceSlice, PushKernelArg,
};
use fft_core::Precision;

use super::launch::{check, grid_of, launch};
use super::memory::DeviceMemory;
use crate::abi::batch::Reach;
use crate::abi::records::ModesRecord;
use crate::abi::systems::SystemsRecord;
use crate::base::{GpuError, Kernel, THREADS, tried};

// SAFETY: plain data without references, laid out as the struct of `kernels/` that it names.
unsafe impl DeviceRepr for ModesRecord {}
// SAFETY: as for `ModesRecord`.
unsafe impl DeviceRepr for SystemsRecord {}

/// A source, or none where it is the destination, the destination, and bytes of a real number.
pub(crate) type Operands<'a> = (Option<&'a DeviceMemory<u8>>, &'a mut DeviceMemory<u8>, usize);

/// The addresses of operands with this number of components before and after, of `modes` modes.
fn operands(
    (src, dst, real): Operands<'_>,
    modes: usize,
    [before, after]: [u32; 2],
    width: u32,
) -> Result<[CUdeviceptr; 2], GpuError> {
    let align = width as usize * real;
    let reach = |components| {
        let bytes = modes * align * components as usize;
        Reach { bytes, align }
    };
    let to = (dst.address(), dst.len());
    let from = src.map_or(to, |src| (src.address(), src.len()));
    check("the spectrum", from, reach(before))?;
    check("the result", to, reach(after))?;
    Ok([from.0, to.0])
}

/// Multiplies modes by a function of their wavenumbers.
pub(crate) fn by_wavenumbers(
    (stream, kernel): (&CudaStream, &Kernel),
    (modes, tables): (&ModesRecord, &CudaSlice<f64>),
    (what, parameter, width): (u32, f64, u32),
    arrays: Operands<'_>,
) -> Result<(), GpuError> {
    let [src, dst] = operands(arrays, modes.elements as usize, [1, 1], width)?;
    let (tables, _reads) = tables.device_ptr(stream);
    let modes = &ModesRecord { tables, ..*modes };
    let (grid, launching) = (grid_of(kernel, modes.elements as usize), "launching an operator");
    // SAFETY: the arguments match `by_wavenumbers_*`. It accesses one component, found in both
    // arrays, and the tables that the record was made with.
    unsafe {
        launch!(stream, kernel, grid, launching, modes, &what, &parameter, &width, &src, &dst)
    }
}

/// Applies an operator with derivatives of first order.
pub(crate) fn derivatives(
    (stream, kernel): (&CudaStream, &Kernel),
    (modes, tables): (&ModesRecord, &CudaSlice<f64>),
    (what, component): (u32, u32),
    arrays: Operands<'_>,
) -> Result<(), GpuError> {
    let n = modes.dimensions;
    // In the order of `Vector` of `kernels/spectral.cu`.
    let components = match what {
        0 => [1, 1],
        1 => [1, n],
        2 => [n, 1],
        3 if n == 2 => [2, 1],
        3 => [3, 3],
        _ => [n, n],
    };
    let [src, dst] = operands(arrays, modes.elements as usize, components, 2)?;
    let (tables, _reads) = tables.device_ptr(stream);
    let modes = &ModesRecord { tables, ..*modes };
    let (grid, launching) = (grid_of(kernel, modes.elements as usize), "launching an operator");
    // SAFETY: the arguments match `derivatives_*`. It accesses the operator's components, found in
    // both arrays, and the tables that the record was made with.
    unsafe { launch!(stream, kernel, grid, launching, modes, &what, &component, &src, &dst) }
}

/// Memory that launches of systems use, besides their operands.
pub(crate) struct SystemsMemory {
    /// The tables of the record.
    pub(crate) rows: CudaSlice<f64>,
    pub(crate) squares: CudaSlice<f64>,
    /// Numbers that threads keep.
    pub(crate) room: CudaSlice<f64>,
}

/// A kernel of `systems.cu`, and numbers that each thread keeps.
pub(crate) struct SystemsKernel {
    pub(crate) kernel: Kernel,
    pub(crate) room_of_thread: usize,
}

impl SystemsKernel {
    /// Numbers that the threads of a launch keep: one thread for each system, as many as are
    /// resident.
    pub(crate) fn room(&self, systems: &SystemsRecord) -> usize {
        let blocks = grid_of(&self.kernel, systems.count()).grid_dim.0;
        blocks as usize * THREADS as usize * self.room_of_thread
    }
}

/// Solves systems with a number that is added to their diagonal, or multiplies by their matrices.
pub(crate) fn run_systems(
    (stream, how): (&CudaStream, &SystemsKernel),
    systems: &SystemsRecord,
    memory: &mut SystemsMemory,
    (more, width): (f64, u32),
    arrays: Operands<'_>,
) -> Result<(), GpuError> {
    let [src, dst] = operands(arrays, systems.points(), [1, 1], width)?;
    assert!(how.room(systems) <= memory.room.len(), "room for all threads");
    let (rows, _rows) = memory.rows.device_ptr(stream);
    let (squares, _squares) = memory.squares.device_ptr(stream);
    let (room, _room) = memory.room.device_ptr_mut(stream);
    let systems = &SystemsRecord { rows, squares, room, ..*systems };
    let (kernel, what) = (&how.kernel, "launching tridiagonal systems");
    let grid = grid_of(kernel, systems.count());
    // SAFETY: the arguments are those of kernels of `systems.cu`. They access one component, found
    // in both arrays, the tables that were made with the record, and the room of their threads. The
    // guards outlive the launch.
    unsafe { launch!(stream, kernel, grid, what, systems, &more, &src, &dst) }
}

/// Multiplies arrays of `elements` elements by another; for complex ones `sign` multiplies the
/// imaginary parts of that one.
pub(crate) fn products(
    (stream, kernel): (&CudaStream, &Kernel),
    (elements, sign, precision): (usize, Option<f64>, Precision),
    by: &DeviceMemory<u8>,
    data: &mut DeviceMemory<u8>,
) -> Result<(), GpuError> {
    let align = precision.bytes() * if sign.is_some() { 2 } else { 1 };
    let bytes = elements * align;
    if bytes == 0 {
        return Ok(());
    }
    check("the kernel", (by.address(), by.len()), Reach { bytes, align })?;
    check("the spectrum", (data.address(), data.len()), Reach { bytes, align })?;
    let (count, batches) = (elements as u64, (data.len() / bytes) as u64);
    let (from, to) = (by.address(), data.address());
    let (grid, what) = (grid_of(kernel, elements), "launching a product of spectra");
    // SAFETY: the arguments match `products_*`, or `real_products_*` without a sign. The kernel
    // reads one component, found in the first array, and writes the components of the second.
    unsafe {
        match (sign, precision) {
            (None, _) => launch!(stream, kernel, grid, what, &count, &batches, &from, &to),
            (Some(sign), Precision::F32) => {
                let sign = sign as f32;
                launch!(stream, kernel, grid, what, &count, &batches, &sign, &from, &to)
            }
            (Some(sign), Precision::F64) => {
                launch!(stream, kernel, grid, what, &count, &batches, &sign, &from, &to)
            }
        }
    }
}
