//! Options for where and in which precision a plan computes, which Rust has as types and drafts.

use super::declare::define_options;
use super::device_choice::DeviceChoice;
use fft_core::{GpuTransport, Precision};

define_options! {
    /// Where a plan computes, and in what precision.
    ///
    /// Programs in Rust choose this by types and by drafts: the numbers of
    /// [`Draft::precision`](crate::Draft), the threads of
    /// [`Draft::threads`](crate::Draft::threads), and the device of `Draft::on`. Other languages
    /// have these as options.
    Placement {
        /// The format of all numbers: f32 or f64.
        Placement precision: Precision = Precision::F64, |precision: Precision| precision;
        /// The threads of this process that share its work. By default a process without a
        /// communicator has as many as THRIFFTY_THREADS or OMP_NUM_THREADS say, or as there are
        /// cores; with a communicator it has one. Plans of a process share their threads. A single
        /// axis has one thread, unless its transform is complex. With MPI, the thread that makes
        /// the plan sends for the others, so that MPI_THREAD_FUNNELED is enough; transposed data is
        /// refused there.
        Placement threads: Option<usize> = None, |threads: usize| Some(threads);
        /// Where the data is: host; the number of a CUDA device, which ranks may share; or cuda,
        /// the host's CUDA devices, which its ranks use in rotation.
        Placement device: DeviceChoice = DeviceChoice::Host, |device: DeviceChoice| device;
        /// How data on devices gets to other ranks. peer_to_peer: it is read from their devices if
        /// possible, and otherwise sent in messages, from the device if MPI or the group can.
        /// gpu_direct, host_staged: all in messages, from the device or from the host.
        Placement transport: GpuTransport = GpuTransport::PeerToPeer, |transport: GpuTransport| transport;
    }
}
