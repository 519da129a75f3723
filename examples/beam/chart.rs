//! The errors as a picture.

use std::fmt::Write as _;

use crate::Convergence;

/// Errors over n on logarithmic axes, and a line of slope 2, as SVG.
pub(super) fn drawing(found: &[Convergence]) -> String {
    const WIDTH: f64 = 700.0;
    const HEIGHT: f64 = 440.0;
    const LEFT: f64 = 78.0;
    const RIGHT: f64 = 24.0;
    const TOP: f64 = 78.0;
    const BOTTOM: f64 = 56.0;
    const COLOURS: [&str; 5] = ["#0072b2", "#56b4e9", "#d55e00", "#b07800", "#777777"];
    let mut curves = Vec::new();
    for Convergence { name, errors } in found {
        for (which, norm) in ["largest", "l2"].into_iter().enumerate() {
            let points: Vec<_> = errors.iter().map(|(n, e)| (*n as f64, e[which])).collect();
            curves.push((format!("{name}, {norm}"), points));
        }
    }
    let values = || curves.iter().flat_map(|(_, points)| points);
    let (first, last) = values().fold((f64::MAX, 0f64), |(a, b), p| (a.min(p.0), b.max(p.0)));
    let (low, high) = values().fold((f64::MAX, 0f64), |(a, b), p| (a.min(p.1), b.max(p.1)));
    let slope = [(first, high * 1.6), (last, high * 1.6 * (first / last).powi(2))];
    curves.push(("slope 2".into(), slope.to_vec()));
    let low = low.min(slope[1].1);
    let (bottom, top) = ((low / 1.5).log10(), (high * 2.4).log10());
    let x_of = |n: f64| {
        let (start, end) = ((first / 1.25).log2(), (last * 1.25).log2());
        LEFT + (n.log2() - start) / (end - start) * (WIDTH - LEFT - RIGHT)
    };
    let y_of = |e: f64| TOP + (top - e.log10()) / (top - bottom) * (HEIGHT - TOP - BOTTOM);

    let mut grid = String::new();
    let (right, floor) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    let mut labels = String::new();
    for exponent in bottom.ceil() as i32..=top.floor() as i32 {
        let y = y_of(10f64.powi(exponent));
        let _ = write!(grid, "M{LEFT} {y:.1}H{right}");
        let (x, y) = (LEFT - 9.0, y + 4.5);
        let _ =
            writeln!(labels, r#"<text x="{x}" y="{y:.1}" text-anchor="end">1e{exponent}</text>"#);
    }
    for (n, _) in &found[0].errors {
        let (x, y) = (x_of(*n as f64), floor + 20.0);
        let _ = write!(grid, "M{x:.1} {TOP}V{floor}");
        let _ = writeln!(labels, r#"<text x="{x:.1}" y="{y}" text-anchor="middle">{n}</text>"#);
    }
    for (i, (name, points)) in curves.iter().enumerate() {
        let colour = COLOURS[i % COLOURS.len()];
        let dashes = if i + 1 == curves.len() { r#" stroke-dasharray="6 5""# } else { "" };
        let list: Vec<_> =
            points.iter().map(|(n, e)| format!("{:.1},{:.1}", x_of(*n), y_of(*e))).collect();
        let list = list.join(" ");
        let _ = writeln!(
            labels,
            r#"<polyline points="{list}" fill="none" stroke="{colour}" stroke-width="1.8"{dashes}/>"#
        );
        let (x, y) = (LEFT + i as f64 * 122.0, 56.0);
        let (text, height) = (x + 26.0, y - 4.5);
        let _ = writeln!(
            labels,
            r#"<path d="M{x} {height}h20" stroke="{colour}" stroke-width="1.8"{dashes}/>
<text x="{text}" y="{y}">{name}</text>"#
        );
    }
    let (middle, below, across) = ((LEFT + right) / 2.0, HEIGHT - 14.0, (TOP + floor) / 2.0);
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"
 font-family="Helvetica, Arial, 'DejaVu Sans', sans-serif" font-size="13" fill="#333333" role="img">
<rect width="100%" height="100%" fill="#ffffff"/>
<g text-anchor="middle"><text x="{middle}" y="28" font-size="16" font-weight="bold">Gaussian bunches in open space</text>
<text x="{middle}" y="{below}">points along each axis</text>
<text transform="translate(20 {across}) rotate(-90)">error over the largest potential</text></g>
<path d="{grid}" stroke="#d9d9d9"/>
<path d="M{LEFT} {TOP}H{right}V{floor}H{LEFT}z" fill="none" stroke="#777777"/>
{labels}</svg>
"##
    )
}
