//! The bundles of a host. Pure: nothing is sent here.
//!
//! A bundle has the messages of one chunk from all ranks of a host to all ranks of another, in
//! order of origin and destination. Both ends find the same bundles from the messages of their own
//! ranks.

use std::collections::BTreeMap;

use fft_core::{MessageSpec, SlotSpec, Topology};

use super::entry::{ENTRY, Label, room};

/// The messages that a rank sends, and the messages that it receives.
#[derive(Clone, Debug, Default)]
pub(super) struct Messages {
    pub(super) sends: Vec<MessageSpec>,
    pub(super) recvs: Vec<MessageSpec>,
}

/// A message of this rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Item {
    /// Its number in the message plan.
    pub(super) number: usize,
    pub(super) label: Label,
    /// The offset of its entry: among the entries of this rank when it is sent, in the bundle when
    /// it is received.
    pub(super) entry: usize,
}

/// This rank's messages in a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Items {
    pub(super) slot: usize,
    pub(super) items: Vec<Item>,
}

/// A bundle that this rank sends or receives for its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LedBundle {
    pub(super) slot: usize,
    /// The rank at the other end; `None` for messages within the host.
    pub(super) peer: Option<usize>,
}

/// The bundles of a reshape as one rank sees them, each list in the order of work.
#[derive(Clone, Debug, Default)]
pub(super) struct Bundles {
    pub(super) slots: Vec<SlotSpec>,
    pub(super) packed: Vec<Items>,
    pub(super) unpacked: Vec<Items>,
    pub(super) sent: Vec<LedBundle>,
    pub(super) received: Vec<LedBundle>,
    /// Messages that are unpacked, with their slots, by number.
    pub(super) by_number: Vec<(usize, Item)>,
}

/// Chunks first; within one, each host begins with another, and its own is the last.
type Key = (usize, usize);

impl Bundles {
    /// Bytes of the lists.
    pub(super) fn memory(&self) -> usize {
        let items = |all: &[Items]| {
            let inner = all.iter().map(|items| size_of_val(&*items.items)).sum::<usize>();
            size_of_val(all) + inner
        };
        let led = size_of_val(&*self.sent) + size_of_val(&*self.received);
        let slots = size_of_val(&*self.slots) + size_of_val(&*self.by_number);
        slots + led + items(&self.packed) + items(&self.unpacked)
    }

    /// The bundles of a rank, from the messages of all ranks of its host in order.
    pub(super) fn new(rank: usize, topology: &Topology, messages: &[Messages]) -> Self {
        let (host, hosts) = (topology.host_of(rank), topology.hosts());
        let (mut all, ranks) = (Self::default(), topology.ranks_of(host));
        let index = |rank: usize| ranks.binary_search(&rank).expect("a rank is on its host");
        let mine = index(rank);
        let distance = |from: usize, to: usize| (to + hosts - from - 1) % hosts;

        let mut out = BTreeMap::<Key, Vec<Vec<Item>>>::new();
        for (index, (origin, messages)) in ranks.iter().zip(messages).enumerate() {
            for (number, spec) in messages.sends.iter().enumerate() {
                let key = (spec.chunk, distance(host, topology.host_of(spec.peer)));
                let bundle = out.entry(key).or_insert_with(|| vec![Vec::new(); ranks.len()]);
                bundle[index].push(item(number, *origin, spec.peer, spec));
            }
        }
        for ((chunk, distance), mut parts) in out {
            let to = (host + 1 + distance) % hosts;
            let leader = topology.leader(host, to, chunk);
            parts.iter_mut().for_each(|items| in_order(items));
            let slot = all.slots.len();
            if leader == rank {
                let peer = (to != host).then(|| topology.leader(to, host, chunk));
                all.sent.push(LedBundle { slot, peer });
            }
            let body = |items: &[Item]| items.iter().map(|item| room(item.label.bound)).sum();
            let bytes = parts.iter().map(|items| [items.len() * ENTRY, body(items)]).collect();
            all.slots.push(SlotSpec::written(index(leader), bytes));
            if to == host {
                let all_of = parts.concat();
                all.unpack(slot, all_of, rank, &messages[mine]);
            }
            let items = parts.swap_remove(mine);
            if !items.is_empty() {
                all.packed.push(Items { slot, items });
            }
        }

        let mut incoming = BTreeMap::<Key, Vec<Item>>::new();
        for (destination, messages) in ranks.iter().zip(messages) {
            for (number, spec) in messages.recvs.iter().enumerate() {
                let from = topology.host_of(spec.peer);
                if from != host {
                    let key = (spec.chunk, distance(from, host));
                    let item = item(number, spec.peer, *destination, spec);
                    incoming.entry(key).or_default().push(item);
                }
            }
        }
        for ((chunk, distance), mut items) in incoming {
            let from = (host + 2 * hosts - 1 - distance) % hosts;
            let leader = topology.leader(host, from, chunk);
            in_order(&mut items);
            let slot = all.slots.len();
            if leader == rank {
                let peer = Some(topology.leader(from, host, chunk));
                all.received.push(LedBundle { slot, peer });
            }
            let bytes = items.iter().map(|item| ENTRY + room(item.label.bound)).sum();
            all.slots.push(SlotSpec::received(index(leader), bytes));
            all.unpack(slot, items, rank, &messages[mine]);
        }
        let items = all.unpacked.iter();
        all.by_number = items.flat_map(|it| it.items.iter().map(|item| (it.slot, *item))).collect();
        all.by_number.sort_unstable_by_key(|(_, item)| item.number);
        all
    }

