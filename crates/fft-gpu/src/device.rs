//! A CUDA device as plans run on it: what the steps of a recipe become here.
//!
//! Local transforms are cuFFT's; after a reshape they may fetch what they read themselves (`device/fused.rs`), and before the last one store
//! what they make where ranks want it (`device/store.rs`). Any other reshape is a
//! few launches, each for all of its messages: what is in memory that this rank reaches is taken from there, straight to where it
//! belongs; coded messages to ranks that can be reached are made where they read them; others are made in memory of the device, and
//! sent from there or from pages of the host.
//!
//! Everything is queued on one stream. Ranks that reach each other meet once in a reshape, on the host, to know that events
//! have been recorded; their streams wait for the events.

mod binder;
mod energy;
mod epoch;
mod fused_fetch;
mod fused_store;
mod host_codec;
mod host_staged;
mod local_fft;
mod peer_info;
mod reshape;
mod trig;

use std::sync::Arc;

use cudarc::driver::CudaStream;
use fft_core::{
    BindContext, BufferRequirement, Comm, Device, Direction, Energy, Error, MessagePlan,
    NodeMemory, OpBuffers, Operation, Operations, Problem, Recipe, RunContext, Step, Transfer,
    Wire, agree,
};

use crate::base::{Gpu, GpuError, GpuReal, GpuTransport};
use crate::ffi::{
    Block, DeviceMemory, Estate, Event, Gathering, Owned, Peer, Peers, Place, SharedArrays,
    SharedSlice, connect, device_buffer,
};
use binder::Bound;
use energy::Squares;
pub use fused_fetch::{fetches, joined};
use fused_store::Store;
use local_fft::{Group, Local};
use peer_info::PeerInfo;
use reshape::Reshape;
pub(crate) use trig::LinesRecord;
use trig::Trig;

/// A CUDA device and a stream, for one plan.
pub struct Cuda<T> {
    gpu: Gpu,
    stream: Arc<CudaStream>,
    rank: usize,
    /// Where something may be lost.
    squares: Option<Squares<T>>,
    /// The work area of transforms, and the bytes it must have.
    area: Option<Owned<u8>>,
    area_bytes: usize,
    /// How data is to get to other ranks, and how it does.
    wanted: GpuTransport,
    taken: GpuTransport,
    /// Reshapes that are done by the transforms behind them, in each direction, and whether the last is by those before it.
    fetched: [usize; 2],
    stores: [bool; 2],
    /// Bytes of the window, and of memory for messages to ranks that are not reached, out and in.
    window: usize,
    staged: [usize; 2],
    meeting: Option<Meeting>,
    staging: [Option<Arc<Block>>; 2],
    /// For copies to and from the host, beside what is made; and when what came has been read.
    copies: Arc<CudaStream>,
    read: Event,
    failed: Result<(), Error>,
    /// Whether something of this run is only known when the device has come so far.
    needs_sync: bool,
    done: Event,
}

/// The other ranks.
struct Meeting {
    /// A duplicate, for what operations prepare together.
    comm: Box<dyn Comm>,
    peers: Peers,
    /// When the plan's memory is made.
    near: Vec<Option<Peer>>,
    /// Arrays of callers.
    shared_arrays: SharedArrays,
    estate: Option<Arc<Estate>>,
    peer_info: Option<PeerInfo>,
}

/// A plan's own memory on a device.
pub struct CudaWork<T> {
    buffers: [Owned<T>; 2],
}

/// A bound step on a device.
pub struct CudaOp<T>(Op<T>);

enum Op<T> {
    Local(Box<Local<T>>),
    Trig(Box<Trig<T>>),
    Reshape(Box<Reshape<T>>),
    /// Out of one place, axes the other way around, to another.
    Fetch(Box<Gathering>),
    /// Transforms and the reshape behind them, and perhaps the one before.
    Store(Box<Store>),
}

impl<T: GpuReal> Cuda<T> {
    /// A device for one plan, which queues everything on this stream.
    ///
    /// # Errors
    /// [`GpuError::Driver`].
    pub fn new(gpu: &Gpu, stream: Arc<CudaStream>) -> Result<Self, GpuError> {
        let done = Event::new(gpu.context())?;
        Ok(Self {
            gpu: gpu.clone(),
            stream,
            rank: 0,
            squares: None,
            area: None,
            area_bytes: 0,
            wanted: GpuTransport::default(),
            taken: GpuTransport::default(),
            fetched: [0; 2],
            stores: [false; 2],
            window: 0,
            staged: [0; 2],
            meeting: None,
            staging: [None, None],
            copies: gpu.new_stream()?,
            read: Event::new(gpu.context())?,
            failed: Ok(()),
            needs_sync: false,
            done,
        })
    }

