//! `workspace_bytes` against the allocator's count, for random plans and for long lines.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::ptr::null_mut;

use fastrand::Rng;
use fft_capi::ffi::{
    Plan, thriffty_forward, thriffty_inverse, thriffty_last_error, thriffty_plan_create_serial,
    thriffty_plan_destroy, thriffty_plan_sizes,
};
use fft_capi::status::Status;
use fft_capi::values::{Options, Sizes, Transform};

mod common;
#[path = "../../../tests/common/counting.rs"]
mod counting;
use common::set;

/// Bytes of each thread that are not counted: layouts, the recipe and its report, mailboxes.
const DESCRIPTION: usize = 40 << 10;

const EXCHANGES: [&str; 7] = ["shared", "hosts", "p2p", "pipelined", "alltoallv", "ring", "kway2"];
/// Without the lossless one, whose compressor has an allocator of its own.
const WIRES: [&str; 3] = ["f32", "bf16", "bits:12"];
const SINES_AND_COSINES: [&str; 8] =
    ["dct1", "dct2", "dct3", "dct4", "dst1", "dst2", "dst3", "dst4"];

fn one_of<'a>(rng: &mut Rng, texts: &[&'a str]) -> &'a str {
    texts[rng.usize(..texts.len())]
}

/// A value for each axis, as the text of an option.
fn per_axis(values: impl IntoIterator<Item = impl ToString>) -> String {
    let texts: Vec<_> = values.into_iter().map(|value| value.to_string()).collect();
    texts.join(",")
}

#[derive(Debug)]
struct Case {
    transform: Transform,
    shape: Vec<i64>,
    threads: usize,
    options: Options,
}

/// Bytes of a plan, as it reports and as the allocator counts.
struct Found {
    told: usize,
    taken: usize,
}

impl Case {
    fn new(transform: Transform, shape: &[i64]) -> Self {
        let case =
            Self { transform, shape: shape.to_vec(), threads: 1, options: Options::default() };
        case.threads(1)
    }

    fn with(mut self, name: &str, value: &str) -> Self {
        assert_eq!(set(&mut self.options, name, value), Status::Ok, "{name}={value}");
        self
    }

    fn threads(self, threads: usize) -> Self {
        Self { threads, ..self }.with("threads", &threads.to_string())
    }

    fn single(self) -> Self {
        self.with("precision", "f32")
    }

    /// A plan of up to four axes, of some ten thousand points or more.
    fn random(rng: &mut Rng) -> Self {
        let axes = rng.usize(1..=4);
        let transform = [Transform::C2c, Transform::R2c, Transform::R2r][rng.usize(..3)];
        let longest = [60_000.0_f64, 600.0, 70.0, 24.0][axes - 1];
        let length = |rng: &mut Rng| (longest * (0.4 + 0.6 * rng.f64())) as i64;
        let shape: Vec<_> = (0..axes).map(|_| length(rng)).collect();
        let mut case = Self::new(transform, &shape).threads(rng.usize(1..=2));
        case = case.with("precision", one_of(rng, &["f32", "f64"]));
        case = case.with("batch", one_of(rng, &["1", "1", "1", "2", "3", "5"]));
        case = case.with("ignore_shared_memory", one_of(rng, &["true", "false"]));
        for side in ["input_order", "output_order"] {
            if rng.bool() {
                let mut order: Vec<_> = (0..axes).collect();
                rng.shuffle(&mut order);
                case = case.with(side, &per_axis(order));
            }
        }
        let is_padded = transform != Transform::R2r && rng.u8(..4) == 0;
        if is_padded {
            case = case.with("zero_padded", &per_axis(shape.iter().map(|points| points * 3 / 2)));
        }
        if transform == Transform::R2r {
            let kinds = shape.iter().map(|_| one_of(rng, &SINES_AND_COSINES));
            case = case.with("kinds", &per_axis(kinds));
        }
        if rng.bool() {
            case = case.with("exchange", one_of(rng, &EXCHANGES));
        }
        if rng.bool() {
            case = case.with("memory", "least");
        }
        // Longer transforms take messages that lose nothing.
        if rng.bool() && !is_padded {
            case = case.with("wire", one_of(rng, &WIRES));
        }
        case
    }

