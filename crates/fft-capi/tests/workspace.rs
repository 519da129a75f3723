//! `workspace_bytes` against the allocator's count, for random plans and for long lines.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char};
use std::ptr::null_mut;

use fastrand::Rng;
use fft_capi::ffi::{
    Plan, thriffty_forward, thriffty_inverse, thriffty_last_error, thriffty_plan_create_serial,
    thriffty_plan_destroy, thriffty_plan_sizes,
};
use fft_capi::status::Status;
use fft_capi::values::{Kind, Options, Precision, Sizes, Transform};

#[path = "../../../tests/common/counting.rs"]
mod counting;

/// Bytes of each thread that are not counted: layouts, the recipe and its report, mailboxes.
const DESCRIPTION: usize = 40 << 10;

const EXCHANGES: [&CStr; 7] =
    [c"shared", c"hosts", c"p2p", c"pipelined", c"alltoallv", c"ring", c"kway2"];
/// Without the lossless one, whose compressor has an allocator of its own.
const WIRES: [&CStr; 3] = [c"f32", c"bf16", c"bits:12"];

/// Half of the time one of these.
fn one_of(rng: &mut Rng, texts: &[&'static CStr]) -> Option<&'static CStr> {
    rng.bool().then(|| texts[rng.usize(..texts.len())])
}

fn pointer(text: Option<&CStr>) -> *const c_char {
    text.map_or(std::ptr::null(), CStr::as_ptr)
}

#[derive(Debug)]
struct Case {
    transform: Transform,
    shape: Vec<i64>,
    exchange: Option<&'static CStr>,
    wire: Option<&'static CStr>,
    memory: Option<&'static CStr>,
    /// Without texts.
    options: Options,
}

/// Bytes of a plan, as it tells and as the allocator counts.
struct Found {
    told: usize,
    taken: usize,
}

impl Case {
    fn new(transform: Transform, shape: &[i64]) -> Self {
        let (shape, options) = (shape.to_vec(), Options::default());
        Self { transform, shape, exchange: None, wire: None, memory: None, options }
    }

    fn threads(mut self, threads: i32) -> Self {
        self.options.threads = threads;
        self
    }

    fn single(mut self) -> Self {
        self.options.precision = Precision::F32 as i32;
        self
    }

    fn kind(mut self, kind: Kind) -> Self {
        self.options.kinds = [kind as i32; 4];
        self
    }

    /// A plan of up to four axes, of some ten thousand points or more.
    fn random(rng: &mut Rng) -> Self {
        let axes = rng.usize(1..=4);
        let transform = [Transform::C2c, Transform::R2c, Transform::R2r][rng.usize(..3)];
        let longest = [60_000.0_f64, 600.0, 70.0, 24.0][axes - 1];
        let length = |rng: &mut Rng| (longest * (0.4 + 0.6 * rng.f64())) as i64;
        let shape: Vec<_> = (0..axes).map(|_| length(rng)).collect();
        let mut order = [0, 1, 2, 3];
        let mut any_order = |rng: &mut Rng| {
            if rng.bool() {
                rng.shuffle(&mut order[..axes]);
            }
            order
        };
        let mut options = Options {
            precision: [Precision::F32, Precision::F64][rng.usize(..2)] as i32,
            threads: rng.i32(1..=2),
            batch: [1, 1, 1, 2, 3, 5][rng.usize(..6)],
            input_order: any_order(rng),
            output_order: any_order(rng),
            ignore_shared_memory: i32::from(rng.bool()),
            ..Options::default()
        };
        if transform == Transform::R2r {
            let any = Kind::Dct1 as i32..=Kind::Dst4 as i32;
            options.kinds = std::array::from_fn(|_| rng.i32(any.clone()));
        } else if rng.u8(..4) == 0 {
            for (longer, points) in options.transform.iter_mut().zip(&shape) {
                *longer = points * 3 / 2;
            }
        }
        let (exchange, memory) = (one_of(rng, &EXCHANGES), one_of(rng, &[c"least"]));
        // Longer transforms take messages that lose nothing.
        let wire = one_of(rng, &WIRES).filter(|_| options.transform == [0; 4]);
        Self { transform, shape, exchange, wire, memory, options }
    }

    /// Makes the plan, and runs it once each way: what it takes on first use counts, too.
    fn run(&self) -> Found {
        let mut plan: *mut Plan = null_mut();
        let (shape, axes) = (self.shape.as_ptr(), self.shape.len() as i32);
        let options = Options {
            exchange: pointer(self.exchange),
            wire: pointer(self.wire),
            memory: pointer(self.memory),
            ..self.options
        };
        let before = counting::bytes();
        // SAFETY: pointers are those of values that live until the calls return, of these sizes.
        unsafe {
            let (transform, options) = (self.transform as i32, &raw const options);
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
        let described = DESCRIPTION * self.options.threads as usize;
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
        Case::new(Transform::R2r, &[200_003]).kind(Kind::Dct2),
        Case::new(Transform::R2r, &[262_144]).kind(Kind::Dct4),
        Case::new(Transform::R2r, &[100_000]).kind(Kind::Dst1).single(),
    ];
    assert!(long.iter().all(Case::check), "long lines are large");
}