    /// Says how data is to get to other ranks: the same on all of them.
    pub fn transport(mut self, wanted: GpuTransport) -> Self {
        self.wanted = wanted;
        self
    }

    /// How data gets to the ranks that are hardest to reach: known once a plan is made.
    pub fn taken(&self) -> GpuTransport {
        self.taken
    }

    /// Of this rank's reshapes in a direction, how many take no pass, as the transforms behind them fetch what they read: known once a
    /// plan is made.
    pub fn fetched(&self, direction: Direction) -> usize {
        self.fetched[direction as usize]
    }

    /// Whether a direction's last reshape takes no pass, as the transforms before it store what they make where ranks want it: known once a
    /// plan is made.
    pub fn stores(&self, direction: Direction) -> bool {
        self.stores[direction as usize]
    }

    /// The stream.
    pub fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    /// Remembers the first failure of what is queued.
    fn record_error(&mut self, result: Result<(), GpuError>) {
        let (rank, failed) = (self.rank, &mut self.failed);
        if failed.is_ok() {
            *failed = result.map_err(|why| why.on(rank));
        }
    }

    /// Waits for all that has been queued, if the host must know something of that.
    fn synchronize(&mut self) {
        if std::mem::take(&mut self.needs_sync) {
            let waited = self.done.record(&self.stream).and_then(|()| self.done.wait());
            self.record_error(waited);
        }
    }

    fn stream_and_area(&mut self) -> (&Arc<CudaStream>, &mut DeviceMemory<u8>) {
        let area = self.area.as_mut().expect("made with the plan's memory");
        (&self.stream, area.memory_mut())
    }

    fn meeting(&self) -> &Meeting {
        self.meeting.as_ref().expect("ranks meet first")
    }

    /// Whether ranks see all memory of each other that data is in.
    fn sees_all(&self, problem: &Problem) -> bool {
        self.meeting().peers.exposes_all || problem.options.shared_arrays
    }

    /// Zeros for input or output that the other ranks of the host see, used on the plan's stream. Collective; ranks may ask for different
    /// lengths. The memory stays as long as the plan, and as long as the slice.
    ///
    /// # Errors
    /// On every rank when one does not get it, or cannot map another's.
    ///
    /// # Panics
    /// If no plan has been made.
    pub fn allocate(&mut self, bytes: usize) -> Result<SharedSlice, Error> {
        let (gpu, stream, rank) = (&self.gpu, &self.stream, self.rank);
        let Meeting { comm, peers, shared_arrays, .. } =
            self.meeting.as_mut().expect("ranks meet first");
        let made = SharedSlice::zeros(stream, bytes).map_err(|why| why.on(rank));
        let made = agree(comm.as_ref(), made)?;
        let maps = peers.lend(gpu, comm.as_ref(), made.block())?;
        shared_arrays.add(made.block().clone(), maps);
        Ok(made)
    }

    /// Whether memory is where other ranks see it, as far as there are any who look.
    pub fn sees(&self, memory: &DeviceMemory<T>) -> bool {
        let Meeting { peers, shared_arrays, .. } = self.meeting();
        peers.exposes_all || shared_arrays.number(memory.address()).is_some()
    }

    /// Transforms become an operation.
    fn local(&mut self, group: &Group) -> Result<Op<T>, Error> {
        let made = match group.is_trig() {
            true => {
                Trig::new(&self.gpu, group).map(|(trig, area)| (Op::Trig(Box::new(trig)), area))
            }
            false => {
                Local::new(self, group).map(|(local, area)| (Op::Local(Box::new(local)), area))
            }
        };
        let (op, area) = made.map_err(|why| why.on(self.rank))?;
        self.area_bytes = self.area_bytes.max(area);
        Ok(op)
    }
}

impl<T: GpuReal> Device<T> for Cuda<T> {
    type Memory = DeviceMemory<T>;
    type Work = CudaWork<T>;
    type Op = CudaOp<T>;

