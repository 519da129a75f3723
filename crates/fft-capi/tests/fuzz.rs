//! Ten thousand calls with arguments that nobody in their senses would give: each comes to a
//! status, and the process lives.
//!
//! Plans are of one process; abi.c has hostile calls over MPI.
//!
//! Pointers are NULL or point at what the header says, since anything else cannot be found out;
//! plans may be any number.
#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_void};
use std::ptr::{null, null_mut, without_provenance_mut};

use fastrand::Rng;
use fft_capi::ffi::options::{
    thriffty_options_create, thriffty_options_describe, thriffty_options_destroy,
    thriffty_options_get, thriffty_options_set, thriffty_options_set_f,
    thriffty_options_set_integers,
};
use fft_capi::ffi::spectral::{
    thriffty_apply, thriffty_convolve, thriffty_green_function, thriffty_wavenumbers,
};
use fft_capi::ffi::{
    Plan, thriffty_allocate, thriffty_forward, thriffty_forward_in_place, thriffty_inverse,
    thriffty_inverse_in_place, thriffty_last_error, thriffty_plan_create_serial,
    thriffty_plan_destroy, thriffty_plan_recipe, thriffty_plan_refuse, thriffty_plan_report,
    thriffty_plan_save_wisdom, thriffty_plan_sizes, thriffty_plan_wire_error,
};
use fft_capi::status::Status;
use fft_capi::values::{Options, Sizes};

const CALLS: usize = 10_000;
/// Bytes of each array, more than the largest plan that is made wants.
const ROOM: usize = 1 << 19;

/// The names of options, and two that are none.
const NAMES: &str = "kinds|input_order|output_order|batch|forward_scale|inverse_scale|zero_padded|\
    modes|exchange|wire|tolerance|ignore_shared_memory|tuning|machine|layouts|memory|shared_arrays|\
    transposed_input|transposed_output|precision|threads|device|transport||howmany";

/// Values of options, most of them right for some. Devices are beyond what any machine has: arrays
/// here are on the host.
const VALUES: &str = "default|true|false|0|1|2|3|-1|9223372036854775807|1099511627776|none|full|\
    symmetric|c2c|c2c,r2c|r2c,r2c|dct1,dst1,dct4|dct2,none|0,1|1,0|2,1,0|0,2,1|3,2,1,0|0,0|8,16|\
    16,16,16|8x8|8^3|8^999999999|3,-1|99|shared|p2p|kway3|kway1|ring|hosts|raw|bits:16|bits:99|f16|\
    tolerance|lossless|1e-6|1e-3 strict|1e-20|nan|inf|model|measure:0s|measure:1ms|measure:nan|\
    measure:1e300|wisdom:|recipe:(r2c 4x4 f64 ranks=1)|recipe:x|summit|any|slabs|pencils|ample|\
    least|f32|f64|host|4096|2147483647|peer_to_peer|host_staged";

/// Texts for anything, none of them always right.
fn texts(folder: &std::path::Path) -> Vec<CString> {
    let wisdom = folder.join("wisdom.toml").into_os_string().into_encoded_bytes();
    let broken = folder.join("no/such/file").into_os_string().into_encoded_bytes();
    let tuning = [b"wisdom:", &wisdom[..]].concat();
    let long = [b'('; 5000];
    let odd = [&b""[..], b"\xff\xfe", &long, &tuning, &wisdom, &broken];
    let texts = VALUES.split('|').map(str::as_bytes).chain(odd);
    texts.map(|text| CString::new(text).unwrap()).collect()
}

struct Fuzz {
    rng: Rng,
    texts: Vec<CString>,
    plans: Vec<*mut Plan>,
    input: Vec<u64>,
    output: Vec<u64>,
    seen: [usize; 10],
}

impl Fuzz {
    fn one_of<V: Copy>(&mut self, values: &[V]) -> V {
        values[self.rng.usize(..values.len())]
    }

    fn text(&mut self) -> *const c_char {
        let which = self.rng.usize(..2 * self.texts.len());
        self.texts.get(which).map_or(null(), |text| text.as_ptr())
    }

    /// A small number, most of the time one that means something.
    fn number(&mut self, last: i32) -> i32 {
        match self.rng.u8(..20) {
            0 => self.rng.i32(..),
            _ => self.rng.i32(..=last).max(0),
        }
    }

    fn name(&mut self) -> CString {
        CString::new(self.one_of(&NAMES.split('|').collect::<Vec<_>>())).unwrap()
    }

