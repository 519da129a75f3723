//! Threads of several processes as ranks, where one thread of each process calls MPI.

use fft_core::Link;
use thriffty::mpi::{self, FunneledComm, MpiComm};
use thriffty::planning::{Memory, Reduce};
use thriffty::{Brick, C2c, Comm, Error, Kind, R2c};

use crate::as_rank;
use crate::common::check::{Case, check};
use crate::common::data::{C64, bound, distance, norm, random};
use crate::common::leaving;
use crate::common::{arrays, cases, failures, job, lossy, plans};

#[test]
fn one_process() {
    job::must_succeed(1, "funnel::body");
}

#[test]
fn two_processes() {
    job::must_succeed(2, "funnel::body");
}

#[test]
fn three_processes() {
    job::must_succeed(3, "funnel::body");
}

#[test]
#[ignore = "started under mpirun by the other tests"]
fn body() {
    as_rank(|world, _| {
        let all: &[&[usize]] = match world.size() {
            1 => &[&[1], &[3]],
            2 => &[&[2, 2], &[1, 3]],
            _ => &[&[3, 1, 2]],
        };
        for threads in all {
            on_threads(world, threads[world.rank()], |comm| {
                ranks_are_numbered(comm, threads)?;
                collectives(comm)?;
                transforms(comm)
            });
            process_plans(world, threads[world.rank()]).unwrap_or_else(|error| panic!("{error}"));
        }
        for threads in [0, 182] {
            let asked = if world.rank() + 1 == world.size() { threads } else { 2 };
            let error = mpi::threads(world, asked, |_| ()).unwrap_err().to_string();
            assert!(error.contains("threads") && error.contains("181"), "{error}");
        }
    });
}

/// Runs a check on threads of each process; as long as they run, the next one waits.
fn on_threads(
    world: &MpiComm,
    threads: usize,
    body: impl Fn(&FunneledComm) -> Result<(), Error> + Sync,
) {
    let results = mpi::threads(world, threads, |comm| body(&comm)).expect("threads start");
    assert_eq!(results.len(), threads);
    for (thread, result) in results.into_iter().enumerate() {
        result.unwrap_or_else(|error| panic!("thread {thread}: {error}"));
    }
}

fn ranks_are_numbered(comm: &FunneledComm, threads: &[usize]) -> Result<(), Error> {
    assert_eq!(comm.size(), threads.iter().sum::<usize>());
    let processes = || threads.iter().enumerate().flat_map(|(p, &n)| std::iter::repeat_n(p, n));
    let own = processes().nth(comm.rank()).expect("a process of each rank");
    for (rank, process) in processes().enumerate() {
        let expected = match process == own {
            _ if rank == comm.rank() => Link::Own,
            true => Link::Shared,
            false => Link::Remote,
        };
        assert_eq!(comm.link(rank), expected, "{rank} of {threads:?}");
    }
    comm.barrier()
}

fn collectives(comm: &FunneledComm) -> Result<(), Error> {
    let (rank, size) = (comm.rank(), comm.size());
    for bytes in [0, 1, 5] {
        let mine: Vec<u8> = (0..bytes).map(|i| (10 * rank + i) as u8).collect();
        let mut all = vec![0; bytes * size];
        comm.allgather(&mine, &mut all)?;
        let expected: Vec<u8> =
            (0..size).flat_map(|rank| (0..bytes).map(move |i| (10 * rank + i) as u8)).collect();
        assert_eq!(all, expected);
    }
    for (how, expected) in [
        (Reduce::Min, [0.0, -(size as f64) + 1.0]),
        (Reduce::Max, [size as f64 - 1.0, 0.0]),
        (Reduce::Sum, [1.0, -1.0].map(|sign| sign * (size * (size - 1) / 2) as f64)),
    ] {
        let mut values = [rank as f64, -(rank as f64)];
        comm.allreduce(how, &mut values)?;
        assert_eq!(values, expected, "{how:?}");
    }
    let detector = comm.failure_detector().expect("one of MPI");
    assert!(detector.sync(true)?);
    if size > 1 {
        assert!(!detector.sync(rank + 1 < size)?);
    }
    Ok(())
}

