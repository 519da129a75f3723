//! Difference schemes with ends, point by point: the equations that solutions must fulfil.

use thriffty::Ends;
use thriffty::spectral::{Scheme, Tridiagonal};

/// All that are conditions.
pub(crate) const CONDITIONS: [Ends; 9] = {
    let mut all = [Ends::Periodic; 9];
    let mut at = 0;
    while at < all.len() {
        all[at] = Ends::ALL[at];
        at += 1;
    }
    all
};

/// The length of an axis of `n` points whose spacing is 1.
pub(crate) fn length(ends: Ends, n: usize) -> f64 {
    let beyond = |slope: &bool| if *slope { -0.5 } else { 0.5 };
    if ends.is_at_faces() {
        n as f64 + ends.slopes().iter().map(beyond).sum::<f64>()
    } else {
        n as f64
    }
}

/// The point whose image is a point beyond the ends, and its sign; `None` if that is 0.
fn image(ends: Ends, n: usize, mut at: i64) -> Option<(usize, f64)> {
    let n = n as i64;
    if ends == Ends::Periodic {
        return Some((at.rem_euclid(n) as usize, 1.0));
    }
    let [first, last] = ends.slopes();
    // The sum of the indices of a point and its image, below and above.
    let (below, above) = if ends.is_at_faces() {
        (if first { 0 } else { -2 }, if last { 2 * n - 2 } else { 2 * n })
    } else {
        (-1, 2 * n - 1)
    };
    let mut sign = 1.0;
    while !(0..n).contains(&at) {
        let (sum, slope) = if at < 0 { (below, first) } else { (above, last) };
        if 2 * at == sum {
            return None;
        }
        sign *= if slope { 1.0 } else { -1.0 };
        at = sum - at;
    }
    Some((at as usize, sign))
}

/// The second derivative along an axis of a row-major array, with spacing 1.
pub(crate) fn second(
    f: &[f64],
    shape: [usize; 3],
    axis: usize,
    (ends, scheme): (Ends, Scheme),
) -> Vec<f64> {
    let stencil: &[f64] = match scheme {
        Scheme::Central2 | Scheme::Staggered2 => &[-2.0, 1.0],
        Scheme::Central4 => &[-5.0 / 2.0, 4.0 / 3.0, -1.0 / 12.0],
        // The square of the four points.
        Scheme::Staggered4 => &[-1460.0 / 576.0, 783.0 / 576.0, -54.0 / 576.0, 1.0 / 576.0],
        Scheme::Exact => panic!("no stencil"),
    };
    let (n, stride) = (shape[axis], shape[axis + 1..].iter().product::<usize>());
    let value = |place: usize| {
        let at = place / stride % n;
        let other = |to: i64| {
            let found = image(ends, n, to);
            found.map_or(0.0, |(to, sign)| sign * f[place - at * stride + to * stride])
        };
        let pair = |(reach, c): (usize, &f64)| {
            let (at, reach) = (at as i64, reach as i64);
            c * (other(at - reach) + if reach > 0 { other(at + reach) } else { 0.0 })
        };
        stencil.iter().enumerate().map(pair).sum()
    };
    (0..f.len()).map(value).collect()
}

/// The rows of a tridiagonal scheme along an axis of a row-major array.
pub(crate) fn rows(f: &[f64], shape: [usize; 3], axis: usize, scheme: &Tridiagonal) -> Vec<f64> {
    let (n, stride) = (shape[axis], shape[axis + 1..].iter().product::<usize>());
    let value = |place: usize| {
        let at = place / stride % n;
        let other = |to: usize| f[place - at * stride + to * stride];
        let [a, b, c] = scheme.row(at);
        a * other((at + n - 1) % n) + b * f[place] + c * other((at + 1) % n)
    };
    (0..f.len()).map(value).collect()
}
