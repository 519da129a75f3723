//! Devices, streams and arrays on devices of C programs.

use std::sync::Arc;

use thriffty::gpu::cudarc::driver::CudaStream;
use thriffty::gpu::{DeviceMemory, Gpu, GpuError, NoGpu, borrow, borrow_stream, driver_is_present};
use thriffty::gpu::{device_in_rotation, keeping_context};
use thriffty::planning::DeviceChoice;
use thriffty::{Comm, Error};

use super::addresses::{apart, check};
use crate::request::Place;
use crate::values::Options;

/// The device, the stream and the transport of a plan.
///
/// # Safety
/// The stream of the options must be NULL, or live as long as the result and plans made with it.
pub(super) unsafe fn place(
    comm: &dyn Comm,
    device: DeviceChoice,
    options: &Options,
) -> Result<Place, Error> {
    let rank = comm.rank();
    let number = match device {
        DeviceChoice::Number(number) => number,
        _ => device_in_rotation(comm),
    };
    if !driver_is_present() {
        return Err(NoGpu::NoDriver.on(rank));
    }
    keeping_context(|| {
        let gpu = Gpu::probe(number).map_err(|why| why.on(rank))?;
        let stream = std::ptr::with_exposed_provenance_mut(options.stream);
        // SAFETY: the caller vouches for the stream.
        let stream = unsafe { borrow_stream(&gpu, stream) }.map_err(|why| why.on(rank))?;
        Ok(Place { gpu, stream: Some(stream), transport: options.settings.placement.transport })
    })
}

/// Arrays begin at multiples of this many bytes, as all allocations do.
const ALIGN: usize = 16;

/// An array on the device of a rank's plan.
///
/// # Safety
/// There must be `bytes` bytes, which nobody else touches until queued work is done.
pub(super) unsafe fn array(
    (rank, stream): (usize, &Arc<CudaStream>),
    what: &'static str,
    data: *const u8,
    bytes: usize,
) -> Result<DeviceMemory<u8>, Error> {
    check(what, data, bytes)?;
    if bytes > 0 && !data.addr().is_multiple_of(ALIGN) {
        let (what, found) = (format!("address of the {what}"), format!("{:#x}", data.addr()));
        return Err(Error::argument(what, found, format!("a multiple of {ALIGN}")));
    }
    // SAFETY: the caller vouches for the bytes.
    unsafe { borrow(stream, what, data.cast(), bytes) }.map_err(|why| match why {
        GpuError::Short { found, expected, .. } => {
            let found = format!("{found} allocated from there on");
            Error::argument(format!("bytes of the {what}"), found, expected)
        }
        other => other.on(rank),
    })
}

/// Two arrays; the second is written.
///
/// # Safety
/// As of [`array`], but that they may overlap, which is an error.
pub(super) unsafe fn arrays(
    place: (usize, &Arc<CudaStream>),
    input: (*const u8, usize),
    output: (*mut u8, usize),
) -> Result<(DeviceMemory<u8>, DeviceMemory<u8>), Error> {
    apart(input, output)?;
    // SAFETY: the caller vouches for the bytes; they do not overlap, as just checked.
    unsafe {
        let input = array(place, "input", input.0, input.1)?;
        Ok((input, array(place, "output", output.0, output.1)?))
    }
}
