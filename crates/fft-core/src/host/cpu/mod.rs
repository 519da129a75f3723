//! Local transforms on a CPU, one pass over memory at a time.

pub(crate) mod axis_pass;
pub(crate) mod batch_pass;
pub(crate) mod cpu;
pub(crate) mod line_fft;
pub(crate) mod line_twiddles;
pub(crate) mod point_order;
pub(crate) mod prefetch;
pub(crate) mod resized_batch;
pub(crate) mod resized_line;
pub(crate) mod transpose;
pub(crate) mod workspace;

pub use cpu::{Cpu, CpuCall, CpuFft};
pub use line_fft::{LineFft, LinePlanner};
