//! Discrete-event simulation of the messages of a reshape.
//!
//! A message occupies its sender's processor, then ports in sequence, and finally its receiver's
//! processor. Between hosts it uses the ports of the sender, its host, the receiver's host and the
//! receiver; within a host, the ports of sender and receiver. A message that goes through a slot
//! uses none: it arrives as soon as it is packed.
//!
//! Each port serves messages in order of arrival at its own rate. A message begins at the next port
//! when that is free. Alone, it takes one latency and the time of the slowest port. The network
//! between hosts is not a bottleneck.
//!
//! Times are whole picoseconds. Simultaneous events happen in the order of creation, which makes
//! results equal on every machine.

use std::cmp::Reverse;
use std::ops::Range;

use radix_heap::RadixHeapMap;

use super::message_list::{Message, Schedule};
use super::order::Order;
use crate::problem::Machine;
use crate::problem::Messages;

/// Picoseconds, wide enough for sums of any machine's times.
pub(crate) type Time = u128;

pub(crate) fn picoseconds(seconds: f64) -> Time {
    whole(seconds * 1e12)
}

fn whole(picoseconds: f64) -> Time {
    picoseconds.round().min(LONGEST) as Time
}

/// Maximum time of a single operation.
const LONGEST: f64 = 1e30;

#[derive(Clone, Copy)]
struct Link {
    latency: Time,
    overhead: Time,
    byte: f64,
}

impl Link {
    fn new(messages: &Messages, slowdown: f64) -> Self {
        Self {
            latency: picoseconds(messages.latency.value),
            overhead: picoseconds(messages.overhead.value * slowdown),
            byte: 1e12 / messages.bandwidth.value,
        }
    }
}

#[derive(Clone, Copy)]
enum Event {
    Send(u32),
    /// The first byte of a message reaches the port of its sender's host.
    Leave(u32),
    /// The first byte reaches the port of its receiver's host or, within a host, of its receiver.
    Arrive(u32),
    Complete(u32),
}

/// The time at which a port or processor is free.
type Free = Time;

/// Serves a request that arrives at `at` and takes this long. Returns its start.
fn serve(port: &mut Free, at: Time, takes: Time) -> Time {
    let begins = at.max(*port);
    *port = begins + takes;
    begins
}

#[derive(Clone, Default)]
struct Rank {
    processor: Free,
    far: [Free; 2],
    near: [Free; 2],
    /// The time at which the next message is packed.
    packed: Time,
    out: usize,
    /// Whether a `Send` event of this rank is queued.
    waking: bool,
    finished: Time,
}

const OUT: usize = 0;
const IN: usize = 1;

/// The times of each rank's last packing, and of the arrival of all its messages.
pub(crate) struct Outcome {
    pub(crate) packed: Vec<Time>,
    pub(crate) finished: Vec<Time>,
}

pub(crate) struct EventLoop<'a> {
    schedule: &'a Schedule,
    order: Order,
    far: Link,
    near: Link,
    /// Picoseconds per byte into or out of a host.
    host_byte: f64,
    ranks: Vec<Rank>,
    hosts: Vec<[Free; 2]>,
    /// The unsent messages of each rank.
    rest: Vec<Range<usize>>,
    /// The time at which the last byte of each message has passed its latest port.
    tails: Vec<Time>,
    steps: Steps,
    /// By time and number. No event is created before the present one, as a radix heap requires.
    events: RadixHeapMap<Reverse<(Time, u64)>, Event>,
    pushed: u64,
}

impl<'a> EventLoop<'a> {
    /// A simulation of these messages; [`Order::Pairwise`] needs [matched](Schedule::matched) ones.
    pub(crate) fn new(
        schedule: &'a Schedule,
        machine: &Machine,
        slowdown: f64,
        order: Order,
        rest: Vec<Range<usize>>,
    ) -> Self {
        let steps = match order {
            Order::Pairwise => Steps::new(schedule, &rest),
            _ => Steps::default(),
        };
        Self {
            far: Link::new(&machine.far, slowdown),
            near: Link::new(&machine.near, slowdown),
            host_byte: 1e12 / machine.host_rate(schedule.hosts()),
            ranks: vec![Rank::default(); schedule.ranks()],
            hosts: vec![[0; 2]; schedule.hosts()],
            tails: vec![0; schedule.messages().len()],
            events: RadixHeapMap::new(),
            pushed: 0,
            schedule,
            order,
            rest,
            steps,
        }
    }

