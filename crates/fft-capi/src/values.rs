//! Numbers and structs of the C interface, laid out as in C.

use std::ffi::{c_char, c_void};

/// The family of a transform: the types of physical and of spectral data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Transform {
    /// Complex data, complex spectrum.
    C2c = 0,
    /// Real data, complex spectrum: one axis, by default the last, has n/2 + 1 frequencies.
    R2c = 1,
    /// Real data, real spectrum: a cosine or sine transform, or none, along each axis; by default
    /// DCT-II.
    R2r = 2,
}

/// What is done along one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Kind {
    /// The usual kind of the transform.
    Default = 0,
    /// No transform.
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

/// The factor of results; N is the number of points (for cosine and sine transforms, the product of
/// FFTW's logical lengths).
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
    /// By a model of the machine; nothing is run.
    Model = 0,
    /// By timings, within `tune_seconds`.
    Measure = 1,
    /// By earlier timings, from the file `tune_text` of `thriffty_plan_save_wisdom`; by the model
    /// if it has no entry for this transform on this machine.
    Wisdom = 2,
    /// The recipe that prints as `tune_text`.
    Exact = 3,
}

/// What `thriffty_apply` does to each mode of a spectrum, with the wavenumbers k of the axes that
/// are transformed. Derivatives of first order need axes of kind C2C and R2C; they are 0 for the
/// middle mode of an even number of points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Operator {
    /// The derivative along the axis that the parameter names.
    Derivative = 0,
    /// Of one field, its derivatives along all axes.
    Gradient = 1,
    /// Of a vector, one field.
    Divergence = 2,
    /// In three dimensions; in two, of a vector the one component d0 u1 - d1 u0.
    Curl = 3,
    /// -k^2.
    Laplacian = 4,
    /// Solves -laplacian(phi) = rho. The mean of phi is 0, and that of rho is ignored.
    Poisson = 5,
    /// Solves (s - laplacian) phi = rho; the parameter is s. Modes with s + k^2 = 0 become 0.
    Helmholtz = 6,
    /// Subtracts the gradient part of a vector.
    Project = 7,
    /// Convolves with a normalised Gaussian; the parameter is its standard deviation, 0 or more.
    Gaussian = 8,
    /// Keeps modes below a fraction of the highest wavenumber of each axis, and sets others to 0;
    /// the parameter is the fraction, 0 or more.
    Cutoff = 9,
}

/// A half-open box of the grid. Entries beyond the axes of the grid are ignored. It is empty if
/// `hi[axis] <= lo[axis]` for any axis, for example if all entries are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Brick {
    /// First index along each axis, from 0.
    pub lo: [i64; 4],
    /// One past the last index along each axis.
    pub hi: [i64; 4],
}

/// One of the two sides of a transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Side {
    /// Physical data.
    Input = 0,
    /// Spectral data.
    Output = 1,
}

/// A brick in a local array, which may be larger: with ghost points or padded rows, in any order of
/// axes. `thriffty_subarray_init` fills it for the usual cases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Subarray {
    /// The brick of the grid.
    pub brick: Brick,
    /// The number of its array among those that the copy is given, from 0. Several bricks may be in
    /// one array.
    pub array: i64,
    /// The index in the array of the brick's first point.
    pub offset: i64,
    /// Elements from a point to its neighbour along each axis.
    pub strides: [i64; 4],
    /// Elements from an array of a batch to the next.
    pub distance: i64,
}

