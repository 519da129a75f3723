//! The routes of messages in a k-way exchange. Pure: nothing is sent here.
//!
//! The distance of a message is `(destination - origin) mod P`, written in base k. In round j it
//! advances by the j-th digit times k^j, lowest digit first, and stays where the digit is zero. It
//! arrives after at most ⌈log_k P⌉ rounds, for any P. In round j a rank sends only to the `k - 1`
//! ranks at distances d·k^j. These differ for all j and d, so that two ranks exchange at most one
//! bundle per transform and direction. This is the index algorithm of Bruck, Ho, Kipnis, Upfal and
//! Weathersby (IEEE TPDS 8(11), 1997), with messages of any size.

use std::collections::HashMap;
use std::ops::Range;

use fft_core::{Error, MessagePlan, MessageSpec};

use super::bundle::{Label, room};

/// A step of a message from one rank to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hop {
    pub(super) round: usize,
    pub(super) from: usize,
    pub(super) to: usize,
}

/// The hops of a message between two of `ranks` ranks.
pub(super) fn path(
    origin: usize,
    destination: usize,
    ranks: usize,
    k: usize,
) -> impl Iterator<Item = Hop> {
    let (mut rest, mut step, mut from) = ((destination + ranks - origin) % ranks, 1, origin);
    let mut round = 0;
    std::iter::from_fn(move || {
        while rest > 0 {
            let (digit, here) = (rest % k, round);
            let hop = Hop { round: here, from, to: (from + digit * step) % ranks };
            (rest, round, from) = (rest / k, round + 1, hop.to);
            if rest > 0 {
                // At most the distance, which is less than `ranks`.
                step *= k;
            }
            if digit > 0 {
                return Some(hop);
            }
        }
        None
    })
}

/// The messages from one rank to another in one round.
#[derive(Clone, Debug)]
pub(super) struct Bundle {
    pub(super) peer: usize,
    pub(super) round: usize,
    /// Its bytes, at most.
    pub(super) bytes: usize,
    /// Its messages, as places in [`Routes::outgoing`] or [`Routes::incoming`].
    pub(super) items: Range<usize>,
}

#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    pub(super) label: Label,
    pub(super) source: Source,
}

/// Where a message that is sent comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// This rank's own message, by its place in [`MessagePlan::sends`].
    Own(usize),
    /// A message of an earlier round, by its place in [`Routes::incoming`].
    Held(usize),
}

#[derive(Clone, Debug)]
pub(super) struct Incoming {
    pub(super) label: Label,
    /// The place of its bundle in [`Routes::recvs`].
    pub(super) bundle: usize,
    /// Its place in [`MessagePlan::recvs`]; `None` for one that is forwarded.
    pub(super) number: Option<usize>,
}

/// All bundles and messages that pass through one rank.
#[derive(Clone, Debug, Default)]
pub(super) struct Routes {
    /// In order of rounds, and in each from the nearest rank after this one.
    pub(super) sends: Vec<Bundle>,
    pub(super) recvs: Vec<Bundle>,
    pub(super) outgoing: Vec<Outgoing>,
    pub(super) incoming: Vec<Incoming>,
    /// For each of [`MessagePlan::recvs`], its place in `incoming`.
    pub(super) arrivals: Vec<usize>,
}

/// A message on one hop to or from a rank.
struct Passing {
    round: usize,
    peer: usize,
    /// From the sender to the receiver, around the ring of ranks.
    distance: usize,
    label: Label,
}

impl Routes {
    /// Bytes of the lists.
    pub(super) fn memory(&self) -> usize {
        let bundles = size_of_val(&*self.sends) + size_of_val(&*self.recvs);
        let messages = size_of_val(&*self.outgoing) + size_of_val(&*self.incoming);
        size_of::<Self>() + bundles + messages + size_of_val(&*self.arrivals)
    }

