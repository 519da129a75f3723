//! The radices of the stages of a length.

/// The radices of which there are kernels, and the time of a stage per number in units of that of
/// radix 4: measured in f64 with AVX2.
const COSTS: [(usize, f64); 10] = [
    (2, 0.7),
    (3, 1.0),
    (4, 1.0),
    (5, 1.3),
    (7, 1.9),
    (8, 1.6),
    (9, 2.1),
    (11, 3.0),
    (13, 3.8),
    (16, 2.1),
];

/// The radices with the product `n` that take least time, or `None` if `n` has other factors.
pub(crate) fn radices(n: usize) -> Option<Vec<usize>> {
    let (_, mut radices) = cheapest(n, usize::MAX)?;
    radices.sort_unstable();
    // The first and the last stage also load and store lines, which few numbers at a time suit
    // best.
    if let Some(four) = radices.iter().position(|radix| *radix == 4) {
        radices[..=four].rotate_right(1);
    }
    if let Some(four) = radices.iter().skip(1).position(|radix| *radix == 4) {
        radices[four + 1..].rotate_left(1);
    }
    Some(radices)
}

/// The radices up to `most`, and their time.
fn cheapest(n: usize, most: usize) -> Option<(f64, Vec<usize>)> {
    if n == 1 {
        return Some((0.0, Vec::new()));
    }
    let fitting = COSTS.iter().filter(|(radix, _)| *radix <= most && n.is_multiple_of(*radix));
    let plans = fitting.filter_map(|&(radix, cost)| {
        let (rest, mut radices) = cheapest(n / radix, radix)?;
        radices.push(radix);
        Some((cost + rest, radices))
    });
    plans.min_by(|a, b| a.0.total_cmp(&b.0))
}
