//! Numbers and structs that both sides know: what is in them is laid out as C does.

use std::ffi::{c_char, c_void};

/// The family of a transform: what physical and spectral data consist of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Transform {
    /// Complex data, complex spectrum.
    C2c = 0,
    /// Real data, complex spectrum: one axis, the last unless `kinds` says otherwise, keeps its n/2 + 1 non-negative
    /// frequencies.
    R2c = 1,
    /// Real data, real spectrum: a cosine or sine transform, or nothing, along each axis; DCT-II unless told otherwise.
    R2r = 2,
}

/// What is done along one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Kind {
    /// What the transform does unless told otherwise.
    Default = 0,
    /// Nothing: the axis only carries data along.
    None = 1,
    /// Complex to complex.
    C2c = 2,
    /// Real to complex.
    R2c = 3,
    /// Cosine transform I; its own inverse. FFTW's REDFT00.
    Dct1 = 4,
    /// Cosine transform II; its inverse is III. FFTW's REDFT10.
    Dct2 = 5,
    /// Cosine transform III; its inverse is II. FFTW's REDFT01.
    Dct3 = 6,
    /// Cosine transform IV; its own inverse. FFTW's REDFT11.
    Dct4 = 7,
    /// Sine transform I; its own inverse. FFTW's RODFT00.
    Dst1 = 8,
    /// Sine transform II; its inverse is III. FFTW's RODFT10.
    Dst2 = 9,
    /// Sine transform III; its inverse is II. FFTW's RODFT01.
    Dst3 = 10,
    /// Sine transform IV; its own inverse. FFTW's RODFT11.
    Dst4 = 11,
}

/// The format of all numbers, by its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Precision {
    /// `float`.
    F32 = 32,
    /// `double`.
    F64 = 64,
}

/// What results are multiplied by; N is the number of points (of cosine and sine transforms, the product of FFTW's logical
/// lengths).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Scale {
    /// 1.
    None = 0,
    /// 1/N.
    Full = 1,
    /// 1/sqrt(N).
    Symmetric = 2,
}

/// How the recipe of a plan is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Tune {
    /// By a model of the machine. Nothing is run.
    Model = 0,
    /// By the clock, within `tune_seconds`.
    Measure = 1,
    /// By what the clock said earlier, in the file `tune_text` that `thriffty_plan_save_wisdom` wrote; by the model where it
    /// says nothing of this transform on this machine.
    Wisdom = 2,
    /// By name: the recipe that prints as `tune_text`.
    Exact = 3,
}

/// A half-open box of the grid. Of a grid with fewer axes than 4 the rest is ignored, or 0. It holds nothing where
/// `hi[axis] <= lo[axis]` along any axis; say so with all zeros.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Brick {
    /// First index along each axis, from 0.
    pub lo: [i64; 4],
    /// One past the last index along each axis.
    pub hi: [i64; 4],
}