    /// Remembers which of the messages in a slot this rank reads.
    fn unpack(&mut self, slot: usize, mut items: Vec<Item>, rank: usize, mine: &Messages) {
        in_order(&mut items);
        items.retain(|item| item.label.destination == rank);
        let is_it = |label: &Label, spec: &MessageSpec| {
            (spec.peer, spec.chunk) == (label.origin, label.chunk)
        };
        // Messages of the own host are numbered by those that send them.
        items.retain_mut(|item| {
            let label = item.label;
            let found = match mine.recvs.get(item.number) {
                Some(spec) if is_it(&label, spec) => Some(item.number),
                _ => mine.recvs.iter().position(|spec| is_it(&label, spec)),
            };
            found.is_some_and(|number| {
                item.number = number;
                true
            })
        });
        if !items.is_empty() {
            self.unpacked.push(Items { slot, items });
        }
    }
}

fn item(number: usize, origin: usize, destination: usize, spec: &MessageSpec) -> Item {
    let label = Label { origin, destination, chunk: spec.chunk, bound: spec.bytes };
    Item { number, label, entry: 0 }
}

/// Orders messages, and numbers their entries.
fn in_order(items: &mut [Item]) {
    items.sort_unstable_by_key(|item| (item.label.origin, item.label.destination));
    items.iter_mut().enumerate().for_each(|(at, item)| item.entry = at * ENTRY);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages between all ranks but some, in two chunks.
    fn messages(rank: usize, ranks: usize) -> Messages {
        let there = |from: usize, to: usize, chunk: usize| {
            from != to && !(from + 2 * to + chunk).is_multiple_of(5)
        };
        let all = || (0..2).flat_map(|chunk| (1..ranks).map(move |step| (chunk, step)));
        let bytes = |from: usize, to: usize, chunk: usize| 8 * (from + 3 * to) + chunk;
        let spec = |peer: usize, bytes: usize, chunk: usize| MessageSpec { peer, bytes, chunk };
        let sends = all().map(|(chunk, step)| (chunk, (rank + step) % ranks));
        let sends = sends.filter(|&(chunk, to)| there(rank, to, chunk));
        let recvs = all().map(|(chunk, step)| (chunk, (rank + ranks - step) % ranks));
        let recvs = recvs.filter(|&(chunk, from)| there(from, rank, chunk));
        Messages {
            sends: sends.map(|(chunk, to)| spec(to, bytes(rank, to, chunk), chunk)).collect(),
            recvs: recvs.map(|(chunk, from)| spec(from, bytes(from, rank, chunk), chunk)).collect(),
        }
    }

    fn bundles(hosts: &[usize]) -> (Topology, Vec<Bundles>) {
        let topology = Topology::new(hosts, hosts.len());
        let bundles = |rank: usize| {
            let ranks = topology.ranks_of(topology.host_of(rank));
            let all: Vec<_> = ranks.iter().map(|it| messages(*it, hosts.len())).collect();
            Bundles::new(rank, &topology, &all)
        };
        let all = (0..hosts.len()).map(bundles).collect();
        (topology, all)
    }

    const HOSTS: [&[usize]; 6] =
        [&[0; 4], &[0, 0, 1, 1], &[0, 1, 0, 1, 0], &[0, 0, 0, 1, 2, 2], &[0, 1, 2], &[3]];

    #[test]
    fn both_ends_find_the_same_bundles() {
        for hosts in HOSTS {
            let (_, all) = bundles(hosts);
            for (rank, bundles) in all.iter().enumerate() {
                let sizes = |bundles: &Bundles, led: &[LedBundle], peer: usize| -> Vec<usize> {
                    let with = led.iter().filter(|led| led.peer == Some(peer));
                    with.map(|led| bundles.slots[led.slot].bytes).collect()
                };
                for (peer, other) in all.iter().enumerate() {
                    let sent = sizes(bundles, &bundles.sent, peer);
                    assert_eq!(sent, sizes(other, &other.received, rank), "{hosts:?}");
                }
            }
        }
    }

    #[test]
    fn ranks_of_a_host_agree_and_each_message_is_in_one_bundle() {
        for hosts in HOSTS {
            let (topology, all) = bundles(hosts);
            for (rank, bundles) in all.iter().enumerate() {
                let ranks = topology.ranks_of(topology.host_of(rank));
                assert_eq!(bundles.slots, all[ranks[0]].slots);
                let mine = messages(rank, hosts.len());
                for (found, expected) in
                    [(&bundles.packed, mine.sends.len()), (&bundles.unpacked, mine.recvs.len())]
                {
                    let items = found.iter().flat_map(|items| &items.items);
                    let mut numbers: Vec<_> = items.map(|item| item.number).collect();
                    numbers.sort_unstable();
                    assert_eq!(numbers, (0..expected).collect::<Vec<_>>(), "{hosts:?}");
                }
            }
        }
    }

    #[test]
    fn hosts_send_one_message_for_each_chunk_to_each_other() {
        let (_, all) = bundles(&[0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
        let sent = |bundles: &Bundles| bundles.sent.iter().filter(|led| led.peer.is_some()).count();
        assert_eq!(all.iter().map(sent).sum::<usize>(), 2 * 3 * 2);
        assert!(all.iter().all(|bundles| sent(bundles) <= 2), "leaders take turns");
    }

    #[test]
    fn entries_are_where_their_readers_look() {
        for hosts in HOSTS {
            let (topology, all) = bundles(hosts);
            for (rank, bundles) in all.iter().enumerate() {
                for Items { slot, items } in &bundles.unpacked {
                    let spec = &bundles.slots[*slot];
                    for Item { label, entry, .. } in items {
                        let sender = &all[label.origin];
                        let is_it = |item: &&Item| item.label == *label;
                        let sent = sender.packed.iter().find_map(|items| {
                            Some((items.slot, items.items.iter().find(is_it)?.entry))
                        });
                        let (there, at) = sent.expect("it is sent");
                        let ranks = topology.ranks_of(topology.host_of(label.origin));
                        let index = ranks.binary_search(&label.origin).unwrap();
                        let first = sender.slots[there].offsets(index)[0];
                        assert_eq!((first + at, label.destination), (*entry, rank));
                        assert_eq!(spec.bytes, sender.slots[there].bytes);
                    }
                }
            }
        }
    }
}
