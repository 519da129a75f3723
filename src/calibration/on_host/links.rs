//! Measurements of messages: between ranks of a host, and between hosts.

use std::time::{Duration, Instant};

use fft_core::{Comm, Error, Flight, Reduce, Topology, agree};

use super::rates::{REPEATS, least};

/// Bytes of a message whose cost is overhead.
const SMALL: usize = 64;
const BURST: usize = 64;
/// Bytes of a message whose cost is bandwidth: a chunk, as plans send them.
const LARGE: usize = 1 << 19;
/// Large messages in one timing, at most.
const MOST: usize = 64;
/// Seconds that they should take.
const LONG: f64 = 0.03;
const ROUNDS: usize = 50;
/// The interval at which a sleeping rank tests for the message that wakes it.
const NAP: Duration = Duration::from_millis(1);

/// The ranks by hosts, and a flight between them.
pub(super) struct Links<'a> {
    comm: &'a dyn Comm,
    flight: Box<dyn Flight>,
    pub(super) hosts: Topology,
}

impl<'a> Links<'a> {
    pub(super) fn new(comm: &'a dyn Comm) -> Result<Self, Error> {
        let flight = agree(comm, comm.flight(None))?;
        Ok(Self { comm, flight, hosts: comm.topology() })
    }

    /// Broadcasts the result of the first of the `active` ranks. The other ranks sleep meanwhile
    /// and use no processor time. Collective.
    pub(super) fn while_others_sleep<const N: usize>(
        &mut self,
        active: &[usize],
        work: impl FnOnce(&mut dyn Flight) -> Result<[f64; N], Error>,
    ) -> Result<[f64; N], Error> {
        let (rank, size) = (self.comm.rank(), self.comm.size());
        let (leader, flight) = (active[0], self.flight.as_mut());
        let sleepers: Vec<usize> = (0..size).filter(|r| !active.contains(r)).collect();
        let reserved = flight.reserve(&vec![SMALL; sleepers.len().max(1)], &[SMALL]);
        agree(self.comm, reserved)?;
        let mut found = [f64::NEG_INFINITY; N];
        let mut result = Ok(());
        if active.contains(&rank) {
            match work(flight) {
                Ok(values) if rank == leader => found = values,
                Ok(_) => {}
                Err(error) => result = Err(error),
            }
        }
        // Also after an error, because the others wait to be woken.
        let done = match rank {
            _ if rank == leader => wake(flight, &sleepers),
            _ if active.contains(&rank) => Ok(()),
            _ => sleep(flight, leader),
        };
        agree(self.comm, result.and(done))?;
        self.comm.allreduce(Reduce::Max, &mut found)?;
        Ok(found)
    }

    /// `[latency, overhead, bandwidth]` of messages between ranks of a host; `None` if each is
    /// alone. Collective.
    pub(super) fn near(&mut self, oversubscription: f64) -> Result<Option<[f64; 3]>, Error> {
        let hosts = &self.hosts;
        let mut ranks = (0..hosts.hosts()).map(|host| hosts.ranks_of(host));
        let Some(&[first, second, ..]) = ranks.find(|ranks| ranks.len() > 1) else {
            return Ok(None);
        };
        let pair = [first, second];
        let next = |ranks: &[usize], place: usize| {
            (ranks.len() > 1).then(|| ranks[(place + 1) % ranks.len()])
        };
        let ring = self.targets(|host, place| next(hosts.ranks_of(host), place));
        let bandwidth = self.bandwidth(&ring)?;
        let [latency, overhead] = self.small(pair, &ring, oversubscription)?;
        Ok(Some([latency, overhead, bandwidth]))
    }

    /// The same between hosts, with one rank of each sending, and the bytes per second out of the
    /// fullest host when all ranks send. `None` on one host. Collective.
    pub(super) fn far(&mut self, oversubscription: f64) -> Result<Option<([f64; 3], f64)>, Error> {
        let count = self.hosts.hosts();
        if count == 1 {
            return Ok(None);
        }
        let pair = [0, 1].map(|host| self.hosts.ranks_of(host)[0]);
        let peer = |host: usize, place: usize| {
            let next = self.hosts.ranks_of((host + 1) % count);
            next[place % next.len()]
        };
        let all = self.targets(|host, place| Some(peer(host, place)));
        let firsts = self.targets(|host, place| (place == 0).then(|| peer(host, place)));
        let bandwidth = self.bandwidth(&firsts)?;
        let ranks_per_host = self.hosts.ranks_per_host();
        let host = if ranks_per_host == 1 {
            bandwidth
        } else {
            ranks_per_host as f64 * self.bandwidth(&all)?
        };
        let [latency, overhead] = self.small(pair, &all, oversubscription)?;
        Ok(Some(([latency, overhead, bandwidth], host.max(bandwidth))))
    }

    /// The target of each rank, from the number of its host and its place there.
    fn targets(&self, of: impl Fn(usize, usize) -> Option<usize>) -> Vec<Option<usize>> {
        let mut targets = vec![None; self.comm.size()];
        for host in 0..self.hosts.hosts() {
            for (place, &rank) in self.hosts.ranks_of(host).iter().enumerate() {
                targets[rank] = of(host, place);
            }
        }
        targets
    }