fn transforms(comm: &FunneledComm) -> Result<(), Error> {
    for (exchange, memory) in plans::everything() {
        let case = Case::new([12, 10, 8], [Kind::C2C; 3]).exchange(exchange).memory(memory);
        check::<C2c, 3>(comm, &case)?;
        let case = Case::new([7, 6, 9], [Kind::C2C, Kind::Dct2, Kind::R2C]);
        let case = case.exchange(exchange).memory(memory).tiling(3).batch(2);
        check::<R2c<f32>, 3>(comm, &case)?;
    }
    cases::many_neighbours(comm)?;
    leaving::in_any_order(comm)?;
    // The others have no more kinds of peers than four.
    if comm.size() != 4 {
        return Ok(());
    }
    cases::large_planes(comm)?;
    lossy::all(comm, Memory::Ample)?;
    arrays::all(comm)?;
    leaving::early(comm)?;
    failures::all(comm)
}

/// Plans of processes with threads give the same results as plans of processes, in the same bricks.
fn process_plans(world: &MpiComm, threads: usize) -> Result<(), Error> {
    let (rank, size) = (world.rank(), world.size());
    for (seed, batch) in [(1, 1), (2, 3), (3, 2)] {
        let case = Case::new([7, 6, 10], [Kind::C2C, Kind::C2C, Kind::R2C]);
        let case = case.orders([0, 1, 2], [2, 0, 1]).batch(batch).tiling(seed);
        let [input, output] = case.bricks(size)?.map(|bricks| bricks[rank]);
        let mut expected = case.plan::<R2c>(world)?;
        let draft = thriffty::r2c(world, [7, 6, 10]).output_order([2, 0, 1]).batch(batch);
        let draft = draft.threads(threads).input_brick(input).output_brick(output);
        let mut plan = draft.build()?;
        assert_eq!(plan.threads(), threads);
        assert_eq!(
            (plan.input_len(), plan.output_len()),
            (expected.input_len(), expected.output_len())
        );
        let x: Vec<f64> = random(plan.input_len(), seed + rank as u64);
        let mut found = vec![C64::default(); plan.output_len()];
        let mut right = found.clone();
        for _ in 0..2 {
            plan.forward_into(&x, &mut found)?;
            expected.forward_into(&x, &mut right)?;
            let far = distance(&found, &right);
            assert!(far <= bound(f64::EPSILON, 420) * norm(&right).max(1.0), "off by {far:e}");
        }
        let mut back = vec![0.0; x.len()];
        plan.inverse_into(&found, &mut back)?;
        let far = back.iter().zip(&x).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(far <= 4.0 * bound(f64::EPSILON, 420), "off by {far:e}");
        let mut field = plan.input();
        assert_eq!(field.brick(), plan.input_brick());
        field.as_mut_slice().copy_from_slice(&x);
        assert_eq!(plan.forward(field)?.as_slice(), found, "a field");
        // In place.
        let mut data = vec![C64::default(); plan.in_place_bytes() / 16];
        bytemuck::cast_slice_mut(&mut data)[..x.len()].copy_from_slice(&x);
        plan.forward_in_place(&mut data)?;
        assert_eq!(data[..found.len()], found, "in place");
        // One process passes an array of another length: all get an error, and go on.
        let len = x.len() + usize::from(rank + 1 == size);
        let error = plan.forward_into(&vec![0.0; len], &mut found).unwrap_err();
        assert!(error.to_string().contains("input"), "{error}");
        plan.forward_into(&x, &mut found)?;
    }
    // An impossible number of threads is an error on all, even if others have 1.
    let asked = if rank + 1 == size { 0 } else { 1 };
    let error = thriffty::c2c(world, [8, 8]).threads(asked).build().unwrap_err().to_string();
    assert!(error.contains("threads"), "{error}");
    // Bricks are checked like the bricks of processes.
    let grid = Brick { lo: [0, 0], hi: [8, 8] };
    let error = thriffty::c2c(world, [8, 8]).threads(threads).input_brick(grid).build();
    assert_eq!(error.is_err(), size > 1);
    Ok(())
}
