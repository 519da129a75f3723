//! Tridiagonal systems of the modes of a spectrum.

use std::sync::{Arc, Mutex};

use cudarc::driver::CudaStream;
use fft_core::{Precision, SystemTask, Systems, locked};

use crate::abi::systems::{SystemTables, SystemsRecord, room_of_thread};
use crate::base::{Gpu, GpuError, Source, tried};
use crate::ffi::{self, Operands, SystemsKernel, SystemsMemory};

/// Systems of a rank's modes, with their coefficients on the device.
pub(super) struct DeviceSystems {
    record: SystemsRecord,
    /// Real numbers of a point.
    width: usize,
    /// One launch at a time has the room.
    memory: Mutex<SystemsMemory>,
    solve: SystemsKernel,
    differences: SystemsKernel,
}

impl DeviceSystems {
    /// Copies the coefficients of systems of `width` numbers a point to the device, and reserves
    /// memory for the threads that are resident at once.
    pub(super) fn new(
        gpu: &Gpu,
        stream: &Arc<CudaStream>,
        systems: &Systems,
        (width, precision): (usize, Precision),
    ) -> Result<Self, GpuError> {
        let SystemTables { record, rows, squares } = SystemTables::new(systems)?;
        let kernel = |what, room_of_thread| {
            let kernel = gpu.kernel(Source::Systems, &format!("{what}_{precision}x{width}"))?;
            Ok::<_, GpuError>(SystemsKernel { kernel, room_of_thread })
        };
        let periodic = systems.are_periodic();
        let what = if periodic { "solve_periodic" } else { "solve" };
        let solve = kernel(what, room_of_thread(systems.scheme().len(), width, periodic))?;
        let numbers = solve.room(&record);
        let failed = |why| GpuError::allocating(numbers * size_of::<f64>(), why);
        let room = stream.alloc_zeros(numbers).map_err(failed)?;
        let copied =
            |table: &[f64]| stream.clone_htod(table).map_err(tried("copying coefficients"));
        let (rows, squares) = (copied(&rows)?, copied(&squares)?);
        let memory = Mutex::new(SystemsMemory { rows, squares, room });
        let differences = kernel("differences", 0)?;
        Ok(Self { record, width, memory, solve, differences })
    }

    /// Queues a task on one component; without a source, within the destination.
    pub(super) fn run(
        &self,
        stream: &CudaStream,
        task: SystemTask,
        arrays: Operands<'_>,
    ) -> Result<(), GpuError> {
        let (kernel, more) = match task {
            SystemTask::Laplacian => (&self.differences, 0.0),
            SystemTask::Solve(shift) => (&self.solve, shift),
        };
        let mut memory = locked(&self.memory);
        let how = (more, self.width as u32);
        ffi::run_systems((stream, kernel), &self.record, &mut memory, how, arrays)
    }
}
