//! Machines that the model of costs knows: some by name, others from files, or measured.
//!
//! A machine file is TOML with the fields of [`Machine`]: each number has a `value`, how it is
//! known (measured, fitted or assumed) and its `source`. [`measure`] and [`save`] make one;
//! [`load`] and [`read`] read it on all ranks, [`read_file`] on this one alone.

mod calibrated;
mod fitted;
mod named;

pub use calibrated::{load, read, save};
pub use fft_core::{Codecs, Costs, How, LineCosts, Machine, Messages, OneByOne, Quantity, Rate};
pub use fitted::measure;
pub use named::{NAMES, named, read_file};
