//! The device of one plan.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use cudarc::driver::CudaStream;
use fft_core::{DeviceCapabilities, Error, Problem, agree};

use super::connections::Connections;
use super::energy::Squares;
use crate::base::{DeviceQueue, Gpu, GpuError, GpuTransport};
use crate::ffi::{Block, CudaEvent, DeviceMemory, Owned, SharedSlice};

/// A CUDA device and a stream, for one plan.
pub struct Cuda {
    pub(super) gpu: Gpu,
    pub(super) stream: Arc<CudaStream>,
    pub(super) rank: usize,
    /// The sums of squares, if messages may be lossy.
    pub(super) squares: Option<Squares>,
    /// The work area of transforms, and the bytes that it needs.
    pub(super) area: Option<Owned<u8>>,
    pub(super) area_bytes: usize,
    /// The transport that was requested, and the one in use.
    pub(super) wanted: GpuTransport,
    pub(super) taken: GpuTransport,
    /// Bytes of the window, and of memory for staged messages, out and in.
    pub(super) window_bytes: usize,
    pub(super) staging_bytes: [usize; 2],
    pub(super) connections: Option<Connections>,
    pub(super) staging: [Option<Arc<Block>>; 2],
    /// A stream for copies to and from the host, and the event after staged messages were unpacked.
    pub(super) copies: Arc<CudaStream>,
    pub(super) unpacked: CudaEvent,
    pub(super) failed: Result<(), Error>,
    /// Whether the host must wait for the stream at the end of this run.
    pub(super) needs_sync: bool,
    pub(super) done: CudaEvent,
    /// The most chunks of an exchange, the same on all ranks.
    pub(super) chunks: usize,
    /// Recorded before transforms in chunks; and the addresses that they read, for the reshape
    /// after them.
    pub(super) begun: Arc<CudaEvent>,
    pub(super) chunks_of: Option<Range<u64>>,
    /// Timed events between the operations of a traced run, and how many this run has recorded.
    marks: Vec<CudaEvent>,
    marked: usize,
}

impl Cuda {
    /// A device for one plan, which queues everything on this stream. The transport is the same on
    /// all ranks.
    ///
    /// # Errors
    /// [`GpuError::Driver`].
    pub fn new(queue: &DeviceQueue) -> Result<Self, GpuError> {
        let DeviceQueue { gpu, stream, transport } = queue.clone();
        let done = CudaEvent::new(gpu.context())?;
        Ok(Self {
            rank: 0,
            squares: None,
            area: None,
            area_bytes: 0,
            wanted: transport,
            taken: GpuTransport::default(),
            window_bytes: 0,
            staging_bytes: [0; 2],
            connections: None,
            staging: [None, None],
            copies: gpu.new_stream()?,
            unpacked: CudaEvent::new(gpu.context())?,
            failed: Ok(()),
            needs_sync: false,
            done,
            chunks: 0,
            begun: Arc::new(CudaEvent::new(gpu.context())?),
            chunks_of: None,
            marks: Vec::new(),
            marked: 0,
            gpu,
            stream,
        })
    }

    /// The transport to the ranks that are hardest to reach; available once a plan is made.
    pub fn taken(&self) -> GpuTransport {
        self.taken
    }

    /// The stream.
    pub fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    /// Keeps the first failure of queued work.
    pub(super) fn record_error(&mut self, result: Result<(), GpuError>) {
        let (rank, failed) = (self.rank, &mut self.failed);
        if failed.is_ok() {
            *failed = result.map_err(|why| why.on(rank));
        }
    }

    /// Waits for the stream, if the host needs an outcome.
    pub(super) fn synchronize(&mut self) {
        if std::mem::take(&mut self.needs_sync) {
            let waited = self.done.record(&self.stream).and_then(|()| self.done.wait());
            self.record_error(waited);
        }
    }

    /// Waits for the stream if the host needs an outcome, and takes the first failure.
    pub(super) fn take_failure(&mut self) -> Result<(), Error> {
        self.synchronize();
        std::mem::replace(&mut self.failed, Ok(()))
    }

    /// Records one more mark on the stream.
    pub(super) fn record_mark(&mut self) -> Result<(), GpuError> {
        if self.marked == self.marks.len() {
            self.marks.push(CudaEvent::timed(self.gpu.context())?);
        }
        self.marks[self.marked].record(&self.stream)?;
        self.marked += 1;
        Ok(())
    }

    /// When the device reached the marks of this run. The clock of the host is read when the last
    /// mark has been waited for; the others precede it by times that the device has measured.
    pub(super) fn take_marked_times(&mut self) -> Result<Vec<Instant>, GpuError> {
        let marks = &self.marks[..std::mem::take(&mut self.marked)];
        let Some(last) = marks.last() else { return Ok(Vec::new()) };
        last.wait()?;
        let now = Instant::now();
        marks.iter().map(|mark| Ok(now - mark.until(last)?)).collect()
    }

    pub(super) fn stream_and_area(&mut self) -> (&Arc<CudaStream>, &mut DeviceMemory<u8>) {
        let area = self.area.as_mut().expect("made with the plan's memory");
        (&self.stream, area.memory_mut())
    }

    pub(super) fn connections(&self) -> &Connections {
        self.connections.as_ref().expect("ranks connect first")
    }

    /// What the devices of all ranks can do.
    pub(super) fn capabilities(&self) -> &DeviceCapabilities {
        &self.connections().capabilities
    }

    pub(super) fn capabilities_mut(&mut self) -> &mut DeviceCapabilities {
        &mut self.connections.as_mut().expect("ranks connect first").capabilities
    }

    /// Whether ranks of the host can access all of each other's memory with data.
    pub(super) fn sees_all(&self, problem: &Problem) -> bool {
        self.connections().peers.exposes_all || problem.options.shared_arrays
    }

    /// Zero bytes for input or output that the ranks of the host access. Collective.
    ///
    /// Ranks may request different lengths. The memory lives as long as plan and slice.
    ///
    /// # Errors
    /// On every rank when one does not get it, or cannot map another's.
    ///
    /// # Panics
    /// If no plan has been made.
    pub fn allocate(&mut self, bytes: usize) -> Result<SharedSlice, Error> {
        let (gpu, stream, rank) = (&self.gpu, &self.stream, self.rank);
        let Connections { comm, peers, shared_arrays, .. } =
            self.connections.as_mut().expect("ranks connect first");
        let made = SharedSlice::zeros(stream, bytes).map_err(|why| why.on(rank));
        let made = agree(comm.as_ref(), made)?;
        let maps = peers.map_blocks(gpu, comm.as_ref(), made.block())?;
        shared_arrays.add(made.block().clone(), maps);
        Ok(made)
    }

    /// Whether all ranks of the host that need this memory can access it.
    pub fn sees<T>(&self, memory: &DeviceMemory<T>) -> bool {
        let Connections { peers, shared_arrays, .. } = self.connections();
        peers.exposes_all || shared_arrays.number(memory.address()).is_some()
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        if let Some(connections) = &mut self.connections {
            connections.leave();
        }
    }
}
