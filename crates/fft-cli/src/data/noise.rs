//! Pseudo-random numbers by key: the same data for any number of ranks.

/// A uniformly distributed number from -½ to ½ for each key.
pub(crate) fn value(key: u64) -> f64 {
    (scramble(key) >> 11) as f64 / (1u64 << 53) as f64 - 0.5
}

/// 64 bits for each key: the finaliser of SplitMix64.
pub(crate) fn scramble(key: u64) -> u64 {
    let key = key.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let key = (key ^ key >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let key = (key ^ key >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    key ^ key >> 31
}

/// A normally distributed number for each key, by the method of Box and Muller.
pub(crate) fn gaussian(key: u64) -> f64 {
    // Above zero, so that it has a logarithm.
    let radius = (-2.0 * (0.5 - value(2 * key)).ln()).sqrt();
    radius * (std::f64::consts::TAU * value(2 * key + 1)).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_spread_evenly_around_zero() {
        let values: Vec<f64> = (0..10_000).map(value).collect();
        let mean = |power: i32| values.iter().map(|v| v.powi(power)).sum::<f64>() / 10_000.0;
        assert!(mean(1).abs() < 0.01 && (mean(2) - 1.0 / 12.0).abs() < 0.002);
        assert!(values.iter().all(|v| (-0.5..0.5).contains(v)));
    }

    #[test]
    fn gaussian_numbers_have_their_moments() {
        let values: Vec<f64> = (0..100_000).map(gaussian).collect();
        let mean = |power: i32| values.iter().map(|v| v.powi(power)).sum::<f64>() / 1e5;
        assert!(
            mean(1).abs() < 0.02 && (mean(2) - 1.0).abs() < 0.02 && (mean(4) - 3.0).abs() < 0.2
        );
    }
}
