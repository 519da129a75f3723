//! Arrays, streams and the current context that programs in other languages own.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::Arc;

use cudarc::driver::CudaStream;
use cudarc::driver::sys::{
    self, CUcontext, CUdeviceptr, CUmemorytype, CUpointer_attribute as Attribute,
};

use super::memory::DeviceMemory;
use crate::base::{Gpu, GpuError, tried};

/// Streams of every context: the default, the legacy default, and the per-thread default.
const SPECIAL: [usize; 3] = [0, 1, 2];

/// Attributes of an address.
#[derive(Default)]
struct PointerInfo {
    /// A `CUmemorytype`; 0 for memory unknown to the driver.
    kind: u32,
    ordinal: i32,
    /// The address and bytes of the allocation; 0 if unknown.
    start: CUdeviceptr,
    bytes: usize,
}

impl PointerInfo {
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
        // SAFETY: there is a place of the right type for each attribute. The address is looked up
        // and not followed; the attributes of an unknown one are 0.
        unsafe { sys::cuPointerGetAttributes(count, what.as_mut_ptr(), places.as_mut_ptr(), at) }
            .result()
            .map_err(tried("looking an address up"))?;
        Ok(known)
    }
}

/// Bytes at an address that somebody else allocated, for work on a stream.
///
/// NULL, memory of the host or of another device, and more bytes than were allocated are errors.
/// With no bytes the address may be any.
///
/// # Errors
/// [`GpuError::Argument`], [`GpuError::Short`], [`GpuError::Driver`].
///
/// # Safety
/// The memory must live until the work queued with the result is done. Meanwhile nobody else may
/// write it, nor read it if that work writes it, except in the stream's order.
pub unsafe fn borrow(
    stream: &Arc<CudaStream>,
    what: &'static str,
    at: *const c_void,
    bytes: usize,
) -> Result<DeviceMemory<u8>, GpuError> {
    if bytes == 0 {
        // SAFETY: it has no bytes.
        return Ok(unsafe { DeviceMemory::at(0, 0, stream) });
    }
    let expected = "memory of the plan's device";
    let refused = |found: &str| Err(GpuError::argument(what, found, expected));
    let (at, context) = (at.expose_provenance() as CUdeviceptr, stream.context());
    if at == 0 {
        return refused("NULL");
    }
    context.bind_to_thread().map_err(tried("choosing a device"))?;
    let known = PointerInfo::of(at)?;
    if known.kind == 0 || known.kind == CUmemorytype::CU_MEMORYTYPE_HOST as u32 {
        return refused("memory of the host, or none");
    }
    if known.ordinal != context.ordinal() as i32 {
        return refused(&format!("memory of device {}", known.ordinal));
    }
    let found = (known.start + known.bytes as u64).saturating_sub(at) as usize;
    if known.bytes > 0 {
        GpuError::at_least(what, found, bytes)?;
    }
    // SAFETY: the caller's.
    Ok(unsafe { DeviceMemory::at(at, bytes, stream) })
}

/// A stream of this device's primary context that somebody else made; NULL is the default one.
///
/// # Errors
/// [`GpuError::Argument`] for a stream of another context, [`GpuError::Driver`].
///
/// # Safety
/// It is a stream, and lives as long as the result and everything made with it.
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
            let (found, expected) = ("one of another context", "one of the primary context");
            return Err(GpuError::argument("the stream", found, expected));
        }
    }
    // SAFETY: the caller vouches for its life; its context is this one.
    Ok(unsafe { context.wrap_borrowed_stream(stream) })
}

/// Runs `body` and restores the thread's current context, because programs that chose a device
/// expect it.
pub fn keeping_context<R>(body: impl FnOnce() -> R) -> R {
    struct Back(CUcontext);
    impl Drop for Back {
        fn drop(&mut self) {
            // SAFETY: it was this thread's before. A failure cannot be reported.
            let _ = unsafe { sys::cuCtxSetCurrent(self.0) };
        }
    }
    let mut found = MaybeUninit::uninit();
    // SAFETY: the driver is present; the call writes one handle, unless it fails.
    let back = super::driver::driver_is_present().then(|| unsafe {
        sys::cuCtxGetCurrent(found.as_mut_ptr()).result().ok().map(|()| Back(found.assume_init()))
    });
    let result = body();
    drop(back);
    result
}
