//! The flow of `examples/taylor_green` on a small grid: properties of the equations, of ranks and
//! of checkpoints.

use std::f64::consts::TAU;

use thriffty::planning::Reduce;
use thriffty::spectral::Operator;
use thriffty::{Comm, Error};

use crate::allocations::calls;
use flow::{Flow, Means, vortex};
use place::OnHost;

#[path = "../../examples/taylor_green/checkpoint.rs"]
mod checkpoint;
#[path = "../../examples/taylor_green/files.rs"]
mod files;
#[path = "../../examples/taylor_green/flow.rs"]
mod flow;
#[path = "../../examples/taylor_green/picture.rs"]
mod picture;
#[path = "../../examples/taylor_green/place.rs"]
mod place;
#[path = "../../examples/common/replace.rs"]
mod replace;

const N: usize = 16;
const VISCOSITY: f64 = 0.01;
const DT: f64 = 0.02;

fn flow(world: &dyn Comm) -> Result<Flow<OnHost>, Error> {
    flow_of(world, flow::modes(N))
}

/// A flow whose spectra have `modes` modes along each axis.
fn flow_of(world: &dyn Comm, modes: usize) -> Result<Flow<OnHost>, Error> {
    let draft = thriffty::r2c(world, [N; 3]).batch(3).modes([modes; 3]);
    let plan = draft.transposed_output(true).build()?;
    let mut flow = Flow::new(plan, OnHost, VISCOSITY, false)?;
    flow.set(vortex(N))?;
    Ok(flow)
}

/// The means of every rank, after each of these numbers of steps.
fn after<const S: usize>(ranks: usize, steps: [usize; S]) -> [Means; S] {
    let found = thriffty::threads(ranks, |world| {
        let mut flow = flow(&world)?;
        let mut after = |steps: usize| {
            (0..steps).try_for_each(|_| flow.step(DT))?;
            flow.means()
        };
        let mut found = [Means { energy: 0.0, enstrophy: 0.0 }; S];
        for (found, steps) in found.iter_mut().zip(steps) {
            *found = after(steps)?;
        }
        Ok::<_, Error>(found)
    });
    let found = found.unwrap_or_else(|error| panic!("{ranks} ranks: {error}"));
    assert!(found.iter().all(|other| *other == found[0]), "{found:?}");
    found[0]
}

fn near(a: Means, b: Means) -> bool {
    let near = |a: f64, b: f64| (a - b).abs() < 1e-14 * a.abs();
    near(a.energy, b.energy) && near(a.enstrophy, b.enstrophy)
}

