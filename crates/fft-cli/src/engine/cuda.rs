//! The GPU of a rank.

use thriffty::Comm;
use thriffty::gpu::{DeviceOptions, Gpu, GpuTransport, device_in_rotation};
use thriffty::planning::DeviceChoice;

use crate::ranks::world::{Failure, agree};

/// The GPU of this rank. Collective.
pub(super) fn device(
    comm: &dyn Comm,
    device: DeviceChoice,
    transport: GpuTransport,
) -> Result<DeviceOptions, Failure> {
    let number = match device {
        DeviceChoice::Number(number) => number,
        _ => device_in_rotation(comm),
    };
    let gpu = Gpu::probe(number).map_err(|why| why.to_string());
    Ok(DeviceOptions { gpu: agree(comm, gpu)?, stream: None, transport })
}
