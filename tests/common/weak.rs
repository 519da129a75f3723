//! A communicator whose windows and messages fail on one rank.

use std::cell::{Cell, RefCell};

use fft_core::{
    Arrival, DeviceComm, Epoch, Expose, FailureDetector, Flight, MessageSlots, NodeMemory,
    OneSided, Part, Parts, RmaWindow, SLOT_ALIGN, SharedMemory, SharesMemory, Slot, SlotParts,
    SlotSpec, UsedBytes, Work, WritePartition,
};
use thriffty::planning::{Epochs, Reduce};
use thriffty::{Comm, Error};

/// The fault of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Nothing,
    /// It cannot get a window.
    Window,
    /// It cannot make the memory of one.
    Make,
    /// It puts data beyond the end of others' memory.
    Put,
    /// It leaves the epoch with an error, having put nothing.
    Early,
    /// Its messages between pairs are a byte shorter than they should be.
    Short,
    /// It makes less room for messages than these take.
    Narrow,
    /// It gets no memory for the messages that it is to send.
    Slots,
    /// It has none for messages when it reserves it.
    Reserve,
    /// It cannot look into the memory of its host.
    NodeMemory,
    /// It gets no memory that others can access.
    Room,
    /// No fault: ranks can access only memory that was allocated for that, like processes.
    Apart,
}

/// A communicator with a fault, which its duplicates have too. Faults come after the collective
/// part.
pub(crate) struct Weak {
    pub(crate) comm: Box<dyn Comm>,
    pub(crate) fault: Fault,
    /// Objects that others drop when they have learned of the failure, which takes all ranks.
    kept: RefCell<Vec<Box<dyn NodeMemory>>>,
}

impl Weak {
    pub(crate) fn new(comm: &dyn Comm, fault: Fault) -> Result<Self, Error> {
        Ok(Self { comm: comm.dup()?, fault, kept: RefCell::default() })
    }
}

pub(crate) fn failure(rank: usize) -> Error {
    Error::Transport { rank, call: "a call", text: "failed on purpose".into() }
}

/// The error of missing memory, if that is the fault.
fn lacking(fault: Fault, rank: usize) -> Result<(), Error> {
    match fault {
        Fault::Reserve => Err(Error::Memory { rank, bytes: 1 }),
        _ => Ok(()),
    }
}

impl Comm for Weak {
    fn rank(&self) -> usize {
        self.comm.rank()
    }

    fn size(&self) -> usize {
        self.comm.size()
    }

    fn name(&self) -> &'static str {
        self.comm.name()
    }

    fn barrier(&self) -> Result<(), Error> {
        self.comm.barrier()
    }

    fn allgather(&self, mine: &[u8], all: &mut [u8]) -> Result<(), Error> {
        self.comm.allgather(mine, all)
    }

    fn allreduce(&self, how: Reduce, values: &mut [f64]) -> Result<(), Error> {
        self.comm.allreduce(how, values)
    }

    fn alltoallv(&self, send: Parts<'_, &[u8]>, recv: Parts<'_, &mut [u8]>) -> Result<(), Error> {
        let less = |part: &Part| (part.0, part.1.saturating_sub(SLOT_ALIGN));
        let narrow: Vec<_> = recv.parts.iter().map(less).collect();
        let parts = if self.fault == Fault::Narrow { &narrow } else { recv.parts };
        self.comm.alltoallv(send, Parts { parts, ..recv })
    }

    fn reserve_alltoallv(&self, send: &[Part], recv: &[Part]) -> Result<usize, Error> {
        let held = self.comm.reserve_alltoallv(send, recv)?;
        lacking(self.fault, self.rank())?;
        Ok(held)
    }

    fn flight(&self, piece: Option<usize>) -> Result<Box<dyn Flight>, Error> {
        let (rank, fault) = (self.rank(), self.fault);
        Ok(Box::new(WeakFlight { flight: self.comm.flight(piece)?, fault, rank }))
    }

    fn device(&self) -> Option<&dyn DeviceComm> {
        self.comm.device()
    }

    fn dup(&self) -> Result<Box<dyn Comm>, Error> {
        Ok(Box::new(Self::new(self.comm.as_ref(), self.fault)?))
    }

    fn one_sided(&self) -> Option<&dyn OneSided> {
        Some(self)
    }

    fn failure_detector(&self) -> Option<&dyn FailureDetector> {
        self.comm.failure_detector()
    }
}

