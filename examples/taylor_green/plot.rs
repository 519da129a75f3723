//! The dissipation over time as an SVG picture.

use std::fmt::{Result, Write};

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 400.0;
/// The frame: left, top, right and bottom.
const FRAME: [f64; 4] = [80.0, 56.0, 620.0, 345.0];

/// A curve: its name, colour and points.
pub(crate) struct Curve<'a> {
    pub(crate) name: &'a str,
    pub(crate) colour: &'a str,
    pub(crate) points: Vec<[f64; 2]>,
}

/// The curves over common axes that begin at 0.
pub(crate) fn svg(title: &str, labels: [&str; 2], curves: &[Curve<'_>]) -> String {
    let mut text = String::new();
    // Writing to a text cannot fail.
    let _ = draw(title, labels, curves, &mut text);
    text
}

/// The distance of ticks: 1, 2 or 5 times a power of ten, so that there are at most 6.
fn tick(largest: f64) -> f64 {
    let power = 10f64.powf((largest / 6.0).log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .map(|digit| digit * power)
        .into_iter()
        .find(|tick| largest / tick <= 6.0)
        .unwrap_or(largest)
}

fn draw(
    title: &str,
    [x_label, y_label]: [&str; 2],
    curves: &[Curve<'_>],
    svg: &mut String,
) -> Result {
    let [left, top, right, bottom] = FRAME;
    let largest = |axis: usize| {
        let values = curves.iter().flat_map(|curve| &curve.points).map(|point| point[axis]);
        values.filter(|value| value.is_finite()).fold(f64::MIN_POSITIVE, f64::max)
    };
    let [x_end, y_end] = [largest(0), 1.05 * largest(1)];
    let place =
        |[x, y]: [f64; 2]| [left + x / x_end * (right - left), bottom - y / y_end * (bottom - top)];
    writeln!(
        svg,
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}"
 viewBox="0 0 {WIDTH} {HEIGHT}" font-family="Helvetica, Arial, sans-serif" font-size="13" fill="#333333">
<rect width="100%" height="100%" fill="#ffffff"/>
<g text-anchor="middle">
<text x="{0}" y="24" font-size="16" font-weight="bold">{title}</text>
<text x="{0}" y="{1}">{x_label}</text>
<text transform="translate(20 {2}) rotate(-90)">{y_label}</text>
</g>"##,
        (left + right) / 2.0,
        HEIGHT - 14.0,
        (top + bottom) / 2.0
    )?;
    for (axis, end) in [x_end, y_end].into_iter().enumerate() {
        let tick = tick(end);
        let digits = (-tick.log10().floor()).max(0.0) as usize;
        for i in 0..=(end / tick) as usize {
            let value = i as f64 * tick;
            let [x, y] = place(if axis == 0 { [value, 0.0] } else { [0.0, value] });
            let (line, x, y, anchor) = match axis {
                0 => (format!("M{x:.1} {top}V{bottom}"), x, bottom + 20.0, "middle"),
                _ => (format!("M{left} {y:.1}H{right}"), left - 9.0, y + 4.5, "end"),
            };
            writeln!(
                svg,
                r##"<path d="{line}" stroke="#e3e3e3"/>
<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{value:.digits$}</text>"##
            )?;
        }
    }
    writeln!(
        svg,
        r##"<path d="M{left} {top}H{right}V{bottom}H{left}z" fill="none" stroke="#777777"/>"##
    )?;
    for (at, Curve { name, colour, points }) in curves.iter().enumerate() {
        let points: Vec<_> = points.iter().map(|point| place(*point)).collect();
        let list: Vec<_> = points.iter().map(|[x, y]| format!("{x:.1},{y:.1}")).collect();
        let (x, width) = (left + 200.0 * at as f64, 2.0 + 2.0 * (curves.len() - at - 1) as f64);
        writeln!(
            svg,
            r#"<g stroke="{colour}" stroke-width="{width}" fill="none" stroke-linejoin="round">
<polyline points="{}"/><path d="M{x} 42h26"/></g>
<text x="{}" y="46.5">{name}</text>"#,
            list.join(" "),
            x + 34.0
        )?;
    }
    svg.write_str("</svg>\n")
}
