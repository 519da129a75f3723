//! What a bound recipe does, on the host or on a device, in either precision.

use std::path::Path;

use fft_core::{AnyExecutor, Direction, Error, Precision};
#[cfg(feature = "cuda")]
use fft_gpu::{DeviceQueue, GpuTransport};

use crate::field::{Bytes, BytesMut, DynArray};

/// A bound recipe. Arrays are bytes; lengths are the caller's to check.
pub(crate) trait Bound: Send {
    fn executor(&self) -> &dyn AnyExecutor;
    fn executor_mut(&mut self) -> &mut dyn AnyExecutor;

    /// Whether an array is where the data is, at an address for its numbers.
    fn check(&self, what: &'static str, array: Bytes<'_>) -> Result<(), Error>;

    /// Whether the ranks of the host that read an array can see it.
    fn sees(&self, array: Bytes<'_>) -> bool;

    /// Transforms arrays that were checked; without input, in place. Collective.
    fn run(
        &mut self,
        direction: Direction,
        input: Option<Bytes<'_>>,
        output: BytesMut<'_>,
    ) -> Result<(), Error>;

    /// Zeros of this rank's own.
    fn zeros(&self, bytes: usize) -> Result<DynArray, Error>;

    /// Whether [`Bound::spare`] has shared memory, or needs none.
    fn has_spare(&mut self) -> bool;

    /// Zeros in shared memory of a field that was dropped.
    fn spare(&mut self, bytes: usize) -> Result<DynArray, Error>;

    /// Zeros in new shared memory. Collective.
    fn allocate(&mut self, bytes: usize) -> Result<DynArray, Error>;

    /// Threads of this process that transform.
    fn threads(&self) -> usize {
        1
    }

    /// Saves what plans of threads have measured; `None` if there are none. Collective.
    fn save_wisdom(&self, _path: &Path) -> Option<Result<(), Error>> {
        None
    }

    /// Begins to trace plans of threads; `None` if there are none. Collective.
    fn trace(&self, _path: &Path) -> Option<Result<(), Error>> {
        None
    }

    /// The properties of the device, if the plan is on one.
    #[cfg(feature = "cuda")]
    fn on_device(&self) -> Option<OnDevice<'_>> {
        None
    }
}

#[cfg(feature = "cuda")]
pub(crate) struct OnDevice<'a> {
    /// The transport that was requested.
    pub(crate) queue: &'a DeviceQueue,
    /// The transport to the ranks that are hardest to reach.
    pub(crate) transport: GpuTransport,
}

/// The error for an array that is in another place than the plan's data.
#[cfg(feature = "cuda")]
pub(crate) fn misplaced(what: &'static str, on_host: bool) -> Error {
    let places = ["one on the plan's device", "one on the host"];
    let [expected, found] = if on_host { places } else { [places[1], places[0]] };
    Error::argument(what, found, expected)
}

/// Checks that an array is on the host, aligned for numbers of this precision.
pub(crate) fn check_on_host(
    what: &'static str,
    array: Bytes<'_>,
    precision: Precision,
) -> Result<(), Error> {
    match array {
        Bytes::Host(bytes) => {
            let align = precision.bytes();
            if !bytes.is_empty() && bytes.as_ptr().align_offset(align) != 0 {
                return Err(misaligned(what, format!("{:p}", bytes.as_ptr()), align));
            }
            Ok(())
        }
        #[cfg(feature = "cuda")]
        Bytes::Device(_) => Err(misplaced(what, false)),
    }
}

/// The error for an address that numbers do not begin at.
pub(crate) fn misaligned(what: &'static str, found: String, align: usize) -> Error {
    Error::argument(format!("address of the {what}"), found, format!("a multiple of {align}"))
}