impl SharesMemory for Weak {
    fn host(&self, rank: usize) -> usize {
        self.comm.host(rank)
    }

    fn node_memory(&self) -> Result<Option<Box<dyn NodeMemory>>, Error> {
        let (rank, fault) = (self.rank(), self.fault);
        let weak =
            |node_memory| Box::new(WeakCommons { node_memory, fault, rank }) as Box<dyn NodeMemory>;
        let node_memory = self.comm.node_memory()?.map(weak);
        match fault {
            Fault::NodeMemory => {
                self.kept.borrow_mut().extend(node_memory);
                Err(failure(rank))
            }
            _ => Ok(node_memory),
        }
    }

    fn message_slots(&self) -> Result<Option<Box<dyn MessageSlots>>, Error> {
        let (rank, fault) = (self.rank(), self.fault);
        let weak = |slots| Box::new(WeakSlots { slots, fault, rank }) as Box<dyn MessageSlots>;
        Ok(self.comm.message_slots()?.map(weak))
    }
}

impl OneSided for Weak {
    fn window(&self) -> Result<Option<Box<dyn RmaWindow>>, Error> {
        let (rank, fault) = (self.rank(), self.fault);
        let puts = self.comm.one_sided().map_or(Ok(None), |one_sided| one_sided.window())?;
        match fault {
            Fault::Window => Err(failure(rank)),
            _ => {
                Ok(puts.map(|puts| Box::new(WeakPuts { puts, fault, rank }) as Box<dyn RmaWindow>))
            }
        }
    }
}

thread_local! {
    /// Passes of this thread across ranks that read other data than they write.
    pub(crate) static HALVED: Cell<usize> = const { Cell::new(0) };
}

struct WeakCommons {
    node_memory: Box<dyn NodeMemory>,
    fault: Fault,
    rank: usize,
}

impl NodeMemory for WeakCommons {
    fn exposes_all(&self) -> bool {
        self.fault != Fault::Apart && self.node_memory.exposes_all()
    }

    fn sees(&self, memory: &[u8]) -> bool {
        self.node_memory.sees(memory)
    }

    fn allocate(&mut self, bytes: usize) -> Result<Box<dyn SharedMemory>, Error> {
        let memory = self.node_memory.allocate(bytes)?;
        match self.fault {
            Fault::Room => Err(Error::Memory { rank: self.rank, bytes }),
            _ => Ok(memory),
        }
    }

    fn register(&mut self, partition: WritePartition) -> Result<usize, Error> {
        if partition.read_bytes(partition.rank()).is_some() {
            HALVED.set(HALVED.get() + 1);
        }
        self.node_memory.register(partition)
    }

    fn sync(&mut self, succeeded: bool) -> Result<bool, Error> {
        self.node_memory.sync(succeeded)
    }

    fn exposure_epoch(&mut self, show: Expose<'_>, work: Work<'_>) -> Result<(), Error> {
        self.node_memory.exposure_epoch(show, work)
    }
}

struct WeakSlots {
    slots: Box<dyn MessageSlots>,
    fault: Fault,
    rank: usize,
}

impl MessageSlots for WeakSlots {
    fn ranks(&self) -> &[usize] {
        self.slots.ranks()
    }

    fn allgather(&self, mine: &[u64]) -> Result<Vec<Vec<u64>>, Error> {
        self.slots.allgather(mine)
    }

    fn reserve(&mut self, slots: &[SlotSpec]) -> Result<usize, Error> {
        let list = self.slots.reserve(slots)?;
        match self.fault {
            Fault::Room => Err(Error::Memory { rank: self.rank, bytes: 1 }),
            _ => Ok(list),
        }
    }

    fn progress(&self) {
        self.slots.progress();
    }

    fn begin(&mut self, list: usize) -> Result<(), Error> {
        self.slots.begin(list)
    }

    fn is_free(&self) -> bool {
        self.slots.is_free()
    }

    fn is_gone(&self, rank: usize) -> bool {
        self.slots.is_gone(rank)
    }

