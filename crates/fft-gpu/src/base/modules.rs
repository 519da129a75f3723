//! The kernels' binaries, loaded, and the grids that kernels are launched with.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use fft_core::locked;

use cudarc::driver::{CudaContext, CudaFunction, CudaModule, DriverError, LaunchConfig, sys};
use cudarc::nvrtc::Ptx;

use super::error::{GpuError, tried};

/// Threads of a block, of all kernels.
pub(crate) const THREADS: u32 = 128;

/// The binaries of `kernels/`, in the order of [`Source`]; `cargo xtask kernels` makes them.
const BINARIES: [&[u8]; 9] = [
    include_bytes!("../../kernels/transfer.fatbin"),
    include_bytes!("../../kernels/encode.fatbin"),
    include_bytes!("../../kernels/settle.fatbin"),
    include_bytes!("../../kernels/decode.fatbin"),
    include_bytes!("../../kernels/spectral.fatbin"),
    include_bytes!("../../kernels/systems.fatbin"),
    include_bytes!("../../kernels/energy.fatbin"),
    include_bytes!("../../kernels/trig.fatbin"),
    include_bytes!("../../kernels/noise.fatbin"),
];

#[derive(Clone, Copy)]
pub(crate) enum Source {
    Transfer,
    Encode,
    Settle,
    Decode,
    Spectral,
    Systems,
    Energy,
    Trig,
    Noise,
}

/// The properties of a device that choose grids.
#[derive(Clone, Copy)]
pub(crate) struct DeviceLimits {
    multiprocessors: u32,
    /// The most shared memory of a block, in bytes, if a kernel opts in.
    shared_bytes: u32,
    /// Whether the memory bandwidth of each multiprocessor is low, so that few blocks saturate it.
    pub(crate) slow_memory: bool,
    /// Whether a launch may begin before the previous one ends (Hopper and later).
    pub(crate) overlaps: bool,
}

/// Whether a memory clock (kHz) and bus width (bits) give each multiprocessor little bandwidth. An
/// H100 is slow in that sense, an H200 is not. A device that reports no clock counts as fast.
fn is_slow(clock: u32, bits: u32, multiprocessors: u32) -> bool {
    /// Bytes per second and multiprocessor, between an H100 and an H200.
    const FAST: u64 = 30_000_000_000;
    let rate = u64::from(clock) * 1000 * 2 * u64::from(bits / 8) / u64::from(multiprocessors);
    (1..FAST).contains(&rate)
}

impl DeviceLimits {
    fn of(context: &CudaContext) -> Result<Self, DriverError> {
        use sys::CUdevice_attribute as Of;
        let ask = |what| context.attribute(what).map(|found| found.max(0) as u32);
        let multiprocessors = ask(Of::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?.max(1);
        // Both are optional: a device that does not report them still computes.
        let known = |what| ask(what).unwrap_or(0);
        let clock = known(Of::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
        let bits = known(Of::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
        Ok(Self {
            multiprocessors,
            shared_bytes: ask(Of::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
            slow_memory: is_slow(clock, bits, multiprocessors),
            overlaps: ask(Of::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)? >= 9,
        })
    }
}

/// The binaries, loaded into a context, and the kernels and measurements added since.
pub(crate) struct Modules {
    context: Arc<CudaContext>,
    modules: Vec<Arc<CudaModule>>,
    limits: DeviceLimits,
    /// By source.
    compiled: Mutex<HashMap<String, Arc<CudaModule>>>,
    /// The fastest of several ways, by the name of the task.
    fastest: Mutex<HashMap<String, usize>>,
}

/// A kernel, ready to be launched.
#[derive(Clone)]
pub(crate) struct Kernel {
    pub(crate) function: CudaFunction,
    /// Resident blocks of a multiprocessor.
    blocks: u32,
    /// Unused shared memory of a block, in bytes, which limits the resident blocks.
    idle_bytes: u32,
    pub(crate) limits: DeviceLimits,
}

impl Modules {
    pub(crate) fn load(context: &Arc<CudaContext>) -> Result<Self, DriverError> {
        let load = |binary: &&[u8]| context.load_module(Ptx::from_binary(binary.to_vec()));
        Ok(Self {
            context: context.clone(),
            modules: BINARIES.iter().map(load).collect::<Result<_, _>>()?,
            limits: DeviceLimits::of(context)?,
            compiled: Mutex::default(),
            fastest: Mutex::default(),
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
        Ok(Kernel { function, blocks, idle_bytes: 0, limits: self.limits })
    }
}

impl Modules {
    /// The module of a source, which is compiled once.
    pub(crate) fn compiled(
        &self,
        source: &str,
        compile: impl FnOnce() -> Result<Ptx, GpuError>,
    ) -> Result<Arc<CudaModule>, GpuError> {
        let mut compiled = locked(&self.compiled);
        if let Some(found) = compiled.get(source) {
            return Ok(found.clone());
        }
        let loaded = self.context.load_module(compile()?).map_err(tried("loading a kernel"))?;
        compiled.insert(source.to_string(), loaded.clone());
        Ok(loaded)
    }

    /// The number of the fastest way to do this, which is determined once.
    pub(crate) fn fastest(
        &self,
        what: String,
        measure: impl FnOnce() -> Result<usize, GpuError>,
    ) -> Result<usize, GpuError> {
        let found = |map: &HashMap<_, _>| map.get(&what).copied();
        let lock = || locked(&self.fastest);
        if let Some(known) = found(&lock()) {
            return Ok(known);
        }
        let measured = measure()?;
        lock().insert(what, measured);
        Ok(measured)
    }

    /// The most shared memory of a block, in bytes.
    pub(crate) fn shared_bytes(&self) -> usize {
        self.limits.shared_bytes as usize
    }
}

impl Kernel {
    /// Limits the resident blocks of a multiprocessor by shared memory that is not used. A smaller
    /// grid alone would spread its blocks unevenly over multiprocessors.
    pub(crate) fn at_most(mut self, blocks: u32) -> Result<Self, GpuError> {
        /// Bytes of each try.
        const STEP: u32 = 256;
        use sys::CUfunction_attribute_enum as Of;
        let tried = tried("finding out how many blocks there are at once");
        let own = self.function.shared_size_bytes().map_err(&tried)? as u32;
        let most = self.limits.shared_bytes.saturating_sub(own);
        if self.blocks > blocks {
            // More than 48 KiB needs this attribute.
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

    /// Resident blocks of the device: the largest grid, because blocks fetch their work.
    pub(crate) fn resident(&self) -> usize {
        (self.blocks * self.limits.multiprocessors) as usize
    }

    /// A grid for `work` work items.
    pub(crate) fn grid(&self, work: usize) -> LaunchConfig {
        LaunchConfig { shared_mem_bytes: self.idle_bytes, ..blocks(work.clamp(1, self.resident())) }
    }
}

/// A grid of `count` blocks.
pub(crate) fn blocks(count: usize) -> LaunchConfig {
    LaunchConfig { grid_dim: (count as u32, 1, 1), block_dim: (THREADS, 1, 1), shared_mem_bytes: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_an_h100_is_slow_and_that_of_an_h200_is_not() {
        assert!(is_slow(2_619_000, 5120, 132));
        assert!(!is_slow(3_201_000, 6144, 132));
        // An H100 with seven tenths of its multiprocessors in use.
        assert!(!is_slow(2_619_000, 5120, 92));
        assert!(!is_slow(0, 5120, 132), "an unknown clock");
    }
}
