//! Messages between hosts that are sent as one.

use std::collections::BTreeMap;

use super::{Message, Schedule, number};
use crate::geometry::Topology;

impl Schedule {
    /// The messages of each chunk from all ranks of a host to all ranks of another, as one between
    /// leaders. Messages within a host go through slots.
    pub(super) fn bundled(&self, hosts: &Topology) -> Self {
        let mut bundles = BTreeMap::<[u32; 4], Message>::new();
        for message in &self.messages {
            let Message { from, to, chunk, bytes, wire } = *message;
            let [here, there] = [from, to].map(|rank| hosts.host_of(rank as usize));
            let leader = |host, other| number(hosts.leader(host, other, chunk as usize));
            let (from, to) = if self.is_far(message) {
                (leader(here, there), leader(there, here))
            } else {
                (from, to)
            };
            // Each host begins with another, and packs what stays on it last.
            let distance = number((there + self.hosts - here - 1) % self.hosts);
            let bundle = bundles.entry([from, chunk, distance, to]);
            let bundle = bundle.or_insert(Message { from, to, chunk, bytes: 0, wire: 0 });
            (bundle.bytes, bundle.wire) = (bundle.bytes + bytes, bundle.wire + wire);
        }
        let messages: Vec<_> = bundles.into_values().collect();
        let until = |rank| messages.partition_point(|message| (message.from as usize) < rank);
        let first = (0..=self.ranks()).map(until).collect();
        Self { messages, first, slots: true, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Precision;
    use crate::geometry::{DynGrid, Layout, ProcGrid};
    use crate::problem::{Exchange, Kind, Machine, Problem};
    use crate::recipe::Recipe;
    use crate::simulate::{Order, Simulator};

    const HOSTS: [&[usize]; 5] =
        [&[0; 4], &[0, 0, 1, 1], &[0, 1, 0, 1, 0], &[0, 0, 0, 1, 2, 2], &[0, 1, 2]];
    const CHUNKS: u32 = 3;

    /// Every rank to every other, in chunks.
    fn all_to_all(hosts: &[usize]) -> Schedule {
        let ranks = hosts.len() as u32;
        let others = |from| (1..ranks).map(move |step| (from, (from + step) % ranks));
        let chunks = |from| (0..CHUNKS).flat_map(move |_| others(from));
        let list =
            (0..ranks).flat_map(chunks).map(|(from, to)| (from, to, u64::from(8 + from * to)));
        let mut made = Schedule::of_messages(hosts, &list.collect::<Vec<_>>());
        for (at, message) in made.messages.iter_mut().enumerate() {
            message.chunk = at as u32 / (ranks - 1) % CHUNKS;
        }
        made
    }

    /// One reshape without transforms.
    fn reshape(cuts: [[usize; 3]; 2], hosts: usize, exchange: Exchange) -> Recipe {
        let ranks = cuts[0].iter().product();
        let grid = DynGrid::new([64; 3]).unwrap();
        let [from, to] = cuts.map(|cut| Layout::even(grid, ProcGrid::new(cut), ranks));
        let mut problem = Problem::new([Kind::None; 3], true, Precision::F64, from, to).unwrap();
        problem.hosts = (0..ranks).map(|rank| rank * hosts / ranks).collect();
        problem.options.exchange = exchange;
        Recipe::new(problem).unwrap()
    }

    #[test]
    fn a_host_sends_one_message_per_chunk_to_each_other() {
        for hosts in HOSTS {
            let (all, topology) = (all_to_all(hosts), Topology::new(hosts, hosts.len()));
            let bundled = all.bundled(&topology);
            let [before, after] = [&all, &bundled].map(Schedule::summary);
            let n = topology.hosts();
            assert_eq!(after.messages, n * (n - 1) * CHUNKS as usize, "{hosts:?}");
            assert_eq!([after.near, after.far], [before.near, before.far], "{hosts:?}");
            assert_eq!((after.host_most, after.host_mean), (before.host_most, before.host_mean));
            for rank in 0..all.ranks() {
                let list = bundled.of_rank(rank);
                assert!(list.iter().all(|message| message.from as usize == rank));
                assert!(list.is_sorted_by_key(|message| message.chunk));
            }
            for message in bundled.messages() {
                let [from, to] = [message.from, message.to].map(|rank| rank as usize);
                let [here, there] = [from, to].map(|rank| topology.host_of(rank));
                assert_eq!(bundled.is_in_slot(message), here == there);
                if here == there {
                    assert!(all.of_rank(from).contains(message), "it is sent as it was");
                    continue;
                }
                let chunk = message.chunk as usize;
                assert_eq!(from, topology.leader(here, there, chunk));
                assert_eq!(to, topology.leader(there, here, chunk));
                let hosts = |it: &&Message| [it.from, it.to].map(|rank| all.host(rank as usize));
                let of_chunk = |it: &&Message| it.chunk == message.chunk;
                let parts = all.messages().iter().filter(|it| hosts(it) == [here, there]);
                let bytes: u64 = parts.filter(of_chunk).map(|it| it.bytes).sum();
                assert_eq!((message.bytes, message.wire), (bytes, bytes));
            }
        }
    }

    #[test]
    fn messages_within_hosts_occupy_no_port() {
        // Slabs to slabs: each rank has messages for all others.
        let of = |exchange| reshape([[12, 1, 1], [1, 12, 1]], 3, exchange);
        let mut slow = Machine::default();
        slow.near.latency.value = 1.0;
        slow.near.overhead.value = 1.0;
        slow.near.bandwidth.value = 1.0;
        for order in [Order::Posted, Order::Pairwise] {
            let seconds = |recipe: &Recipe, machine: &Machine| {
                Simulator::new(recipe).run(machine, Some(order)).seconds
            };
            let (hosts, others) = (of(Exchange::Hosts), of(Exchange::P2p));
            assert_eq!(seconds(&hosts, &slow), seconds(&hosts, &Machine::default()));
            assert!(seconds(&others, &slow) > 1.0);
        }
        let recipe = of(Exchange::Hosts);
        let (_, schedule) = Schedule::of(&recipe).remove(0);
        assert!(schedule.messages().iter().any(|message| schedule.is_in_slot(message)));
        // No leader has more peers than there are other hosts.
        assert!(schedule.summary().peers <= 2);
    }

    #[test]
    fn reshapes_within_hosts_take_what_is_predicted() {
        for hosts in [1, 2] {
            let recipe = reshape([[2, 4, 1], [2, 1, 4]], hosts, Exchange::Hosts);
            let machine = &recipe.problem().machine;
            let simulator = Simulator::new(&recipe);
            let summary = simulator.schedules()[0].1.summary();
            assert_eq!((summary.messages, summary.far), (0, 0), "{hosts}");
            let simulated = simulator.run(machine, None).seconds;
            // Local data is moved while a rank waits for the others of its host.
            let predicted = recipe.predict().seconds - machine.barrier.value;
            assert!((simulated / predicted - 1.0).abs() < 1e-6, "{simulated} {predicted}");
        }
    }
}