/// Options of a plan, equal on all ranks. Always begin with `thriffty_options_init`: later versions
/// have more fields at the end, and accept the sizes of earlier ones.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Options {
    /// Bytes of this struct as the program knows it.
    pub struct_size: usize,
    /// `THRIFFTY_PRECISION_F64` (default) or `THRIFFTY_PRECISION_F32`.
    pub precision: i32,
    /// The kind of each axis: `THRIFFTY_KIND_DEFAULT` or another.
    pub kinds: [i32; 4],
    /// The order of axes in memory of physical data, slowest first: by default 0, 1, 2, 3, as in C.
    pub input_order: [i32; 4],
    /// The same of spectral data.
    pub output_order: [i32; 4],
    /// The scale of forward transforms: `THRIFFTY_SCALE_NONE` by default.
    pub forward_scale: i32,
    /// The scale of inverse transforms: `THRIFFTY_SCALE_FULL` by default.
    pub inverse_scale: i32,
    /// The number of equal transforms, whose arrays follow each other in memory: 1 by default.
    pub batch: i64,
    /// The exchange: "shared", "hosts", "p2p", "pipelined", "alltoallv", "kway4", "ring" or
    /// "ring-flush".
    /// NULL (default): it is chosen with the recipe.
    pub exchange: *const c_char,
    /// The encoding of messages to other hosts: "raw", "f32", "f16", "bf16", "mantissa:40",
    /// "bits:16", "lossless" or "tolerance". NULL (default): "tolerance" if there is one, otherwise
    /// "raw".
    pub wire: *const c_char,
    /// The largest relative error of the transform by encoded messages, in the l2 norm. 0
    /// (default): none. Of half a spectrum, the norm is that of the whole: squares count twice, but
    /// once at the first index along the halved axis and, for an even length, at the last.
    pub tolerance: f64,
    /// Not 0: the tolerance is a bound for any data, at one or two more bits per number.
    pub strict: i32,
    /// Not 0: ranks of one host send messages, as if each had a host of its own.
    pub ignore_shared_memory: i32,
    /// How the recipe is chosen: `THRIFFTY_TUNE_MODEL` by default.
    pub tune: i32,
    /// Not 0: all arrays are those of `thriffty_allocate`. Processes of a host then read and write
    /// each other's arrays directly.
    pub shared_arrays: i32,
    /// Seconds for `THRIFFTY_TUNE_MEASURE`: 10 by default.
    pub tune_seconds: f64,
    /// The file of `THRIFFTY_TUNE_WISDOM`, or the recipe of `THRIFFTY_TUNE_EXACT`; NULL by default.
    pub tune_text: *const c_char,
    /// The CUDA device that the data is on, which ranks may share; -1 (default) for the host. See
    /// `thriffty_forward`.
    pub device: i32,
    /// On a device: the `CUstream` or `cudaStream_t` for all work, of the device's primary context,
    /// alive as long as the plan and its copies. NULL (default): CUDA's default stream.
    pub stream: *mut c_void,
    /// On a device: how data gets to other ranks. "peer_to_peer", as NULL (default): read from their
    /// devices if possible, otherwise in messages, from the device if the MPI is CUDA-aware.
    /// "gpu_direct", "host_staged": all in messages, from the device or from the host.
    pub transport: *const c_char,
    /// On the host: the memory of the plan beside input and output. "ample", as NULL (default): as
    /// much as is fast. "least": messages go in rounds. `thriffty_plan_sizes` has
    /// `workspace_bytes`.
    pub memory: *const c_char,
    /// The layouts between input and output that are considered: "any", as NULL (default), "slabs"
    /// or "pencils".
    pub layouts: *const c_char,
    /// On the host: the threads of this process that share its work; 1 by default, 0 for
    /// `thriffty_default_threads`. One axis of one process has one thread. Plans of a process share
    /// their threads, which park between calls. Over MPI the thread that calls this library sends
    /// for them, so that `MPI_THREAD_FUNNELED` is enough; transposed data is refused there.
    pub threads: i32,
    /// Not 0: spectral data stays in the bricks and the order of axes that cost least, which
    /// `thriffty_plan_sizes` tells; `output` is NULL then, and `output_order` as in C. Plans of
    /// one process with several threads ignore it.
    pub transposed_output: i32,
    /// The length of the transform along each axis; 0 (default): that of physical data, which
    /// otherwise is taken as 0 beyond `shape`. The inverse leaves that out.
    pub transform: [i64; 4],
    /// The modes of spectral data along each axis, the lowest: those of a transform of so many
    /// points; 0 (default): all. Of an even number of modes below the length, the middle one is 0.
    pub modes: [i64; 4],
    /// Not 0: physical data is in the bricks and the order of axes that cost least, as of
    /// `transposed_output`. For programs that bring it there with `thriffty_copy_run`.
    pub transposed_input: i32,
    /// The machine of the model that chooses the recipe: the path of a file of `fft-cli calibrate`,
    /// or "summit", "frontier" or "ethernet"; NULL (default): the default machine.
    pub machine: *const c_char,
}

/// Sizes of the options in this header and in earlier ones.
pub(crate) const OPTIONS_BYTES: [usize; 9] = [
    std::mem::offset_of!(Options, device),
    std::mem::offset_of!(Options, transport),
    std::mem::offset_of!(Options, memory),
    std::mem::offset_of!(Options, layouts),
    std::mem::offset_of!(Options, threads),
    std::mem::offset_of!(Options, transform),
    std::mem::offset_of!(Options, transposed_input),
    std::mem::offset_of!(Options, machine),
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
            batch: 1,
            exchange: std::ptr::null(),
            wire: std::ptr::null(),
            tolerance: 0.0,
            strict: 0,
            ignore_shared_memory: 0,
            tune: Tune::Model as i32,
            shared_arrays: 0,
            tune_seconds: 10.0,
            tune_text: std::ptr::null(),
            device: -1,
            stream: std::ptr::null_mut(),
            transport: std::ptr::null(),
            memory: std::ptr::null(),
            layouts: std::ptr::null(),
            threads: 1,
            transposed_output: 0,
            transform: [0; 4],
            modes: [0; 4],
            transposed_input: 0,
            machine: std::ptr::null(),
        }
    }
}

/// Sizes of a plan on this rank, all arrays of a batch together. Later versions have more fields at
/// the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Sizes {
    /// Bytes of this struct as the program knows it.
    pub struct_size: usize,
    /// This rank's part of physical data.
    pub input: Brick,
    /// This rank's part of spectral data.
    pub output: Brick,
    /// Points of physical data.
    pub input_points: usize,
    /// Points of spectral data.
    pub output_points: usize,
    /// Bytes of physical data.
    pub input_bytes: usize,
    /// Bytes of spectral data.
    pub output_bytes: usize,
    /// Bytes of an array that is transformed in place.
    pub in_place_bytes: usize,
    /// Bytes that the plan holds besides input and output, with its share of tables that plans of
    /// this process have in common. Several threads or a batch with half a spectrum also copy the
    /// input of a transform in place while it runs.
    pub workspace_bytes: usize,
    /// The order of axes in memory of physical data, slowest first.
    pub input_order: [i32; 4],
    /// The same of spectral data.
    pub output_order: [i32; 4],
}

/// Sizes of this struct here and in earlier headers.
pub(crate) const SIZES_BYTES: [usize; 2] =
    [std::mem::offset_of!(Sizes, input_order), size_of::<Sizes>()];
