//! `fft-cli`: benchmarks, verifies and runs distributed Fourier transforms on NumPy files.

#[allow(dead_code)] // until the subcommands call it
mod npy;
#[allow(dead_code)] // until the subcommands call it
mod plot;

fn main() {}
