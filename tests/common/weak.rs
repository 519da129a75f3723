//! A communicator whose windows fail on one rank.

use fft_core::{Commons, Epoch, Flight, Part, Parts, Puts};
use thriffty::{Comm, Epochs, Error, Reduce};

/// What goes wrong on a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Nothing,
    /// It cannot get a window.
    Window,
    /// It cannot make the memory of one.
    Make,
    /// It puts beyond the end of others' memory.
    Put,
    /// It leaves the epoch with an error, having put nothing.
    Early,
}

/// A communicator with a fault, which its duplicates have too. Faults come after the collective part.
pub(crate) struct Weak {
    pub(crate) comm: Box<dyn Comm>,
    pub(crate) fault: Fault,
}

impl Weak {
    pub(crate) fn new(comm: &dyn Comm, fault: Fault) -> Result<Self, Error> {
        Ok(Self { comm: comm.dup()?, fault })
    }
}

pub(crate) fn failure(rank: usize) -> Error {
    Error::Transport { rank, call: "a call", text: "failed on purpose".into() }
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
        self.comm.alltoallv(send, recv)
    }

    fn reserve_alltoallv(&self, send: &[Part], recv: &[Part]) -> Result<(), Error> {
        self.comm.reserve_alltoallv(send, recv)
    }

    fn flight(&self) -> Result<Box<dyn Flight>, Error> {
        self.comm.flight()
    }

    fn window(&self) -> Result<Option<Box<dyn Puts>>, Error> {
        let (rank, fault) = (self.rank(), self.fault);
        let puts = self.comm.window()?;
        match fault {
            Fault::Window => Err(failure(rank)),
            _ => Ok(puts.map(|puts| Box::new(WeakPuts { puts, fault, rank }) as Box<dyn Puts>)),
        }
    }

    fn host(&self, rank: usize) -> usize {
        self.comm.host(rank)
    }

    fn commons(&self) -> Result<Option<Box<dyn Commons>>, Error> {
        self.comm.commons()
    }

    fn dup(&self) -> Result<Box<dyn Comm>, Error> {
        Ok(Box::new(Self::new(self.comm.as_ref(), self.fault)?))
    }

    fn split(&self, color: usize, key: usize) -> Result<Box<dyn Comm>, Error> {
        self.comm.split(color, key)
    }
}

struct WeakPuts {
    puts: Box<dyn Puts>,
    fault: Fault,
    rank: usize,
}

/// Puts where it was not asked to.
struct Astray<'a, 'env>(&'a dyn Epoch<'env>);

impl<'env> Epoch<'env> for Astray<'_, 'env> {
    fn put(&self, to: usize, _at: usize, bytes: &'env [u8]) -> Result<(), Error> {
        self.0.put(to, 1 << 40, bytes)
    }
}

impl Puts for WeakPuts {
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
        body: &mut dyn FnMut(&dyn Epoch<'env>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        match self.fault {
            Fault::Early => self.puts.epoch(how, &mut |_| Err(failure(self.rank))),
            Fault::Put => self.puts.epoch(how, &mut |epoch| body(&Astray(epoch))),
            _ => self.puts.epoch(how, body),
        }
    }

    fn local(&self) -> &[u8] {
        self.puts.local()
    }
}
