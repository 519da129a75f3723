//! `workspace_bytes` against the allocator's count.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use fastrand::Rng;
use fft_capi::ffi::{
    Plan, thriffty_forward, thriffty_plan_create_serial, thriffty_plan_destroy, thriffty_plan_sizes,
};
use fft_capi::status::Status;
use fft_capi::values::{Options, Precision, Sizes};

struct Counting;
static HELD: AtomicUsize = AtomicUsize::new(0);

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size(), SeqCst);
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size(), SeqCst);
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn realloc(&self, old: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        HELD.fetch_add(bytes, SeqCst);
        HELD.fetch_sub(layout.size(), SeqCst);
        unsafe { System.realloc(old, layout, bytes) }
    }
    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), SeqCst);
        unsafe { System.dealloc(old, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[derive(Debug, Clone)]
struct Case {
    transform: i32,
    shape: Vec<i64>,
    options: Options,
}

impl Case {
    fn check(&self) {
        let before = HELD.load(SeqCst);
        let mut plan: *mut Plan = null_mut();
        let start = std::time::Instant::now();
        let made = unsafe {
            thriffty_plan_create_serial(
                &mut plan,
                self.transform,
                self.shape.len() as i32,
                self.shape.as_ptr(),
                &self.options,
            )
        };
        let seconds = start.elapsed().as_secs_f64();
        assert_eq!(made, Status::Ok, "{self:?}");
        let held = HELD.load(SeqCst) - before;
        let mut sizes = Sizes::default();
        unsafe { thriffty_plan_sizes(plan, &mut sizes, size_of::<Sizes>()) };
        let mut input = vec![0u64; sizes.input_bytes / 8 + 1];
        let mut output = vec![0u64; sizes.output_bytes / 8 + 1];
        let with = HELD.load(SeqCst);
        let start = std::time::Instant::now();
        let run = unsafe {
            thriffty_forward(
                plan,
                input.as_mut_ptr().cast::<c_void>(),
                sizes.input_bytes,
                output.as_mut_ptr().cast(),
                sizes.output_bytes,
            )
        };
        assert_eq!(run, Status::Ok);
        let first = start.elapsed().as_secs_f64();
        let start = std::time::Instant::now();
        unsafe {
            thriffty_forward(
                plan,
                input.as_mut_ptr().cast::<c_void>(),
                sizes.input_bytes,
                output.as_mut_ptr().cast(),
                sizes.output_bytes,
            )
        };
        let second = start.elapsed().as_secs_f64();
        let more = HELD.load(SeqCst) as i64 - with as i64;
        drop((input, output));
        unsafe { thriffty_plan_destroy(plan) };
        let left = HELD.load(SeqCst) as i64 - before as i64;
        let data = sizes.input_bytes.max(sizes.output_bytes);
        let o = &self.options;
        println!(
            "{} {:?} f{} kinds {:?} x{} threads {}: data {data} held {held} ({:.2}) told {} ({:.3}) diff {} more {more} left {left}; plan {seconds:.4} s {:.1} transforms {first:.4} {second:.4}",
            self.transform,
            self.shape,
            o.precision,
            &o.kinds[..self.shape.len()],
            o.howmany,
            o.threads,
            held as f64 / data as f64,
            sizes.workspace_bytes,
            sizes.workspace_bytes as f64 / held as f64,
            held as i64 - sizes.workspace_bytes as i64,
            seconds / second
        );
    }
}

fn random(rng: &mut Rng) -> Case {
    let axes = rng.usize(1..=4);
    let mut options = Options::default();
    options.precision = if rng.bool() { Precision::F32 } else { Precision::F64 } as i32;
    options.threads = rng.i32(1..=2);
    options.howmany = [1, 1, 1, 2, 3, 5, 8][rng.usize(..7)];
    let transform = rng.i32(0..3);
    if transform == 2 {
        options.kinds = std::array::from_fn(|_| rng.i32(3..=11).max(1 + 3 * rng.i32(0..2)));
        for k in &mut options.kinds {
            if *k == 3 {
                *k = 4
            }
        }
    }
    let mut order = [0, 1, 2, 3];
    if rng.bool() {
        rng.shuffle(&mut order[..axes]);
    }
    options.input_order = order;
    if rng.bool() {
        rng.shuffle(&mut order[..axes]);
    }
    options.output_order = order;
    let most = [40000.0_f64, 400.0, 50.0, 18.0][axes - 1];
    let shape = (0..axes).map(|_| (most.powf(rng.f64()) as i64).max(2)).collect();
    Case { transform, shape, options }
}

#[test]
fn random_plans() {
    let mut rng = Rng::with_seed(1);
    let cases: usize =
        std::env::var("THRIFFTY_CASES").ok().and_then(|x| x.parse().ok()).unwrap_or(200);
    for _ in 0..cases {
        random(&mut rng).check();
    }
    let p = |transform, shape: &[i64], threads| {
        let mut options = Options::default();
        options.threads = threads;
        Case { transform, shape: shape.to_vec(), options }.check()
    };
    if std::env::var("BIG").is_ok() {
        p(0, &[1 << 23], 1);
        p(1, &[6000011], 1);
        p(0, &[3, 2000003], 1);
        p(0, &[3, 2000003], 2);
        p(0, &[2000003, 3], 1);
        p(2, &[4000003], 1);
        p(1, &[38400000], 1);
        p(1, &[2051, 1024, 16], 1);
        p(1, &[2051, 1024, 16], 2);
    }
}
