//! Messages in memory that the host does not access: memory of the host that poses as such.

use std::cell::UnsafeCell;
use std::sync::Arc;

use fft_core::{
    Comm, DeviceAllocation, DeviceBuffer, MessageBuffers, MessageHandler, MessagePlan, MessageSpec,
    SLOT_ALIGN,
};
use thriffty::Error;
use thriffty::planning::Exchange;

pub(crate) fn reaches(comm: &dyn Comm, memory: &DeviceBuffer) -> Result<bool, Error> {
    comm.device().map_or(Ok(false), |device| device.reaches(memory))
}

/// The bytes of a message, whose length and content depend on who sends it to whom and when.
pub(crate) fn letter(from: usize, to: usize, round: usize, spec: &MessageSpec) -> Vec<u8> {
    let len = spec.bytes.saturating_sub((from + 2 * to + round + spec.chunk) % 5);
    (0..len).map(|i| (i + 7 * from + 31 * to + 101 * round + 13 * spec.chunk) as u8).collect()
}

/// Memory that is copied to and from by its address, like the memory of a device.
struct Posing {
    bytes: Box<[UnsafeCell<u8>]>,
    on_host: bool,
}

// SAFETY: a copy at the wrong time spoils the data, which the tests would detect.
unsafe impl Send for Posing {}
// SAFETY: as above.
unsafe impl Sync for Posing {}

pub(crate) fn memory(bytes: usize, on_host: bool) -> DeviceBuffer {
    let all = (0..bytes + SLOT_ALIGN).map(|_| UnsafeCell::new(0)).collect();
    let keeper = Arc::new(Posing { bytes: all, on_host });
    let at = keeper.bytes.as_ptr().expose_provenance().next_multiple_of(SLOT_ALIGN);
    // SAFETY: the bytes live as long as the keeper, and nobody has a reference to the contents of
    // the cells.
    unsafe { DeviceBuffer::from_raw(keeper, at, bytes) }
}

impl DeviceAllocation<Error> for Posing {
    fn on_host(&self) -> bool {
        self.on_host
    }

    fn another(&self, bytes: usize) -> Result<DeviceBuffer, Error> {
        Ok(memory(bytes, self.on_host))
    }

    unsafe fn read(&self, at: usize, to: &mut [u8]) -> Result<(), Error> {
        let from: *const u8 = std::ptr::with_exposed_provenance(at);
        // SAFETY: the caller's: the memory has these bytes.
        unsafe { from.copy_to_nonoverlapping(to.as_mut_ptr(), to.len()) };
        Ok(())
    }

    unsafe fn write(&self, at: usize, from: &[u8]) -> Result<(), Error> {
        let to: *mut u8 = std::ptr::with_exposed_provenance_mut(at);
        // SAFETY: as above.
        unsafe { to.copy_from_nonoverlapping(from.as_ptr(), from.len()) };
        Ok(())
    }
}

/// Messages of several sizes, some empty, of a rank's data in this number of chunks, and places for
/// them with gaps between.
pub(crate) fn message_plan(
    comm: &dyn Comm,
    which: usize,
    chunks: usize,
    memory: &[DeviceBuffer; 2],
) -> MessagePlan {
    let (rank, size) = (comm.rank(), comm.size());
    let bytes = |from: usize, to: usize| 7 * (from + 2 * to + which) % 150 + 3;
    let ends = |spec: &dyn Fn(usize, usize) -> MessageSpec| -> Vec<MessageSpec> {
        let all = (0..chunks).flat_map(|chunk| (1..size).map(move |k| ((rank + k) % size, chunk)));
        let some = all.filter(|(peer, chunk)| !(rank + peer + chunk).is_multiple_of(3));
        some.map(|(peer, chunk)| spec(peer, chunk)).collect()
    };
    let sends = ends(&|peer, chunk| MessageSpec { peer, bytes: bytes(rank, peer), chunk });
    let recvs = ends(&|peer, chunk| MessageSpec { peer, bytes: bytes(peer, rank), chunk });
    // Not in the order of messages.
    let places = |specs: &[MessageSpec]| (0..specs.len()).rev().map(|n| 256 * n + 64).collect();
    let places = [places(&sends), places(&recvs)];
    let buffers = Some(MessageBuffers { memory: memory.clone(), places });
    MessagePlan {
        reshape: which,
        chunks,
        shorter: chunks > 1,
        buffers_all: false,
        sends,
        recvs,
        buffers,
    }
}

