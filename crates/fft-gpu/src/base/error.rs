//! Errors of a device.

use std::fmt::Display;

use cudarc::driver::DriverError;
use cudarc::driver::sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY;
use fft_core::{BadMessage, Error, Wire};

/// The reason why there is no device to compute on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoGpu {
    /// The driver's library cannot be loaded.
    #[error("no CUDA driver on this machine (libcuda.so does not load)")]
    NoDriver,
    /// The driver finds no such device, or cannot use it.
    #[error("CUDA device {ordinal}: {why}")]
    NoDevice {
        /// The device that was requested.
        ordinal: usize,
        /// The driver's error.
        why: String,
    },
    /// The device is older than the kernels support.
    #[error(
        "CUDA device {ordinal} has compute capability {}.{}, expected 8.0 or more",
        found.0,
        found.1
    )]
    TooOld {
        /// The device that was requested.
        ordinal: usize,
        /// Its compute capability.
        found: (i32, i32),
    },
}

impl NoGpu {
    /// The same as an error of a rank.
    pub fn on(self, rank: usize) -> Error {
        Error::NoDevice { rank, why: self.to_string() }
    }
}

/// Failures of a device that is present.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GpuError {
    /// A call into the driver or cuFFT failed.
    #[error("{what}: {why}")]
    Driver {
        /// The operation that failed.
        what: &'static str,
        /// The driver's error.
        why: String,
    },
    /// The device, or the host for pinned memory, is out of memory.
    #[error("no {bytes} bytes of memory: {why}")]
    Memory {
        /// The bytes that were requested.
        bytes: usize,
        /// The driver's error.
        why: String,
    },
    /// cuFFT's library cannot be loaded.
    #[error("no cuFFT on this machine (libcufft.so does not load)")]
    NoCuFft,
    /// A buffer is too short.
    #[error("{what} has {found} bytes, expected {expected} or more")]
    Short {
        /// The buffer.
        what: &'static str,
        /// Bytes it has.
        found: usize,
        /// Bytes it should have.
        expected: usize,
    },
    /// An argument, size, address or alignment that is not supported.
    #[error("{what}: found {found}, expected {expected}")]
    Argument {
        /// The argument.
        what: &'static str,
        /// Its value.
        found: String,
        /// Values that it may have.
        expected: String,
    },
    /// The device has no codec for this wire.
    #[error("the wire {0} is not made on a device")]
    Wire(Wire),
    /// A message does not decode.
    #[error("message {index}: {why}")]
    Message {
        /// Its number in the batch.
        index: usize,
        /// The fault of the message.
        why: BadMessage,
    },
}

impl GpuError {
    /// The error of an allocation of `bytes` bytes: out of memory, or an earlier failure.
    pub fn allocating(bytes: usize, why: DriverError) -> Self {
        let name = format!("{:?}", why.0);
        match why.0 {
            CUDA_ERROR_OUT_OF_MEMORY => Self::Memory { bytes, why: name },
            _ => Self::Driver { what: "allocating memory", why: name },
        }
    }

    pub(crate) fn argument(
        what: &'static str,
        found: impl Display,
        expected: impl Display,
    ) -> Self {
        Self::Argument { what, found: found.to_string(), expected: expected.to_string() }
    }

    /// Fails if `found` is more than `most`.
    pub(crate) fn at_most(what: &'static str, found: usize, most: usize) -> Result<(), Self> {
        if found <= most {
            Ok(())
        } else {
            Err(Self::argument(what, found, format!("at most {most}")))
        }
    }

    /// Fails if `found` is less than `expected` bytes.
    pub(crate) fn at_least(what: &'static str, found: usize, expected: usize) -> Result<(), Self> {
        if found >= expected { Ok(()) } else { Err(Self::Short { what, found, expected }) }
    }

    /// Fails if an address is not a multiple of `align`.
    pub(crate) fn aligned(what: &'static str, at: u64, align: usize) -> Result<(), Self> {
        if at.is_multiple_of(align as u64) {
            Ok(())
        } else {
            Err(Self::argument(what, at, format!("a multiple of {align} bytes")))
        }
    }

    /// The same as an error of a rank.
    pub fn on(self, rank: usize) -> Error {
        match self {
            Self::Driver { what, why } => Error::Transport { rank, call: what, text: why },
            Self::Memory { bytes, .. } => Error::Memory { rank, bytes },
            Self::Argument { what, found, expected } => Error::argument(what, found, expected),
            Self::NoCuFft => Error::NoDevice { rank, why: self.to_string() },
            other => Error::Transport { rank, call: "work on the device", text: other.to_string() },
        }
    }
}

/// Maps an error of the driver to one that names the operation.
pub(crate) fn tried(what: &'static str) -> impl Fn(DriverError) -> GpuError {
    move |why| GpuError::Driver { what, why: why.to_string() }
}

#[cfg(test)]
mod tests {
    use cudarc::driver::sys::CUresult::CUDA_ERROR_ILLEGAL_ADDRESS;
    use fft_core::ErrorKind;

    use super::*;

    #[test]
    fn only_memory_that_is_short_is_said_to_be() {
        for (said, kind, text) in [
            (CUDA_ERROR_OUT_OF_MEMORY, ErrorKind::Memory, "rank 3 could not allocate 12 bytes"),
            (CUDA_ERROR_ILLEGAL_ADDRESS, ErrorKind::Transport, "CUDA_ERROR_ILLEGAL_ADDRESS"),
        ] {
            let error = GpuError::allocating(12, DriverError(said)).on(3);
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.to_string().contains(text), "{error}");
        }
    }
}
