//! The launches of a copy.

use fft_core::{CopyMessage, CopyPlan, OwnCopy, Transfer};

use super::super::cuda::Cuda;
use crate::abi::Move;
use crate::base::GpuError;
use crate::ffi::PeerGets;
use crate::kernel::Transfers;

/// A launch with the number of its array, or with two.
pub(super) type OfArray<L, A = usize> = (A, L);

/// Prepares launches.
pub(super) struct Launches<'a> {
    pub(super) device: &'a Cuda,
    pub(super) plan: &'a CopyPlan,
}

impl Launches<'_> {
    /// A launch for each array, or each pair of arrays.
    fn transfers<'m, A: PartialEq>(
        &self,
        moves: impl Iterator<Item = (A, Move<'m>)>,
    ) -> Result<Vec<OfArray<Transfers, A>>, GpuError> {
        let Cuda { gpu, stream, .. } = self.device;
        let prepared = |(array, moves): (A, Vec<Move<'m>>)| {
            Ok((array, Transfers::new(gpu, stream, self.plan.data.bytes, &moves)?))
        };
        by_array(moves).into_iter().map(prepared).collect()
    }

    /// From each source array to messages that begin at these bytes.
    pub(super) fn packs(&self, places: &[usize]) -> Result<Vec<OfArray<Transfers>>, GpuError> {
        self.messages(self.plan.sends.iter().zip(places), |place| [0, place])
    }

    /// To each target array from messages that begin at these bytes.
    pub(super) fn unpacks(
        &self,
        messages: &[&CopyMessage],
        places: &[usize],
    ) -> Result<Vec<OfArray<Transfers>>, GpuError> {
        self.messages(messages.iter().copied().zip(places), |place| [place, 0])
    }

    /// Between arrays and messages; `begins` returns the first elements of source and destination.
    fn messages<'m>(
        &self,
        messages: impl Iterator<Item = (&'m CopyMessage, &'m usize)>,
        begins: impl Fn(usize) -> [usize; 2],
    ) -> Result<Vec<OfArray<Transfers>>, GpuError> {
        self.transfers(messages.flat_map(|(message, place)| {
            let [from, to] = begins(place / self.plan.data.bytes);
            let parts = message.parts.iter();
            parts.map(move |part| (part.array, Move { transfer: &part.transfer, from, to }))
        }))
    }

    /// From source arrays to target arrays of this rank.
    pub(super) fn own(&self) -> Result<Vec<OfArray<Transfers, [usize; 2]>>, GpuError> {
        let copies = self.plan.own.iter().map(|OwnCopy { from, to, transfer }| {
            ([*from, *to], Move { transfer, from: 0, to: 0 })
        });
        self.transfers(copies)
    }

    /// To each target array from the messages of ranks that are reached.
    pub(super) fn gets(
        &self,
        reached: &dyn Fn(usize) -> bool,
        begins: &[usize],
    ) -> Result<Vec<OfArray<PeerGets>>, GpuError> {
        let near = self.plan.recvs.iter().filter(|message| reached(message.spec.peer));
        let parts = near.flat_map(|message| {
            let begin = begins[message.spec.peer] / self.plan.data.bytes;
            message.parts.iter().map(move |part| {
                (part.array, (message.spec.peer, part.transfer.clone().behind(begin, 0)))
            })
        });
        let (ranks, width) = (begins.len(), self.plan.data.bytes / size_of::<f32>());
        let Cuda { gpu, stream, .. } = self.device;
        let far = |peer: usize| !self.device.connections().peers.same_device(peer);
        let prepared = |(array, parts): (usize, Vec<(usize, Transfer)>)| {
            let parts: Vec<_> = parts.iter().map(|(peer, part)| (*peer, 0, part)).collect();
            Ok((array, PeerGets::new::<f32>(gpu, stream, width, ranks, &parts, &far)?))
        };
        by_array(parts).into_iter().map(prepared).collect()
    }
}

/// Values by their array, in the order of the first of each.
fn by_array<A: PartialEq, V>(values: impl Iterator<Item = (A, V)>) -> Vec<(A, Vec<V>)> {
    let mut found: Vec<(A, Vec<V>)> = Vec::new();
    for (array, value) in values {
        match found.iter_mut().find(|(known, _)| *known == array) {
            Some((_, values)) => values.push(value),
            None => found.push((array, vec![value])),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_are_grouped_by_array() {
        let found = by_array([(1, "a"), (0, "b"), (1, "c")].into_iter());
        assert_eq!(found, [(1, vec!["a", "c"]), (0, vec!["b"])]);
    }
}
