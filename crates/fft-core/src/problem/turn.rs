//! Points of the unit circle.

use num_complex::Complex;

type C = Complex<f64>;

/// `exp(2πi m/d)`. Whole numbers reduce the angle to the first eighth of a turn without rounding.
pub(super) fn turn(m: u128, d: u128) -> C {
    // In units of 1/(8d) of a turn.
    let mut angle = 8 * (m % d);
    let below = angle > 4 * d;
    if below {
        angle = 8 * d - angle;
    }
    let left = angle > 2 * d;
    if left {
        angle = 4 * d - angle;
    }
    let steep = angle > d;
    if steep {
        angle = 2 * d - angle;
    }
    let (sin, cos) = (std::f64::consts::TAU * angle as f64 / (8 * d) as f64).sin_cos();
    let (x, y) = if steep { (sin, cos) } else { (cos, sin) };
    C::new(if left { -x } else { x }, if below { -y } else { y })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_exact_where_they_can_be() {
        let found = [0, 1, 2, 3, 4, 5, 6, 7, 8].map(|m| turn(m, 8));
        let h = std::f64::consts::FRAC_1_SQRT_2;
        let expected =
            [(1.0, 0.0), (h, h), (0.0, 1.0), (-h, h), (-1.0, 0.0), (-h, -h), (0.0, -1.0), (h, -h)];
        for (m, (found, (re, im))) in found.into_iter().zip(expected.iter().cycle()).enumerate() {
            assert!((found - C::new(*re, *im)).norm() < 2e-16, "{m}/8: {found}");
        }
        for m in 0..1000 {
            let angle = std::f64::consts::TAU * m as f64 / 1000.0;
            assert!((turn(m, 1000) - C::from_polar(1.0, angle)).norm() < 1e-14);
        }
    }
}
