//! What can go wrong on a device.

use cudarc::driver::DriverError;
use cudarc::driver::sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY;
use fft_core::{BadMessage, Error, Wire};

/// Why there is no device to compute on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoGpu {
    /// The driver's library cannot be loaded.
    #[error("no CUDA driver on this machine (libcuda.so does not load)")]
    NoDriver,
    /// The driver finds no such device, or cannot use it.
    #[error("CUDA device {ordinal}: {why}")]
    NoDevice {
        /// Which one was asked for.
        ordinal: usize,
        /// What the driver says.
        why: String,
    },
    /// The kernels are for other devices.
    #[error(
        "CUDA device {ordinal} has compute capability {}.{}, expected 8.0 or more",
        found.0,
        found.1
    )]
    TooOld {
        /// Which one was asked for.
        ordinal: usize,
        /// Its compute capability.
        found: (i32, i32),
    },
}

impl NoGpu {
    /// The error that a rank reports.
    pub fn on(self, rank: usize) -> Error {
        Error::NoDevice { rank, why: self.to_string() }
    }
}

/// What goes wrong on a device that is there.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GpuError {
    /// The driver refuses.
    #[error("{what}: {why}")]
    Driver {
        /// What was tried.
        what: &'static str,
        /// What the driver says.
        why: String,
    },
    /// Memory that the device does not give, or the host where it must be pinned.
    #[error("no {bytes} bytes of memory: {why}")]
    Memory {
        /// How much.
        bytes: usize,
        /// What the driver says.
        why: String,
    },
    /// cuFFT's library cannot be loaded.
    #[error("no cuFFT on this machine (libcufft.so does not load)")]
    NoCuFft,
    /// A buffer is too short.
    #[error("{what} has {found} bytes, expected {expected} or more")]
    Short {
        /// Which buffer.
        what: &'static str,
        /// Bytes it has.
        found: usize,
        /// Bytes it should have.
        expected: usize,
    },
    /// A buffer or a message begins where it cannot be accessed as it must be.
    #[error("{what} begins at byte {found}, expected a multiple of {expected}")]
    Unaligned {
        /// What begins there.
        what: &'static str,
        /// Where.
        found: u64,
        /// The alignment.
        expected: usize,
    },
    /// Two messages share memory.
    #[error("message {second} begins at byte {found}, inside message {first} up to {expected}")]
    Overlap {
        /// The one in front.
        first: usize,
        /// The one behind.
        second: usize,
        /// Where that begins.
        found: usize,
        /// The first byte where it may.
        expected: usize,
    },
    /// Something is larger than kernels or cuFFT can count.
    #[error("{what} is {found}, expected at most {expected}")]
    TooLarge {
        /// What.
        what: &'static str,
        /// How large it is.
        found: usize,
        /// How large it may be.
        expected: usize,
    },
    /// An argument makes no sense.
    #[error("{what}: found {found}, expected {expected}")]
    Argument {
        /// Of what.
        what: &'static str,
        /// What it is.
        found: String,
        /// What it may be.
        expected: &'static str,
    },
    /// A wire that is not made on devices.
    #[error("the wire {0} is not made on a device")]
    Wire(Wire),
    /// A message does not decode.
    #[error("message {index}: {why}")]
    Message {
        /// Which one of the batch.
        index: usize,
        /// What is wrong with it.
        why: BadMessage,
    },
}

impl GpuError {
    /// What the driver says to who asks for so many bytes: that there are none, or what it would say to anyone, as of work that
    /// failed before.
    pub fn allocating(bytes: usize, why: DriverError) -> Self {
        let name = format!("{:?}", why.0);
        match why.0 {
            CUDA_ERROR_OUT_OF_MEMORY => Self::Memory { bytes, why: name },
            _ => Self::Driver { what: "allocating memory", why: name },
        }
    }

    /// The error that a rank reports.
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
