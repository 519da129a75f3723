//! Transforms by threads, and planning for many ranks: where changes of the library show first.
//!
//! `cargo bench` compares with its own last run; `cargo xtask bench` compares with FFTW.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use thriffty::planning::{Layout, Precision, Problem, ProcGrid, Recipe};
use thriffty::{C2c, Comm, Error, Grid, Kind, Plan, R2c};

/// The time of `rounds` forward transforms on threads, without planning.
fn forward<const N: usize>(ranks: usize, rounds: u64, real: bool) -> Result<Duration, Error> {
    let times = thriffty::threads(ranks, |world| {
        let grid = Grid::new([N, N, N])?;
        let mut run: Box<dyn FnMut() -> Result<(), Error>> = if real {
            let mut plan = Plan::<R2c>::r2c(&world, grid).build()?;
            let x = vec![1.0; plan.input_len()];
            let mut y = vec![Default::default(); plan.output_len()];
            Box::new(move || plan.forward_into(black_box(&x), black_box(&mut y)))
        } else {
            let mut plan = Plan::<C2c>::c2c(&world, grid).build()?;
            let x = vec![Default::default(); plan.input_len()];
            let mut y = x.clone();
            Box::new(move || plan.forward_into(black_box(&x), black_box(&mut y)))
        };
        run()?;
        world.barrier()?;
        let start = Instant::now();
        for _ in 0..rounds {
            run()?;
        }
        world.barrier()?;
        Ok(start.elapsed())
    })?;
    Ok(times.into_iter().max().expect("at least one rank"))
}

fn transforms(criterion: &mut Criterion) {
    const N: usize = 128;
    let mut group = criterion.benchmark_group("forward 128^3");
    group.sample_size(10);
    for (name, real) in [("c2c", false), ("r2c", true)] {
        group.throughput(Throughput::Elements((N * N * N) as u64));
        for ranks in [1, 2, 4] {
            group.bench_function(BenchmarkId::new(name, ranks), |bencher| {
                let run = |rounds| forward::<N>(ranks, rounds, real).expect("a plain transform");
                bencher.iter_custom(run);
            });
        }
    }
}

fn planning(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("recipe 1024^3");
    group.sample_size(10);
    let grid = Grid::new([1024, 1024, 1024]).expect("a plain grid");
    for ranks in [64, 512, 4096, 16384] {
        let bricks = Layout::even(grid, ProcGrid::cubic(grid, ranks), ranks);
        let kinds = [Kind::C2C; 3];
        let mut problem = Problem::new(kinds, true, Precision::F64, bricks.clone(), bricks)
            .expect("a plain problem");
        // Six ranks per host, with a last host that is not full.
        problem.hosts = (0..ranks).map(|rank| rank / 6).collect();
        group.bench_function(BenchmarkId::from_parameter(ranks), |bencher| {
            bencher.iter(|| Recipe::new(black_box(problem.clone())).expect("a plain problem"));
        });
    }
}

criterion_group!(benches, transforms, planning);
criterion_main!(benches);