    fn write(&mut self, slot: usize, write: &mut dyn FnMut(SlotParts<'_>) -> usize) {
        self.slots.write(slot, write);
    }

    fn is_written(&self, slot: usize) -> bool {
        self.slots.is_written(slot)
    }

    fn edit(&mut self, slot: usize, edit: &mut dyn FnMut(&mut [u8], &UsedBytes<'_>)) {
        self.slots.edit(slot, edit);
    }

    fn lend(&mut self, slot: usize, bytes: usize) -> Slot {
        self.slots.lend(slot, bytes)
    }

    fn copy(&mut self, slot: usize, message: &Slot) -> Result<(), Error> {
        self.slots.copy(slot, message)
    }

    fn publish(&mut self, slot: usize, bytes: usize) {
        self.slots.publish(slot, bytes);
    }

    fn message(&self, slot: usize) -> Option<&[u8]> {
        self.slots.message(slot)
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.slots.finish()
    }

    fn memory(&self) -> usize {
        self.slots.memory()
    }
}

struct WeakFlight {
    flight: Box<dyn Flight>,
    fault: Fault,
    rank: usize,
}

impl Flight for WeakFlight {
    fn reserve(&mut self, sends: &[usize], recvs: &[usize]) -> Result<(), Error> {
        self.flight.reserve(sends, recvs)?;
        lacking(self.fault, self.rank)
    }

    fn reserve_message_buffers(&mut self, sends: &[usize], recvs: &[usize]) -> Result<(), Error> {
        self.flight.reserve_message_buffers(sends, recvs)?;
        lacking(self.fault, self.rank)
    }

    fn receives_into_slots(&self) -> bool {
        self.flight.receives_into_slots()
    }

    fn post_recv_into(&mut self, from: usize, slot: Slot) -> Result<(), Error> {
        self.flight.post_recv_into(from, slot)
    }

    fn slot(&mut self, bytes: usize) -> Result<Slot, Error> {
        match self.fault {
            Fault::Slots if bytes > 0 => Err(Error::Memory { rank: self.rank, bytes }),
            _ => self.flight.slot(bytes),
        }
    }

    fn wait_until_in_flight(&mut self, most: usize) -> Result<bool, Error> {
        self.flight.wait_until_in_flight(most)
    }

    fn post_recv(&mut self, from: usize, bytes: usize) -> Result<(), Error> {
        self.flight.post_recv(from, bytes - usize::from(self.fault == Fault::Narrow))
    }

    fn send(&mut self, to: usize, bound: usize, mut message: Slot) -> Result<(), Error> {
        message.set_len(message.len() - usize::from(self.fault == Fault::Short));
        self.flight.send(to, bound, message)
    }

    fn test_any(&mut self) -> Result<Option<Arrival>, Error> {
        self.flight.test_any()
    }

    fn wait_any(&mut self) -> Result<Option<Arrival>, Error> {
        self.flight.wait_any()
    }

    fn recycle(&mut self, read: Arrival) {
        self.flight.recycle(read);
    }

    fn wait_all(&mut self) -> Result<(), Error> {
        self.flight.wait_all()
    }

    fn memory(&self) -> usize {
        self.flight.memory()
    }
}

struct WeakPuts {
    puts: Box<dyn RmaWindow>,
    fault: Fault,
    rank: usize,
}

/// Puts to the wrong place.
struct Astray<'a, 'env>(&'a dyn Epoch<'env>);

impl<'env> Epoch<'env> for Astray<'_, 'env> {
    fn put(&self, to: usize, _at: usize, bytes: &'env [u8]) -> Result<(), Error> {
        self.0.put(to, 1 << 40, bytes)
    }
}

impl RmaWindow for WeakPuts {
    fn make(&mut self, bytes: usize) -> Result<(), Error> {
        self.puts.make(bytes)?;
        match self.fault {
            Fault::Make => Err(failure(self.rank)),
            _ => Ok(()),
        }
    }

    fn epoch<'env>(
        &mut self,
        how: Epochs,
        body: &mut fft_core::InEpoch<'_, 'env>,
    ) -> Result<(), Error> {
        match self.fault {
            Fault::Early => self.puts.epoch(how, &mut |_, _| Err(failure(self.rank))),
            Fault::Put => self.puts.epoch(how, &mut |epoch, before| body(&Astray(epoch), before)),
            _ => self.puts.epoch(how, body),
        }
    }

    fn local(&self) -> &[u8] {
        self.puts.local()
    }
}
