//! The study: its files, and what it must find.

use crate::common::{Folder, threads, unsaid};

/// A line of the study's CSV.
#[derive(Clone, Debug)]
struct Row {
    part: String,
    field: String,
    ranks: usize,
    format: String,
    tolerance: f64,
    bits: f64,
    passes: f64,
    forward: f64,
    roundtrip: f64,
    estimate: f64,
    bound: f64,
}

const COLUMNS: &str = "part,field,ranks,format,tolerance,strict,bits_per_real,passes,forward,roundtrip,estimate,bound";

/// Runs the study with these options on so many ranks; returns what it prints, and its CSV.
fn study(ranks: usize, args: &[&str]) -> (String, Vec<Row>) {
    let folder = Folder::new();
    let csv = folder.at("study.csv");
    let text = threads(ranks, &[&["study", "--csv", &csv], args].concat()).ok();
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
            tolerance: number(4),
            bits: number(6),
            passes: number(7),
            forward: number(8),
            roundtrip: number(9),
            estimate: number(10),
            bound: number(11),
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
    let (text, rows) = study(8, &["table", "--shape", "64^3", "--field", "gaussian"]);
    let row = |format: &str| rows.iter().find(|row| row.format == format).unwrap();
    let error = |format: &str| row(format).forward;
    assert!(
        error("fp64") < 1e-15 && text.contains("bits:16") && text.contains("16.26 bits"),
        "{text}"
    );
    assert!((1e-7..3e-7).contains(&error("fp32")), "{text}");
    assert!(error("f32") < 5e-8 && error("bits:32") < 1e-9, "{text}");
    assert!((1e-4..6e-4).contains(&error("f16")) && error("bits:16") < 6e-5, "{text}");
    // Numbers of single precision err at every step of the way, those of the wire at each reshape.
    assert!(
        error("fp32") > 3.0 * error("f32") && error("fp32") > 100.0 * error("bits:32"),
        "{text}"
    );
    assert!(above_shannon(row("bits:16")) < 0.9, "{}", above_shannon(row("bits:16")));
    assert!(above_shannon(row("tolerance")) < 1.3, "{}", above_shannon(row("tolerance")));
    let (_, small) = study(16, &["tolerance", "--field", "gaussian"]);
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
    let args = ["figure", "--shape", "32^3", "--field", "gaussian", "--svg", &svg];
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
    let (text, rows) =
        study(4, &["tolerance", "--kind", "r2c", "--shape", "16^3", "--field", "gaussian"]);
    assert!(rows.len() == 8 && text.contains("Bits per real"), "{text}");
    for row in rows {
        assert!(row.forward <= row.tolerance && row.forward <= row.bound, "{row:?}");
        assert!((row.estimate / row.forward - 1.0).abs() < 0.1, "{row:?}");
    }
}

#[test]
fn every_number_of_ranks_has_its_row() {
    let folder = Folder::new();
    let csv = folder.at("all.csv");
    let args = ["study", "--shape", "8x9", "--kind", "r2c", "--ranks-list", "2,3", "--csv", &csv];
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
        let (text, rows) = study(ranks, &["table", "--shape", "8x9", "--ranks-list", "3,4"]);
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
        "curve",
        "--shape 8x",
        "--kind dct2",
        "--field sand",
        "--ranks-list 2,0",
        "--ranks-list x",
        "table --shape 8x8 --svg x.svg",
        &format!("table --shape 8x8 --csv {nowhere}"),
        &format!("figure --shape 8x8 --svg {nowhere}"),
    ] {
        let words: Vec<_> = std::iter::once("study").chain(args.split(' ')).collect();
        let run = threads(2, &words);
        run.complaint();
        assert_eq!(run.stdout, "", "{args}");
    }
}
