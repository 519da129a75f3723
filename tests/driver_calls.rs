//! What a plan asks of CUDA's driver while it runs, counted by a library that stands before the driver's: nothing is allocated, and
//! the host waits for its device only where `docs/gpu.md` says so. cuFFT's calls count as well. Where there is no GPU, it prints why
//! and passes.

mod common;
#[path = "driver_calls/counting.rs"]
mod counting;

use std::ffi::{c_char, c_void};

use common::gpu::gpu;
use counting::{calls, compile, count_in, loaded};
use fft_core::{Element, Step};
use thriffty::gpu::cudarc::driver::sys;
use thriffty::gpu::{Gpu, GpuReal, Passage, driver_is_present};
use thriffty::{
    Algorithm, C2c, Comm, DevicePlan, Direction, Error, Grid, Plan, R2c, Reduce, Tolerance,
    Transform, Wire,
};

/// What makes or frees anything.
const MAKES: &[&str] = &[
    "cuMemAlloc_v2",
    "cuMemAllocPitch_v2",
    "cuMemAllocAsync",
    "cuMemAllocFromPoolAsync",
    "cuMemAllocManaged",
    "cuMemAllocHost_v2",
    "cuMemHostAlloc",
    "cuMemHostRegister_v2",
    "cuMemCreate",
    "cuMemFree_v2",
    "cuMemFreeAsync",
    "cuMemFreeHost",
    "cuMemHostUnregister",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuStreamCreate",
    "cuStreamCreateWithPriority",
    "cuStreamDestroy_v2",
    "cuModuleLoad",
    "cuModuleLoadData",
    "cuModuleLoadDataEx",
    "cuModuleLoadFatBinary",
    "cuModuleUnload",
    "cuLibraryLoadData",
    "cuLibraryUnload",
];

/// What waits for the device, or may.
const WAITS: &[&str] = &[
    "cuCtxSynchronize",
    "cuStreamSynchronize",
    "cuEventSynchronize",
    "cuMemcpy",
    "cuMemcpyHtoD_v2",
    "cuMemcpyDtoH_v2",
    "cuMemcpyDtoD_v2",
    "cuMemcpyPeer",
    "cuMemcpy2D_v2",
    "cuMemcpy3D_v2",
    "cuMemsetD8_v2",
    "cuMemsetD32_v2",
];

/// What is queued.
const QUEUES: &[&str] = &[
    "cuLaunchKernel",
    "cuLaunchKernelEx",
    "cuMemcpyAsync",
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyDtoDAsync_v2",
    "cuMemsetD8Async",
    "cuMemsetD32Async",
    "cuEventRecord",
    "cuStreamWaitEvent",
];

/// Runs that are counted, each forward and inverse, after some that are not.
const RUNS: usize = 10;