    /// Runs from these times of each rank on, with this packing time of each message.
    pub(crate) fn run(mut self, start: &[Time], pack: &dyn Fn(&Message) -> Time) -> Outcome {
        for (rank, start) in start.iter().enumerate() {
            let first = self.rest[rank].clone().next();
            let takes = first.map_or(0, |first| pack(&self.schedule.messages()[first]));
            self.ranks[rank] = Rank {
                processor: *start,
                packed: start + takes,
                finished: *start,
                ..Rank::default()
            };
            self.wake(rank, *start);
        }
        while let Some((Reverse((now, _)), event)) = self.events.pop() {
            match event {
                Event::Send(rank) => self.send(rank as usize, now, pack),
                Event::Leave(number) => self.leave(number, now),
                Event::Arrive(number) => self.arrive(number, now),
                Event::Complete(number) => self.complete(number, now),
            }
        }
        assert!(self.rest.iter().all(Range::is_empty), "every message can be sent");
        let finished = self.ranks.iter().map(|rank| rank.finished.max(rank.packed)).collect();
        Outcome { packed: self.ranks.iter().map(|rank| rank.packed).collect(), finished }
    }

    fn push_event(&mut self, at: Time, event: Event) {
        self.pushed += 1;
        self.events.push(Reverse((at, self.pushed)), event);
    }

    fn wake(&mut self, rank: usize, at: Time) {
        if !self.rest[rank].is_empty() && !std::mem::replace(&mut self.ranks[rank].waking, true) {
            self.push_event(at, Event::Send(rank as u32));
        }
    }

    fn link(&self, message: &Message) -> Link {
        if self.schedule.is_far(message) { self.far } else { self.near }
    }

    /// Sends one message, or waits for the processor, for packing, or for another event.
    fn send(&mut self, from: usize, now: Time, pack: &dyn Fn(&Message) -> Time) {
        self.ranks[from].waking = false;
        let Some(number) = self.rest[from].clone().next() else { return };
        let most = match self.order {
            Order::Pairwise => 1,
            Order::Posted | Order::Put => usize::MAX,
        };
        let message = self.schedule.messages()[number];
        let in_slot = self.schedule.is_in_slot(&message);
        let rank = &self.ranks[from];
        let matched = self.order == Order::Pairwise && !in_slot;
        if rank.out >= most || matched && self.steps.wait(from, number) {
            return;
        }
        let free = rank.processor.max(rank.packed);
        if free > now {
            return self.wake(from, free);
        }
        let (link, far) = (self.link(&message), self.schedule.is_far(&message));
        let takes = whole(message.wire as f64 * link.byte);
        self.rest[from].start += 1;
        let next = self.rest[from].clone().next().map(|next| &self.schedule.messages()[next]);
        let rank = &mut self.ranks[from];
        rank.packed += next.map_or(0, pack);
        if in_slot {
            let receiver = &mut self.ranks[message.to as usize];
            receiver.finished = receiver.finished.max(now);
            return self.wake(from, now);
        }
        rank.out += 1;
        rank.processor = now + link.overhead;
        let at = rank.processor;
        let port = if far { &mut rank.far[OUT] } else { &mut rank.near[OUT] };
        let begins = serve(port, at, takes);
        self.tails[number] = begins + takes;
        let event = number as u32;
        if far {
            self.push_event(begins, Event::Leave(event));
        } else {
            self.tails[number] += link.latency;
            self.push_event(begins + link.latency, Event::Arrive(event));
        }
        self.wake(from, at);
    }

    fn leave(&mut self, number: u32, now: Time) {
        let message = self.schedule.messages()[number as usize];
        let takes = whole(message.wire as f64 * self.host_byte);
        let host = self.schedule.host(message.from as usize);
        let begins = serve(&mut self.hosts[host][OUT], now, takes);
        let tail = &mut self.tails[number as usize];
        *tail = (*tail).max(begins + takes) + self.far.latency;
        self.push_event(begins + self.far.latency, Event::Arrive(number));
    }

    fn arrive(&mut self, number: u32, now: Time) {
        let message = self.schedule.messages()[number as usize];
        let (to, far) = (message.to as usize, self.schedule.is_far(&message));
        let (mut begins, mut tail) = (now, self.tails[number as usize]);
        if far {
            let takes = whole(message.wire as f64 * self.host_byte);
            begins = serve(&mut self.hosts[self.schedule.host(to)][IN], now, takes);
            tail = tail.max(begins + takes);
        }
        let takes = whole(message.wire as f64 * self.link(&message).byte);
        let rank = &mut self.ranks[to];
        let port = if far { &mut rank.far[IN] } else { &mut rank.near[IN] };
        begins = serve(port, begins, takes);
        self.push_event(tail.max(begins + takes), Event::Complete(number));
    }

