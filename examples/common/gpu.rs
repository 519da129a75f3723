//! GPUs of ranks.

use thriffty::gpu::cudarc::driver::CudaContext;
use thriffty::gpu::{Gpu, driver_is_present};
use thriffty::{Comm, Error};

/// The GPU of this rank: ranks of a host use its GPUs in rotation.
pub(crate) fn gpu(comm: &dyn Comm) -> Result<Gpu, Error> {
    let rank = comm.rank();
    let before = (0..rank).filter(|other| comm.host(*other) == comm.host(rank)).count();
    let devices = if driver_is_present() {
        CudaContext::device_count().unwrap_or(0).max(1) as usize
    } else {
        1
    };
    let gpu = Gpu::probe(before % devices).map_err(|why| why.on(rank));
    thriffty::planning::agree(comm, gpu)
}
