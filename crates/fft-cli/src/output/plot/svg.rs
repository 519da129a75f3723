//! Plots as SVG.

use std::fmt::Write;

use super::axis::Tick;
use super::frame::{Frame, Plot, fit, spaced};

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 480.0;
/// The width of the label of the y axis.
const LEFT: f64 = 48.0;
const RIGHT: f64 = 28.0;
const BOTTOM: f64 = 64.0;
const LEGEND: f64 = 48.0;
const LEGEND_ROW: f64 = 22.0;
/// About the width of a character of 13 pixels.
const CHARACTER: f64 = 7.2;
const MARKER_DISTANCE: f64 = 14.0;

/// Colours of curves that colour-blind people can distinguish.
pub(crate) const COLOURS: [&str; 6] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b07800", "#56b4e9"];
const MARKERS: [&str; 4] = [
    "M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z",
    "M-3.2 -3.2h6.4v6.4h-6.4z",
    "M0 -4.2l4.2 7h-8.4z",
    "M0 -4.6l4.6 4.6l-4.6 4.6l-4.6 -4.6z",
];

impl Plot {
    /// The plot as an SVG file of 760 by 480 pixels on white.
    pub(crate) fn to_svg(&self) -> String {
        draw(self)
    }
}

fn draw(plot: &Plot) -> String {
    let frame = plot.frame();
    let ticks = [frame.x.ticks(8), frame.y.ticks(8)];
    let label = |tick: &Tick| tick.label.as_ref().map_or(0, |label| label.chars().count());
    let left = LEFT + CHARACTER * ticks[1].iter().map(label).max().unwrap_or(0) as f64;
    let legend = legend(plot, WIDTH - left - RIGHT);
    let top = LEGEND + legend.last().map_or(0.0, |entry| entry.y + LEGEND_ROW);
    let drawing = Drawing { frame, ticks, left, top };
    let mut svg = String::new();
    // Writing to a string cannot fail.
    let _ = drawing.write(plot, &legend, &mut svg);
    svg
}

/// A curve's position in the legend, from the legend's upper left.
struct Entry {
    curve: usize,
    name: String,
    x: f64,
    y: f64,
}

/// The names in rows of the available width.
fn legend(plot: &Plot, available: f64) -> Vec<Entry> {
    let (mut x, mut y) = (0.0, 0.0);
    let mut entries = Vec::new();
    for (curve, (name, _)) in
        plot.series.iter().enumerate().filter(|(_, series)| !series.0.is_empty())
    {
        let name = fit(name, 80);
        let width = 34.0 + CHARACTER * name.chars().count() as f64 + 18.0;
        if x > 0.0 && x + width > available {
            (x, y) = (0.0, y + LEGEND_ROW);
        }
        entries.push(Entry { curve, name, x, y });
        x += width;
    }
    entries
}

struct Drawing {
    frame: Frame,
    ticks: [Vec<Tick>; 2],
    /// The left edge of the curves.
    left: f64,
    /// Their upper edge, below title and legend.
    top: f64,
}

impl Drawing {
    fn x(&self, at: f64) -> f64 {
        self.left + at * (WIDTH - self.left - RIGHT)
    }

    fn y(&self, at: f64) -> f64 {
        self.top + (1.0 - at) * (self.height() - BOTTOM - self.top)
    }

    /// A long legend makes the picture taller.
    fn height(&self) -> f64 {
        HEIGHT + (self.top - LEGEND - LEGEND_ROW).max(0.0)
    }

