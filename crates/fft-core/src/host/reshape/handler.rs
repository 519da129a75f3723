//! One run of a reshape: packs and unpacks messages when the exchange requests them.

use super::codecs::Encoded;
use super::{FusedFft, LocalCopy, Reshape, Unpack};
use crate::base::timings::Time;
use crate::base::{Error, Real};
use crate::codec::{BadMessage, codec::copy};
use crate::comm::{Exchanger, MessageHandler, PeerMemory};
use crate::execute::{Activity, Recorder};
use crate::geometry::Transfer;
use crate::host::cpu::{Cpu, CpuCall};
use crate::host::fused_pack::{FusedPack, Path};
use crate::host::spill_buffers::{Read, Written};

/// A run of a reshape.
pub(super) struct ReshapeRun<'a, T: Real> {
    pub(super) reshape: &'a Reshape<T>,
    pub(super) fused_pack: Option<&'a mut FusedPack<T>>,
    pub(super) device: &'a mut Cpu<T>,
    pub(super) src: Read<'a, T>,
    pub(super) dst: Written<'a, T>,
    pub(super) timings: &'a mut Recorder,
    /// The first message that did not decode.
    pub(super) damage: Result<(), Error>,
    pub(super) encoded: Encoded,
}

/// A run while the memory of peers, if there is any, can be read.
struct Handler<'r, 'a, T: Real> {
    run: &'r mut ReshapeRun<'a, T>,
    peers: Option<&'r dyn PeerMemory>,
}

impl<T: Real> ReshapeRun<'_, T> {
    /// Exchanges all messages. Without `peers` nothing is read from other ranks' memory.
    pub(super) fn exchange(
        &mut self,
        exchanger: &mut dyn Exchanger,
        peers: Option<&dyn PeerMemory>,
    ) -> Result<(), Error> {
        let message_plan = &self.reshape.message_plan;
        let sent = exchanger.run(message_plan, &mut Handler { run: &mut *self, peers });
        self.timings.forwarded += exchanger.forwarded();
        std::mem::replace(&mut self.damage, Ok(())).and(sent)
    }
}

impl<T: Real> Handler<'_, '_, T> {
    /// Copies boxes of this rank's and its peers' memory into the new brick.
    fn copy_near(&mut self, local_reads: &[LocalCopy]) {
        let ReshapeRun { reshape, src, dst, timings, .. } = &mut *self.run;
        for LocalCopy { owner, pieces: [from, to], transfer } in local_reads {
            let (time, src) = if *owner == reshape.rank {
                (&mut timings.own, src[*from])
            } else if let Some(peers) = self.peers {
                (&mut timings.shared, bytemuck::cast_slice(peers.shown(*owner)))
            } else {
                // The exposure epoch has failed.
                continue;
            };
            time.time(|| copy(transfer, reshape.width, src, dst[*to]));
        }
    }

    fn decode(&mut self, number: usize, message: &[u8], (to, scatter): (usize, &Transfer)) {
        let ReshapeRun { reshape, device, dst, timings, .. } = &mut *self.run;
        let begun = timings.begin();
        let decoded = timings.unpack.time(|| {
            if device.fails(CpuCall::Unpack) {
                return Err(BadMessage::Length { found: 0, expected: message.len() });
            }
            reshape.codecs.decode(number, message, (dst[to], scatter))
        });
        let peer = reshape.message_plan.recvs[number].peer;
        timings.end(begun, Activity::Unpack { peer, bytes: message.len() });
        if let Err(bad) = decoded {
            self.note_damage(number, &bad);
        }
    }

    /// Keeps the first damage of a run.
    fn note_damage(&mut self, number: usize, bad: &BadMessage) {
        let ReshapeRun { reshape, damage, .. } = &mut *self.run;
        if damage.is_ok() {
            *damage = Err(bad.at(reshape.rank, reshape.message_plan.recvs[number].peer));
        }
    }
}

impl<T: Real> MessageHandler for Handler<'_, '_, T> {
    fn pack(&mut self, number: usize, message: &mut [u8]) -> usize {
        let ReshapeRun { reshape, fused_pack, device, src, dst, timings, encoded, .. } =
            &mut *self.run;
        let width = reshape.width;
        let (from, gather) = &reshape.gathers[number];
        let src = match fused_pack {
            Some(fused_pack) => {
                fused_pack.chunk_for(number, Path { width, device, src: *src, dst, timings })
            }
            None => src[*from],
        };
        device.fails(CpuCall::Pack);
        let begun = timings.begin();
        let pack = || reshape.codecs.encode(number, (src, gather), message, encoded);
        let bytes = timings.pack.time(pack);
        let peer = reshape.message_plan.sends[number].peer;
        timings.end(begun, Activity::Pack { peer, bytes });
        timings.sent += bytes as u64;
        timings.reals += (gather.elements() * width) as u64;
        bytes
    }

    fn own(&mut self) {
        let ReshapeRun { reshape, fused_pack, device, src, dst, timings, .. } = &mut *self.run;
        if let Some(fused_pack) = fused_pack {
            fused_pack.rest(Path { width: reshape.width, device, src: *src, dst, timings });
        } else if let Unpack::Streaming { local_reads, .. } = &reshape.unpack {
            self.copy_near(local_reads);
        }
    }

    fn arrived(&mut self, number: usize, message: &[u8]) -> bool {
        let reshape = self.run.reshape;
        let expected = reshape.message_plan.recvs[number].bytes;
        if reshape.codecs.has_fixed_length(number) && message.len() != expected {
            self.note_damage(number, &BadMessage::Length { found: message.len(), expected });
        }
        match &reshape.unpack {
            Unpack::Streaming { scatters, .. } => {
                let (to, scatter) = &scatters[number];
                self.decode(number, message, (*to, scatter));
                true
            }
            Unpack::Fused { .. } => false,
        }
    }

    fn finish<'m>(&mut self, message: &dyn Fn(usize) -> &'m [u8]) {
        let Unpack::Fused { ffts, tiles } = &self.run.reshape.unpack else { return };
        for tile in tiles {
            self.copy_near(&tile.local_reads);
            for (number, to, scatter) in &tile.scatters {
                self.decode(*number, message(*number), (*to, scatter));
            }
            let FusedFft { fft, offset, .. } = &ffts[tile.fft];
            let ReshapeRun { device, dst, timings, .. } = &mut *self.run;
            let dst = &mut dst[offset.piece][offset.first..];
            timings.fft.time(|| {
                for blocks in &tile.blocks {
                    device.fft(fft, blocks.clone(), None, dst);
                }
            });
        }
    }
}
