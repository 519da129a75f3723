//! The device that a plan's data is on.

use std::fmt;
use std::str::FromStr;

use fft_core::Error;

/// Where the data of a plan is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeviceChoice {
    /// In the host's memory.
    #[default]
    Host,
    /// On one of the host's CUDA devices, which its ranks use in rotation.
    Cuda,
    /// On the CUDA device of this number.
    Number(usize),
}

/// `host`, `cuda` or the number.
impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => f.write_str("host"),
            Self::Cuda => f.write_str("cuda"),
            Self::Number(number) => write!(f, "{number}"),
        }
    }
}

/// Parses what [`Display`](fmt::Display) writes.
impl FromStr for DeviceChoice {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let expected = "host, cuda or the number of a CUDA device";
        match text {
            "host" => Ok(Self::Host),
            "cuda" => Ok(Self::Cuda),
            _ => text
                .parse()
                .map(Self::Number)
                .map_err(|_| Error::argument("device", text, expected)),
        }
    }
}
