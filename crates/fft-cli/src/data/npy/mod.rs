//! NumPy's `.npy` files, read and written **by brick**: every rank, a thread or a process on a common file system,
//! moves its own box between the file and its own memory. No rank reads or buffers the whole file.
//!
//! Reading takes two steps, and any rank may do both:
//!
//! ```text
//! let header = Header::open(path)?;                           // checked: dtype, shape, the file's exact length
//! read_brick(path, &header, &lo, &hi, &mut mine)?;
//! ```
//!
//! Writing takes three, so that no half-written file ever bears the final name:
//!
//! ```text
//! let header = Header::new(&shape, Dtype::F64, false);        // every rank: the same header
//! let output = Output::create(path, &header)?;                // one rank, which tells the others temporary_path()
//! write_brick(temporary_path, &header, &lo, &hi, &mine)?;     // every rank, at the same time
//! output.commit()?;                                           // the one rank, once all have written
//! ```
//!
//! None of these functions communicates: to agree on an error before the next step is the caller's part.
//!
//! **Memory order.** Axes are the array's, as NumPy counts them. A brick's elements lie in memory as they do in the
//! file: in a C order file the last axis is contiguous, in a Fortran order file the first.
//!
//! **Elements.** Bytes go between file and memory as they are. An element type must have the memory layout (size and
//! alignment) of the dtype: `f32`, `f64`, `Complex<f32>`, `Complex<f64>`, or any other plain type laid out like one of
//! them. That is enough to tell the four apart, so a file of `<c8` cannot be read into `f64`.

mod dictionary;
mod header;
mod read;
mod runs;
#[cfg(test)]
mod tests;
mod write;

use std::alloc::Layout;
use std::path::{Path, PathBuf};
use std::{fmt, io};

pub(crate) use self::{
    header::Header,
    read::read_brick,
    write::{Output, write_brick},
};

#[cfg(target_endian = "big")]
compile_error!("bricks go between file and memory as they are, and the files are little-endian");

/// What one element of a file is. All are little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dtype {
    /// `<f4`: a real of 4 bytes.
    F32,
    /// `<f8`: a real of 8 bytes.
    F64,
    /// `<c8`: a complex of two `F32`.
    C64,
    /// `<c16`: a complex of two `F64`.
    C128,
}

impl Dtype {
    /// Every dtype that is accepted.
    pub(crate) const ALL: [Self; 4] = [Self::F32, Self::F64, Self::C64, Self::C128];

    /// NumPy's name for it, as it stands in a header.
    pub(crate) const fn descr(self) -> &'static str {
        match self {
            Self::F32 => "<f4",
            Self::F64 => "<f8",
            Self::C64 => "<c8",
            Self::C128 => "<c16",
        }
    }

    /// Whether an element has two numbers.
    pub(crate) const fn is_complex(self) -> bool {
        matches!(self, Self::C64 | Self::C128)
    }

    /// Bytes per element.
    pub(crate) const fn item_size(self) -> usize {
        self.layout().size()
    }

    /// Size and alignment that an element must have in memory.
    const fn layout(self) -> Layout {
        match self {
            Self::F32 => Layout::new::<f32>(),
            Self::F64 => Layout::new::<f64>(),
            Self::C64 => Layout::new::<[f32; 2]>(),
            Self::C128 => Layout::new::<[f64; 2]>(),
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.descr())
    }
}

/// Why a file could not be read or written. Every message names the file, what was found and what was expected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum NpyError {
    /// The file as a whole: opening, creating, syncing, renaming.
    #[error("{path}: cannot {action}: {source}")]
    Io { path: PathBuf, action: &'static str, source: io::Error },

    /// Some bytes of the file.
    #[error("{path}: cannot {action} {bytes} bytes at byte {offset}: {source}")]
    Transfer { path: PathBuf, action: &'static str, bytes: u64, offset: u64, source: io::Error },

    #[error("{path}: found a directory or a device, expected a regular file")]
    NotAFile { path: PathBuf },

    #[error("{path}: not a NumPy file: it starts with \"{found}\", expected \"\\x93NUMPY\"")]
    Magic { path: PathBuf, found: String },

    #[error("{path}: found format version {}.{}, expected 1.0, 2.0 or 3.0", found.0, found.1)]
    Version { path: PathBuf, found: (u8, u8) },

    #[error("{path}: byte {at} of the header's text: found `{found}`, expected {expected}")]
    Syntax { path: PathBuf, at: usize, found: String, expected: &'static str },

    #[error("{path}: the header's text is {found} bytes long, expected at most {expected}")]
    LongHeader { path: PathBuf, found: u64, expected: u64 },

    #[error(
        "{path}: the data are to start at byte {found}, expected {least} to {most} for their header"
    )]
    DataOffset { path: PathBuf, found: u64, least: u64, most: u64 },

    #[error("{path}: found dtype {found}, expected '<f4', '<f8', '<c8' or '<c16' (little-endian)")]
    Dtype { path: PathBuf, found: String },

    #[error("{path}: found an array of {found} axes, expected 1 to {expected}")]
    Axes { path: PathBuf, found: usize, expected: usize },

    #[error(
        "{path}: shape {shape:?} of {dtype} needs more than the {expected} bytes that a file can have"
    )]
    Large { path: PathBuf, shape: Vec<usize>, dtype: Dtype, expected: u64 },

    #[error("{path}: the file is {found} bytes long, expected {expected} from its header")]
    Length { path: PathBuf, found: u64, expected: u64 },

    #[error("{path}: found the brick {lo:?}..{hi:?}, expected a box inside the shape {shape:?}")]
    Brick { path: PathBuf, lo: Vec<usize>, hi: Vec<usize>, shape: Vec<usize> },

    #[error(
        "{path}: found elements of {} bytes aligned to {}, expected {} aligned to {} for dtype {dtype}",
        found.size(), found.align(), dtype.layout().size(), dtype.layout().align()
    )]
    Element { path: PathBuf, found: Layout, dtype: Dtype },

    #[error("{path}: found a buffer of {found} elements, expected {expected} for the brick")]
    Buffer { path: PathBuf, found: usize, expected: usize },
}

impl NpyError {
    /// For `map_err`: an operation on the whole file failed.
    fn io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { path: path.to_path_buf(), action, source }
    }

    /// For `map_err`: moving some of the file's bytes failed.
    fn transfer(
        path: &Path,
        action: &'static str,
        bytes: u64,
        offset: u64,
    ) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Transfer { path: path.to_path_buf(), action, bytes, offset, source }
    }
}