    fn connect(
        &mut self,
        recipe: &Recipe,
        comm: &dyn Comm,
    ) -> Result<Option<Box<dyn NodeMemory>>, Error> {
        self.rank = comm.rank();
        let lossy = |step: &Step| matches!(step, Step::Reshape { wire, .. } if wire.is_lossy());
        if recipe.steps().iter().any(lossy) {
            let squares = Squares::new(&self.gpu).map_err(|why| why.on(self.rank));
            self.squares = Some(agree(comm, squares)?);
        }
        let lossless = |step: &Step| matches!(step, Step::Reshape { wire: Wire::Lossless, .. });
        let lossless = recipe.steps().iter().any(lossless);
        let wanted = match self.wanted {
            // What is to be coded even between ranks that reach each other is coded by the host.
            GpuTransport::PeerToPeer if lossless && recipe.problem().hosts.is_empty() => {
                GpuTransport::HostStaged
            }
            wanted => wanted,
        };
        let own = agree(comm, comm.dup())?;
        let size = comm.size();
        let (peers, mut node_memory) = match wanted {
            GpuTransport::PeerToPeer => {
                (connect(&self.gpu, comm)?, agree(comm, comm.node_memory())?)
            }
            _ => (Peers::apart(self.rank, size), None),
        };
        self.taken = match wanted {
            _ if peers.all => GpuTransport::PeerToPeer,
            GpuTransport::HostStaged => GpuTransport::HostStaged,
            _ if lossless => GpuTransport::HostStaged,
            _ => {
                let like = Block::new(self.gpu.context(), 1).map_err(|why| why.on(self.rank));
                let like = device_buffer(&Arc::new(agree(comm, like)?), self.rank);
                if comm.device().map_or(Ok(false), |device| device.reaches(&like))? {
                    GpuTransport::GpuDirect
                } else {
                    GpuTransport::HostStaged
                }
            }
        };
        let peer_info = node_memory
            .as_mut()
            .map(|node_memory| PeerInfo::new(node_memory.as_mut(), size))
            .transpose();
        let peer_info = agree(comm, peer_info)?;
        let (near, shared_arrays, estate) = (Vec::new(), SharedArrays::default(), None);
        self.meeting = Some(Meeting { comm: own, peers, near, shared_arrays, estate, peer_info });
        Ok(node_memory)
    }

    fn bind(
        &mut self,
        recipe: &Recipe,
        site: BindContext<'_>,
    ) -> Result<Operations<CudaOp<T>>, Error> {
        let legs = recipe.legs(site.direction);
        let mut bound = agree(site.comm, Bound::of(self, recipe, &legs, site.direction))?;
        let way = site.direction as usize;
        self.stores[way] = bound.synchronize(site.comm)?;
        let Bound { ops, sizes, fetched, .. } = bound;
        self.fetched[way] = fetched;
        Ok(Operations { ops, sizes, exposes_all: self.sees_all(recipe.problem()) })
    }

    fn work(
        &mut self,
        reals: [usize; 2],
        comm: &dyn Comm,
        _commons: Option<&mut dyn NodeMemory>,
    ) -> Result<CudaWork<T>, Error> {
        let (gpu, stream, rank) = (&self.gpu, &self.stream, self.rank);
        let foreign = self.meeting().peers.foreign();
        let make = || -> Result<_, GpuError> {
            let [a, b] = reals.map(|reals| reals * size_of::<T>());
            let estate = Arc::new(Estate::new(gpu, [a, b, self.window], foreign)?);
            let area = Arc::new(Block::new(gpu.context(), self.area_bytes)?);
            // Where some rank is not reached all have both, as windows take all ranks.
            let all = self.meeting().peers.all;
            let [out, come] = self.staged.map(|bytes| {
                let some = (!all).then(|| Block::new(gpu.context(), bytes));
                some.transpose().map(|block| block.map(Arc::new))
            });
            Ok((estate, Owned::new(area, stream), [out?, come?]))
        };
        let (estate, area, staging) = agree(comm, make().map_err(|why| why.on(rank)))?;
        (self.area, self.staging) = (Some(area), staging);
        let buffers = [0, 1].map(|which| Owned::new(estate.blocks[which].clone(), stream));
        let meeting = self.meeting.as_mut().expect("ranks meet first");
        meeting.near = meeting.peers.share(gpu, comm, &estate)?;
        meeting.estate = Some(estate);
        Ok(CudaWork { buffers })
    }

    fn places<'a>(
        work: &'a mut CudaWork<T>,
        output: &'a mut DeviceMemory<T>,
    ) -> [&'a mut DeviceMemory<T>; 3] {
        let [a, b] = &mut work.buffers;
        [output, a.memory_mut(), b.memory_mut()]
    }

    fn held(&self) -> usize {
        let squares = self.squares.as_ref().map_or(0, Squares::memory);
        self.area_bytes + self.window + self.staged.iter().sum::<usize>() + squares
    }

    fn copy(&mut self, all: &Transfer, src: &DeviceMemory<T>, dst: &mut DeviceMemory<T>) {
        let reals = all.elements();
        let copied = self
            .stream
            .memcpy_dtod(&*src.part(0..reals), &mut *dst.part_mut(0..reals))
            .map_err(crate::ffi::tried("copying"));
        self.record_error(copied);
    }

    fn energy(
        &mut self,
        parts: &[Transfer],
        width: usize,
        src: &DeviceMemory<T>,
        _sums: &mut [Energy],
    ) {
        self.needs_sync = true;
        let squares = self.squares.as_mut().expect("made where something may be lost");
        let queued = squares.add(&self.stream, parts, width, src);
        self.record_error(queued);
    }

    fn energy_queued(&mut self, sums: &mut [Energy]) {
        self.synchronize();
        let squares = self.squares.as_ref().expect("made where something may be lost");
        match self.failed {
            Ok(()) => squares.read(sums),
            // All ranks learn that there is no norm, and the reason in the end.
            Err(_) => sums[0].0[1] = f64::NAN,
        }
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.synchronize();
        std::mem::replace(&mut self.failed, Ok(()))
    }
}