    /// Sets an option, in one of the ways there are.
    fn set(&mut self, options: *mut Options) -> Status {
        let name = self.name();
        let numbers = std::array::from_fn::<i64, 4, _>(|_| self.one_of(&[0, 1, 2, 8, 16, -1]));
        let numbers = self.one_of(&[&raw const numbers, null()]);
        // SAFETY: pointers are NULL or point at what the header says.
        let set = |text: *const c_char, way: u8| unsafe {
            match way {
                0 => thriffty_options_set_f(options, name.as_ptr(), text),
                1 => thriffty_options_set_integers(options, name.as_ptr(), 3, numbers.cast()),
                2 => thriffty_options_set(options, null(), text),
                _ => thriffty_options_set(options, name.as_ptr(), text),
            }
        };
        let (text, way) = (self.text(), self.rng.u8(..30));
        set(text, way)
    }

    /// Options, some of which are changed, or none. Most failures are taken back, so that plans are
    /// made.
    fn options(&mut self) -> *mut Options {
        let mut options = Box::into_raw(Box::<Options>::default());
        for _ in 0..self.rng.usize(..40) {
            // SAFETY: the options are ours.
            let before = unsafe { (*options).clone() };
            if self.set(options) != Status::Ok && self.rng.u8(..20) > 0 {
                // SAFETY: as above.
                unsafe { *options = before };
            }
        }
        if self.rng.u8(..9) == 0 {
            // SAFETY: as above, and nobody has them.
            unsafe { thriffty_options_destroy(options) };
            options = null_mut();
        }
        options
    }

    fn shape(&mut self) -> [i64; 4] {
        std::array::from_fn(|_| match self.rng.u8(..30) {
            0 => self.one_of(&[0, -1, i64::MIN, i64::MAX, 1 << 57, 1 << 40, 1 << 31]),
            _ => self.rng.i64(1..9),
        })
    }

    fn plan(&mut self) -> *mut Plan {
        match self.rng.u8(..12) {
            0 => null_mut(),
            1 => without_provenance_mut(self.rng.usize(..)),
            _ if self.plans.is_empty() => null_mut(),
            // The latest live longest.
            _ => {
                let back = self.rng.usize(1..=self.plans.len().min(8));
                self.plans[self.plans.len() - back]
            }
        }
    }

    /// A number of bytes that is claimed: all of them exist, or they cannot exist.
    fn bytes(&mut self) -> usize {
        match self.rng.u8(..12) {
            0 => 0,
            1 => usize::MAX,
            2 => self.rng.usize(..200),
            _ => ROOM,
        }
    }

    fn array(&mut self, output: bool) -> *mut c_void {
        if self.rng.u8(..20) == 0 {
            return null_mut();
        }
        let array = if output { &mut self.output } else { &mut self.input };
        array.as_mut_ptr().cast::<u8>().wrapping_add(usize::from(self.rng.u8(..30) == 0)).cast()
    }