/// A driver of a few functions, to see that calls are counted and arrive, however they are found.
#[test]
fn the_counter_counts() {
    let folder = tempfile::tempdir().unwrap();
    let (source, driver) = (folder.path().join("driver.c"), folder.path().join("driver.so"));
    let text = "
        #include <string.h>
        int cuInit(unsigned flags) { return 500 + (int)flags; }
        int cuStreamSynchronize(void *stream) { return stream == (void *)17 ? 0 : 1; }
        int cuLaunchKernel(void *f, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned g, unsigned h,
                           void *s, void **p, void **x) {
            return f == (void *)1 && a + b + c + d + e + g + h == 28 && s == (void *)9 && p == (void *)10 && x == (void *)11;
        }
        int cuGetProcAddress_v2(const char *name, void **found, int version, unsigned long long flags, void *status) {
            *found = strcmp(name, \"cuGetProcAddress\") == 0 ? (void *)cuGetProcAddress_v2 : (void *)cuStreamSynchronize;
            return 0;
        }";
    std::fs::write(&source, text).unwrap();
    // Its own functions are its own, as the real one's are.
    if compile(&[source.to_str().unwrap(), "-Wl,-Bsymbolic"], &driver) {
        assert_eq!(count_in("counted", &driver, 1), Some(true));
    }
}

#[test]
#[ignore = "started by another test"]
fn counted() {
    type Find = unsafe extern "C" fn(*const c_char, *mut *mut c_void, i32, u64, *mut i32) -> u32;
    type Wait = unsafe extern "C" fn(*mut c_void) -> u32;
    assert!(driver_is_present());
    let at = std::ptr::without_provenance_mut;
    let names = &["cuStreamSynchronize", "cuLaunchKernel", "cuMemAlloc_v2"];
    assert_eq!(calls(names), [0; 3]);
    // SAFETY: the functions are those of the driver above, which follow no pointers but those of names and places.
    unsafe {
        let get = |name: &[u8]| *sys::culib().get::<*mut c_void>(name).unwrap();
        let init =
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn(u32) -> u32>(get(b"cuInit\0"));
        assert_eq!(init(7), 507);
        let wait = std::mem::transmute::<*mut c_void, Wait>(get(b"cuStreamSynchronize\0"));
        assert_eq!([wait(at(17)), wait(at(18))], [0, 1]);
        type Launch = unsafe extern "C" fn(
            *mut c_void,
            u32,
            u32,
            u32,
            u32,
            u32,
            u32,
            u32,
            *mut c_void,
            *mut c_void,
            *mut c_void,
        ) -> u32;
        let launch = std::mem::transmute::<*mut c_void, Launch>(get(b"cuLaunchKernel\0"));
        assert_eq!(launch(at(1), 1, 2, 3, 4, 5, 6, 7, at(9), at(10), at(11)), 1);
        assert_eq!(calls(names), [2, 1, 0]);
        // By the way of cuFFT: the one that finds is found, and finds another.
        let find = std::mem::transmute::<*mut c_void, Find>(get(b"cuGetProcAddress_v2\0"));
        let mut found = std::ptr::null_mut();
        let none = std::ptr::null_mut();
        assert_eq!(find(c"cuGetProcAddress".as_ptr(), &raw mut found, 13000, 0, none), 0);
        let find = std::mem::transmute::<*mut c_void, Find>(found);
        assert_eq!(find(c"cuStreamSynchronize".as_ptr(), &raw mut found, 13000, 0, none), 0);
        let wait = std::mem::transmute::<*mut c_void, Wait>(found);
        assert_eq!(wait(at(17)), 0);
    }
    assert_eq!(calls(names), [3, 1, 0]);
}

#[test]
fn a_plan_allocates_nothing_and_waits_where_it_says() {
    if gpu().is_none() {
        return;
    }
    assert_ne!(count_in("body", &loaded(), 1), Some(false));
    #[cfg(feature = "mpi")]
    for processes in [2, 4] {
        assert_ne!(count_in("process", &loaded(), processes), Some(false));
    }
}

/// How messages travel, and what the host must wait for in one direction, of all ranks together.
struct Way {
    name: &'static str,
    apart: bool,
    passage: Passage,
    exchange: Algorithm,
    wire: Option<Wire>,
    waits: fn(Traffic) -> u64,
}

/// What a direction does, of all ranks together.
#[derive(Clone, Copy)]
struct Traffic {
    ranks: u64,
    reshapes: u64,
    /// Chunks out and in: one for each rank that has messages in a reshape, as all are shorter.
    out: u64,
    come: u64,
}

const P2P: Algorithm = Algorithm::P2p;

const WAYS: [Way; 7] = [
    // Kernels take what they need from each other's memory: nobody waits.
    Way {
        name: "as it is",
        apart: false,
        passage: Passage::Reached,
        exchange: P2P,
        wire: None,
        waits: |_| 0,
    },
    // For the norm of the input, and at the end for what was lost.
    Way {
        name: "bits:16 in windows",
        apart: false,
        passage: Passage::Reached,
        exchange: P2P,
        wire: Some(Wire::Bits(16)),
        waits: |t| if t.out > 0 { 2 * t.ranks } else { 0 },
    },
    // In each reshape for the lengths of messages as well, twice where they lost too much.
    Way {
        name: "tolerance in windows",
        apart: false,
        passage: Passage::Reached,
        exchange: P2P,
        wire: Some(Wire::Tolerance),
        waits: |t| t.ranks * (2 + 2 * t.reshapes),
    },
    // Once for the messages of each chunk, out and in.
    Way {
        name: "as it is through the host",
        apart: true,
        passage: Passage::Reached,
        exchange: P2P,
        wire: None,
        waits: |t| t.out + t.come,
    },
    Way {
        name: "as it is through the host by alltoallv",
        apart: true,
        passage: Passage::Reached,
        exchange: Algorithm::Alltoallv,
        wire: None,
        waits: |t| t.out + t.come,
    },
    // For the norm, and in each reshape for whether all could be read.
    Way {
        name: "bits:16 through the host",
        apart: true,
        passage: Passage::Reached,
        exchange: P2P,
        wire: Some(Wire::Bits(16)),
        waits: |t| t.out + t.come + t.ranks * (1 + t.reshapes),
    },
    // And for their lengths, twice where they lost too much.
    Way {
        name: "tolerance through the host",
        apart: true,
        passage: Passage::Reached,
        exchange: P2P,
        wire: Some(Wire::Tolerance),
        waits: |t| 3 * t.out + t.come + t.ranks * (1 + t.reshapes),
    },
];

/// Ranks have messages for each other where their bricks meet.
fn traffic<K: Transform, const D: usize>(plan: &DevicePlan<K, D>, direction: Direction) -> Traffic
where
    K::Real: GpuReal,
{
    let ranks = plan.comm().size();
    let mut found = Traffic { ranks: ranks as u64, reshapes: 0, out: 0, come: 0 };
    for leg in plan.recipe().legs(direction) {
        if !matches!(leg.step, Step::Reshape { .. }) {
            continue;
        }
        found.reshapes += 1;
        let meet = |a: usize, b: usize| {
            let common = leg.from.layout.brick(a).intersect(&leg.to.layout.brick(b));
            a != b && !common.is_empty()
        };
        for rank in 0..ranks {
            found.out += u64::from((0..ranks).any(|other| meet(rank, other)));
            found.come += u64::from((0..ranks).any(|other| meet(other, rank)));
        }
    }
    found
}

/// Calls of all ranks meanwhile.
fn meanwhile(
    comm: &dyn Comm,
    list: &[&str],
    run: impl FnOnce() -> Result<(), Error>,
) -> Result<Vec<u64>, Error> {
    comm.barrier()?;
    let before = calls(list);
    comm.barrier()?;
    run()?;
    comm.barrier()?;
    let after = calls(list);
    comm.barrier()?;
    let mut found: Vec<_> =
        after.iter().zip(before).map(|(after, before)| (after - before) as f64).collect();
    // Threads count together, processes each for itself.
    if comm.name() == "mpi" {
        comm.allreduce(Reduce::Sum, &mut found)?;
    }
    Ok(found.iter().map(|calls| *calls as u64).collect())
}

/// Short messages of real data.
fn check(comm: &dyn Comm, gpu: &Gpu, way: &Way) -> Result<(), Error> {
    let draft = Plan::<R2c, 3>::r2c(comm, Grid::new([64, 60, 48])?).exchange(way.exchange);
    let draft = match way.wire {
        None => draft,
        Some(wire) => draft.wire(wire).wire_everywhere(),
    };
    let draft = match way.wire {
        Some(Wire::Tolerance) => draft.tolerance(Tolerance::relative(1e-6)?),
        _ => draft,
    };
    count(comm, draft.on(gpu).passage(way.passage).build()?, way)
}

/// Transforms that fetch what they read, from 1 MiB per rank on.
fn check_fetching(comm: &dyn Comm, gpu: &Gpu) -> Result<(), Error> {
    let way = Way { name: "fetched", ..WAYS[0] };
    let draft = Plan::<C2c, 3>::c2c(comm, Grid::new([64, 64, 128])?).exchange(Algorithm::P2p);
    let plan = draft.on(gpu).build()?;
    let [there, back] = [Direction::Forward, Direction::Inverse].map(|way| plan.fetched(way));
    if comm.rank() == 0 {
        println!("{there} and {back} reshapes take no pass of {}", plan.recipe());
    }
    count(comm, plan, &way)
}

/// Counts the calls of a plan in a few runs, whose input is now here and now there.
fn count<K: Transform<Real = f64>>(
    comm: &dyn Comm,
    mut plan: DevicePlan<K, 3>,
    way: &Way,
) -> Result<(), Error> {
    let stream = plan.stream().clone();
    let reals = [plan.input_len() * K::Physical::WIDTH, plan.output_len() * K::Spectral::WIDTH];
    let data: Vec<f64> = (0..reals[0]).map(|i| (i as f64 * 0.7).sin()).collect();
    let mut inputs = [0; 2].map(|_| stream.clone_htod(&data).unwrap());
    let mut y = stream.alloc_zeros::<f64>(reals[1]).unwrap();
    let expected = [Direction::Forward, Direction::Inverse].map(|way| traffic(&plan, way));
    let mut both = |run: usize| {
        let x = &mut inputs[run % 2];
        plan.forward_into(x, &mut y)?;
        plan.inverse_into(&y, x)
    };
    (0..3).try_for_each(&mut both)?;
    let names = [MAKES, WAITS, QUEUES].concat();
    let found = meanwhile(comm, &names, || (0..RUNS).try_for_each(&mut both))?;
    let (made, rest) = found.split_at(MAKES.len());
    let (waited, queued) = rest.split_at(WAITS.len());
    let [made, waited, queued] = [made, waited, queued].map(|calls| calls.iter().sum::<u64>());
    let most = expected.map(way.waits).iter().sum::<u64>();
    let some = names.iter().zip(&found).filter(|(_, calls)| **calls > 0);
    let some: Vec<_> =
        some.map(|(name, n)| format!("{name} {}", *n as f64 / RUNS as f64)).collect();
    let what = format!("{} ranks, {}: {}", comm.size(), way.name, some.join(", "));
    if comm.rank() == 0 {
        println!("{} waits of at most {most}; {what}", waited as f64 / RUNS as f64);
    }
    assert_eq!(made, 0, "{what}");
    assert!(waited <= RUNS as u64 * most, "at most {most}: {what}");
    // What is not seen cannot be counted.
    assert!(queued >= (2 * RUNS * comm.size()) as u64, "{what}");
    Ok(())
}

#[test]
#[ignore = "started by another test"]
fn body() {
    let gpu = Gpu::probe(0).expect("asked before");
    // Making a plan does all that running it must not.
    let stream = gpu.new_stream().unwrap();
    drop(stream.alloc_zeros::<f64>(8).unwrap());
    stream.synchronize().unwrap();
    let names = &["cuStreamCreate", "cuModuleLoadData", "cuStreamSynchronize"];
    assert!(calls(names).iter().all(|calls| *calls > 0), "{:?}", calls(names));
    for way in &WAYS {
        for ranks in [1, 2, 4] {
            let hosts: Vec<_> = (0..ranks).map(|rank| if way.apart { rank } else { 0 }).collect();
            for done in fft_comm::threads_on(&hosts, |comm| check(&comm, &gpu, way)) {
                done.unwrap();
            }
        }
    }
    for ranks in [2, 4] {
        thriffty::threads(ranks, |comm| check_fetching(&comm, &gpu)).unwrap();
    }
}

/// From memory of the device: for each chunk to be made, and that those of the reshape before have been read. Messages are one chunk.
#[cfg(feature = "mpi")]
const DEVICE_WAYS: [Way; 3] = [
    Way {
        name: "as it is on the device",
        apart: false,
        passage: Passage::Device,
        exchange: P2P,
        wire: None,
        waits: |t| 2 * t.ranks * t.reshapes,
    },
    Way {
        name: "bits:16 on the device",
        apart: false,
        passage: Passage::Device,
        exchange: P2P,
        wire: Some(Wire::Bits(16)),
        waits: |t| t.ranks * (1 + 3 * t.reshapes),
    },
    Way {
        name: "tolerance on the device",
        apart: false,
        passage: Passage::Device,
        exchange: P2P,
        wire: Some(Wire::Tolerance),
        waits: |t| t.ranks * (1 + 4 * t.reshapes),
    },
];

#[cfg(feature = "mpi")]
#[test]
#[ignore = "started under mpirun by another test"]
fn process() {
    let library = thriffty::mpi::init().expect("MPI is initialised once");
    let world = library.world().expect("the world");
    let gpu = Gpu::probe(0).expect("asked before");
    check_fetching(&world, &gpu).unwrap();
    for way in &DEVICE_WAYS {
        match check(&world, &gpu, way) {
            Err(why) if way.wire.is_none() && why.to_string().contains("passage") => {
                return println!("not run: messages on the device, {why}");
            }
            done => done.unwrap(),
        }
    }
}
