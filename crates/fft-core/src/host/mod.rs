//! The host as a device: passes through caches, and reshapes fused with transforms.

pub(crate) mod bind;
pub(crate) mod cpu;
pub(crate) mod device;
pub(crate) mod fused_pack;
pub(crate) mod host_executor;
pub(crate) mod op;
pub(crate) mod reshape;
pub(crate) mod shared_pass;
pub(crate) mod spill_buffers;
pub(crate) mod tiles;

pub use cpu::{Cpu, CpuCall, CpuFft, LineFft, LinePlanner};
pub use device::HostWork;
pub use host_executor::{HostExecutor, bind_on_host};
pub use op::HostOp;
