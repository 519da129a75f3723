//! Problems: kinds, layouts, options, and the machine of the cost model.

pub(crate) mod ends;
pub(crate) mod exchange;
pub(crate) mod gain;
pub(crate) mod gpu_transport;
pub(crate) mod kind;

pub(crate) mod link;
pub(crate) mod machine;
pub(crate) mod memory;
pub(crate) mod one_axis;
pub(crate) mod options;
pub(crate) mod problem;
pub(crate) mod scale;
pub(crate) mod transport_policy;
mod turn;

pub use ends::Ends;
pub(crate) use exchange::FlightCosts;
pub use exchange::{Epochs, Exchange, Pattern};
pub(crate) use gain::Gain;
pub use gpu_transport::GpuTransport;
pub use kind::Kind;
pub(crate) use kind::Lines;

pub use link::Link;
pub use machine::{Codecs, How, Machine, Messages, Quantity, Rate};
pub use memory::{Access, Memory};
pub use one_axis::{Division, Factors, OneAxis};
pub use options::TransportOptions;
pub use problem::Problem;
pub use scale::{Direction, Norm, Scale};
pub use transport_policy::{Chunking, TransportPolicy};
