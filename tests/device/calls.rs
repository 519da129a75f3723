//! Calls into CUDA's driver while a plan runs, counted by a library that is loaded before it.
//!
//! Nothing is allocated, and the host waits only in the places that `docs/gpu.md` lists. cuFFT's
//! calls count as well. Without a GPU the test prints why and passes.

mod counting;
mod refusals;
mod ways;

use std::ffi::{c_char, c_void};

use crate::gpu::{fetched, gpu, links};
use counting::{calls, compile, count_in, loaded, refusing};
use fft_core::Element;
use thriffty::gpu::DevicePlan;
use thriffty::gpu::cudarc::driver::sys;
use thriffty::gpu::{Gpu, driver_is_present};
use thriffty::planning::{Direction, Exchange, Reduce, Transform};
use thriffty::{C2c, Comm, Error, Grid, Plan, R2c, Wire};
#[cfg(feature = "mpi")]
use ways::{DEVICE_WAYS, LARGE_DEVICE_WAYS};
use ways::{LARGE_WAYS, MessagePlan, NEAR, WAYS, Way, message_plan};

/// Functions that allocate or free.
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

/// Functions that wait for the device, or may.
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
    // Copies that are queued between a device and memory of the host that is not pinned.
    "pageable",
];

/// Functions that queue work.
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

/// Runs that are counted, forward and inverse, after warm-up runs.
const RUNS: usize = 10;

/// A driver of a few functions, which tests the counting of calls however they are looked up.
#[test]
fn the_counter_counts() {
    let folder = tempfile::tempdir().unwrap();
    let (source, driver) = (folder.path().join("driver.c"), folder.path().join("driver.so"));
    let text = "
        #include <string.h>
        int cuInit(unsigned flags) { return 500 + (int)flags; }
        int cuStreamSynchronize(void *stream) { return stream == (void *)17 ? 0 : 1; }
        int cuPointerGetAttribute(void *found, int which, void *at) { return which == 2 && at == (void *)100 ? 0 : 1; }
        int cuMemcpyDtoHAsync_v2(void *to, void *from, unsigned long bytes, void *stream) { return to < from && bytes && stream; }
        int cuMemcpyHtoDAsync_v2(void *to, void *from, unsigned long bytes, void *stream) { return to > from && bytes && stream; }
        int cuLaunchKernel(void *f, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned g, unsigned h,
                           void *s, void **p, void **x) {
            return f == (void *)1 && a + b + c + d + e + g + h == 28 && s == (void *)9 && p == (void *)10 && x == (void *)11;
        }
        int cuGetProcAddress_v2(const char *name, void **found, int version, unsigned long long flags, void *status) {
            int self = strcmp(name, \"cuGetProcAddress\") == 0;
            *found = self ? (void *)cuGetProcAddress_v2 : (void *)cuStreamSynchronize;
            return 0;
        }";
    std::fs::write(&source, text).unwrap();
    // Its functions resolve to its own, as the real one's do.
    if compile(&[source.to_str().unwrap(), "-Wl,-Bsymbolic"], &driver) {
        assert_eq!(count_in("calls::counted", &driver, 1), Some(true));
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
    // SAFETY: the functions belong to the driver above, and follow only pointers to names and
    // results.
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
        type Copy = unsafe extern "C" fn(*mut c_void, *mut c_void, usize, *mut c_void) -> u32;
        let fetch = std::mem::transmute::<*mut c_void, Copy>(get(b"cuMemcpyDtoHAsync_v2\0"));
        let store = std::mem::transmute::<*mut c_void, Copy>(get(b"cuMemcpyHtoDAsync_v2\0"));
        // Copies of memory that the driver calls pinned, and of unknown memory.
        let unpinned = || calls(&["pageable"])[0];
        assert_eq!((fetch(at(100), at(200), 1, at(1)), unpinned()), (1, 0));
        assert_eq!((fetch(at(101), at(200), 1, at(1)), unpinned()), (1, 1));
        assert_eq!((store(at(200), at(100), 1 << 20, at(1)), unpinned()), (1, 1));
        assert_eq!((store(at(200), at(101), 1 << 16, at(1)), unpinned()), (1, 1));
        assert_eq!((store(at(200), at(101), (1 << 16) + 1, at(1)), unpinned()), (1, 2));
        let (refused, once) =
            refusing("cuStreamSynchronize", 1, 700, || [17; 3].map(|n| wait(at(n))));
        assert_eq!((refused, once), ([0, 700, 0], true));
        assert!(!refusing("cuStreamSynchronize", 1, 700, || wait(at(17))).1);
        // As in cuFFT, the function for look-ups is looked up itself.
        let find = std::mem::transmute::<*mut c_void, Find>(get(b"cuGetProcAddress_v2\0"));
        let mut found = std::ptr::null_mut();
        let none = std::ptr::null_mut();
        assert_eq!(find(c"cuGetProcAddress".as_ptr(), &raw mut found, 13000, 0, none), 0);
        let find = std::mem::transmute::<*mut c_void, Find>(found);
        assert_eq!(find(c"cuStreamSynchronize".as_ptr(), &raw mut found, 13000, 0, none), 0);
        let wait = std::mem::transmute::<*mut c_void, Wait>(found);
        // Functions that are found so are not refused.
        assert_eq!(refusing("cuStreamSynchronize", 0, 700, || wait(at(17))), (0, false));
    }
    assert_eq!(calls(names), [7, 1, 0]);
}

#[test]
fn a_plan_allocates_nothing_and_waits_where_it_says() {
    if gpu().is_none() {
        return;
    }
    assert_ne!(count_in("calls::body", &loaded(), 1), Some(false));
    #[cfg(feature = "mpi")]
    for processes in [2, 4] {
        assert_ne!(count_in("calls::process", &loaded(), processes), Some(false));
    }
}

/// Calls of all ranks while `work` runs.
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
    // Threads share counters; processes have their own.
    if comm.name() == "mpi" {
        comm.allreduce(Reduce::Sum, &mut found)?;
    }
    Ok(found.iter().map(|calls| *calls as u64).collect())
}

