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

/// Seconds that ranks of a host take to wait for each other.
const MEETING: f64 = 5e-6;

/// A reshape in which the busiest rank holds `held` bytes, of which at most `sent` come from or go to ranks that are
/// reached by messages; the others are read where they are.
pub fn reshape(held: f64, sent: f64) -> f64 {
    let exchange = if sent > 0.0 { EXCHANGE } else { 0.0 };
    exchange + sent * WIRE_BYTE + 2.0 * held * MEMORY_BYTE
}

/// A reshape between ranks that all share memory. The transform beside it fetches and stores its lines wherever they
/// are, so that what remains is to wait for each other.
pub fn meeting() -> f64 {
    MEETING
}

/// Arithmetic of transforms of lines of `n` elements, by the rank that holds most `elements`.
pub fn flops(n: usize, elements: f64, contiguous: bool) -> f64 {
    let seconds = 5.0 * elements * (n.max(2) as f64).log2() * FLOP;
    if contiguous { seconds } else { seconds * STRIDED }
}

/// One reading and writing of so many bytes.
pub fn pass(bytes: f64) -> f64 {
    2.0 * bytes * MEMORY_BYTE
}
