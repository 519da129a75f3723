//! Traces of plans on a CUDA device: its operations have the times that the device measures.

use thriffty::{Complex, Error};

use crate::gpu::gpu;

/// The number after a key in a line of the trace.
fn number(line: &str, key: &str) -> f64 {
    let start = line.find(key).expect("every event has it") + key.len();
    let rest = &line[start..];
    let end = rest.find([',', '}']).expect("a number ends");
    rest[..end].parse().expect("a number")
}

#[test]
fn operations_have_the_times_of_the_device() -> Result<(), Error> {
    let Some(gpu) = gpu() else { return Ok(()) };
    let folder = tempfile::tempdir().expect("a folder");
    for ranks in [1, 2] {
        let path = folder.path().join(format!("{ranks}.json"));
        thriffty::threads(ranks, |world| {
            let draft = thriffty::c2c(&world, [64, 96, 80]).trace(&path).on(&gpu);
            let mut plan = draft.build()?;
            let stream = plan.stream().clone();
            let len = 2 * plan.in_place_len();
            let data = vec![Complex::new(1.0, 0.5); plan.in_place_len()];
            let numbers: &[f64] = bytemuck::cast_slice(&data);
            let mut array = stream.clone_htod(numbers).expect("room on the device");
            for _ in 0..3 {
                plan.forward_in_place(&mut array.slice_mut(0..len))?;
            }
            Ok::<(), Error>(())
        })?;
        let trace = std::fs::read_to_string(&path).expect("a trace");
        let of = |category: &str, rank: usize| -> Vec<[f64; 2]> {
            let category = format!(r#""cat":"{category}""#);
            let rank = format!(r#""pid":{rank},"#);
            let lines = trace.lines().filter(|it| it.contains(&category) && it.contains(&rank));
            let span = |line: &str| {
                let begin = number(line, r#""ts":"#);
                [begin, begin + number(line, r#""dur":"#)]
            };
            lines.map(span).collect()
        };
        for rank in 0..ranks {
            let (runs, operations) = (of("run", rank), of("operation", rank));
            assert_eq!(runs.len(), 3, "{trace}");
            assert!(operations.len() >= runs.len(), "{trace}");
            for [begin, end] in &operations {
                assert!(end > begin, "{trace}");
            }
            // They follow each other within the runs, up to the clocks' resolution.
            let ends = [runs[0][0], runs[2][1]];
            assert!(operations[0][0] >= ends[0] - 5.0, "{trace}");
            assert!(operations[operations.len() - 1][1] <= ends[1] + 5.0, "{trace}");
            for pair in operations.windows(2) {
                assert!(pair[1][0] >= pair[0][1] - 5.0, "{trace}");
            }
            let device = format!(r#""cat":"operation","ph":"X","pid":{rank},"tid":1,"#);
            assert_eq!(trace.matches(&device).count(), operations.len(), "{trace}");
        }
    }
    Ok(())
}
