//! The radices of the passes of a length.

/// The radices with the product `n` that take least time, in ascending order, or `None` if `n` has
/// other factors.
pub(crate) fn radices(n: usize, costs: &[(usize, f64)]) -> Option<Vec<usize>> {
    let (_, mut radices) = cheapest(n, n.saturating_sub(1), costs)
        .or_else(|| costs.iter().find(|(radix, _)| *radix == n).map(|_| (0.0, vec![n])))?;
    radices.sort_unstable();
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
