//! Machines that the model of costs knows: some by name, others from files, or measured.
//!
//! A machine file is TOML with the fields of [`Machine`]: each number has a `value`, how it is
//! known (measured, fitted or assumed) and its `source`. [`measure`] and [`save`] make one;
//! [`load`] and [`read`] read it on all ranks, [`read_file`] on this one alone. With the feature
//! `cuda`, `measure_on_device`, `load_on_device` and `read_on_device` do so for plans on GPUs.

mod agreed;
mod calibrated;
mod fitted;
mod load;
mod named;
#[cfg(feature = "cuda")]
mod on_device;

pub use calibrated::{load, read, save};
#[cfg(feature = "cuda")]
pub use calibrated::{load_on_device, read_on_device};
pub use fft_core::{Codecs, Costs, How, LineCosts, Machine, Messages, OneByOne, Quantity, Rate};
pub use fitted::measure;
pub use named::{NAMES, named, read_file};
#[cfg(feature = "cuda")]
pub use on_device::measure_on_device;
