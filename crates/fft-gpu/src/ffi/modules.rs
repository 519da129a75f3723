//! Kernels as they are loaded, and the grids that they are launched with.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaFunction, CudaModule, DriverError, LaunchConfig, sys};
use cudarc::nvrtc::Ptx;

use super::tried;
use crate::GpuError;

/// Threads of a block, of all kernels.
pub(super) const THREADS: u32 = 128;

/// The binaries of `kernels/`, in the order of [`Source`], for the architectures that `cargo xtask kernels` names.
const BINARIES: [&[u8]; 7] = [
    include_bytes!("../../kernels/transfer.fatbin"),
    include_bytes!("../../kernels/encode.fatbin"),
    include_bytes!("../../kernels/settle.fatbin"),
    include_bytes!("../../kernels/decode.fatbin"),
    include_bytes!("../../kernels/spectral.fatbin"),
    include_bytes!("../../kernels/energy.fatbin"),
    include_bytes!("../../kernels/trig.fatbin"),
];

/// Which of the sources a kernel is in.
#[derive(Clone, Copy)]
pub(crate) enum Source {
    Transfer,
    Encode,
    Settle,
    Decode,
    Spectral,
    Energy,
    Trig,
}

/// The binaries, loaded into a context.
pub(crate) struct Modules {
    context: Arc<CudaContext>,
    modules: Vec<Arc<CudaModule>>,
    multiprocessors: u32,
    overlaps: bool,
}

/// A kernel, ready to be launched.
#[derive(Clone)]
pub(crate) struct Kernel {
    pub(super) function: CudaFunction,
    /// Blocks that a multiprocessor has at once, and how many of these the device has.
    blocks: u32,
    multiprocessors: u32,
    /// Bytes of shared memory that a block has for nothing, so that a multiprocessor has no more of them.
    idle_bytes: u32,
    /// Whether a launch may begin before the one before it is done: Hopper and later.
    pub(super) overlaps: bool,
}

impl Modules {
    pub(crate) fn load(context: &Arc<CudaContext>) -> Result<Self, DriverError> {
        let load = |binary: &&[u8]| context.load_module(Ptx::from_binary(binary.to_vec()));
        let count = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
        let major = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR;
        Ok(Self {
            context: context.clone(),
            modules: BINARIES.iter().map(load).collect::<Result<_, _>>()?,
            multiprocessors: context.attribute(count)?.max(1) as u32,
            overlaps: context.attribute(major)? >= 9,
        })
    }

    pub(crate) fn kernel(&self, source: Source, name: &str) -> Result<Kernel, GpuError> {
        let tried = |why: DriverError| GpuError::Driver {
            what: "loading a kernel",
            why: format!("{name}: {why}"),
        };
        self.context.bind_to_thread().map_err(tried)?;
        let function = self.modules[source as usize].load_function(name).map_err(tried)?;
        let blocks = function.occupancy_max_active_blocks_per_multiprocessor(THREADS, 0, None);
        let blocks = blocks.map_err(tried)?.max(1);
        let Self { multiprocessors, overlaps, .. } = *self;
        Ok(Kernel { function, blocks, multiprocessors, idle_bytes: 0, overlaps })
    }
}

impl Kernel {
    /// The same with no more than so many blocks of a multiprocessor at once. A smaller grid alone does not do: some multiprocessors
    /// would have more of it, and others fewer.
    ///
    /// # Errors
    /// [`GpuError::Driver`].
    pub(crate) fn at_most(mut self, blocks: u32) -> Result<Self, GpuError> {
        /// By so much more is tried.
        const STEP: u32 = 256;
        /// What a block may have without being asked for.
        const MOST: u32 = 48 << 10;
        let tried = tried("finding out how many blocks there are at once");
        let own = self.function.shared_size_bytes().map_err(&tried)? as u32;
        while self.blocks > blocks && own + self.idle_bytes + STEP <= MOST {
            self.idle_bytes += STEP;
            let (idle, function) = (self.idle_bytes as usize, &self.function);
            let found =
                function.occupancy_max_active_blocks_per_multiprocessor(THREADS, idle, None);
            self.blocks = found.map_err(&tried)?.max(1);
        }
        Ok(Self { blocks: self.blocks.min(blocks), ..self })
    }

    /// Blocks of its largest grid, if they fetch their work: those that the device has at once.
    pub(crate) fn resident(&self) -> usize {
        (self.blocks * self.multiprocessors) as usize
    }

    /// A grid for so many pieces of work.
    pub(super) fn grid(&self, work: usize) -> LaunchConfig {
        LaunchConfig { shared_mem_bytes: self.idle_bytes, ..blocks(work.clamp(1, self.resident())) }
    }
}

/// A grid of so many blocks.
pub(super) fn blocks(count: usize) -> LaunchConfig {
    LaunchConfig { grid_dim: (count as u32, 1, 1), block_dim: (THREADS, 1, 1), shared_mem_bytes: 0 }
}
