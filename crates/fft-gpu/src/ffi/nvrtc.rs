//! Kernels that are compiled when a plan is made.

use cudarc::nvrtc::{self, CompileError, CompileOptions, Ptx};

use crate::base::GpuError;

/// Whether NVIDIA's run-time compiler is on this machine.
pub(crate) fn compiles() -> bool {
    // SAFETY: it only opens the library by its usual names.
    unsafe { nvrtc::sys::is_culib_present() }
}

/// Compiles a source for this compute capability. [`compiles`] has said that it can.
pub(crate) fn compiled(source: &str, (major, minor): (i32, i32)) -> Result<Ptx, GpuError> {
    let options = vec![
        "--std=c++17".into(),
        "--device-as-default-execution-space".into(),
        format!("--gpu-architecture=compute_{major}{minor}"),
    ];
    let options = CompileOptions { options, ..CompileOptions::default() };
    nvrtc::compile_ptx_with_opts(source, options).map_err(|why| {
        let why = match why {
            CompileError::CompileError { log, .. } => log.to_string_lossy().into_owned(),
            why => why.to_string(),
        };
        GpuError::Driver { what: "compiling a kernel", why }
    })
}