    fn complete(&mut self, number: u32, now: Time) {
        let message = self.schedule.messages()[number as usize];
        let (from, to) = (message.from as usize, message.to as usize);
        let overhead = match self.order {
            // Puts need no action of the receiver.
            Order::Put => 0,
            _ => self.link(&message).overhead,
        };
        let sender = &mut self.ranks[from];
        sender.out -= 1;
        sender.finished = sender.finished.max(now);
        let receiver = &mut self.ranks[to];
        let read = serve(&mut receiver.processor, now, overhead) + overhead;
        receiver.finished = receiver.finished.max(read);
        match self.order {
            Order::Posted | Order::Put => {}
            Order::Pairwise => {
                self.steps.arrived(number as usize);
                self.wake(from, now);
                self.wake(to, read);
            }
        }
    }
}

/// Matched steps: in step d, a rank sends to the rank d after it and receives from the rank d
/// before it. A step begins once all messages of earlier steps have arrived.
#[derive(Default)]
struct Steps {
    step: Vec<u32>,
    there: Vec<bool>,
    /// The messages to each rank, by step, and the number of leading ones that have arrived.
    incoming: Vec<Vec<u32>>,
    seen: Vec<usize>,
}

impl Steps {
    fn new(schedule: &Schedule, lists: &[Range<usize>]) -> Self {
        let (messages, ranks) = (schedule.messages(), schedule.ranks());
        let step =
            |message: &Message| (message.to as usize + ranks - message.from as usize) % ranks;
        let mut incoming = vec![Vec::new(); ranks];
        let sent = |number: &usize| !schedule.is_in_slot(&messages[*number]);
        for number in lists.iter().cloned().flatten().filter(sent) {
            incoming[messages[number].to as usize].push(number as u32);
        }
        let step: Vec<_> = messages.iter().map(|message| step(message) as u32).collect();
        for list in &mut incoming {
            list.sort_by_key(|number| step[*number as usize]);
        }
        Self { step, there: vec![false; messages.len()], incoming, seen: vec![0; ranks] }
    }

    fn arrived(&mut self, number: usize) {
        self.there[number] = true;
    }

