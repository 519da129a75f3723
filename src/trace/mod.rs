//! Traces: files in Chrome's format, which all ranks of a plan write together.

mod clock;
mod file;
mod tracer;

pub(crate) use tracer::Tracer;
