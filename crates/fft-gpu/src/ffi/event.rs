//! Events: points in the order of a stream, which other streams, processes and the host await.

use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::sys;
use cudarc::driver::{CudaContext, CudaStream};

use crate::base::{GpuError, tried};

/// An event.
pub(crate) struct CudaEvent {
    event: sys::CUevent,
    context: Arc<CudaContext>,
}

// SAFETY: the driver's calls on events may come from any thread.
unsafe impl Send for CudaEvent {}
// SAFETY: as above.
unsafe impl Sync for CudaEvent {}

impl CudaEvent {
    /// An event of this process, without a time.
    pub(crate) fn new(context: &Arc<CudaContext>) -> Result<Self, GpuError> {
        Self::with(context, sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32)
    }

    /// An event of this process that keeps the time at which the device reached it.
    pub(crate) fn timed(context: &Arc<CudaContext>) -> Result<Self, GpuError> {
        Self::with(context, sys::CUevent_flags::CU_EVENT_DEFAULT as u32)
    }

    /// An event that other processes can open. Other devices of this process cannot wait for it:
    /// the driver (580) crashes.
    pub(crate) fn interprocess(context: &Arc<CudaContext>) -> Result<Self, GpuError> {
        let flags = [
            sys::CUevent_flags::CU_EVENT_INTERPROCESS,
            sys::CUevent_flags::CU_EVENT_DISABLE_TIMING,
        ];
        Self::with(context, flags[0] as u32 | flags[1] as u32)
    }

    fn with(context: &Arc<CudaContext>, flags: u32) -> Result<Self, GpuError> {
        let tried = tried("making an event");
        context.bind_to_thread().map_err(&tried)?;
        let mut event = std::ptr::null_mut();
        // SAFETY: the context is current, and the call writes one handle.
        unsafe { sys::cuEventCreate(&mut event, flags) }.result().map_err(&tried)?;
        Ok(Self { event, context: context.clone() })
    }

    /// The time from this event to a later one. Both are timed, and have been waited for.
    pub(crate) fn until(&self, later: &Self) -> Result<Duration, GpuError> {
        let tried = tried("reading the time between two events");
        self.context.bind_to_thread().map_err(&tried)?;
        let mut milliseconds = 0.0_f32;
        // SAFETY: both live, and the call writes one number.
        unsafe { sys::cuEventElapsedTime_v2(&mut milliseconds, self.event, later.event) }
            .result()
            .map_err(&tried)?;
        Ok(Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) * 1e-3))
    }

    /// Records the event after everything that is queued on a stream.
    pub(crate) fn record(&self, stream: &CudaStream) -> Result<(), GpuError> {
        let tried = tried("recording an event");
        self.context.bind_to_thread().map_err(&tried)?;
        // SAFETY: both live.
        unsafe { sys::cuEventRecord(self.event, stream.cu_stream()) }.result().map_err(&tried)
    }

    /// Makes a stream wait for the last record.
    pub(crate) fn hold(&self, stream: &CudaStream) -> Result<(), GpuError> {
        let tried = tried("waiting for an event on a stream");
        stream.context().bind_to_thread().map_err(&tried)?;
        // SAFETY: both live.
        unsafe { sys::cuStreamWaitEvent(stream.cu_stream(), self.event, 0) }
            .result()
            .map_err(&tried)
    }

    /// Waits for the last record.
    pub(crate) fn wait(&self) -> Result<(), GpuError> {
        let tried = tried("waiting for an event");
        self.context.bind_to_thread().map_err(&tried)?;
        // SAFETY: it lives.
        unsafe { sys::cuEventSynchronize(self.event) }.result().map_err(&tried)
    }

    /// The handle that another process opens it by.
    pub(super) fn handle(&self) -> Result<[u8; 64], GpuError> {
        let mut handle = sys::CUipcEventHandle { reserved: [0; 64] };
        // SAFETY: it lives and is interprocess; the call writes one handle.
        unsafe { sys::cuIpcGetEventHandle(&mut handle, self.event) }
            .result()
            .map_err(tried("exporting an event to other processes"))?;
        Ok(handle.reserved.map(|byte| byte as u8))
    }

    /// Opens another process' event.
    pub(super) fn open(context: &Arc<CudaContext>, handle: [u8; 64]) -> Result<Self, GpuError> {
        let tried = tried("opening an event of another process");
        context.bind_to_thread().map_err(&tried)?;
        let handle = sys::CUipcEventHandle { reserved: handle.map(|byte| byte as _) };
        let mut event = std::ptr::null_mut();
        // SAFETY: the context is current, and the call writes one handle; it refuses a bad one.
        unsafe { sys::cuIpcOpenEventHandle(&mut event, handle) }.result().map_err(&tried)?;
        Ok(Self { event, context: context.clone() })
    }
}

impl Drop for CudaEvent {
    fn drop(&mut self) {
        // SAFETY: it is destroyed once; the driver keeps it while something waits for it. A failure
        // cannot be reported.
        let _ =
            self.context.bind_to_thread().map(|()| unsafe { sys::cuEventDestroy_v2(self.event) });
    }
}