/// Grids whose messages are one chunk, and several. All have 64 KiB, so that they are pinned.
const SMALL: [usize; 3] = [96, 100, 128];
const LARGE: [usize; 3] = [256, 256, 128];

/// Real data.
fn check(comm: &dyn Comm, gpu: &Gpu, way: &Way, shape: [usize; 3]) -> Result<(), Error> {
    let draft = way.draft(Plan::<R2c, 3>::r2c(comm, Grid::new(shape)?))?;
    let plan = draft.on(gpu).transport(way.transport).build()?;
    assert_eq!(plan.exchange(), way.exchange);
    let chunks = message_plan(plan.recipe(), Direction::Forward, way);
    let several = chunks.out > chunks.ranks * chunks.reshapes;
    assert_eq!(several, shape == LARGE, "{}: {} chunks", way.name, chunks.out);
    count(comm, plan, way)
}

/// Transforms that load their input from other ranks, from 1 MiB per rank on.
fn check_fetching(comm: &dyn Comm, gpu: &Gpu) -> Result<(), Error> {
    let way = Way { name: "fetched", ..NEAR };
    let draft = Plan::<C2c, 3>::c2c(comm, Grid::new([64, 64, 128])?).exchange(Exchange::P2p);
    let plan = draft.on(gpu).build()?;
    let [there, back] =
        [Direction::Forward, Direction::Inverse].map(|way| fetched(plan.operations(way)));
    let what = format!("{there} and {back} reshapes take no pass of {}", plan.recipe());
    assert!(there > 0 && back > 0 || !links(gpu), "{what}");
    if comm.rank() == 0 {
        println!("{what}");
    }
    count(comm, plan, &way)
}

