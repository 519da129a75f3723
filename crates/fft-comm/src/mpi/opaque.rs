//! Whether this MPI sends from and receives into memory that the host does not look into: asked first, as one that does not
//! may crash when it is told such an address, and then tried.

use std::sync::Once;

use fft_core::{Comm, DeviceBuffer, Epochs, Error, Reduce, agree};

use super::MpiComm;
use super::ffi::takes_devices;
use super::window::{Rma, Window};

/// Bytes of the messages of a trial: one that travels with its announcement, and one that does not.
const TRIALS: [usize; 2] = [64, 1 << 20];

/// Said once in a process.
static NO_MESSAGES: Once = Once::new();
static NO_PUTS: Once = Once::new();

/// What a rank sends in a trial.
fn sample(rank: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8 ^ rank as u8).collect()
}

/// Memory for a trial: this rank's sample, and room for another's. Collective.
fn memory(comm: &MpiComm, like: &DeviceBuffer) -> Result<[DeviceBuffer; 2], Error> {
    let bytes = TRIALS[1];
    let make = || {
        let memory = [like.another(bytes)?, like.another(bytes)?];
        memory[0].write(&sample(comm.rank(), bytes))?;
        Ok(memory)
    };
    agree(comm, make())
}

/// Clears room for a sample, moves it from the rank before, and looks whether it is there. Collective.
fn check(
    comm: &MpiComm,
    memory: &[DeviceBuffer; 2],
    bytes: usize,
    work: impl FnOnce() -> Result<(), Error>,
) -> Result<(), Error> {
    agree(comm, memory[1].write(&vec![0; bytes]))?;
    let mut found = vec![0; bytes];
    let moved = work().and_then(|()| memory[1].read(&mut found));
    agree(comm, moved)?;
    let (rank, size) = (comm.rank(), comm.size());
    let same = found == sample((rank + size - 1) % size, bytes);
    let text = || format!("{bytes} bytes of a trial arrived as others");
    let wrong = || Error::Transport { rank, call: "messages in memory of a device", text: text() };
    agree(comm, same.then_some(()).ok_or_else(wrong))
}

/// Whether ranks that need to ask the library get a yes. The same on all. Collective.
fn says_so(comm: &MpiComm, asks: bool) -> Result<bool, Error> {
    let mut all = [f64::from(u8::from(!asks || takes_devices()))];
    comm.allreduce(Reduce::Min, &mut all)?;
    Ok(all == [1.0])
}

/// Whether messages can be in memory like this. Collective.
pub(super) fn messages(comm: &MpiComm, like: &DeviceBuffer) -> Result<bool, Error> {
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
    let tried = TRIALS
        .iter()
        .try_for_each(|&bytes| check(comm, &memory, bytes, || trial.raw.trial(&memory, bytes)));
    let Err(why) = tried else { return Ok(true) };
    // Who knows what is still under way.
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

/// A window on memory, where ranks can put there. Collective.
pub(super) fn window(
    comm: &MpiComm,
    memory: &[DeviceBuffer; 2],
) -> Result<Option<Window<u8>>, Error> {
    let why = match tried(comm, &memory[0])? {
        Ok(()) => match Rma::known(comm)?.window_on(memory) {
            Ok(window) => return Ok(Some(window)),
            Err(why) => why,
        },
        Err(why) => why,
    };
    if comm.rank() == 0 {
        NO_PUTS.call_once(|| {
            log::warn!(
                "this MPI cannot put into device memory of other ranks ({why}); messages are sent instead.{}",
                super::remedy()
            );
        });
    }
    Ok(None)
}

/// RmaWindow a sample to the next rank in both kinds of epoch, or says why that cannot be done. Collective.
fn tried(comm: &MpiComm, like: &DeviceBuffer) -> Result<Result<(), Error>, Error> {
    if let Err(why) = agree(comm, Rma::sound(comm)) {
        return Ok(Err(why));
    }
    let memory = memory(comm, like)?;
    let (rma, next) = (Rma::known(comm)?, (comm.rank() + 1) % comm.size());
    let mut window = match rma.window_on(&memory) {
        Ok(window) => window,
        Err(why) => return Ok(Err(why)),
    };
    for how in [Epochs::Fence, Epochs::Flush] {
        for bytes in TRIALS {
            let put = || window.trial(how, |epoch| epoch.put_opaque(next, 0, 0..bytes));
            if let Err(why) = check(comm, &memory, bytes, put) {
                // Who knows what freeing it would wait for.
                std::mem::forget(window);
                return Ok(Err(why));
            }
        }
    }
    Ok(window.free())
}
