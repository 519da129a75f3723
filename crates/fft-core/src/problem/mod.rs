//! Problems: kinds, layouts, options, and the machine of the cost model.

pub(crate) mod algorithm;
pub(crate) mod gpu_transport;
pub(crate) mod kind;
pub(crate) mod link;
pub(crate) mod machine;
pub(crate) mod options;
pub(crate) mod problem;
pub(crate) mod transport_policy;

pub use algorithm::{Algorithm, Epochs};
pub use gpu_transport::GpuTransport;
pub use kind::{Direction, Kind, Scale};
pub use link::Link;
pub use machine::{Codecs, How, Machine, Messages, Quantity, Rate};
pub use options::{Access, Memory, TransportOptions};
pub use problem::Problem;
pub use transport_policy::{Chunking, TransportPolicy};
