//! The GPU of a rank.

use thriffty::Comm;
use thriffty::gpu::cudarc::driver::CudaContext;
use thriffty::gpu::{DeviceOptions, Gpu, GpuTransport, driver_is_present};

use crate::ranks::world::{Failure, agree};

/// The GPU of this rank: ranks of a host use its GPUs in rotation. Collective.
pub(super) fn device(comm: &dyn Comm, transport: GpuTransport) -> Result<DeviceOptions, Failure> {
    let rank = comm.rank();
    let before = (0..rank).filter(|other| comm.host(*other) == comm.host(rank)).count();
    let devices = match driver_is_present() {
        true => CudaContext::device_count().unwrap_or(0).max(1) as usize,
        false => 1,
    };
    let gpu = Gpu::probe(before % devices).map_err(|why| why.to_string());
    Ok(DeviceOptions { gpu: agree(comm, gpu)?, stream: None, transport })
}
