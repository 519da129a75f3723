//! Machines that come with the library, and machine files.

mod named;
mod signed;

#[cfg(feature = "cuda")]
pub(crate) use named::parse;
pub use named::{NAMES, named, read_file};
pub use signed::{load, read, save};
#[cfg(feature = "cuda")]
pub use signed::{load_on_device, read_on_device};
