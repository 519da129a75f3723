//! Numbers and structs of the C interface, laid out as in C.

use std::ffi::{c_char, c_void};

use thriffty::Error;
use thriffty::planning::Settings;

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

/// What `thriffty_apply` does to each mode of a spectrum, with the wavenumbers k of the axes that
/// are transformed. Derivatives of first order need axes of kind c2c and r2c; they are 0 for the
/// middle mode of an even number of points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Operator {
    /// The derivative along the axis that the parameter names.
    Derivative = 0,
    /// The derivatives of one field along all axes.
    Gradient = 1,
    /// The divergence of a vector, one field.
    Divergence = 2,
    /// In three dimensions; in two, of a vector the one component d0 u1 - d1 u0.
    Curl = 3,
    /// -k^2.
    Laplacian = 4,
    /// Solves -laplacian(phi) = rho. The mean of phi is 0, and the mean of rho is ignored.
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

/// The options of plans, by name. Nobody else uses them during a call. A plan that was made with
/// them does not need them.
///
/// docs/options.md lists their names and meanings, which `thriffty_options_describe` writes as
/// JSON. Options are equal on all ranks.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub(crate) settings: Settings,
    /// On a device: a `CUstream`, as a number.
    pub(crate) stream: usize,
    /// The first option that could not be set.
    pub(crate) failed: Option<Error>,
}

/// The functions of a process group that another framework has started, from which
/// `thriffty_comm_create` makes a communicator. Later versions have more functions at the end.
///
/// Each gets the context of `thriffty_comm_create`. A status is 0 for success; after another one
/// the communicator fails, on this rank with the text of `error`. If a rank has ended, calls must
/// fail on the others instead of waiting for it. `allgather` and `alltoallv` are collective: all
/// ranks call them in the same order. The others may be NULL.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct GroupCallbacks {
    /// Bytes of this struct in the program's header.
    pub struct_size: usize,
    /// Gathers `bytes` bytes of every rank, `mine`, into `all`, in order of ranks.
    pub allgather: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            mine: *const c_void,
            all: *mut c_void,
            bytes: usize,
        ) -> i32,
    >,
    /// Sends `send_bytes[r]` bytes, from `send_offsets[r]` bytes after `send` on, to each rank `r`,
    /// also to this one. The data from rank `r` has `recv_bytes[r]` bytes, the number that the
    /// sender sends, and begins `recv_offsets[r]` bytes after `recv`.
    pub alltoallv: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            send: *const c_void,
            send_bytes: *const usize,
            send_offsets: *const usize,
            recv: *mut c_void,
            recv_bytes: *const usize,
            recv_offsets: *const usize,
        ) -> i32,
    >,
    /// Starts to send a message, and writes a number of its own to `request`. Messages from one
    /// rank to another with equal tags arrive in order. All of `isend`, `irecv` and `test` are
    /// NULL, or none is.
    pub isend: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            to: i32,
            tag: u32,
            message: *const c_void,
            bytes: usize,
            request: *mut u64,
        ) -> i32,
    >,
    /// Starts to receive a message of at most `bytes` bytes, as `isend`. If there are several from
    /// one rank with equal tags, each is tested only after the ones before it have completed.
    pub irecv: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            from: i32,
            tag: u32,
            room: *mut c_void,
            bytes: usize,
            request: *mut u64,
        ) -> i32,
    >,
    /// Writes 1 to `done` if a request has completed and, if it was to receive, the length of the
    /// message to `bytes`. Otherwise it writes 0 to `done`. The memory of the message stays where
    /// it is until `test` has written 1 or failed. Then the request is not tested again.
    pub test: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            request: u64,
            done: *mut i32,
            bytes: *mut usize,
        ) -> i32,
    >,
    /// The host of this process. Processes share memory if they return equal names; NULL, or no
    /// function, stands for the machine and the namespace of processes.
    pub host: Option<unsafe extern "C" fn(context: *mut c_void) -> *const c_char>,
    /// A rank that has ended, if the group knows one, or -1. For ranks on the same host the library
    /// notices itself.
    pub lost: Option<unsafe extern "C" fn(context: *mut c_void) -> i32>,
    /// Called when this rank takes part in no more collectives, so that others that wait in one
    /// should fail: closes connections, if the group has any.
    pub abandon: Option<unsafe extern "C" fn(context: *mut c_void)>,
    /// Why the last function failed, in words, or NULL; valid until the next call.
    pub error: Option<unsafe extern "C" fn(context: *mut c_void) -> *const c_char>,
    /// As `alltoallv`, for memory on the devices of plans. The data to send is ready when it is
    /// called, and it must return only after all data has arrived. If a rank has none, data of
    /// devices passes through the host.
    pub device_alltoallv: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            send: *const c_void,
            send_bytes: *const usize,
            send_offsets: *const usize,
            recv: *mut c_void,
            recv_bytes: *const usize,
            recv_offsets: *const usize,
        ) -> i32,
    >,
}

/// Sizes of a plan on this rank, all arrays of a batch together. Later versions have more fields at
/// the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Sizes {
    /// Bytes of this struct in the program's header.
    pub struct_size: usize,
    /// This rank's part of physical data.
    pub input: Brick,
    /// This rank's part of spectral data.
    pub output: Brick,
    /// Points of physical data.
    pub input_len: usize,
    /// Points of spectral data.
    pub output_len: usize,
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
    /// The strides between adjacent points of physical data along each axis, where bricks count
    /// positions: of n points, position p has the index p / (n/s) + s (p mod n/s). All are 1,
    /// unless data of a single axis is cyclic or transposed.
    pub input_strides: [i64; 4],
    /// The same of spectral data.
    pub output_strides: [i64; 4],
}

/// Where the time of a plan went on this rank, in seconds, since the plan was made or
/// `thriffty_plan_clear_timings` was called. Later versions have more fields at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Timings {
    /// Bytes of this struct in the program's header.
    pub struct_size: usize,
    /// Packing and encoding messages.
    pub pack: f64,
    /// Sending, receiving and waiting: the rest of an exchange.
    pub exchange: f64,
    /// Decoding and unpacking messages.
    pub unpack: f64,
    /// Copying data that stays on the rank.
    pub own: f64,
    /// Copying from and to memory that ranks of the host share.
    pub shared: f64,
    /// Local transforms and scaling.
    pub fft: f64,
    /// Bytes of messages to other ranks.
    pub sent: i64,
    /// Bytes of headers and of forwarded messages.
    pub forwarded: i64,
    /// Real numbers that are encoded in the sent bytes.
    pub reals: i64,
}

/// Sizes of this struct here and in earlier headers.
pub(crate) const SIZES_BYTES: [usize; 2] =
    [std::mem::offset_of!(Sizes, input_order), size_of::<Sizes>()];
