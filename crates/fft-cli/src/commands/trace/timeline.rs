//! A picture of one run in a trace: a row for each rank, with its operations, waits and messages.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::Line;
use crate::output::plot::{Axis, COLOURS, begin_svg, escape};

const WIDTH: f64 = 1000.0;
/// The left and the right edge of the rows.
const LEFT: f64 = 80.0;
const RIGHT: f64 = 980.0;
const TOP: f64 = 40.0;
const ROW: f64 = 34.0;
const BAR: f64 = 20.0;
const MESSAGE: f64 = 6.0;
const LEGEND_ROW: f64 = 22.0;
const WAIT: &str = "#dddddd";
const MESSAGES: &str = "#333333";

/// Draws the last run of the last plan as an SVG file. `None` if no run has ended.
pub(super) fn draw(lines: &[Line]) -> Option<String> {
    let is_run = |line: &&Line| line.cat.as_deref() == Some("run");
    let last = lines.iter().filter(is_run).map(Line::run).max()?;
    let events: Vec<&Line> = lines.iter().filter(|line| line.run() == last).collect();
    let begin = events.iter().map(|event| event.ts).fold(f64::INFINITY, f64::min);
    let end = events.iter().map(|event| event.ts + event.dur).fold(begin, f64::max);
    let ranks: BTreeSet<_> = events.iter().map(|event| event.pid).collect();
    let picture = Picture { begin, end, ranks: ranks.into_iter().collect() };
    let mut svg = String::new();
    // Writing to a string cannot fail.
    let _ = picture.write(&events, &mut svg);
    Some(svg)
}

struct Picture {
    /// Microseconds.
    begin: f64,
    end: f64,
    ranks: Vec<usize>,
}

impl Picture {
    fn x(&self, time: f64) -> f64 {
        LEFT + (time - self.begin) / (self.end - self.begin).max(1e-3) * (RIGHT - LEFT)
    }

    /// The upper edge of a rank's row.
    fn y(&self, rank: usize) -> f64 {
        let row = self.ranks.iter().position(|&other| other == rank).unwrap_or(0);
        TOP + ROW * row as f64
    }

    fn write(&self, events: &[&Line], svg: &mut String) -> std::fmt::Result {
        let mut operations = BTreeMap::new();
        for event in events {
            if let Some(number) = event.args.operation {
                operations.insert(number, event.name.as_str());
            }
        }
        let below = TOP + ROW * self.ranks.len() as f64;
        let height = below + 48.0 + LEGEND_ROW * (operations.len() + 2) as f64;
        begin_svg(svg, [WIDTH, height], "One run: what each rank does")?;
        self.write_scale(below, svg)?;
        for &rank in &self.ranks {
            let y = self.y(rank) + 0.75 * BAR;
            writeln!(svg, r#"<text x="8" y="{y:.1}">rank {rank}</text>"#)?;
        }
        for event in events {
            self.write_event(event, svg)?;
        }
        let mut y = below + 48.0;
        let mut entry = |colour: &str, text: &str| {
            let written = writeln!(
                svg,
                r#"<rect x="{LEFT}" y="{:.1}" width="14" height="14" fill="{colour}"/><text x="{}" y="{y:.1}">{}</text>"#,
                y - 12.0,
                LEFT + 22.0,
                escape(text)
            );
            y += LEGEND_ROW;
            written
        };
        entry(WAIT, "waits until all ranks have called the transform")?;
        for (number, text) in operations {
            entry(colour(number), text)?;
        }
        entry(MESSAGES, "packs or unpacks a message")?;
        svg.write_str("</svg>\n")
    }

    fn write_event(&self, event: &Line, svg: &mut String) -> std::fmt::Result {
        let (x, y) = (self.x(event.ts), self.y(event.pid));
        let width = (self.x(event.ts + event.dur) - x).max(0.2);
        let (y, height, fill) = match (event.cat.as_deref(), event.args.operation) {
            (Some("agreement"), _) => (y, BAR, WAIT),
            (Some("operation"), Some(number)) => (y, BAR, colour(number)),
            (Some("message"), _) => (y + BAR, MESSAGE, MESSAGES),
            _ => return Ok(()),
        };
        let name = escape(&event.name);
        writeln!(
            svg,
            r#"<rect x="{x:.2}" y="{y:.1}" width="{width:.2}" height="{height}" fill="{fill}"><title>{name}: {:.1} µs</title></rect>"#,
            event.dur
        )
    }

    fn write_scale(&self, below: f64, svg: &mut String) -> std::fmt::Result {
        let span = self.end - self.begin;
        let (unit, name) = if span < 1e4 { (1.0, "µs") } else { (1e3, "ms") };
        for tick in Axis::from_zero(span / unit).ticks(8) {
            let Some(label) = tick.label else { continue };
            let x = LEFT + tick.at * (RIGHT - LEFT);
            writeln!(
                svg,
                r##"<path d="M{x:.1} {}V{below:.1}" stroke="#cccccc"/><text x="{x:.1}" y="{:.1}" text-anchor="middle">{label} {name}</text>"##,
                TOP - 8.0,
                below + 16.0
            )?;
        }
        Ok(())
    }
}

/// The colour of an operation.
fn colour(number: usize) -> &'static str {
    COLOURS[number % COLOURS.len()]
}
