//! Copies between arrays on the devices of ranks.

use fft_comm::exchanger;
use fft_core::{Comm, CopyPlan, Error, agree, assert_same};
use fft_gpu::DeviceCopy;

use crate::bound::DeviceOptions;

/// Binds a plan to devices, each rank's arrays on its own. Collective, over the same ranks.
///
/// Ranks of a host whose devices reach each other read messages in place, and the host does not
/// wait for its device. Others send them through the host.
///
/// # Errors
/// The errors of [`DeviceCopy::new`]; [`Error::Disagreement`] about the transport.
pub fn bind_on_device(
    comm: &dyn Comm,
    device: impl Into<DeviceOptions>,
    plan: CopyPlan,
) -> Result<DeviceCopy, Error> {
    let DeviceOptions { gpu, stream, transport } = device.into();
    assert_same(comm, &[("transport", transport.to_string())])?;
    let stream = match stream {
        Some(stream) => Ok(stream),
        None => gpu.new_stream().map_err(|why| why.on(comm.rank())),
    };
    let stream = agree(comm, stream)?;
    let own = agree(comm, comm.dup())?;
    let exchange = agree(comm, exchanger(super::usual_exchange(comm), own.as_ref()))?;
    DeviceCopy::new((&gpu, &stream, transport), own, exchange, plan)
}