/// Modes that are 0 may be left out.
#[test]
fn truncated_spectra_are_whole_ones_with_zeros() {
    thriffty::threads(2, |world| {
        let means = [flow::modes(N), N].map(|modes| {
            let mut flow = flow_of(&world, modes)?;
            (0..3).try_for_each(|_| flow.step(DT))?;
            flow.means()
        });
        let [truncated, whole] = means;
        let [truncated, whole]: [Means; 2] = [truncated?, whole?];
        assert!(near(truncated, whole), "{truncated:?}, {whole:?}");
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn energy_is_lost_to_viscosity_alone() {
    let [first, middle, last] = after(2, [10, 1, 1]);
    // Simpson's rule for the integral of the dissipation.
    let mean = (first.enstrophy + 4.0 * middle.enstrophy + last.enstrophy) / 6.0;
    let lost = 2.0 * VISCOSITY * mean * 2.0 * DT;
    let found = first.energy - last.energy;
    assert!(lost > 1e-4, "{lost}");
    assert!((found - lost).abs() < 1e-7 * lost, "{found} {lost}");
}

#[test]
fn the_vortex_begins_as_it_should() {
    let [first] = after(1, [0]);
    assert!(near(first, Means { energy: 0.125, enstrophy: 0.375 }), "{first:?}");
}

#[test]
fn ranks_make_no_difference() {
    let one = after(1, [5]);
    let three = after(3, [5]);
    assert!(near(one[0], three[0]), "{one:?} {three:?}");
}

#[test]
fn no_divergence_appears() {
    let largest = thriffty::threads(2, |world| {
        let mut flow = flow(&world)?;
        (0..5).try_for_each(|_| flow.step(DT))?;
        let scalar = thriffty::r2c(&world, [N; 3]).like(flow.plan()).build()?;
        let mut u = flow.plan().input();
        flow.read(|velocity| {
            u.as_mut_slice().copy_from_slice(velocity.as_slice());
            Ok(())
        })?;
        let spectrum = flow.plan().forward(u)?;
        let mut divergence = scalar.output();
        scalar.domain([TAU; 3])?.apply(Operator::Divergence, &spectrum, &mut divergence);
        let size =
            |field: &[thriffty::Complex<f64>]| field.iter().fold(0.0, |a: f64, v| a.max(v.norm()));
        let mut sizes = [size(divergence.as_slice()), size(spectrum.as_slice())];
        world.allreduce(Reduce::Max, &mut sizes)?;
        Ok::<_, Error>(sizes)
    });
    let [divergence, velocity] = largest.unwrap_or_else(|error| panic!("{error}"))[0];
    assert!(divergence < 1e-14 * velocity, "{divergence} {velocity}");
}

#[test]
fn a_checkpoint_goes_on_with_other_ranks() {
    let folder = tempfile::tempdir().expect("a folder");
    let saved = thriffty::threads(2, |world| {
        let mut flow = flow(&world)?;
        (0..3).try_for_each(|_| flow.step(DT))?;
        let path = checkpoint::save(&mut flow, &world, folder.path(), 3.0 * DT)?;
        let before = flow.means()?;
        (0..2).try_for_each(|_| flow.step(DT))?;
        Ok::<_, Error>((path, before, flow.means()?))
    });
    let (path, before, later) = saved.unwrap_or_else(|error| panic!("{error}")).remove(0);
    let again = thriffty::threads(3, |world| {
        let mut flow = flow(&world)?;
        let time = checkpoint::load(&mut flow, &world, &path)?;
        let before = flow.means()?;
        (0..2).try_for_each(|_| flow.step(DT))?;
        Ok::<_, Error>((time, before, flow.means()?))
    });
    let (time, same, as_late) = again.unwrap_or_else(|error| panic!("{error}")).remove(0);
    assert_eq!(time, 3.0 * DT);
    assert!(near(before, same), "{before:?} {same:?}");
    assert!(near(later, as_late), "{later:?} {as_late:?}");
    let files = std::fs::read_dir(folder.path()).expect("the folder").count();
    assert_eq!(files, 1, "nothing but the checkpoint");
}

#[test]
fn a_checkpoint_of_another_size_is_refused_by_all_ranks() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("velocity-1.npy");
    std::fs::write(&path, "not a checkpoint").expect("a file");
    let refused = thriffty::threads(2, |world| {
        let mut flow = flow(&world)?;
        let error = checkpoint::load(&mut flow, &world, &path).expect_err("no checkpoint");
        Ok::<_, Error>(error.to_string())
    });
    let refused = refused.unwrap_or_else(|error| panic!("{error}"));
    assert!(refused.iter().all(|text| text.contains("velocity-1.npy")), "{refused:?}");
}

#[test]
fn steps_allocate_nothing() {
    for ranks in [1, 3] {
        let found = thriffty::threads(ranks, |world| {
            let mut flow = flow(&world)?;
            (0..5).map(|_| calls(|| flow.step(DT))).collect::<Result<Vec<_>, Error>>()
        });
        let found = found.unwrap_or_else(|error| panic!("{ranks} ranks: {error}"));
        assert!(found.iter().flatten().all(|calls| *calls == 0), "{ranks} ranks: {found:?}");
    }
}

/// At the time 0 the vorticity in the plane has a formula, and brighter pixels have more of it.
#[test]
fn the_picture_shows_the_vorticity() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vorticity.png");
    let brightness = |ranks: usize| {
        thriffty::threads(ranks, |world| picture::save(&mut flow(&world)?, &world, &path)).unwrap();
        let file = std::io::BufReader::new(std::fs::File::open(&path).unwrap());
        let mut reader = png::Decoder::new(file).read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let side = reader.next_frame(&mut bytes).unwrap().width as usize;
        assert_eq!(bytes.len(), 3 * side * side);
        let pixels = bytes.chunks_exact(3);
        let sums = pixels.map(|pixel| pixel.iter().map(|channel| u32::from(*channel)).sum::<u32>());
        (side, sums.collect::<Vec<_>>())
    };
    let (side, pixels) = brightness(1);
    assert_eq!(brightness(3), (side, pixels.clone()));
    // u = (sin x cos y cos z, -cos x sin y cos z, 0)
    let (sz, cz) = (3.0 * TAU / 16.0).sin_cos();
    let magnitude = |x: usize, y: usize| {
        let [(sx, cx), (sy, cy)] = [x, y].map(|at| (TAU * at as f64 / side as f64).sin_cos());
        [-cx * sy * sz, -sx * cy * sz, 2.0 * sx * sy * cz].map(|w| w * w).iter().sum::<f64>().sqrt()
    };
    // The lowest row of pixels is y = 0.
    let pixel = |x: usize, y: usize| pixels[(side - 1 - y) * side + x];
    let quarter = side / 4;
    let (most, least) = (*pixels.iter().max().unwrap(), *pixels.iter().min().unwrap());
    assert_eq!((pixel(0, quarter), pixel(quarter, 0)), (most, most));
    assert_eq!((pixel(0, 0), pixel(2 * quarter, 0)), (least, least));
    let mut places: Vec<_> = (0..40).map(|i| (i * 97 % side, i * i * 31 % side)).collect();
    places.sort_by(|a, b| magnitude(a.0, a.1).total_cmp(&magnitude(b.0, b.1)));
    let brighter: Vec<_> = places.iter().map(|(x, y)| pixel(*x, *y)).collect();
    assert!(brighter.is_sorted(), "{brighter:?}");
}
