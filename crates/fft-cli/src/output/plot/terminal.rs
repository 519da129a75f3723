//! Plots in characters: lines as Braille dots, letters at some points of each curve.

use super::axis::Tick;
use super::frame::{Frame, Plot, fit, spaced};

const MARKERS: [char; 6] = ['o', 'x', '+', '*', '#', '@'];
/// Columns, or two times rows, between two markers of a curve.
const MARKER_DISTANCE: f64 = 6.0;

impl Plot {
    /// The plot in at most `width` by `height` characters, but at least 32 by 10; a long legend
    /// makes it taller.
    pub(crate) fn to_terminal(&self, width: usize, height: usize) -> String {
        draw(self, width.clamp(32, 1000), height.clamp(10, 1000))
    }
}

fn draw(plot: &Plot, width: usize, height: usize) -> String {
    let frame = plot.frame();
    let legend = legend(plot, width);
    // Other lines: title, legend, y label, axis, tick labels, x label.
    let rows = height.saturating_sub(5 + legend.len()).max(4);
    let y_ticks: Vec<_> =
        labels(frame.y.ticks(rows / 2)).map(|(at, label)| (row(at, rows), label)).collect();
    let margin = y_ticks.iter().map(|(_, label)| label.chars().count()).max().unwrap_or(0);
    let columns = width.saturating_sub(margin + 2).max(8);

    let mut lines = vec![centred(&plot.title, width)];
    lines.extend(legend);
    lines.push(fit(&plot.y_label, width));
    for (r, cells) in canvas(&frame, columns, rows).into_iter().enumerate() {
        let label = y_ticks.iter().find(|tick| tick.0 == r).map(|tick| tick.1.as_str());
        let axis = if label.is_some() { '┤' } else { '│' };
        let cells: String = cells.into_iter().collect();
        lines.push(format!("{:>margin$} {axis}{cells}", label.unwrap_or("")));
    }
    lines.extend(x_axis(&frame, margin, columns));
    lines.push(centred(&plot.x_label, width));
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn labels(ticks: Vec<Tick>) -> impl Iterator<Item = (f64, String)> {
    ticks.into_iter().filter_map(|tick| Some((tick.at, tick.label?)))
}

/// The row, from the top, of a height from 0 to 1.
fn row(at: f64, rows: usize) -> usize {
    ((1.0 - at) * (4 * rows - 1) as f64).round() as usize / 4
}

/// The column of a position from 0 to 1.
fn column(at: f64, columns: usize) -> usize {
    (at * (2 * columns - 1) as f64).round() as usize / 2
}

fn legend(plot: &Plot, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for ((name, _), marker) in plot.series.iter().zip(MARKERS.iter().cycle()) {
        let entry = format!("{marker} {}", fit(name, width - 4));
        match lines.last_mut() {
            _ if name.is_empty() => {}
            Some(line) if line.chars().count() + entry.chars().count() + 3 <= width => {
                *line += "   ";
                *line += &entry;
            }
            _ => lines.push(entry),
        }
    }
    lines.iter().map(|line| centred(line, width)).collect()
}

/// The characters of the picture, from the top.
fn canvas(frame: &Frame, columns: usize, rows: usize) -> Vec<Vec<char>> {
    let mut dots = vec![vec![0u8; columns]; rows];
    for curve in &frame.curves {
        let dot = |p: [f64; 2]| {
            [p[0] * (2 * columns - 1) as f64, (1.0 - p[1]) * (4 * rows - 1) as f64].map(f64::round)
        };
        let ends = curve.windows(2).map(|ends| (dot(ends[0]), dot(ends[1])));
        for ([x0, y0], [x1, y1]) in ends {
            let steps = (x1 - x0).abs().max((y1 - y0).abs()).max(1.0);
            for step in 0..=steps as usize {
                let t = step as f64 / steps;
                let (x, y) =
                    ((x0 + t * (x1 - x0)).round() as usize, (y0 + t * (y1 - y0)).round() as usize);
                dots[y / 4][x / 2] |= braille_dot(x % 2, y % 4);
            }
        }
    }
    let character = |dots: u8| if dots == 0 { ' ' } else { braille(dots) };
    let mut cells: Vec<Vec<char>> =
        dots.into_iter().map(|row| row.into_iter().map(character).collect()).collect();

    for (curve, &marker) in frame.curves.iter().zip(MARKERS.iter().cycle()) {
        let scaled = curve.iter().map(|p| [p[0] * columns as f64, p[1] * 2.0 * rows as f64]);
        for [x, y] in spaced(&scaled.collect::<Vec<_>>(), MARKER_DISTANCE) {
            let (x, y) = (x / columns as f64, y / (2.0 * rows as f64));
            cells[row(y, rows)][column(x, columns)] = marker;
        }
    }
    if frame.is_empty() {
        let note = centred("no data", columns);
        cells[rows / 2] = note.chars().chain(std::iter::repeat(' ')).take(columns).collect();
    }
    cells
}

/// The bit of a dot in a Braille character of 2 by 4 dots.
fn braille_dot(x: usize, y: usize) -> u8 {
    [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]][y][x]
}

fn braille(dots: u8) -> char {
    char::from_u32(0x2800 + u32::from(dots)).unwrap_or(' ')
}

/// The line with the ticks and the line with their labels.
fn x_axis(frame: &Frame, margin: usize, columns: usize) -> [String; 2] {
    let mut axis = vec!['─'; columns];
    let mut line = String::new();
    for (at, label) in labels(frame.x.ticks(columns / 10)) {
        let column = column(at, columns);
        let length = label.chars().count();
        // Below its tick, but not beyond the end of the line.
        let start =
            (margin + 2 + column).saturating_sub(length / 2).min(margin + 2 + columns - length);
        let used = line.chars().count();
        if used == 0 || start > used {
            axis[column] = '┬';
            line += &" ".repeat(start - used);
            line += &label;
        }
    }
    let axis: String = axis.into_iter().collect();
    [format!("{:margin$} └{axis}", ""), line]
}

fn centred(text: &str, width: usize) -> String {
    let text = fit(text, width);
    let before = (width - text.chars().count()) / 2;
    " ".repeat(before) + &text
}
