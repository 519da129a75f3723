//! A benchmark's result: as a table to read, and as a JSON record to keep.

use crate::machine::Description;
use crate::options::Options;
use crate::quiet::QUIET;
use crate::stats::{Ratio, median, min};
use std::fmt::Write;

/// The seconds of one contender, one value per round.
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) seconds: Vec<f64>,
}

/// All contenders at one number of ranks.
pub(crate) struct Heat {
    pub(crate) ranks: usize,
    pub(crate) series: Vec<Series>,
    /// For each round, the share of the cores that others used around it.
    pub(crate) busy: Vec<f64>,
}

impl Heat {
    /// Each of our programs over each of FFTW's, and over the older one of ours: (name, name,
    /// ratio).
    pub(crate) fn ratios(&self) -> Vec<(&str, &str, Ratio)> {
        let named = |prefix| self.series.iter().filter(move |s| s.name.starts_with(prefix));
        let older = |ours: &Series| format!("older{}", ours.name.trim_start_matches("thriffty"));
        let beside = |ours: &Series| {
            self.series.iter().filter({
                let older = older(ours);
                move |s| s.name == older
            })
        };
        named("thriffty")
            .flat_map(|ours| named("fftw").chain(beside(ours)).map(move |theirs| (ours, theirs)))
            .map(|(a, b)| (a.name.as_str(), b.name.as_str(), Ratio::of(&a.seconds, &b.seconds)))
            .collect()
    }

    /// The table of this heat.
    pub(crate) fn table(&self) -> String {
        let mut text = format!("\nranks {:<40} {:>9}  {:>9}\n", self.ranks, "median s", "min s");
        for Series { name, seconds } in &self.series {
            let _ = writeln!(text, "  {name:<44} {:9.4}  {:9.4}", median(seconds), min(seconds));
        }
        let noisy = self.busy.iter().filter(|&&share| share > QUIET).count();
        if noisy > 0 {
            let rounds = self.busy.len();
            let _ =
                writeln!(text, "  {noisy} of {rounds} rounds beside other work: NOT TO BE TRUSTED");
        }
        let ratios = self.ratios();
        if !ratios.is_empty() {
            let _ = writeln!(text, "  {:<44} {:>9}  {:>9}", "ratio", "medians", "by round");
        }
        for (ours, theirs, ratio) in ratios {
            let both = format!("{ours} / {theirs}");
            let Ratio { of_medians, median_of_rounds } = ratio;
            let _ = writeln!(text, "  {both:<44} {of_medians:9.3}  {median_of_rounds:9.3}");
        }
        text
    }
}

/// The record as JSON, with every single time in it.
pub(crate) fn json(date: &str, options: &Options, machine: &Description, heats: &[Heat]) -> String {
    let machine =
        machine.iter().map(|(name, value)| format!("{}: {}", quoted(name), quoted(value)));
    let heats = heats.iter().map(|heat| {
        let series = heat.series.iter().map(|Series { name, seconds }| {
            format!(
                "{{\"name\": {}, \"median\": {}, \"min\": {}, \"seconds\": [{}]}}",
                quoted(name),
                number(median(seconds)),
                number(min(seconds)),
                numbers(seconds)
            )
        });
        let ratios = heat.ratios().into_iter().map(|(ours, theirs, ratio)| {
            format!(
                "{{\"ours\": {}, \"theirs\": {}, \"of_medians\": {}, \"median_of_rounds\": {}}}",
                quoted(ours),
                quoted(theirs),
                number(ratio.of_medians),
                number(ratio.median_of_rounds)
            )
        });
        format!(
            "{{\n      \"ranks\": {},\n      \"others_busy\": [{}],\n      \"series\": {},\n      \"ratios\": {}\n    }}",
            heat.ranks,
            numbers(&heat.busy),
            listed(series, 8),
            listed(ratios, 8)
        )
    });
    format!(
        "{{\n  \"date\": {},\n  \"problem\": {},\n  \"rounds\": {},\n  \"machine\": {{\n    {}\n  }},\n  \"heats\": {}\n}}\n",
        quoted(date),
        quoted(&format!("{} {}", options.kind, options.size_text())),
        options.rounds,
        machine.collect::<Vec<_>>().join(",\n    "),
        listed(heats, 4)
    )
}

