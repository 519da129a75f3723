//! Traces of plans on threads, and their summaries.

use std::path::Path;

use thriffty::planning::Exchange;
use thriffty::{Comm, Complex, Error, ErrorKind};

use super::*;

/// Four runs of a plan on three ranks, which write a trace.
fn traced(path: &Path, exchange: Exchange) -> Result<(), Error> {
    let ranks = thriffty::threads(3, |world| {
        let draft = thriffty::c2c(&world, [12, 10, 8]).exchange(exchange).trace(path);
        let mut plan = draft.build()?;
        let x = vec![Complex::new(1.0, 0.0); plan.input_len()];
        let mut y = vec![Complex::default(); plan.output_len()];
        for _ in 0..4 {
            plan.forward_into(&x, &mut y)?;
        }
        // What ranks refuse has an agreement alone.
        assert!(plan.forward_into(&x[1..], &mut y).is_err());
        Ok::<(), Error>(())
    });
    ranks.map(drop)
}

/// The lines as a browser reads them: an array whose end may be missing.
fn lines(text: &str) -> Vec<serde_json::Value> {
    let whole = format!("{}]", text.trim_end().trim_end_matches(','));
    serde_json::from_str(&whole).unwrap()
}

#[test]
fn a_trace_has_runs_operations_and_messages_of_all_ranks() {
    let folder = tempfile::tempdir().unwrap();
    for exchange in [Exchange::Shared, Exchange::P2p] {
        let path = folder.path().join(format!("{exchange}.json"));
        std::fs::write(&path, "of another run").unwrap();
        for plan in 1..=2 {
            traced(&path, exchange).unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            let lines = lines(&text);
            let count = |what: &str| lines.iter().filter(|line| line["cat"] == what).count();
            assert_eq!([count("run"), count("agreement")], [12 * plan, 15 * plan], "{exchange}");
            assert_eq!(count("message") > 0, exchange == Exchange::P2p, "{exchange}");
            assert!(count("operation") >= 2 * 12 * plan, "{exchange}");
            let is_run = |line: &&serde_json::Value| line["cat"] == "run";
            for rank in 0..3 {
                let own: Vec<_> = lines.iter().filter(|line| line["pid"] == rank).collect();
                assert_eq!(own.iter().copied().filter(is_run).count(), 4 * plan, "{exchange}");
            }
            let summary = Summary::of(&Trace::of(&text)).unwrap().to_string();
            assert!(summary.contains(&format!("plan {plan}, forward: ")), "{summary}");
            assert!(summary.contains("local fft: c2c z c2c y"), "{summary}");
        }
    }
}

/// A line of an operation, or of the agreement without a number.
fn line(rank: usize, run: usize, operation: Option<usize>, [begin, duration]: [f64; 2]) -> String {
    let (category, number) = match operation {
        Some(number) => ("operation", format!(r#","operation":{number},"exchange_us":{duration}"#)),
        None => ("agreement", String::new()),
    };
    format!(
        r#"{{"name":"x","cat":"{category}","ph":"X","pid":{rank},"tid":0,"ts":{begin},"dur":{duration},"args":{{"plan":1,"run":{run},"direction":"forward"{number}}}}},
"#
    )
}

#[test]
fn the_rank_that_others_wait_for_is_named() {
    let mut text = String::from("[\n");
    for run in 0..4 {
        let start = 1e6 * run as f64;
        for rank in 0..3 {
            let late = if rank == 1 { 5e4 } else { rank as f64 };
            text += &line(rank, run, None, [start + late, 5e4 - late + 10.0]);
            text += &line(rank, run, Some(0), [start + 5.1e4 + rank as f64, 100.0]);
        }
    }
    let summary = Summary::of(&Trace::of(&text)).unwrap().to_string();
    assert!(summary.starts_with("plan 1, forward: mean of 3 runs, 3 ranks"), "{summary}");
    let named = summary.matches("the others wait for rank").count();
    assert!(named == 1 && summary.contains("the others wait for rank 1:"), "{summary}");
    assert!(summary.contains("last rank 2 (100% of runs"), "{summary}");
}

#[test]
fn a_trace_that_breaks_off_is_summed_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.json");
    traced(&path, Exchange::P2p).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let summary = Summary::of(&Trace::of(&text[..text.len() - 40])).unwrap();
    assert_eq!(summary.broken, 1);
    for none in ["", "[\n", "no trace"] {
        assert!(Summary::of(&Trace::of(none)).is_err());
    }
}

/// Ranks name one file that all can write, or no plan is made.
#[test]
fn a_trace_is_of_all_ranks() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(traced(folder.path(), Exchange::P2p).unwrap_err().kind(), ErrorKind::Argument);
    let path = folder.path().join("trace.json");
    let errors = thriffty::threads(3, |world| {
        let mut draft = thriffty::c2c(&world, [4, 4]);
        if world.rank() != 1 {
            draft = draft.trace(&path);
        }
        Ok::<_, Error>(draft.build().map(drop).unwrap_err().to_string())
    });
    let errors = errors.unwrap();
    assert!(errors.iter().all(|error| error.contains("trace")), "{errors:?}");
    assert!(!path.exists());
}

/// The picture has a bar for each operation and agreement of the last run.
#[test]
fn the_last_run_is_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.json");
    assert_eq!(timeline::draw(&Trace::of("[\n").lines), None);
    traced(&path, Exchange::P2p).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let picture = timeline::draw(&Trace::of(&text).lines).unwrap();
    let last = text.lines().filter(|line| line.contains(r#""run":3,"#));
    let count = |category: &str| {
        let category = format!(r#""cat":"{category}""#);
        last.clone().filter(|line| line.contains(&category)).count()
    };
    assert_eq!(count("run"), 3, "{text}");
    let bars = count("operation") + count("agreement") + count("message");
    assert_eq!(picture.matches(" µs</title></rect>").count(), bars, "{picture}");
    for rank in 0..3 {
        assert!(picture.contains(&format!(">rank {rank}</text>")), "{picture}");
    }
}
