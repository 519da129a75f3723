//! All tests on the host alone: ranks are threads, and neither MPI nor CUDA is needed.

#[path = "../common/allocations.rs"]
mod allocations;
#[path = "../common/mod.rs"]
mod common;
mod recorded;
#[path = "../common/subarrays.rs"]
mod subarrays;
mod watch;
mod whole;

mod alloc;
mod arrays;
mod channel;
mod divided;
mod dyn_plans;
mod errors;
mod fields;
mod large;
mod least_memory;
mod local;
mod numpy;
#[cfg(feature = "nvtx")]
mod nvtx;
mod one_axis;
mod operators;
mod oracle;
mod plan_cache;
mod plans;
mod properties;
mod resized;
mod same_bits;
mod schedule;
mod schemes;
mod taylor_green;
mod tune;
mod wire;
