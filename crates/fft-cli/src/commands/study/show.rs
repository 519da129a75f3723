//! Tables, the figure and the CSV of the results.

use std::fmt::Write;

use thriffty::{Tolerance, Wire};

use super::options::{Options, Part};
use super::row::{Format, Row, TOLERANCES};
use crate::args::encoding::Encoding;
use crate::output::plot::Plot;

pub(super) fn csv(rows: &[Row]) -> String {
    let mut text = String::from(
        "part,field,ranks,format,tolerance,bits_per_real,passes,forward,roundtrip,estimate,bound\n",
    );
    for Row { part, field, ranks, format, found } in rows {
        let part = format!("{part:?}").to_lowercase();
        let (name, tolerance) = match format.tolerance() {
            Some(tolerance) => ("tolerance".to_owned(), tolerance.to_string()),
            None => (format.to_string(), String::new()),
        };
        let lost =
            found.lost.map_or(",".to_owned(), |it| format!("{:e},{:e}", it.estimate, it.bound));
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{part},{},{ranks},{name},{tolerance},{},{},{:e},{:e},{lost}",
            field.name(),
            found.bits,
            found.passes,
            found.forward,
            found.roundtrip
        );
    }
    text
}

fn of(rows: &[Row], part: Part) -> impl Iterator<Item = &Row> {
    rows.iter().filter(move |row| row.part == part)
}

fn problem(options: &Options, rows: &[Row], part: Part) -> String {
    let field = of(rows, part).next().map_or("", |row| row.field.name());
    format!("{}, {field}", options.transform.name())
}

/// Forward errors and bits, by number of ranks and format.
pub(super) fn table(options: &Options, rows: &[Row]) -> String {
    let mut text = format!("Forward errors, {}\n", problem(options, rows, Part::Table));
    let mut ranks: Vec<usize> = of(rows, Part::Table).map(|row| row.ranks).collect();
    ranks.dedup();
    for (n, ranks) in ranks.into_iter().enumerate() {
        let row: Vec<_> = of(rows, Part::Table).filter(|row| row.ranks == ranks).collect();
        if n == 0 {
            let names: String = row.iter().map(|row| format!("{:>14}", row.format)).collect();
            let _ = writeln!(text, "{:>5}{names}", "ranks");
        }
        let errors: String =
            row.iter().map(|row| format!("{:>14.2e}", row.found.forward)).collect();
        let bits: String = row
            .iter()
            .map(|row| format!("{:>14}", number(row.found.bits, |bits| format!("{bits:.2} bits"))))
            .collect();
        let _ = writeln!(text, "{ranks:>5}{errors}\n{:>5}{bits}", "");
    }
    text + "\n"
}

/// Forward errors over bits.
pub(super) fn figure(options: &Options, rows: &[Row]) -> Plot {
    let curve = |name: &str, belongs: fn(Wire) -> bool| {
        let points = of(rows, Part::Figure).filter_map(|row| match row.format {
            Format::Encoded(Encoding { wire: Some(wire), .. }) if belongs(wire) => {
                Some((row.found.bits, row.found.forward))
            }
            _ => None,
        });
        (name.to_owned(), points.collect())
    };
    let ranks = of(rows, Part::Figure).next().map_or(0, |row| row.ranks);
    Plot {
        title: format!("{}, {ranks} ranks", problem(options, rows, Part::Figure)),
        x_label: "bits per real number sent".into(),
        y_label: "forward error (l2)".into(),
        series: vec![
            curve("mantissa:b", |wire| matches!(wire, Wire::Mantissa(_))),
            curve("bits:b", |wire| matches!(wire, Wire::Bits(_))),
            curve("bf16, f16, f32", |wire| matches!(wire, Wire::Bf16 | Wire::F16 | Wire::F32)),
        ],
        log_x: false,
        log_y: true,
    }
}

/// A number of a row and its tolerance.
type Quantity = fn(&Row, f64) -> f64;

/// A table per quantity, by field and tolerance.
pub(super) fn tolerances(options: &Options, rows: &[Row]) -> String {
    let quantities: [(&str, Quantity); 4] = [
        ("Bits per real number sent", |row, _| row.found.bits),
        ("Error / tolerance", |row, tolerance| row.found.forward / tolerance),
        ("Estimate / error", |row, _| row.found.estimate() / row.found.forward),
        ("Bound / error", |row, _| row.found.bound() / row.found.forward),
    ];
    let ranks = of(rows, Part::Tolerance).next().map_or(0, |row| row.ranks);
    let is_strict = options.transform.options().tolerance.is_some_and(Tolerance::is_strict);
    let strict = if is_strict { " strict" } else { "" };
    let mut text = String::new();
    for (title, quantity) in quantities {
        let problem = options.transform.name();
        let _ = writeln!(text, "{title}, {problem}, {ranks} ranks,{strict} tolerances");
        let columns: String = TOLERANCES.iter().map(|it| format!("{it:>9e}")).collect();
        let _ = writeln!(text, "{:<12}{columns}", "");
        let rows: Vec<_> = of(rows, Part::Tolerance).collect();
        for field in rows.chunk_by(|a, b| a.field == b.field) {
            let cell = |row: &&Row| {
                let tolerance = row.format.tolerance().map_or(f64::NAN, Tolerance::value);
                format!(
                    "{:>9}",
                    number(quantity(row, tolerance), |it| format!("{it:.*}", digits(it)))
                )
            };
            let cells: String = field.iter().map(cell).collect();
            let _ = writeln!(text, "{:<12}{cells}", field[0].field.name());
        }
        text.push('\n');
    }
    text
}

fn digits(value: f64) -> usize {
    if value < 10.0 { 3 } else { 1 }
}

/// A number in some format, or a dash.
fn number(value: f64, format: impl Fn(f64) -> String) -> String {
    if value.is_finite() { format(value) } else { "-".to_owned() }
}
