//! Messages of a copy through the host.

use std::ops::DerefMut;
use std::sync::Arc;

use fft_core::{Comm, Error, Exchanger, MessageHandler, MessagePlan, agree, matching};

use super::super::cuda::Cuda;
use super::launches::OfArray;
use crate::base::Gpu;
use crate::ffi::{Block, DeviceMemory, Owned, Pages};
use crate::kernel::Transfers;

/// Messages through the host.
pub(super) struct Staged {
    pub(super) exchange: Box<dyn Exchanger>,
    pub(super) message_plan: MessagePlan,
    /// Memory of outgoing messages, and of incoming ones.
    pub(super) outgoing: Arc<Block>,
    pub(super) incoming: Owned<u8>,
    /// Where messages begin there.
    pub(super) places: [Vec<usize>; 2],
    pub(super) unpacks: Vec<OfArray<Transfers>>,
}

impl Staged {
    /// Bytes of memory held on the device.
    pub(super) fn memory(&self) -> usize {
        let launches = self.unpacks.iter().map(|(_, it)| it.memory()).sum::<usize>();
        self.incoming.bytes() + launches
    }

    /// Makes the exchange's buffers. Collective.
    pub(super) fn reserve(&mut self, gpu: &Gpu, comm: &dyn Comm) -> Result<(), Error> {
        matching(comm, [&self.message_plan])?;
        self.exchange.pin(Arc::new(Pages(gpu.context().clone())));
        let reserved = self.exchange.reserve(&self.message_plan);
        agree(comm, reserved)
    }

    /// Exchanges messages through the host, and queues their unpacking. Collective.
    pub(super) fn run(
        &mut self,
        device: &mut Cuda,
        targets: &mut [impl DerefMut<Target = DeviceMemory<u8>>],
    ) -> Result<(), Error> {
        let Self { exchange, message_plan, outgoing, incoming, places, unpacks } = self;
        let blocks = [&**outgoing, &**incoming.block()];
        let mut handler =
            Handler { device: &mut *device, message_plan, blocks, places, damage: Ok(()) };
        let sent = exchange.run(message_plan, &mut handler);
        let damage = handler.damage;
        let unpacked = unpacks.iter().try_for_each(|(array, unpack)| {
            unpack.run::<u8, u8>(&device.stream, &*incoming.memory_mut(), &mut *targets[*array])
        });
        device.record_error(unpacked);
        damage.and(sent)
    }
}

/// Copies messages between the device and the host.
struct Handler<'a> {
    device: &'a mut Cuda,
    message_plan: &'a MessagePlan,
    /// Outgoing and incoming messages on the device.
    blocks: [&'a Block; 2],
    places: &'a [Vec<usize>; 2],
    /// The first message that is not as long as it should be.
    damage: Result<(), Error>,
}

impl MessageHandler for Handler<'_> {
    fn pack(&mut self, number: usize, message: &mut [u8]) -> usize {
        let bytes = self.message_plan.sends[number].bytes;
        let piece = (self.places[0][number], &mut message[..bytes]);
        let copied = self.blocks[0].read(&self.device.stream, [piece]);
        self.device.record_error(copied);
        bytes
    }

    fn arrived(&mut self, number: usize, message: &[u8]) -> bool {
        match self.message_plan.recvs[number].received(self.device.rank, message) {
            Ok(message) => {
                let piece = (self.places[1][number], message);
                let copied = self.blocks[1].write(&self.device.stream, [piece]);
                self.device.record_error(copied);
            }
            Err(bad) if self.damage.is_ok() => self.damage = Err(bad),
            Err(_) => {}
        }
        true
    }
}
