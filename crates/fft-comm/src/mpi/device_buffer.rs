//! Messages in memory of devices. The library is asked first whether it supports them, because it
//! may otherwise crash on such an address; then messages are tried.

use std::sync::Once;

use fft_core::{Comm, DeviceBuffer, DeviceComm, Error, Part, Parts, agree, on_all_ranks};

use super::ffi::{Bytes, BytesMut, takes_devices};
use super::mpi_comm::MpiComm;

impl DeviceComm for MpiComm {
    fn reaches(&self, memory: &DeviceBuffer) -> Result<bool, Error> {
        // All ranks try together, so either all have the result or none has. Memory of the host, in
        // tests, is tried each time.
        let known = self.reaches_devices.get().filter(|_| !memory.on_host());
        if let Some(known) = known {
            return Ok(*known);
        }
        let found = try_messages(self, memory)?;
        if !memory.on_host() {
            let _ = self.reaches_devices.set(found);
        }
        Ok(found)
    }

    fn reserve_device_alltoallv(&self, send: &[Part], recv: &[Part]) -> Result<(), Error> {
        self.reserve_alltoallv(send, recv).map(drop)
    }

    fn alltoallv(
        &self,
        send: Parts<'_, &DeviceBuffer>,
        recv: Parts<'_, &DeviceBuffer>,
    ) -> Result<(), Error> {
        let (send, out) = (Bytes::DeviceBuffer(send.bytes), send.parts);
        self.all_to_all((send, out), (BytesMut::DeviceBuffer(recv.bytes), recv.parts))
    }
}

/// Bytes of the messages of a trial: one for the eager and one for the rendezvous protocol.
const TRIALS: [usize; 2] = [64, 1 << 20];

static NO_MESSAGES: Once = Once::new();

/// The message that a rank sends in a trial.
fn sample(rank: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8 ^ rank as u8).collect()
}

/// This rank's sample, and memory for another's. Collective.
fn memory(comm: &MpiComm, like: &DeviceBuffer) -> Result<[DeviceBuffer; 2], Error> {
    let bytes = TRIALS[1];
    let make = || {
        let memory = [like.another(bytes)?, like.another(bytes)?];
        memory[0].write(&sample(comm.rank(), bytes))?;
        Ok(memory)
    };
    agree(comm, make())
}

/// Sends a sample to the next rank and compares what arrives with the sample of the rank before.
/// Collective.
fn check(
    comm: &MpiComm,
    trial: &MpiComm,
    memory: &[DeviceBuffer; 2],
    bytes: usize,
) -> Result<(), Error> {
    agree(comm, memory[1].write(&vec![0; bytes]))?;
    let mut found = vec![0; bytes];
    let moved = trial.raw.trial(memory, bytes).and_then(|()| memory[1].read(&mut found));
    agree(comm, moved)?;
    let (rank, size) = (comm.rank(), comm.size());
    let same = found == sample((rank + size - 1) % size, bytes);
    let text = || format!("{bytes} bytes of a trial arrived as others");
    let wrong = || Error::Transport { rank, call: "messages in memory of a device", text: text() };
    agree(comm, same.then_some(()).ok_or_else(wrong))
}

/// Whether every rank's library claims support, if this rank needs it. Collective.
fn says_so(comm: &MpiComm, asks: bool) -> Result<bool, Error> {
    let [says_so] = on_all_ranks(comm, [!asks || takes_devices()])?;
    Ok(says_so)
}

/// Whether messages can be in memory of this kind. Collective.
fn try_messages(comm: &MpiComm, like: &DeviceBuffer) -> Result<bool, Error> {
    let first = comm.rank() == 0;
    if !says_so(comm, !like.on_host())? {
        if first {
            NO_MESSAGES.call_once(|| {
                log::warn!(
                    "this MPI does not say that it takes addresses of device memory \
                     (MPIX_Query_cuda_support), so that messages go through the host; one that was built \
                     with CUDA, like Open MPI --with-cuda, saves that"
                );
            });
        }
        return Ok(false);
    }
    let memory = memory(comm, like)?;
    let trial = comm.duplicate()?;
    let tried = TRIALS.iter().try_for_each(|&bytes| check(comm, &trial, &memory, bytes));
    let Err(why) = tried else { return Ok(true) };
    // Leaked, because messages may still be under way.
    std::mem::forget((trial, memory));
    if first {
        NO_MESSAGES.call_once(|| {
            log::warn!(
                "this MPI says that it takes addresses of device memory, but does not ({why}); messages go \
                 through the host. With Open MPI 4, OMPI_MCA_pml=ob1 in the environment may repair it"
            );
        });
    }
    Ok(false)
}