    /// Makes the plan, and runs it once each way: what it takes on first use counts, too.
    fn run(&self) -> Found {
        let mut plan: *mut Plan = null_mut();
        let (shape, axes) = (self.shape.as_ptr(), self.shape.len() as i32);
        let before = counting::bytes();
        // SAFETY: the pointers belong to values that live until the calls return, of these sizes.
        unsafe {
            let (transform, options) = (self.transform as i32, &raw const self.options);
            let made = thriffty_plan_create_serial(&raw mut plan, transform, axes, shape, options);
            let why = CStr::from_ptr(thriffty_last_error());
            assert_eq!(made, Status::Ok, "{why:?}: {self:?}");
            let mut sizes = Sizes::default();
            thriffty_plan_sizes(plan, &raw mut sizes, size_of::<Sizes>());
            let [physical, spectral] = [sizes.input_bytes, sizes.output_bytes];
            let [mut x, mut y] = [physical, spectral].map(|bytes| vec![0_u64; bytes.div_ceil(8)]);
            let arrays = 8 * (x.len() + y.len());
            let [x, y] = [&mut x, &mut y].map(|array| array.as_mut_ptr().cast());
            assert_eq!(thriffty_forward(plan, x, physical, y, spectral), Status::Ok);
            assert_eq!(thriffty_inverse(plan, y, spectral, x, physical), Status::Ok);
            let taken = counting::bytes() - before - arrays;
            thriffty_plan_sizes(plan, &raw mut sizes, size_of::<Sizes>());
            assert_eq!(thriffty_plan_destroy(plan), Status::Ok);
            Found { told: sizes.workspace_bytes, taken }
        }
    }

    /// Whether the plan is so large that its description is a small part of it.
    fn check(&self) -> bool {
        let Found { told, taken } = self.run();
        let described = DESCRIPTION * self.threads;
        assert!(
            taken.abs_diff(told) <= taken / 10 + described,
            "{told} bytes are told, {taken} are taken: {self:?}"
        );
        taken > 8 * described
    }
}

/// One test, as what others allocate would be counted.
#[test]
fn what_is_told_is_what_is_taken() {
    // What a process allocates once.
    Case::new(Transform::C2c, &[8, 8]).threads(2).run();
    let cases = std::env::var("THRIFFTY_CASES").ok().and_then(|cases| cases.parse().ok());
    let cases: usize = cases.unwrap_or(200);
    let mut rng = Rng::with_seed(7);
    let large = (0..cases).filter(|_| Case::random(&mut rng).check()).count();
    assert!(large > cases / 2, "{large} of {cases} plans are large");
    let long = [
        Case::new(Transform::C2c, &[1 << 19]),
        Case::new(Transform::C2c, &[1 << 18]).single().threads(2),
        Case::new(Transform::C2c, &[3, 100_003]).threads(2),
        Case::new(Transform::C2c, &[100_003, 3]),
        Case::new(Transform::C2c, &[65_537]),
        Case::new(Transform::C2c, &[7 * 30_011]).single(),
        Case::new(Transform::R2c, &[200_003]),
        Case::new(Transform::R2c, &[2 * 100_003]),
        Case::new(Transform::R2c, &[600_000]).single(),
        Case::new(Transform::R2c, &[300_000, 2]).threads(2),
        Case::new(Transform::R2r, &[200_003]).with("kinds", "dct2"),
        Case::new(Transform::R2r, &[262_144]).with("kinds", "dct4"),
        Case::new(Transform::R2r, &[100_000]).with("kinds", "dst1").single(),
    ];
    assert!(long.iter().all(Case::check), "long lines are large");
}
