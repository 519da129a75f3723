//! Quantities with units that suit their size.

pub(crate) fn time(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.2} µs", s * 1e6),
        s if s < 1.0 => format!("{:.2} ms", s * 1e3),
        s => format!("{s:.3} s"),
    }
}

pub(crate) fn bytes(bytes: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let power = (0..units.len()).rev().find(|&power| bytes >= 1024f64.powi(power as i32));
    match power.unwrap_or(0) {
        0 => format!("{bytes} B"),
        power => format!("{:.1} {}", bytes / 1024f64.powi(power as i32), units[power]),
    }
}

/// Operations of transforms by the convention of FFTW's benchmarks: `5 N log₂ N`, and half of that
/// for real data, where `width` is 1.
pub(crate) fn flops(width: usize, points: f64, batch: usize) -> f64 {
    2.5 * width as f64 * points * batch as f64 * points.log2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_suit_the_size() {
        assert_eq!(
            [0.0, 1023.0, 1024.0, 3.5e9].map(bytes),
            ["0 B", "1023 B", "1.0 KiB", "3.3 GiB"]
        );
        assert_eq!([5e-5, 0.25, 2.0].map(time), ["50.00 µs", "250.00 ms", "2.000 s"]);
    }
}