    /// Whether a rank must wait before it sends this message.
    fn wait(&mut self, rank: usize, number: usize) -> bool {
        let (list, seen) = (&self.incoming[rank], &mut self.seen[rank]);
        while list.get(*seen).is_some_and(|first| self.there[*first as usize]) {
            *seen += 1;
        }
        list.get(*seen).is_some_and(|first| self.step[*first as usize] < self.step[number])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Quantity;

    /// Far: latency 5 µs, overhead 1 µs, 1 GB/s for a rank. Near: 2 µs, 0.5 µs, 4 GB/s.
    fn machine(host: f64) -> Machine {
        let messages = |latency, overhead, bandwidth| Messages {
            latency: Quantity::measured(latency),
            overhead: Quantity::measured(overhead),
            bandwidth: Quantity::measured(bandwidth),
        };
        Machine {
            far: messages(5e-6, 1e-6, 1e9),
            near: messages(2e-6, 5e-7, 4e9),
            host: Quantity::measured(host),
            ..Machine::default()
        }
    }

    fn outcome(schedule: &Schedule, machine: &Machine, order: Order, pack: Time) -> Outcome {
        let all = (0..schedule.ranks()).map(|rank| schedule.places(rank)).collect();
        let start = vec![0; schedule.ranks()];
        EventLoop::new(schedule, machine, 1.0, order, all).run(&start, &|_| pack)
    }

    fn finished(schedule: &Schedule, machine: &Machine, order: Order) -> Vec<Time> {
        outcome(schedule, machine, order, 0).finished
    }

    /// Exact nanoseconds.
    fn ns(times: &[Time]) -> Vec<Time> {
        assert!(times.iter().all(|time| time % 1000 == 0), "{times:?}");
        times.iter().map(|time| time / 1000).collect()
    }

    /// Every rank of `hosts` to every other.
    fn all_to_all(hosts: &[usize], bytes: u64) -> Schedule {
        let ranks = hosts.len() as u32;
        let to = |from| (1..ranks).map(move |step| (from, (from + step) % ranks, bytes));
        Schedule::of_messages(hosts, &(0..ranks).flat_map(to).collect::<Vec<_>>())
    }

    #[test]
    fn one_message_takes_a_latency_two_overheads_and_the_slowest_port() {
        for (host, slowest) in [(1e9, 1), (5e8, 2), (8e9, 1)] {
            let far = Schedule::of_messages(&[0, 1], &[(0, 1, 100_000)]);
            let found = ns(&finished(&far, &machine(host), Order::Posted));
            let there = 1_000 + 5_000 + 100_000 * slowest;
            assert_eq!(found, [there, there + 1_000], "host at {host}");
        }
        let near = Schedule::of_messages(&[0, 0], &[(0, 1, 100_000)]);
        let found = ns(&finished(&near, &machine(1e6), Order::Posted));
        assert_eq!(found, [27_500, 28_000]);
        // Puts need no action of the receiver.
        let put = ns(&finished(&near, &machine(1e6), Order::Put));
        assert_eq!(put, [27_500, 27_500]);
    }

    #[test]
    fn an_incast_stands_in_line_at_the_port_of_the_host_or_of_the_rank() {
        for (host, slowest) in [(5e8, 2), (4e9, 1)] {
            for n in [2u32, 7, 40] {
                let hosts: Vec<_> = (0..=n as usize).collect();
                let list: Vec<_> = (1..=n).map(|from| (from, 0, 50_000)).collect();
                let schedule = Schedule::of_messages(&hosts, &list);
                let found = ns(&finished(&schedule, &machine(host), Order::Posted));
                let all = 1_000 + 5_000 + Time::from(n) * 50_000 * slowest;
                assert_eq!(found[0], all + 1_000, "{n} to one, host at {host}");
                assert_eq!(found[1], 6_000 + 50_000 * slowest);
                assert_eq!(found[n as usize], all);
            }
        }
    }

    #[test]
    fn a_full_exchange_in_rotation_keeps_all_ports_busy() {
        let hosts: Vec<_> = (0..9).collect();
        let found = ns(&finished(&all_to_all(&hosts, 20_000), &machine(5e8), Order::Posted));
        assert_eq!(found, [1_000 + 5_000 + 8 * 40_000 + 1_000; 9]);
        // With 6 ranks on each of 8 hosts, the ports of hosts are the bottleneck.
        let hosts: Vec<_> = (0..48).map(|rank| rank / 6).collect();
        let schedule = all_to_all(&hosts, 100_000);
        let most = *finished(&schedule, &machine(2e9), Order::Posted).iter().max().unwrap();
        let bound = 6 * 42 * 100_000 * 500;
        assert!((bound..bound * 103 / 100).contains(&most), "{most} ps of {bound}");
        // With one small message at a time, latencies add up.
        let schedule = all_to_all(&hosts, 1_000);
        let most =
            |order| *finished(&schedule.matched(), &machine(2e9), order).iter().max().unwrap();
        let (posted, matched) = (most(Order::Posted), most(Order::Pairwise));
        assert!(matched > 2 * posted && matched > 42 * 7_000_000, "{posted}, {matched} ps");
    }

    #[test]
    fn matched_steps_follow_each_other() {
        // Two ranks exchange: a step is overhead, latency, bytes, overhead.
        let list = [(0, 1, 10_000), (0, 2, 10_000), (1, 2, 10_000), (2, 1, 10_000)];
        let schedule = Schedule::of_messages(&[0, 1, 2], &list).matched();
        let found = ns(&finished(&schedule, &machine(1e9), Order::Pairwise));
        // Step 1: 0 to 1, 1 to 2. Step 2: 0 to 2, once 0 has sent; 2 to 1, once 2 has received.
        assert_eq!(found, [32_000, 34_000, 33_000]);
    }

    #[test]
    fn packing_goes_on_while_messages_fly() {
        let list: Vec<_> = (0..10).map(|_| (0, 1, 10_000)).collect();
        let schedule = Schedule::of_messages(&[0, 1], &list);
        let end = |pack| {
            *outcome(&schedule, &machine(1e9), Order::Posted, pack).finished.iter().max().unwrap()
        };
        // Fast packing adds the first packing only; slow packing, the last transfer only.
        assert_eq!(end(4_000_000), 4_000_000 + end(0));
        assert_eq!(end(30_000_000), 10 * 30_000_000 + 17_000_000);
    }

    #[test]
    fn it_is_the_same_every_time_and_no_order_loses_a_message() {
        let hosts = [0, 0, 1, 2, 2, 2, 1];
        let mut list = Vec::new();
        let mut random = 7u64;
        for step in 1..7 {
            for from in 0..7u32 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                if random >> 62 != 0 {
                    list.push((from, (from + step) % 7, random >> 45));
                }
            }
        }
        let schedule = Schedule::of_messages(&hosts, &list);
        let to = |rank: u32| list.iter().filter(move |(_, to, _)| *to == rank);
        for order in [Order::Posted, Order::Pairwise, Order::Put] {
            let found = finished(&schedule, &machine(2e9), order);
            assert_eq!(found, finished(&schedule, &machine(2e9), order));
            for (rank, finished) in found.iter().enumerate() {
                // No port exceeds its bandwidth.
                let far = |(from, ..): &&(u32, u32, u64)| hosts[*from as usize] != hosts[rank];
                let bytes: u64 = to(rank as u32).filter(far).map(|(.., bytes)| bytes).sum();
                assert!(*finished >= Time::from(bytes) * 1_000, "rank {rank}");
            }
        }
    }
}