/// Counts the calls of a plan in a few runs with alternating inputs.
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
    let expected =
        [Direction::Forward, Direction::Inverse].map(|to| message_plan(plan.recipe(), to, way));
    let mut both = |run: usize| {
        let x = &mut inputs[run % 2];
        plan.forward_into(x, &mut y)?;
        plan.inverse_into(&y, x)
    };
    (0..3).try_for_each(&mut both)?;
    let names = [MAKES, WAITS, QUEUES, &["mpi"]].concat();
    let found = meanwhile(comm, &names, || (0..RUNS).try_for_each(&mut both))?;
    let (made, rest) = found.split_at(MAKES.len());
    let (waited, rest) = rest.split_at(WAITS.len());
    let queued = &rest[..QUEUES.len()];
    let [made, waited, queued] = [made, waited, queued].map(|calls| calls.iter().sum::<u64>());
    let waits = |plans: [MessagePlan; 2]| plans.map(way.waits).iter().sum::<u64>();
    // Chunks are unpacked as they arrive.
    let most = match way.exchange {
        Exchange::Pipelined => expected.map(MessagePlan::one_by_one),
        _ => expected,
    };
    let (least, most) = (waits(expected), waits(most));
    let some = names.iter().zip(&found).filter(|(_, calls)| **calls > 0);
    let some: Vec<_> =
        some.map(|(name, n)| format!("{name} {}", *n as f64 / RUNS as f64)).collect();
    let what = format!("{} ranks, {}: {}", comm.size(), way.name, some.join(", "));
    if comm.rank() == 0 {
        println!("{} waits of at most {most}; {what}", waited as f64 / RUNS as f64);
    }
    assert_eq!(made, 0, "{what}");
    assert!(waited <= RUNS as u64 * most, "at most {most}: {what}");
    // With a tolerance messages that lost too much are packed again.
    let exact = way.wire != Some(Wire::Tolerance);
    assert!(waited >= RUNS as u64 * least || !exact, "at least {least}: {what}");
    // The counter must see the calls.
    assert!(queued >= (2 * RUNS * comm.size()) as u64, "{what}");
    Ok(())
}

#[test]
fn what_the_driver_refuses_to_one_rank_is_an_error_for_all() {
    if gpu().is_some() {
        assert_ne!(count_in("calls::refused", &loaded(), 1), Some(false));
    }
}

#[test]
#[ignore = "started by another test"]
fn refused() {
    refusals::all(&Gpu::probe(0).expect("asked before"));
}

#[test]
#[ignore = "started by another test"]
fn body() {
    let gpu = Gpu::probe(0).expect("asked before");
    // Making a plan calls the functions that running it must not.
    let stream = gpu.new_stream().unwrap();
    drop(stream.alloc_zeros::<f64>(8).unwrap());
    stream.synchronize().unwrap();
    let names = &["cuStreamCreate", "cuModuleLoadData", "cuStreamSynchronize"];
    assert!(calls(names).iter().all(|calls| *calls > 0), "{:?}", calls(names));
    for way in &WAYS {
        for ranks in [1, 2, 4] {
            let hosts: Vec<_> = (0..ranks).map(|rank| if way.apart { rank } else { 0 }).collect();
            for done in fft_comm::threads_on(&hosts, |comm| check(&comm, &gpu, way, SMALL)) {
                done.unwrap();
            }
        }
    }
    for way in &LARGE_WAYS {
        for done in fft_comm::threads_on(&[0, 1], |comm| check(&comm, &gpu, way, LARGE)) {
            done.unwrap();
        }
    }
    for ranks in [2, 4] {
        thriffty::threads(ranks, |comm| check_fetching(&comm, &gpu)).unwrap();
    }
}

#[cfg(feature = "mpi")]
#[test]
#[ignore = "started under mpirun by another test"]
fn process() {
    let library = thriffty::mpi::init().expect("MPI is initialised once");
    let world = library.world().expect("the world");
    let gpu = Gpu::probe(0).expect("asked before");
    check_fetching(&world, &gpu).unwrap();
    for way in &LARGE_WAYS[..2] {
        let way = Way { transport: thriffty::gpu::GpuTransport::HostStaged, ..*way };
        check(&world, &gpu, &way, LARGE).unwrap();
    }
    for way in &DEVICE_WAYS {
        match check(&world, &gpu, way, SMALL) {
            Err(why) if way.wire.is_none() && why.to_string().contains("transport") => {
                return println!("not run: messages on the device, {why}");
            }
            done => done.unwrap(),
        }
    }
    for way in &LARGE_DEVICE_WAYS {
        check(&world, &gpu, way, LARGE).unwrap();
    }
}