    /// The routes through `rank` of the `messages` of all ranks, which must be the same list on all
    /// of them. Takes O(messages · log_k ranks) time.
    pub(super) fn new(
        rank: usize,
        ranks: usize,
        k: usize,
        message_plan: &MessagePlan,
        messages: &[Label],
    ) -> Result<Self, Error> {
        let (mut out, mut come) = (Vec::new(), Vec::new());
        for &label in messages {
            for Hop { round, from, to } in path(label.origin, label.destination, ranks, k) {
                let distance = (to + ranks - from) % ranks;
                if from == rank {
                    out.push(Passing { round, peer: to, distance, label });
                }
                if to == rank {
                    come.push(Passing { round, peer: from, distance, label });
                }
            }
        }
        let (sends, outgoing) = bundles(out);
        let (recvs, incoming) = bundles(come);
        let (own, expected) = (numbers(&message_plan.sends), numbers(&message_plan.recvs));
        let incoming: Vec<Incoming> = (recvs.iter().enumerate())
            .flat_map(|(bundle, Bundle { items, .. })| items.clone().map(move |at| (bundle, at)))
            .map(|(bundle, at)| {
                let label = incoming[at];
                let number = (label.destination == rank)
                    .then(|| expected.get(&label.origin).copied().unwrap_or(usize::MAX));
                Incoming { label, bundle, number }
            })
            .collect();
        let arrivals = deliveries(rank, message_plan, &incoming)?;
        // A message passes through a rank once, because each hop brings it nearer to its
        // destination.
        let held: HashMap<(usize, usize), usize> = (incoming.iter().enumerate())
            .map(|(at, item)| ((item.label.origin, item.label.destination), at))
            .collect();
        let source = |label: &Label| {
            if label.origin == rank {
                Source::Own(own[&label.destination])
            } else {
                Source::Held(held[&(label.origin, label.destination)])
            }
        };
        let outgoing =
            outgoing.into_iter().map(|label| Outgoing { source: source(&label), label }).collect();
        Ok(Self { sends, recvs, outgoing, incoming, arrivals })
    }
}

/// Groups messages by round and peer. A bundle has them in the order of the list, which is the same
/// at both ends.
fn bundles(mut passing: Vec<Passing>) -> (Vec<Bundle>, Vec<Label>) {
    passing.sort_by_key(|item| (item.round, item.distance));
    let mut bundles: Vec<Bundle> = Vec::new();
    for (at, Passing { round, peer, label, .. }) in passing.iter().enumerate() {
        let bytes = room(label.bound);
        match bundles.last_mut() {
            Some(last) if (last.round, last.peer) == (*round, *peer) => {
                last.bytes += bytes;
                last.items.end += 1;
            }
            _ => bundles.push(Bundle { peer: *peer, round: *round, bytes, items: at..at + 1 }),
        }
    }
    (bundles, passing.iter().map(|item| item.label).collect())
}

/// The place of each peer's message.
fn numbers(specs: &[MessageSpec]) -> HashMap<usize, usize> {
    specs.iter().enumerate().map(|(number, spec)| (spec.peer, number)).collect()
}

/// The place in `incoming` of each expected message.
fn deliveries(
    rank: usize,
    message_plan: &MessagePlan,
    incoming: &[Incoming],
) -> Result<Vec<usize>, Error> {
    let differs = |from, sent: usize, expected: usize| {
        let what = format!("message from rank {from} to rank {rank}");
        let [a, b] = [sent, expected].map(|bytes| format!("{bytes} bytes"));
        Error::Disagreement { what, rank_a: from, a, rank_b: rank, b }
    };
    let mut arrivals = vec![usize::MAX; message_plan.recvs.len()];
    for (at, item) in incoming.iter().enumerate() {
        let Some(number) = item.number else { continue };
        let Label { origin, bound, .. } = item.label;
        let expected = message_plan.recvs.get(number).map_or(0, |spec| spec.bytes);
        if number == usize::MAX || expected != bound {
            return Err(differs(origin, bound, expected));
        }
        arrivals[number] = at;
    }
    match arrivals.iter().position(|at| *at == usize::MAX) {
        None => Ok(arrivals),
        Some(never) => {
            Err(differs(message_plan.recvs[never].peer, 0, message_plan.recvs[never].bytes))
        }
    }
}

#[cfg(test)]
mod tests;
