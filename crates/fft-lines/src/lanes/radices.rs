//! The radices of the stages of a length.

/// The radices with the product `n` that take least time, or `None` if `n` has other factors.
pub(crate) fn radices(n: usize, costs: &[(usize, f64)]) -> Option<Vec<usize>> {
    let (_, mut radices) = cheapest(n, usize::MAX, costs)?;
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
fn cheapest(n: usize, most: usize, costs: &[(usize, f64)]) -> Option<(f64, Vec<usize>)> {
    if n == 1 {
        return Some((0.0, Vec::new()));
    }
    let fitting = costs.iter().filter(|(radix, _)| *radix <= most && n.is_multiple_of(*radix));
    let plans = fitting.filter_map(|&(radix, cost)| {
        let (rest, mut radices) = cheapest(n / radix, radix, costs)?;
        radices.push(radix);
        Some((cost + rest, radices))
    });
    plans.min_by(|a, b| a.0.total_cmp(&b.0))
}
