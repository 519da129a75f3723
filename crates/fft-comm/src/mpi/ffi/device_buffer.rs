//! Messages in memory of devices.

use std::ffi::{c_char, c_int, c_void};
use std::time::{Duration, Instant};

use fft_core::{DeviceBuffer, Error};
use mpi::ffi;

use super::calls::{TAG, checked};
use super::raw_comm::RawComm;
use crate::mpi::lines::count;

/// The longest time that messages of a trial may take.
const PATIENCE: Duration = Duration::from_secs(10);

#[cfg(target_os = "linux")]
unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// Whether the library claims to accept addresses of CUDA devices (`MPIX_Query_cuda_support`). Open
/// MPI and MPICH have this function, other libraries and versions do not. A library without support
/// may crash on such an address.
#[cfg(target_os = "linux")]
pub(in crate::mpi) fn takes_devices() -> bool {
    // SAFETY: a null handle stands for all loaded libraries; the name ends with a zero.
    let found = unsafe { dlsym(std::ptr::null_mut(), c"MPIX_Query_cuda_support".as_ptr()) };
    if found.is_null() {
        return false;
    }
    // SAFETY: it is declared so in `mpi-ext.h` of Open MPI and `mpi.h` of MPICH.
    let query = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn() -> c_int>(found) };
    query() == 1
}

/// On other systems the library cannot be asked.
#[cfg(not(target_os = "linux"))]
pub(in crate::mpi) fn takes_devices() -> bool {
    false
}

impl RawComm {
    /// Sends the first bytes of one buffer to the next rank, and receives as many into the other.
    /// Collective.
    pub(in crate::mpi) fn trial(
        &self,
        memory: &[DeviceBuffer; 2],
        bytes: usize,
    ) -> Result<(), Error> {
        let (next, before) = ((self.rank + 1) % self.size, (self.rank + self.size - 1) % self.size);
        let n = self.all(count(self.rank, "MPI_Isend", bytes))?;
        let [from, into] = memory.each_ref().map(|memory| memory.part(0..bytes).address());
        // SAFETY: reading a constant of the library.
        let mut requests = unsafe { [ffi::RSMPI_REQUEST_NULL; 2] };
        let post = |requests: &mut [ffi::MPI_Request; 2]| {
            self.ready("MPI_Irecv")?;
            // SAFETY: both buffers have the bytes, and are kept until the operations are complete,
            // or leaked.
            unsafe {
                let ([receive, send], byte) = (requests, ffi::RSMPI_UINT8_T);
                let (into, from) = (into.cast(), from.cast_const().cast());
                let (before, next) = (before as c_int, next as c_int);
                let code = ffi::MPI_Irecv(into, n, byte, before, TAG, self.handle, receive);
                checked(self.rank, "MPI_Irecv", code)?;
                let code = ffi::MPI_Isend(from, n, byte, next, TAG, self.handle, send);
                checked(self.rank, "MPI_Isend", code)
            }
        };
        let posted = self.all(post(&mut requests));
        let done = posted.and_then(|()| self.complete(&mut requests));
        if done.is_err() {
            std::mem::forget(memory.clone());
        }
        done
    }

    /// Waits until both are complete, for a limited time.
    fn complete(&self, requests: &mut [ffi::MPI_Request; 2]) -> Result<(), Error> {
        let (start, call) = (Instant::now(), "MPI_Testall");
        while start.elapsed() < PATIENCE {
            let mut flag = 0;
            // SAFETY: the requests are active or null; the result is an int, and statuses are
            // ignored.
            let code = unsafe {
                let requests = requests.as_mut_ptr();
                ffi::MPI_Testall(2, requests, &mut flag, ffi::RSMPI_STATUSES_IGNORE)
            };
            checked(self.rank, call, code)?;
            if flag != 0 {
                return Ok(());
            }
            std::thread::yield_now();
        }
        let text = format!("messages of a trial did not come within {} s", PATIENCE.as_secs());
        Err(Error::Transport { rank: self.rank, call, text })
    }
}
