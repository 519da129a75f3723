//! The machine of the cost model, by name or as it is.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use fft_comm::checksum;
use fft_core::{Error, Machine};

/// The machine of the cost model.
///
/// ```
/// use thriffty::machine::named;
/// thriffty::threads(2, |world| {
///     let draft = || thriffty::c2c(&world, [16, 16]);
///     let by_name = draft().machine("summit").build()?;
///     let as_it_is = draft().machine(named("summit")?).build()?;
///     assert_eq!(by_name.recipe(), as_it_is.recipe());
///     Ok::<(), thriffty::Error>(())
/// })?;
/// # Ok::<(), thriffty::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum MachineChoice {
    /// A name, or the path of a file. Rank 0 reads it when the plan is made.
    Named(String),
    /// The machine itself, the same on all ranks.
    Given(Arc<Machine>),
}

impl From<Machine> for MachineChoice {
    fn from(machine: Machine) -> Self {
        Self::Given(Arc::new(machine))
    }
}

impl From<&str> for MachineChoice {
    fn from(name: &str) -> Self {
        Self::Named(name.into())
    }
}

impl FromStr for MachineChoice {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        match name {
            "" => Err(Error::argument("machine", "an empty text", "a name or a file")),
            _ => Ok(name.into()),
        }
    }
}

/// The name, or a text that changes when a number of the machine does.
impl fmt::Display for MachineChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => f.write_str(name),
            Self::Given(machine) => write!(f, "{:016x}", fingerprint(machine)),
        }
    }
}

/// A checksum of a machine's numbers, of how each was obtained, and of its GPU.
fn fingerprint(machine: &Machine) -> u64 {
    let mut bytes = Vec::new();
    for (_, quantity) in machine.quantities() {
        bytes.extend_from_slice(&quantity.value.to_bits().to_le_bytes());
        bytes.push(quantity.how as u8);
    }
    for rate in &machine.flops {
        bytes.extend_from_slice(&(rate.n as u64).to_le_bytes());
    }
    bytes.extend_from_slice(format!("{:?}{:?}", machine.lines, machine.gpu).as_bytes());
    checksum(&bytes)
}