/// Writes letters into the buffers of messages, and reads the received ones.
struct Mail<'a> {
    rank: usize,
    round: usize,
    message_plan: &'a MessagePlan,
    came: Vec<usize>,
    finished: bool,
}

impl Mail<'_> {
    fn letter(&self, from: usize, to: usize, spec: &MessageSpec) -> Vec<u8> {
        let mut letter = letter(from, to, self.round, spec);
        // As long as the spec, if it must be.
        letter.resize(if self.message_plan.shorter { letter.len() } else { spec.bytes }, 0x5a);
        letter
    }

    fn place(&self, side: usize, number: usize, bytes: usize) -> DeviceBuffer {
        let MessageBuffers { memory, places } =
            self.message_plan.buffers.as_ref().expect("buffers");
        memory[side].part(places[side][number]..places[side][number] + bytes)
    }
}

impl MessageHandler for Mail<'_> {
    fn pack(&mut self, number: usize, message: &mut [u8]) -> usize {
        assert!(message.is_empty(), "it has a device buffer");
        let spec = &self.message_plan.sends[number];
        let letter = self.letter(self.rank, spec.peer, spec);
        self.place(0, number, letter.len()).write(&letter).expect("a copy");
        letter.len()
    }

    fn own(&mut self) {}

    fn arrived(&mut self, number: usize, _message: &[u8]) -> bool {
        panic!("message {number} has a device buffer");
    }

    fn landed(&mut self, number: usize, bytes: usize) {
        let spec = &self.message_plan.recvs[number];
        let mut found = vec![0; bytes];
        self.place(1, number, bytes).read(&mut found).expect("a copy");
        let expected = self.letter(spec.peer, self.rank, spec);
        if bytes > 0 {
            assert_eq!(found, expected, "{} to {}", spec.peer, self.rank);
        }
        self.came[number] += usize::from(bytes == expected.len());
    }

    fn finish<'m>(&mut self, _message: &dyn Fn(usize) -> &'m [u8]) {
        self.finished = true;
    }
}

/// Enough for all messages of a message_plan.
const ROOM: usize = 256 * 64;

fn run(
    exchanger: &mut dyn fft_core::Exchanger,
    rank: usize,
    round: usize,
    message_plan: &MessagePlan,
) -> Result<Vec<usize>, Error> {
    let came = vec![0; message_plan.recvs.len()];
    let mut mail = Mail { rank, round, message_plan, came, finished: false };
    exchanger.run(message_plan, &mut mail)?;
    assert!(mail.finished || message_plan.recvs.is_empty(), "finish is called");
    Ok(mail.came)
}

/// Several reshapes by this exchange, over and over.
pub(crate) fn moves(comm: &dyn Comm, exchange: Exchange) -> Result<(), Error> {
    // The collective takes one message to each rank.
    let chunks = if exchange == Exchange::Alltoallv { &[1][..] } else { &[1, 6] };
    for &chunks in chunks {
        let memory = [memory(ROOM, true), memory(ROOM, true)];
        let mut exchanger = fft_comm::exchanger(exchange, comm)?;
        let all = [0, 1, 2].map(|which| message_plan(comm, which, chunks, &memory));
        assert!(all.iter().all(|message_plan| exchanger.takes_message_buffers(message_plan)));
        all.iter().try_for_each(|message_plan| exchanger.reserve(message_plan))?;
        for round in 0..9 {
            let message_plan = &all[2 * round % 3];
            let came = run(exchanger.as_mut(), comm.rank(), round, message_plan)?;
            assert!(came.iter().all(|times| *times == 1), "{exchange} {chunks}: {came:?}");
            // Bytes must not be overwritten by the next message before they are read: here by a
            // fast rank.
            comm.barrier()?;
        }
        assert_eq!(exchanger.exchange(), exchange);
    }
    Ok(())
}
