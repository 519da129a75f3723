//! Copies between arrays on the devices of ranks.

use fft_comm::{exchanger, usual_exchange};
use fft_core::{Comm, CopyPlan, Error, agree};
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
    let queue = device.into().settle(comm, Ok(()))?;
    let own = agree(comm, comm.dup())?;
    let exchange = agree(comm, exchanger(usual_exchange(comm), own.as_ref()))?;
    DeviceCopy::new(&queue, own, exchange, plan)
}
