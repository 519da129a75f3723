//! MPI's windows behind the trait of fft-core.

use fft_core::{Comm, Epochs, Error, InEpoch, RmaWindow, agree};

use super::ffi::{RawEpoch, RawPair};
use super::mpi_comm::MpiComm;
use super::window::Rma;

/// A pair of windows of an exchange, made when their size has been determined.
pub(super) struct MpiWindow {
    rma: Rma,
    pair: Option<(RawPair, MpiComm)>,
}

impl MpiWindow {
    pub(super) fn new(rma: Rma) -> Self {
        Self { rma, pair: None }
    }
}

impl RmaWindow for MpiWindow {
    fn make(&mut self, bytes: usize) -> Result<(), Error> {
        if let Some((raw, comm)) = self.pair.take() {
            agree(&comm, raw.free(comm.rank()))?;
        }
        let [(one, comm), (other, _)] =
            [self.rma.window::<u8>(bytes)?.into_raw(), self.rma.window::<u8>(bytes)?.into_raw()];
        self.pair = Some((RawPair::new([one, other]), comm));
        Ok(())
    }

    fn epoch<'env>(&mut self, how: Epochs, body: &mut InEpoch<'_, 'env>) -> Result<(), Error> {
        let Some((raw, comm)) = &mut self.pair else {
            let text = "no memory has been made".into();
            return Err(Error::Transport { rank: self.rma.rank(), call: "epoch", text });
        };
        raw.epoch(&comm.raw, how, |epoch, before| body(epoch, before))?
    }

    fn local(&self) -> &[u8] {
        self.pair.as_ref().map_or(&[], |(raw, _)| raw.local())
    }
}

impl<'env> fft_core::Epoch<'env> for RawEpoch<'_, 'env> {
    fn put(&self, to: usize, at: usize, bytes: &'env [u8]) -> Result<(), Error> {
        RawEpoch::put(self, to, at, bytes)
    }
}