    /// Latency and overhead. A message arrives after the latency and the overheads of both ends.
    fn small(
        &mut self,
        pair: [usize; 2],
        targets: &[Option<usize>],
        oversubscription: f64,
    ) -> Result<[f64; 2], Error> {
        let mut bursts = [0.0; REPEATS];
        for seconds in &mut bursts {
            *seconds = self.time(targets, SMALL, BURST)?;
        }
        let overhead = least(&bursts) / (2 * BURST) as f64 / oversubscription;
        let rank = self.comm.rank();
        let [there] = self.while_others_sleep(&pair, |flight| {
            let mut times = [0.0; REPEATS];
            for seconds in &mut times {
                *seconds = ping_pong(flight, rank, pair)? / (2 * ROUNDS) as f64;
            }
            Ok([least(&times)])
        })?;
        Ok([(there - 2.0 * overhead).max(0.0), overhead])
    }

    /// Bytes per second that each rank sends when all do. Collective.
    fn bandwidth(&mut self, targets: &[Option<usize>]) -> Result<f64, Error> {
        self.time(targets, LARGE, 1)?;
        let once = self.time(targets, LARGE, 1)?;
        // The same on all ranks, as the time is.
        let count = (LONG / once).clamp(1.0, MOST as f64) as usize;
        let mut times = [0.0; REPEATS];
        for seconds in &mut times {
            *seconds = self.time(targets, LARGE, count)?;
        }
        Ok((LARGE * count) as f64 / least(&times))
    }

    /// Seconds in which every rank sends `count` messages to its target and receives those for it.
    /// Collective.
    fn time(
        &mut self,
        targets: &[Option<usize>],
        bytes: usize,
        count: usize,
    ) -> Result<f64, Error> {
        let rank = self.comm.rank();
        let sources: Vec<usize> =
            (0..targets.len()).filter(|&from| targets[from] == Some(rank)).collect();
        let sends = vec![bytes; if targets[rank].is_some() { count } else { 0 }];
        let recvs = vec![bytes; sources.len() * count];
        agree(self.comm, self.flight.reserve(&sends, &recvs))?;
        self.comm.barrier()?;
        let start = Instant::now();
        let result = exchange(self.flight.as_mut(), targets[rank], &sources, bytes, count);
        let mut seconds = [start.elapsed().as_secs_f64()];
        agree(self.comm, result)?;
        self.comm.allreduce(Reduce::Max, &mut seconds)?;
        // A rate must be finite, whatever the resolution of the clock.
        Ok(seconds[0].max(1e-9))
    }
}

/// One exchange as plans do it: all receives are posted first.
fn exchange(
    flight: &mut dyn Flight,
    target: Option<usize>,
    sources: &[usize],
    bytes: usize,
    count: usize,
) -> Result<(), Error> {
    for _ in 0..count {
        for &from in sources {
            flight.post_recv(from, bytes)?;
        }
    }
    for to in target.iter().cycle().take(count * usize::from(target.is_some())) {
        let slot = flight.slot(bytes)?;
        flight.send(*to, bytes, slot)?;
        while let Some(arrival) = flight.test_any()? {
            flight.recycle(arrival);
        }
    }
    drain(flight)
}

fn drain(flight: &mut dyn Flight) -> Result<(), Error> {
    while let Some(arrival) = flight.wait_any()? {
        flight.recycle(arrival);
    }
    flight.wait_all()
}

/// Seconds of [`ROUNDS`] messages from the first of the pair to the second and back.
fn ping_pong(flight: &mut dyn Flight, rank: usize, pair: [usize; 2]) -> Result<f64, Error> {
    let first = rank == pair[0];
    let peer = if first { pair[1] } else { pair[0] };
    let start = Instant::now();
    for _ in 0..ROUNDS {
        flight.post_recv(peer, SMALL)?;
        if first {
            let slot = flight.slot(SMALL)?;
            flight.send(peer, SMALL, slot)?;
        }
        if let Some(arrival) = flight.wait_any()? {
            flight.recycle(arrival);
        }
        if !first {
            let slot = flight.slot(SMALL)?;
            flight.send(peer, SMALL, slot)?;
        }
        flight.wait_all()?;
    }
    Ok(start.elapsed().as_secs_f64())
}

fn wake(flight: &mut dyn Flight, sleepers: &[usize]) -> Result<(), Error> {
    for &to in sleepers {
        let slot = flight.slot(SMALL)?;
        flight.send(to, SMALL, slot)?;
    }
    flight.wait_all()
}

/// Sleeps until rank `by` sends a message.
fn sleep(flight: &mut dyn Flight, by: usize) -> Result<(), Error> {
    flight.post_recv(by, SMALL)?;
    let arrival = loop {
        match flight.test_any()? {
            Some(arrival) => break arrival,
            None => std::thread::sleep(NAP),
        }
    };
    flight.recycle(arrival);
    flight.wait_all()
}