/// Options of a plan, equal on all ranks. Always begin with `thriffty_options_init`; later versions have more fields at the
/// end, and take those of earlier ones by their size.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Options {
    /// Bytes of this struct as the program knows it.
    pub struct_size: usize,
    /// `THRIFFTY_PRECISION_F64` (default) or `THRIFFTY_PRECISION_F32`.
    pub precision: i32,
    /// What is done along each axis: `THRIFFTY_KIND_DEFAULT` or another kind.
    pub kinds: [i32; 4],
    /// The order of axes in memory of physical data, slowest first: 0, 1, 2, 3 by default, as in C.
    pub input_order: [i32; 4],
    /// The same of spectral data.
    pub output_order: [i32; 4],
    /// What results of the forward transform are multiplied by: `THRIFFTY_SCALE_NONE` by default.
    pub forward_scale: i32,
    /// What results of the inverse transform are multiplied by: `THRIFFTY_SCALE_FULL` by default.
    pub inverse_scale: i32,
    /// Equal transforms at once, their arrays one after the other in memory: 1 by default.
    pub howmany: i64,
    /// How data travels: "shared", "p2p", "pipelined", "alltoallv", "kway4", "ring", "ring-flush". NULL (default) to have it
    /// chosen.
    pub exchange: *const c_char,
    /// How messages to other hosts are represented: "raw", "f32", "f16", "bf16", "mantissa:40", "bits:16", "lossless",
    /// "tolerance". NULL (default): as they are in memory or, where there is a tolerance, "tolerance".
    pub wire: *const c_char,
    /// The relative error that the whole transform may make on the wire, in the l2 norm. 0 (default): none.
    pub tolerance: f64,
    /// Not 0: the tolerance is kept whatever the data, for one or two bits more per number.
    pub strict: i32,
    /// Not 0: ranks of one host send messages, too, as if each had a host of its own.
    pub wire_everywhere: i32,
    /// How the recipe is chosen: `THRIFFTY_TUNE_MODEL` by default.
    pub tune: i32,
    /// Not 0: all data is in arrays that `thriffty_allocate` made, of this plan. Processes of one host then read and write them where
    /// they are; for complex data on the host the plan needs hardly any memory of its own.
    pub shared_arrays: i32,
    /// What `THRIFFTY_TUNE_MEASURE` may take, in seconds: 10 by default.
    pub tune_seconds: f64,
    /// The file of `THRIFFTY_TUNE_WISDOM`, the recipe of `THRIFFTY_TUNE_EXACT`; otherwise NULL (default).
    pub tune_text: *const c_char,
    /// Where the data is: -1 (default) on the host; otherwise on the CUDA device of this number, which the ranks may each have
    /// another of, or share. See `thriffty_forward`.
    pub device: i32,
    /// Of a plan on a device: the `CUstream` or `cudaStream_t` that everything is queued on, of the device's primary context,
    /// which lives as long as the plan. NULL (default): CUDA's default stream.
    pub stream: *mut c_void,
    /// Of a plan on a device: how data gets to other ranks. "reached", as NULL (default): taken from memory that is reached, else in
    /// messages, sent from the device where the MPI is CUDA-aware. "device", "host": all in messages, sent from there.
    pub passage: *const c_char,
    /// What the plan may take beside input and output, where the data is on the host: "ample", as NULL (default), as much as
    /// makes it fast. "least": messages go in rounds, which takes once the data and a little, at times twice.
    /// `workspace_bytes` of `thriffty_plan_sizes` tells.
    pub memory: *const c_char,
}

/// Bytes that the options have had: of programs compiled with an earlier header as well.
pub(crate) const OPTIONS_BYTES: [usize; 4] = [
    std::mem::offset_of!(Options, device),
    std::mem::offset_of!(Options, passage),
    std::mem::offset_of!(Options, memory),
    size_of::<Options>(),
];

impl Default for Options {
    fn default() -> Self {
        Self {
            struct_size: size_of::<Self>(),
            precision: Precision::F64 as i32,
            kinds: [Kind::Default as i32; 4],
            input_order: [0, 1, 2, 3],
            output_order: [0, 1, 2, 3],
            forward_scale: Scale::None as i32,
            inverse_scale: Scale::Full as i32,
            howmany: 1,
            exchange: std::ptr::null(),
            wire: std::ptr::null(),
            tolerance: 0.0,
            strict: 0,
            wire_everywhere: 0,
            tune: Tune::Model as i32,
            shared_arrays: 0,
            tune_seconds: 10.0,
            tune_text: std::ptr::null(),
            device: -1,
            stream: std::ptr::null_mut(),
            passage: std::ptr::null(),
            memory: std::ptr::null(),
        }
    }
}

/// What a plan needs of this rank, all arrays of a batch together. Later versions have more fields at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Sizes {
    /// Bytes of this struct as the program knows it.
    pub struct_size: usize,
    /// This rank's part of physical data.
    pub input: Brick,
    /// This rank's part of spectral data.
    pub output: Brick,
    /// Numbers of physical data, complex ones counting once.
    pub input_points: usize,
    /// Numbers of spectral data, complex ones counting once.
    pub output_points: usize,
    /// Bytes of physical data.
    pub input_bytes: usize,
    /// Bytes of spectral data.
    pub output_bytes: usize,
    /// Bytes of an array that is transformed in place.
    pub in_place_bytes: usize,
    /// Bytes that the plan itself holds beside input and output.
    pub workspace_bytes: usize,
}