    fn write(&self, plot: &Plot, legend: &[Entry], svg: &mut String) -> std::fmt::Result {
        let height = self.height();
        begin_svg(svg, [WIDTH, height], &plot.title)?;
        self.write_labels(plot, svg)?;
        self.write_ticks(svg)?;
        for entry in legend {
            let (x, y) = (self.left + entry.x, LEGEND + entry.y);
            write_curve(entry.curve, &[[x, y], [x + 26.0, y]], &[[x + 13.0, y]], svg)?;
            let (x, y) = (x + 34.0, y + 4.5);
            writeln!(svg, r#"<text x="{x:.1}" y="{y:.1}">{}</text>"#, escape(&entry.name))?;
        }
        for (curve, points) in self.frame.curves.iter().enumerate() {
            let points: Vec<_> = points.iter().map(|p| [self.x(p[0]), self.y(p[1])]).collect();
            write_curve(curve, &points, &spaced(&points, MARKER_DISTANCE), svg)?;
        }
        if self.frame.is_empty() {
            let (x, y) = (self.x(0.5), self.y(0.5));
            writeln!(
                svg,
                r##"<text x="{x:.1}" y="{y:.1}" text-anchor="middle" fill="#777777">no data</text>"##
            )?;
        }
        svg.write_str("</svg>\n")
    }

    fn write_labels(&self, plot: &Plot, svg: &mut String) -> std::fmt::Result {
        let (middle, below) = (self.x(0.5), self.height() - 16.0);
        let (left, across) = (22.0, self.y(0.5));
        let title = escape(&fit(&plot.title, 70));
        let x_label = escape(&fit(&plot.x_label, 80));
        let y_label = escape(&fit(&plot.y_label, 44));
        writeln!(
            svg,
            r#"<g text-anchor="middle">
<text x="{middle:.1}" y="26" font-size="16" font-weight="bold">{title}</text>
<text x="{middle:.1}" y="{below:.1}">{x_label}</text>
<text transform="translate({left:.1} {across:.1}) rotate(-90)">{y_label}</text>
</g>"#
        )
    }

    /// The frame, the ticks with their labels, and the grid.
    fn write_ticks(&self, svg: &mut String) -> std::fmt::Result {
        let (left, right, top, bottom) = (self.x(0.0), self.x(1.0), self.y(1.0), self.y(0.0));
        let mut grid = [String::new(), String::new()];
        let mut labels = String::new();
        let [x_ticks, y_ticks] = &self.ticks;
        let vertical = x_ticks.iter().map(|tick| (true, tick));
        for (vertical, tick) in vertical.chain(y_ticks.iter().map(|tick| (false, tick))) {
            let (x, y) = (self.x(tick.at), self.y(tick.at));
            let line = if vertical {
                format!("M{x:.1} {top:.1}V{bottom:.1}")
            } else {
                format!("M{left:.1} {y:.1}H{right:.1}")
            };
            grid[usize::from(tick.label.is_some())] += &line;
            let (x, y, anchor) =
                if vertical { (x, bottom + 20.0, "middle") } else { (left - 9.0, y + 4.5, "end") };
            if let Some(label) = &tick.label {
                writeln!(
                    labels,
                    r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{label}</text>"#
                )?;
            }
        }
        let [minor, major] = grid;
        writeln!(
            svg,
            r##"<path d="{minor}" stroke="#f1f1f1"/>
<path d="{major}" stroke="#d9d9d9"/>
<path d="M{left:.1} {top:.1}H{right:.1}V{bottom:.1}H{left:.1}z" fill="none" stroke="#777777"/>
{labels}"##
        )
    }
}

/// A line through points, and markers at some of them.
fn write_curve(
    curve: usize,
    points: &[[f64; 2]],
    marked: &[[f64; 2]],
    svg: &mut String,
) -> std::fmt::Result {
    let colour = COLOURS[curve % COLOURS.len()];
    let marker = MARKERS[curve % MARKERS.len()];
    writeln!(svg, r#"<g stroke="{colour}" fill="{colour}" stroke-linejoin="round">"#)?;
    if points.len() > 1 {
        let list: Vec<_> = points.iter().map(|[x, y]| format!("{x:.1},{y:.1}")).collect();
        writeln!(svg, r#"<polyline fill="none" stroke-width="1.8" points="{}"/>"#, list.join(" "))?;
    }
    for [x, y] in marked {
        writeln!(
            svg,
            r##"<path transform="translate({x:.1} {y:.1})" d="{marker}" stroke="#ffffff" stroke-width="0.8"/>"##
        )?;
    }
    svg.write_str("</g>\n")
}

/// Begins a picture on white. The caller ends it with `</svg>`.
pub(crate) fn begin_svg(
    svg: &mut String,
    [width, height]: [f64; 2],
    title: &str,
) -> std::fmt::Result {
    writeln!(
        svg,
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"
 font-family="Helvetica, Arial, 'DejaVu Sans', sans-serif" font-size="13" fill="rgb(51,51,51)" role="img">
<title>{}</title>
<rect width="100%" height="100%" fill="#ffffff"/>"##,
        escape(title)
    )
}

/// A text for XML: special characters as entities, and control characters as spaces.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&apos;",
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            _ if c.is_control() => escaped.push(' '),
            _ => escaped.push(c),
        }
    }
    escaped
}