    fn call(&mut self) -> Status {
        let plan = self.plan();
        // SAFETY: pointers are NULL or point at as much as is said; sizes that are more than there
        // is are refused.
        unsafe {
            match self.rng.u8(..24) {
                20..22 => {
                    let lengths = std::array::from_fn::<f64, 4, _>(|_| {
                        self.one_of(&[1.0, 2.5, 0.0, f64::NAN, 1e300])
                    });
                    let lengths = self.one_of(&[lengths.as_ptr(), lengths.as_ptr(), null()]);
                    let (input, output) = (self.array(false), self.array(true));
                    let from = self.one_of(&[input, output]);
                    let bytes = [16, 128, 1024, 3072, ROOM, usize::MAX];
                    let sizes = [self.one_of(&bytes), self.one_of(&bytes)];
                    let operator = self.number(11);
                    let number = self.one_of(&[0.0, 1.0, 0.5, -1.0, f64::NAN, 1e300]);
                    match self.rng.u8(..4) {
                        0 => thriffty_green_function(plan, lengths, output, sizes[0]),
                        _ => thriffty_apply(
                            plan, operator, number, lengths, from, sizes[0], output, sizes[1],
                        ),
                    }
                }
                22 => {
                    let (input, output) = (self.array(false), self.array(true));
                    let sizes = [self.bytes(), self.bytes()];
                    thriffty_convolve(plan, input, sizes[0], self.number(1), output, sizes[1])
                }
                23 => {
                    let (mut k, mut odd) = ([0.0; 64], [0.0; 64]);
                    let room = self.one_of(&[0, 3, 64]);
                    let places = [k.as_mut_ptr(), odd.as_mut_ptr()];
                    let k = self.one_of(&[places[0], null_mut()]);
                    let length = self.one_of(&[1.0, -1.0, f64::NAN]);
                    thriffty_wavenumbers(plan, self.number(4), length, k, places[1], room)
                }
                0..6 => {
                    let (options, shape) = (self.options(), self.shape());
                    let shape = if self.rng.u8(..40) == 0 { null() } else { shape.as_ptr() };
                    let mut plan = null_mut();
                    let place = if self.rng.u8(..40) == 0 { null_mut() } else { &raw mut plan };
                    let axes = self.one_of(&[1, 2, 2, 3, 3, 3, 4, 0, 5, -1, i32::MAX]);
                    let made =
                        thriffty_plan_create_serial(place, self.number(3), axes, shape, options);
                    assert_eq!(made == Status::Ok, !plan.is_null());
                    assert_eq!(thriffty_options_destroy(options), Status::Ok);
                    if made == Status::Ok {
                        self.plans.push(plan);
                    }
                    made
                }
                6..8 => thriffty_plan_destroy(plan),
                8..11 => {
                    let apart = self.rng.u8(..9) > 0;
                    let (input, output) = (self.array(false), self.array(apart));
                    let (from, to) = (self.bytes(), self.bytes());
                    if self.rng.bool() {
                        thriffty_forward(plan, input, from, output, to)
                    } else {
                        thriffty_inverse(plan, input, from, output, to)
                    }
                }
                11..14 => {
                    let (data, bytes) = (self.array(true), self.bytes());
                    if self.rng.bool() {
                        thriffty_forward_in_place(plan, data, bytes)
                    } else {
                        thriffty_inverse_in_place(plan, data, bytes)
                    }
                }
                14..16 => {
                    let mut sizes = Sizes::default();
                    let size =
                        self.one_of(&[size_of::<Sizes>(), size_of::<Sizes>(), 0, usize::MAX]);
                    let place = if self.rng.u8(..9) == 0 { null_mut() } else { &raw mut sizes };
                    thriffty_plan_sizes(plan, place, size)
                }
                16 => {
                    let (mut a, mut b) = (0.0, 0.0);
                    let places = [
                        self.one_of(&[&raw mut a, null_mut()]),
                        self.one_of(&[&raw mut b, null_mut()]),
                    ];
                    thriffty_plan_wire_error(plan, places[0], places[1])
                }
                17 => {
                    let mut text = [1; 300];
                    let room = self.one_of(&[0, 1, 7, 300]);
                    let place = if self.rng.bool() { text.as_mut_ptr() } else { null_mut() };
                    let length = if self.rng.bool() {
                        thriffty_plan_recipe(plan, place, room)
                    } else {
                        thriffty_plan_report(plan, place, room)
                    };
                    assert!(
                        text[room..].iter().all(|byte| *byte == 1),
                        "written beyond {room} bytes"
                    );
                    if length < 0 { Status::Plan } else { Status::Ok }
                }
                18 if self.rng.bool() => thriffty_plan_save_wisdom(plan, self.text()),
                18 => {
                    let mut array = null_mut();
                    let place = if self.rng.u8(..9) == 0 { null_mut() } else { &raw mut array };
                    let made = thriffty_allocate(plan, place);
                    assert_eq!(made == Status::Ok, !array.is_null());
                    made
                }
                19 if self.rng.bool() => {
                    let [what, found, expected] = [(); 3].map(|()| self.text());
                    thriffty_plan_refuse(plan, what, found, expected)
                }
                _ => {
                    let mut options = null_mut();
                    let place = self.one_of(&[&raw mut options, null_mut()]);
                    let made = thriffty_options_create(place);
                    assert_eq!(made == Status::Ok, !options.is_null());
                    self.set(options);
                    let mut text = [0; 300];
                    let (name, room) = (self.name(), self.one_of(&[0, 1, 300]));
                    thriffty_options_get(options, name.as_ptr(), text.as_mut_ptr(), room);
                    thriffty_options_describe(text.as_mut_ptr(), room);
                    assert_eq!(thriffty_options_destroy(options), Status::Ok);
                    made
                }
            }
        }
    }
}

#[test]
fn ten_thousand_hostile_calls() {
    let folder = tempfile::tempdir().unwrap();
    let mut fuzz = Fuzz {
        rng: Rng::with_seed(6),
        texts: texts(folder.path()),
        plans: Vec::new(),
        input: vec![0x3ff0_0000_0000_0000; ROOM / 8 + 1],
        output: vec![0; ROOM / 8 + 1],
        seen: [0; 10],
    };
    for call in 0..CALLS {
        let status = fuzz.call();
        fuzz.seen[status as usize] += 1;
        // SAFETY: the text is valid until the next call of this thread that fails.
        let said = unsafe { std::ffi::CStr::from_ptr(thriffty_last_error()) }.to_string_lossy();
        assert_ne!(status, Status::Internal, "call {call}: {said}");
    }
    println!("statuses {:?}", fuzz.seen);
    // Neither all refused nor all accepted.
    assert!(fuzz.seen[Status::Ok as usize] > CALLS / 10, "{:?}", fuzz.seen);
    let expected =
        [Status::Geometry, Status::Argument, Status::Plan, Status::Memory, Status::Device];
    for status in expected {
        assert!(fuzz.seen[status as usize] > 4, "{status:?}: {:?}", fuzz.seen);
    }
}
