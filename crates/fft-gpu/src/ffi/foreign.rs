//! What programs in other languages own: their arrays, their streams, and the context that they have chosen.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::Arc;

use cudarc::driver::CudaStream;
use cudarc::driver::sys::{
    self, CUcontext, CUdeviceptr, CUmemorytype, CUpointer_attribute as Attribute,
};

use super::memory::DeviceMemory;
use super::tried;
use crate::base::{Gpu, GpuError};

/// Streams that every context has: CUDA's default stream, the same by name, and that of each thread.
const SPECIAL: [usize; 3] = [0, 1, 2];

/// What the driver knows of an address.
#[derive(Default)]
struct Known {
    /// A `CUmemorytype`; 0 for memory that the driver does not know.
    kind: u32,
    ordinal: i32,
    /// Where what was allocated begins, and how long it is; 0 where that is not known.
    start: CUdeviceptr,
    bytes: usize,
}

impl Known {
    fn of(at: CUdeviceptr) -> Result<Self, GpuError> {
        let mut known = Self::default();
        let mut what = [
            Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
            Attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
            Attribute::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
            Attribute::CU_POINTER_ATTRIBUTE_RANGE_SIZE,
        ];
        let mut places: [*mut c_void; 4] = [
            (&raw mut known.kind).cast(),
            (&raw mut known.ordinal).cast(),
            (&raw mut known.start).cast(),
            (&raw mut known.bytes).cast(),
        ];
        let count = what.len() as u32;
        // SAFETY: there is a place of the right type for each attribute. The address is looked up, not followed; of one that is
        // not known all attributes are 0.
        unsafe { sys::cuPointerGetAttributes(count, what.as_mut_ptr(), places.as_mut_ptr(), at) }
            .result()
            .map_err(tried("looking an address up"))?;
        Ok(known)
    }
}

/// Bytes at an address that somebody else allocated, for what is queued on a stream. NULL, memory of the host or of another
/// device, and more bytes than were allocated are refused; with no bytes the address may be any.
///
/// # Errors
/// [`GpuError::Argument`], [`GpuError::Short`], [`GpuError::Driver`].
///
/// # Safety
/// The memory must stay until what is queued with the result is done, and nobody else may touch it meanwhile, nor, of memory that
/// is only read, write to it. What the stream's own order puts before or behind is not meanwhile.
pub unsafe fn borrow(
    stream: &Arc<CudaStream>,
    what: &'static str,
    at: *const c_void,
    bytes: usize,
) -> Result<DeviceMemory<u8>, GpuError> {
    if bytes == 0 {
        // SAFETY: nothing is touched.
        return Ok(unsafe { DeviceMemory::at(0, 0, stream) });
    }
    let expected = "memory of the plan's device";
    let refused = |found: String| Err(GpuError::Argument { what, found, expected });
    let (at, context) = (at.expose_provenance() as CUdeviceptr, stream.context());
    if at == 0 {
        return refused("NULL".into());
    }
    context.bind_to_thread().map_err(tried("choosing a device"))?;
    let known = Known::of(at)?;
    if known.kind == 0 || known.kind == CUmemorytype::CU_MEMORYTYPE_HOST as u32 {
        return refused("memory of the host, or none".into());
    }
    if known.ordinal != context.ordinal() as i32 {
        return refused(format!("memory of device {}", known.ordinal));
    }
    let found = (known.start + known.bytes as u64).saturating_sub(at) as usize;
    match known.bytes > 0 && found < bytes {
        true => Err(GpuError::Short { what, found, expected: bytes }),
        // SAFETY: the caller vouches for it.
        false => Ok(unsafe { DeviceMemory::at(at, bytes, stream) }),
    }
}

/// A stream that somebody else made, of this device's primary context; NULL is CUDA's default stream.
///
/// # Errors
/// [`GpuError::Argument`] for a stream of another context, [`GpuError::Driver`].
///
/// # Safety
/// It is a stream, and lives as long as the result and what was made with that.
pub unsafe fn borrow_stream(gpu: &Gpu, stream: *mut c_void) -> Result<Arc<CudaStream>, GpuError> {
    let (context, stream): (_, sys::CUstream) = (gpu.context(), stream.cast());
    context.bind_to_thread().map_err(tried("choosing a device"))?;
    if !SPECIAL.contains(&stream.addr()) {
        let mut of = std::ptr::null_mut();
        // SAFETY: the caller vouches for the stream; the call writes one handle.
        unsafe { sys::cuStreamGetCtx(stream, &mut of) }
            .result()
            .map_err(tried("asking a stream for its context"))?;
        if of != context.cu_ctx() {
            return Err(GpuError::Argument {
                what: "the stream",
                found: "one of another context".into(),
                expected: "one of the device's primary context",
            });
        }
    }
    // SAFETY: the caller vouches for its life; its context is this one, as was just seen.
    Ok(unsafe { context.wrap_borrowed_stream(stream) })
}

/// Does something, after which this thread has the context that it had before: as programs expect that chose a device.
pub fn keeping_context<R>(body: impl FnOnce() -> R) -> R {
    struct Back(CUcontext);
    impl Drop for Back {
        fn drop(&mut self) {
            // SAFETY: it was this thread's a moment ago. There is nobody to tell of a failure.
            let _ = unsafe { sys::cuCtxSetCurrent(self.0) };
        }
    }
    let mut found = MaybeUninit::uninit();
    // SAFETY: the driver is there, as asked first; the call writes one handle, unless it fails.
    let back = super::driver_is_present().then(|| unsafe {
        sys::cuCtxGetCurrent(found.as_mut_ptr()).result().ok().map(|()| Back(found.assume_init()))
    });
    let result = body();
    drop(back);
    result
}
