//! The flow of `examples/channel` on small grids: its divergence, a laminar start, and the decay of
//! a Stokes mode, on any number of ranks.

use std::f64::consts::PI;

use flow::{Channel, Setting, poiseuille, stokes, stretched};
use thriffty::Error;

#[path = "../../examples/channel/flow.rs"]
mod flow;

#[test]
fn a_force_starts_the_flow_of_poiseuille() {
    let setting = Setting {
        cells: [4, 4, 24],
        lengths: [1.0, 1.0],
        faces: stretched(24, 2.0),
        viscosity: 0.5,
        force: 1.0,
        step: 5e-3,
    };
    for ranks in [1, 3] {
        thriffty::threads(ranks, |comm| {
            let mut flow = Channel::new(&comm, setting.clone(), |_, _| 0.0)?;
            for _ in 0..100 {
                flow.step()?;
            }
            for [z, u] in flow.profile()? {
                let expected = poiseuille(&setting, z, flow.time());
                assert!((u - expected).abs() < 1.5e-3, "{u}, not {expected} at {z}");
            }
            Ok::<_, Error>(())
        })
        .unwrap();
    }
}

#[test]
fn stokes_modes_decay_as_in_theory_without_divergence() {
    let (cells, viscosity) = (24, 0.1);
    let faces = stretched(cells, 2.0);
    let (rate, profile) = stokes(1.0);
    let setting = Setting {
        cells: [16, 3, cells],
        lengths: [2.0 * PI, 1.0],
        faces: faces.clone(),
        viscosity,
        force: 0.0,
        step: 0.01,
    };
    // A stream function at edges.
    let stream = |i: f64, face: usize| {
        let inside = (1..cells).contains(&face);
        (PI / 8.0 * i).sin() * if inside { profile(faces[face]) } else { 0.0 }
    };
    for (ranks, size) in [(1, 1e-6), (2, 1e-6), (4, 1.0)] {
        let velocity = |component: usize, [i, _, k]: [usize; 3]| {
            let i = i as f64 + 1.0;
            size * match component {
                0 => (stream(i, k + 1) - stream(i, k)) / (faces[k + 1] - faces[k]),
                2 => (stream(i - 1.0, k + 1) - stream(i, k + 1)) * 8.0 / PI,
                _ => 0.0,
            }
        };
        thriffty::threads(ranks, |comm| {
            let mut flow = Channel::new(&comm, setting.clone(), velocity)?;
            for _ in 0..10 {
                flow.step()?;
            }
            let before = flow.energy()?;
            for _ in 0..20 {
                flow.step()?;
            }
            let found = 0.5 * (before / flow.energy()?).ln() / 0.2;
            // The large mode also carries itself along.
            if size < 1.0 {
                let expected = viscosity * rate;
                assert!((found / expected - 1.0).abs() < 0.02, "{found}, not {expected}");
            }
            let divergence = flow.largest_divergence()?;
            assert!(divergence < 1e-12 * size, "{divergence:e}");
            Ok::<_, Error>(())
        })
        .unwrap();
    }
}