impl<T: GpuReal> CudaOp<T> {
    /// Whether it is transforms that fetch what they read.
    fn gathers(&self) -> bool {
        matches!(self.0, Op::Fetch(_)) || self.reshape().is_some_and(Reshape::is_fused)
    }

    fn reshape(&self) -> Option<&Reshape<T>> {
        match &self.0 {
            Op::Reshape(reshape) => Some(reshape),
            _ => None,
        }
    }
}

impl<T: GpuReal> Operation<T, Cuda<T>> for CudaOp<T> {
    fn buffer_requirement(&self) -> BufferRequirement {
        match &self.0 {
            Op::Local(local) => local.buffer_requirement(),
            Op::Trig(_) => BufferRequirement::Either,
            Op::Fetch(_) => BufferRequirement::OutOfPlace,
            // Others write the second place, too: it is the output, which all see where there is such an operation (`sees_all`).
            Op::Store(_) => BufferRequirement::OutOfPlaceExposed,
            Op::Reshape(reshape) => reshape.buffer_requirement(),
        }
    }

    fn loss(&self) -> Option<fft_core::Loss> {
        self.reshape().and_then(Reshape::loss)
    }

    fn set_step(&mut self, step: f64, finer: Option<f64>) {
        if let Op::Reshape(reshape) = &mut self.0 {
            reshape.set_step(step, finer);
        }
    }

    fn squared_error(&self) -> f64 {
        self.reshape().map_or(0.0, Reshape::squared_error)
    }

    fn damage(&self) -> Result<(), Error> {
        self.reshape().map_or(Ok(()), Reshape::damage)
    }

    fn message_plan(&self) -> Option<&MessagePlan> {
        self.reshape().and_then(Reshape::message_plan)
    }

    fn reserve(&mut self, tools: &mut RunContext<Cuda<T>>) -> Result<(), Error> {
        match &mut self.0 {
            Op::Local(_) | Op::Trig(_) | Op::Fetch(_) | Op::Store(_) => Ok(()),
            Op::Reshape(reshape) => reshape.reserve(tools),
        }
    }

    fn memory(&self) -> usize {
        match &self.0 {
            Op::Local(local) => local.memory(),
            Op::Trig(_) => 0,
            Op::Fetch(plan) => plan.memory(),
            Op::Store(store) => store.memory(),
            Op::Reshape(reshape) => reshape.memory(),
        }
    }

    fn run(
        &mut self,
        tools: &mut RunContext<Cuda<T>>,
        buffers: OpBuffers<'_, DeviceMemory<T>>,
    ) -> Result<(), Error> {
        let OpBuffers { src, dst, .. } = buffers;
        match &mut self.0 {
            Op::Local(local) => local.run(&mut tools.device, src, dst),
            Op::Trig(trig) => {
                let (stream, area) = tools.device.stream_and_area();
                let queued = trig.run(stream, area, src, dst);
                tools.device.record_error(queued);
                Ok(())
            }
            Op::Fetch(plan) => {
                let src = src.expect("from one place to another");
                let (stream, area) = tools.device.stream_and_area();
                let queued = plan.run(stream, &|_| Place::own(src), dst, area);
                tools.device.record_error(queued);
                Ok(())
            }
            Op::Store(store) => store.run(tools, src.expect("from one place to another"), dst),
            Op::Reshape(reshape) => {
                reshape.run(tools, src.expect("a reshape has a source and a destination"), dst)
            }
        }
    }
}

impl<T> Drop for Cuda<T> {
    fn drop(&mut self) {
        let Some(meeting) = &mut self.meeting else { return };
        let mapped = meeting.near.iter().flatten().any(|peer| matches!(peer, Peer::Mapped(_)));
        let mapped = mapped || meeting.shared_arrays.maps();
        meeting.near.clear();
        meeting.shared_arrays.unmap();
        if mapped {
            // Memory goes when no other process has it mapped any more. A rank that has gone maps nothing.
            let _ = meeting.comm.barrier();
        }
    }
}