/// A JSON array, one item per line.
pub(crate) fn listed(items: impl Iterator<Item = String>, indent: usize) -> String {
    let items: Vec<String> = items.collect();
    if items.is_empty() {
        return "[]".into();
    }
    let line = format!("\n{:indent$}", "");
    let end = format!("\n{:1$}", "", indent - 2);
    format!("[{line}{}{end}]", items.join(&format!(",{line}")))
}

pub(crate) fn numbers(values: &[f64]) -> String {
    values.iter().map(|&value| number(value)).collect::<Vec<_>>().join(", ")
}

/// Finer than any of these times repeats. JSON has no infinities.
pub(crate) fn number(value: f64) -> String {
    if value.is_finite() { format!("{value:.6}") } else { "null".into() }
}

pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heat() -> Heat {
        let series =
            |name: &str, seconds: &[f64]| Series { name: name.into(), seconds: seconds.into() };
        Heat {
            ranks: 2,
            busy: vec![0.5, 0.0],
            series: vec![
                series("memory copy", &[0.1]),
                series("fftw-mpi", &[0.5, 0.25]),
                series("thriffty-mpi", &[0.25, 0.25]),
            ],
        }
    }

    #[test]
    fn an_older_program_is_compared_with_its_like() {
        let mut heat = heat();
        let series = |name: &str| Series { name: name.into(), seconds: vec![0.5, 0.5] };
        heat.series.extend(["older-mpi", "older-threads"].map(series));
        let ratios = heat.ratios();
        let names: Vec<_> = ratios.iter().map(|(ours, theirs, _)| (*ours, *theirs)).collect();
        assert_eq!(names, [("thriffty-mpi", "fftw-mpi"), ("thriffty-mpi", "older-mpi")]);
        assert_eq!(ratios[1].2.median_of_rounds, 0.5);
    }

    #[test]
    fn ratios_are_ours_over_theirs() {
        let heat = heat();
        let ratios = heat.ratios();
        let expected = Ratio { of_medians: 0.25 / 0.375, median_of_rounds: 0.75 };
        assert_eq!(ratios, [("thriffty-mpi", "fftw-mpi", expected)]);
        let table = heat.table();
        assert!(table.contains("thriffty-mpi / fftw-mpi"), "{table}");
        assert!(table.contains("1 of 2 rounds beside other work"), "{table}");
        assert!(table.contains("0.667") && table.contains("0.750"), "{table}");
    }

    #[test]
    fn the_record_is_this_text() {
        let machine = vec![("cpu", "a \"fast\" one".to_string()), ("cores", "2".to_string())];
        let options = Options { rounds: 2, ..Options::default() };
        let expected = r#"{
  "date": "2026-01-02",
  "problem": "c2c 256x256x256",
  "rounds": 2,
  "machine": {
    "cpu": "a \"fast\" one",
    "cores": "2"
  },
  "heats": [
    {
      "ranks": 2,
      "others_busy": [0.500000, 0.000000],
      "series": [
        {"name": "memory copy", "median": 0.100000, "min": 0.100000, "seconds": [0.100000]},
        {"name": "fftw-mpi", "median": 0.375000, "min": 0.250000, "seconds": [0.500000, 0.250000]},
        {"name": "thriffty-mpi", "median": 0.250000, "min": 0.250000, "seconds": [0.250000, 0.250000]}
      ],
      "ratios": [
        {"ours": "thriffty-mpi", "theirs": "fftw-mpi", "of_medians": 0.666667, "median_of_rounds": 0.750000}
      ]
    }
  ]
}
"#;
        assert_eq!(json("2026-01-02", &options, &machine, &[heat()]), expected);
    }

    #[test]
    fn control_characters_and_infinities_stay_valid_json() {
        assert_eq!(quoted("a\tb\\"), "\"a\\u0009b\\\\\"");
        assert_eq!(number(f64::NAN), "null");
    }
}
