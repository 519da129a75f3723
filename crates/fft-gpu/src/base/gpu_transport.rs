//! How data gets from one device to another.

use std::fmt;
use std::str::FromStr;

use fft_core::Error;

/// How data gets to other ranks.
///
/// ```
/// use fft_gpu::Passage;
/// assert_eq!("device".parse(), Ok(Passage::Device));
/// assert!("devices".parse::<Passage>().is_err());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Passage {
    /// Ranks whose memory is reached take it from there, or are written to; others get messages, from memory of the device
    /// where their way leads that far, else through the host.
    #[default]
    Reached,
    /// All that changes ranks is in messages, which are sent from memory of the device and received into it: CUDA-aware MPI.
    Device,
    /// All that changes ranks is in messages, which are sent from and received into memory of the host.
    Host,
}

impl Passage {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Reached, Self::Device, Self::Host];
}

/// `reached`, `device`, `host`.
impl fmt::Display for Passage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Reached => "reached",
            Self::Device => "device",
            Self::Host => "host",
        })
    }
}

/// Reads what [`Display`](fmt::Display) writes.
impl FromStr for Passage {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|known| known.to_string() == name);
        found.ok_or_else(|| Error::argument("passage", name, "reached, device or host"))
    }
}
