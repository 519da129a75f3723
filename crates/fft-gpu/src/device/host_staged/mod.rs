//! Messages to ranks that are not reached, chunk by chunk.
//!
//! The device packs all chunks into message memory, one after the other. An exchange that takes
//! device buffers sends from there and receives there. Otherwise a second stream copies each chunk
//! to the host when it is packed, while the next is being packed and the previous one is sent.
//! The host codes and decodes messages of wires without kernels.

mod chunk;
mod handler;
mod host_codec;
mod message;
mod staged;

pub(super) use message::undecoded;
pub(super) use staged::{HostStaged, StagedOptions};
