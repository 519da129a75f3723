//! Traces of plans on threads, and their summaries.

use std::time::Duration;

use thriffty::planning::Exchange;
use thriffty::{Comm, Complex};

use super::*;

/// The trace of four runs on three ranks, of which the second comes late.
fn trace_of_a_slow_rank(exchange: Exchange) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.json");
    thriffty::threads(3, |world| {
        let draft = thriffty::c2c(&world, [12, 10, 8]).exchange(exchange).trace(&path);
        let mut plan = draft.build()?;
        let x = vec![Complex::new(1.0, 0.0); plan.input_len()];
        let mut y = vec![Complex::default(); plan.output_len()];
        for _ in 0..4 {
            if world.rank() == 1 {
                std::thread::sleep(Duration::from_millis(50));
            }
            plan.forward_into(&x, &mut y)?;
        }
        Ok::<(), thriffty::Error>(())
    })
    .unwrap();
    std::fs::read_to_string(&path).unwrap()
}

#[test]
fn the_slow_rank_is_named() {
    for exchange in [Exchange::Shared, Exchange::P2p] {
        let text = trace_of_a_slow_rank(exchange);
        // As a browser reads it: an array whose end may be missing.
        let whole = format!("{}]", text.trim_end().trim_end_matches(','));
        let lines: Vec<serde_json::Value> = serde_json::from_str(&whole).unwrap();
        let runs = lines.iter().filter(|line| line["cat"] == "run").count();
        assert_eq!(runs, 12, "{exchange}");
        let messages = lines.iter().filter(|line| line["cat"] == "message").count();
        assert_eq!(messages > 0, exchange == Exchange::P2p, "{exchange}");
        let summary = Summary::of(&text).unwrap().to_string();
        assert!(summary.starts_with("plan 1, forward: mean of 3 runs, 3 ranks"), "{summary}");
        assert!(summary.contains("the others wait for rank 1"), "{exchange}: {summary}");
    }
}

#[test]
fn a_trace_that_breaks_off_is_summed_up() {
    let text = trace_of_a_slow_rank(Exchange::P2p);
    let cut = &text[..text.len() - 40];
    let summary = Summary::of(cut).unwrap();
    assert_eq!(summary.broken, 1);
    for none in ["", "[\n", "no trace"] {
        assert!(Summary::of(none).is_err());
    }
}
