//! The study: its files, and what it must find.

use crate::common::{Folder, threads, unsaid};

/// A line of the study's CSV.
#[derive(Clone, Debug)]
struct Row {
    part: String,
    field: String,
    ranks: usize,
    format: String,
    tolerance: String,
    bits: f64,
    passes: f64,
    forward: f64,
    roundtrip: f64,
    estimate: f64,
    bound: f64,
}

const COLUMNS: &str =
    "part,field,ranks,format,tolerance,bits_per_real,passes,forward,roundtrip,estimate,bound";

/// Runs the study with these options on `ranks` ranks; returns its output and its CSV.
fn study(ranks: usize, args: &[&str]) -> (String, Vec<Row>) {
    let folder = Folder::new();
    let csv = folder.at("study.csv");
    let text = threads(ranks, &[&["study"], args, &["--csv", &csv]].concat()).ok();
    let csv = std::fs::read_to_string(csv).unwrap();
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some(COLUMNS));
    let row = |line: &str| {
        let cells: Vec<_> = line.split(',').collect();
        assert_eq!(cells.len(), COLUMNS.split(',').count(), "{line}");
        let number = |i: usize| cells[i].parse().unwrap_or(f64::NAN);
        Row {
            part: cells[0].into(),
            field: cells[1].into(),
            ranks: cells[2].parse().unwrap(),
            format: cells[3].into(),
            tolerance: cells[4].into(),
            bits: number(5),
            passes: number(6),
            forward: number(7),
            roundtrip: number(8),
            estimate: number(9),
            bound: number(10),
        }
    };
    (text, lines.map(row).collect())
}

/// Bits above what the best code there can be takes for independent Gaussian numbers: an error of
/// √k·2^-R, k being how often each number is sent.
fn above_shannon(row: &Row) -> f64 {
    row.forward.log2() - 0.5 * row.passes.log2() + row.bits
}

#[test]
fn formats_are_as_exact_as_they_should_be() {
    let (text, rows) = study(8, &["c2c", "64^3", "table", "--field", "gaussian"]);
    let row = |format: &str| rows.iter().find(|row| row.format == format).unwrap();
    let error = |format: &str| row(format).forward;
    assert!(
        error("fp64") < 1e-15 && text.contains("bits:16") && text.contains("16.26 bits"),
        "{text}"
    );
    assert!((1e-7..3e-7).contains(&error("fp32")), "{text}");
    assert!(error("f32") < 5e-8 && error("bits:32") < 1e-9, "{text}");
    assert!((1e-4..6e-4).contains(&error("f16")) && error("bits:16") < 6e-5, "{text}");
    // Single precision makes errors at every step, the wire only at each reshape.
    assert!(
        error("fp32") > 3.0 * error("f32") && error("fp32") > 100.0 * error("bits:32"),
        "{text}"
    );
    assert!(above_shannon(row("bits:16")) < 0.9, "{}", above_shannon(row("bits:16")));
    assert!(above_shannon(row("tolerance")) < 1.3, "{}", above_shannon(row("tolerance")));
    let (_, small) = study(16, &["c2c", "64^3", "tolerance", "--field", "gaussian"]);
    for row in &small {
        assert!(above_shannon(row) < 1.3, "{row:?}: {}", above_shannon(row));
    }
    for row in &rows {
        assert!(row.part == "table" && row.ranks == 8 && row.field == "gaussian");
        assert!((1.0..3.0).contains(&row.passes) && row.roundtrip < 3.0 * row.forward, "{row:?}");
    }
}

