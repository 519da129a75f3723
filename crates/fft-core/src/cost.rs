//! What steps are expected to cost: pure functions of sizes, in seconds.
//!
//! The constants are **assumed**, of the order of a node of the 2020s; they are not calibrated to the machine
//! at hand. Only their ratios matter: they make the search prefer few bytes over few exchanges over few
//! passes over memory.

/// Seconds that an exchange takes whatever its size.
const EXCHANGE: f64 = 2e-5;
/// Seconds per byte between two ranks, packing and unpacking included.
const WIRE_BYTE: f64 = 4e-10;
/// Seconds per byte read or written in memory.
const MEMORY_BYTE: f64 = 1e-10;
/// Seconds per floating-point operation of a local transform.
const FLOP: f64 = 2.5e-10;
/// How much longer lines take that are gathered from memory instead of lying there one after the other.
const STRIDED: f64 = 1.1;

/// A reshape in which the busiest rank holds `held` bytes, of which at most `moved` come from or go to
/// others.
pub fn reshape(held: f64, moved: f64) -> f64 {
    let exchange = if moved > 0.0 { EXCHANGE } else { 0.0 };
    exchange + moved * WIRE_BYTE + 2.0 * held * MEMORY_BYTE
}

/// Local transforms of lines of `n` elements, by the rank that holds most `elements`, in `bytes` bytes.
pub fn fft(n: usize, elements: f64, bytes: f64, contiguous: bool) -> f64 {
    let flops = 5.0 * elements * (n.max(2) as f64).log2();
    let seconds = flops * FLOP + 2.0 * bytes * MEMORY_BYTE;
    if contiguous { seconds } else { seconds * STRIDED }
}
