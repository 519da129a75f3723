//! Profiles of velocity as a picture.

use std::fmt::Write as _;

use crate::Curve;

/// Velocities over height at several times, as points, and the formula as lines, as SVG.
pub(super) fn drawing(curves: &[Curve]) -> String {
    const COLOURS: [&str; 5] = ["#56b4e9", "#0072b2", "#009e73", "#b07800", "#d55e00"];
    let [left, right, top, bottom] = [64.0, 616.0, 52.0, 352.0];
    let most =
        curves.iter().flat_map(|curve| &curve.points).map(|[_, _, v]| *v).fold(0.0, f64::max);
    let place = |z: f64, u: f64| {
        (left + z / 2.0 * (right - left), bottom - u / (1.15 * most) * (bottom - top))
    };
    let mut drawn = String::new();
    for tick in 0..=4 {
        let (z, u) = (0.5 * f64::from(tick), 0.25 * f64::from(tick) * most);
        let ((x, _), (_, y)) = (place(z, 0.0), place(0.0, u));
        let (below, beside) = (bottom + 20.0, left - 8.0);
        let _ = write!(
            drawn,
            "<path d=\"M{x:.1} {top}V{bottom}M{left} {y:.1}H{right}\" stroke=\"#d9d9d9\"/>\n\
             <text x=\"{x:.1}\" y=\"{below}\" text-anchor=\"middle\">{z}</text>\n\
             <text x=\"{beside}\" y=\"{:.1}\" text-anchor=\"end\">{u:.2}</text>\n",
            y + 4.5
        );
    }
    for (number, Curve { time, points }) in curves.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        let mut line = String::new();
        for [z, u, formula] in points {
            let ((x, y), (_, expected)) = (place(*z, *u), place(*z, *formula));
            let _ = write!(line, "{x:.1},{expected:.1} ");
            let _ = writeln!(
                drawn,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.6\" fill=\"{colour}\"/>"
            );
        }
        let (x, y) = place(1.0, points[points.len() / 2][2]);
        let _ = writeln!(
            drawn,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.2\"/>\n\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"{colour}\">t = {time:.2}</text>",
            line.trim_end(),
            y - 7.0
        );
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"640\" height=\"400\" viewBox=\"0 0 640 400\" \
         font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\" font-size=\"13\" fill=\"#333333\" role=\"img\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"340\" y=\"28\" font-size=\"16\" font-weight=\"bold\" text-anchor=\"middle\">\
         A force starts a flow between walls: points computed, lines by Poiseuille's formula</text>\n\
         <text x=\"340\" y=\"392\" text-anchor=\"middle\">distance from a wall</text>\n{drawn}\
         <path d=\"M{left} {top}H{right}V{bottom}H{left}z\" fill=\"none\" stroke=\"#777777\"/>\n</svg>\n"
    )
}