#[test]
fn the_figure_is_drawn_and_fewer_bits_are_less_exact() {
    let folder = Folder::new();
    let svg = folder.at("study.svg");
    let args = ["c2c", "32^3", "figure", "--field", "gaussian", "--svg", &svg];
    let (text, rows) = study(8, &args);
    assert!(text.contains("mantissa:b") && text.contains("forward error"), "{text}");
    let svg = std::fs::read_to_string(svg).unwrap();
    let document = roxmltree::Document::parse(&svg).unwrap();
    let lines = document.descendants().filter(|node| node.has_tag_name("polyline"));
    assert!(lines.count() >= 3 && svg.contains("8 ranks"));
    for kind in ["mantissa:", "bits:"] {
        let curve: Vec<_> = rows.iter().filter(|row| row.format.starts_with(kind)).collect();
        assert_eq!(curve.len(), 25);
        assert!(curve.windows(2).all(|pair| pair[1].forward < 0.5 * pair[0].forward), "{curve:?}");
        // The last is as exact as the numbers themselves.
        assert!(curve.last().unwrap().forward < 2e-15);
    }
    let eight = rows.iter().find(|row| row.format == "bits:8").unwrap();
    assert!(eight.forward < 1.5e-2, "{eight:?}");
}

#[test]
fn tolerances_are_kept_and_reported() {
    for kind in ["r2c", "dct2"] {
        let (text, rows) = study(4, &[kind, "16^3", "tolerance", "--field", "gaussian"]);
        assert!(rows.len() == 8 && text.contains("Bits per real"), "{text}");
        for row in rows {
            let tolerance: f64 = row.tolerance.parse().unwrap();
            assert!(row.forward <= tolerance && row.forward <= row.bound, "{row:?}");
            assert!((row.estimate / row.forward - 1.0).abs() < 0.1, "{row:?}");
        }
    }
}

#[test]
fn all_tolerances_are_strict_if_one_is() {
    let args =
        ["c2c", "8x9", "table", "tolerance", "--field", "delta", "--tolerance", "1e-3 strict"];
    let (text, rows) = study(2, &args);
    assert!(text.contains("2 ranks, strict tolerances"), "{text}");
    assert_eq!(rows.len(), 7 + 8);
    assert_eq!((&*rows[6].tolerance, &*rows[7].tolerance), ("1e-3 strict", "1e-1 strict"));
}

#[test]
fn every_number_of_ranks_has_its_row() {
    let folder = Folder::new();
    let csv = folder.at("all.csv");
    let args = ["study", "r2c", "8x9", "--ranks-list", "2,3", "--csv", &csv];
    let text = [unsaid(&args).ok(), unsaid(&args).ok()];
    assert_eq!(text[0], text[1]);
    let csv = std::fs::read_to_string(csv).unwrap();
    let count = |start: &str| csv.lines().filter(|line| line.starts_with(start)).count();
    assert_eq!((count("table,uniform,2,"), count("table,uniform,3,")), (7, 7));
    assert_eq!(
        (count("figure,uniform,3,"), count("tolerance,"), count("tolerance,delta,3,")),
        (53, 96, 8)
    );
}

#[test]
fn ranks_that_are_said_are_the_only_ones() {
    for ranks in [1, 2] {
        let (text, rows) = study(ranks, &["c2c", "8x9", "table", "--ranks-list", "3,4"]);
        assert_eq!(rows.len(), 7);
        assert!(rows.iter().all(|row| row.ranks == ranks), "{text}");
        // Alone, a rank sends nothing.
        let sent = rows.iter().any(|row| row.bits > 0.0);
        assert_eq!(sent, ranks > 1, "{rows:?}");
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let folder = Folder::new();
    let nowhere = folder.at("nowhere/x");
    for args in [
        "c2c 8x8 curve",
        "c2c 8x",
        "dct 8x8",
        "c2c 8x8 --field sand",
        "c2c 8x8 --ranks-list 2,0",
        "c2c 8x8 --ranks-list x",
        "c2c 8x8 table --svg x.svg",
        &format!("c2c 8x8 table --csv {nowhere}"),
        &format!("c2c 8x8 figure --svg {nowhere}"),
    ] {
        let words: Vec<_> = std::iter::once("study").chain(args.split(' ')).collect();
        let run = threads(2, &words);
        run.complaint();
        assert_eq!(run.stdout, "", "{args}");
    }
}
