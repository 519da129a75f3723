//! Statistics of times.

/// The middle value, or the mean of the two in the middle; NaN for none.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n => 0.5 * (sorted[(n - 1) / 2] + sorted[n / 2]),
    }
}

/// The least value; infinite for none.
pub(crate) fn min(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// How long one program takes in units of another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ratio {
    /// The ratio of the two medians.
    pub(crate) of_medians: f64,
    /// The median of the ratios within rounds, in which noise longer than a round cancels.
    pub(crate) median_of_rounds: f64,
}

impl Ratio {
    /// Both series hold the same rounds in the same order.
    pub(crate) fn of(ours: &[f64], theirs: &[f64]) -> Self {
        let rounds: Vec<f64> = ours.iter().zip(theirs).map(|(a, b)| a / b).collect();
        Self { of_medians: median(ours) / median(theirs), median_of_rounds: median(&rounds) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_even_and_no_values() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
        assert_eq!(min(&[2.0, 1.0]), 1.0);
    }

    #[test]
    fn noise_common_to_a_round_divides_out() {
        let ratio = Ratio::of(&[1.0, 10.0, 1.0, 100.0], &[2.0, 20.0, 2.0, 200.0]);
        assert_eq!(ratio, Ratio { of_medians: 0.5, median_of_rounds: 0.5 });
        let uneven = Ratio::of(&[1.0, 1.0, 9.0], &[2.0, 1.0, 3.0]);
        assert_eq!(uneven, Ratio { of_medians: 0.5, median_of_rounds: 1.0 });
    }
}
