//! Kernels as they are loaded, and the grids that they are launched with.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaFunction, CudaModule, DriverError, LaunchConfig, sys};
use cudarc::nvrtc::Ptx;

use super::tried;
use crate::base::GpuError;

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

/// What of a device says how kernels are launched.
#[derive(Clone, Copy)]
pub(super) struct Card {
    multiprocessors: u32,
    /// Bytes of shared memory that a block may have if it asks for them.
    shared_bytes: u32,
    /// Whether memory gives a multiprocessor little of what it could move.
    slow_memory: bool,
    /// Whether a launch may begin before the one before it is done: Hopper and later.
    pub(super) overlaps: bool,
}

/// Whether memory of so many kHz, that redistribution so many bits twice in a cycle, is slow for so many multiprocessors: as on an H100, not on an
/// H200. Of memory that is not known it is not said.
fn is_slow(timings: u32, bits: u32, multiprocessors: u32) -> bool {
    /// Bytes per second and multiprocessor: between what H100s and an H200 have. Others were not measured.
    const FAST: u64 = 30_000_000_000;
    let rate = u64::from(timings) * 1000 * 2 * u64::from(bits / 8) / u64::from(multiprocessors);
    (1..FAST).contains(&rate)
}

impl Card {
    fn of(context: &CudaContext) -> Result<Self, DriverError> {
        use sys::CUdevice_attribute as Of;
        let ask = |what| context.attribute(what).map(|found| found.max(0) as u32);
        let multiprocessors = ask(Of::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?.max(1);
        // A device that does not tell computes all the same.
        let known = |what| ask(what).unwrap_or(0);
        let timings = known(Of::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
        let bits = known(Of::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
        Ok(Self {
            multiprocessors,
            shared_bytes: ask(Of::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
            slow_memory: is_slow(timings, bits, multiprocessors),
            overlaps: ask(Of::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)? >= 9,
        })
    }
}

/// The binaries, loaded into a context.
pub(crate) struct Modules {
    context: Arc<CudaContext>,
    modules: Vec<Arc<CudaModule>>,
    card: Card,
}

/// A kernel, ready to be launched.
#[derive(Clone)]
pub(crate) struct Kernel {
    pub(super) function: CudaFunction,
    /// Blocks that a multiprocessor has at once.
    blocks: u32,
    /// Bytes of shared memory that a block has for nothing, so that a multiprocessor has no more of them.
    idle_bytes: u32,
    pub(super) card: Card,
}

impl Modules {
    pub(crate) fn load(context: &Arc<CudaContext>) -> Result<Self, DriverError> {
        let load = |binary: &&[u8]| context.load_module(Ptx::from_binary(binary.to_vec()));
        Ok(Self {
            context: context.clone(),
            modules: BINARIES.iter().map(load).collect::<Result<_, _>>()?,
            card: Card::of(context)?,
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
        Ok(Kernel { function, blocks, idle_bytes: 0, card: self.card })
    }
}

impl Kernel {
    /// Whether it runs where memory is slow for as many multiprocessors as there are, which few blocks at once keep busy.
    pub(crate) fn has_slow_memory(&self) -> bool {
        self.card.slow_memory
    }

    /// The same with no more than so many blocks of a multiprocessor at once. A smaller grid alone does not do: some multiprocessors
    /// would have more of it, and others fewer.
    ///
    /// # Errors
    /// [`GpuError::Driver`].
    pub(crate) fn at_most(mut self, blocks: u32) -> Result<Self, GpuError> {
        /// By so much more is tried.
        const STEP: u32 = 256;
        use sys::CUfunction_attribute_enum as Of;
        let tried = tried("finding out how many blocks there are at once");
        let own = self.function.shared_size_bytes().map_err(&tried)? as u32;
        let most = self.card.shared_bytes.saturating_sub(own);
        if self.blocks > blocks {
            // Beyond 48 KiB a block has only what is asked for.
            let what = Of::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            self.function.set_attribute(what, most as i32).map_err(&tried)?;
        }
        while self.blocks > blocks && self.idle_bytes + STEP <= most {
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
        (self.blocks * self.card.multiprocessors) as usize
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_an_h100_is_slow_and_that_of_an_h200_is_not() {
        assert!(is_slow(2_619_000, 5120, 132));
        assert!(!is_slow(3_201_000, 6144, 132));
        // An H100 of which seven tenths of the multiprocessors are used.
        assert!(!is_slow(2_619_000, 5120, 92));
        assert!(!is_slow(0, 5120, 132), "who does not know does not say");
    }
}
