//! Any exchange, a few chunks at a time: memory for their messages is enough.

use std::sync::Arc;

use fft_core::{Algorithm, Error, Exchange, Parcel, Pins, Port, Traffic};

/// Neighbouring chunks of a traffic are an exchange of their own, which ends before the next begins. Messages are read as
/// they come and never kept, so the port must not want to.
pub(crate) struct Rounds {
    inner: Box<dyn Exchange>,
    /// Rounds at most.
    most: usize,
    /// By the number of the reshape.
    known: Vec<(usize, Vec<Round>)>,
    /// Rounds that there have been: each has a number that no other has.
    numbers: usize,
    forwarded: u64,
}

/// The messages of one round, and their numbers in the traffic.
struct Round {
    traffic: Traffic,
    sends: Vec<usize>,
    recvs: Vec<usize>,
}

impl Rounds {
    /// In so many rounds at most.
    pub(crate) fn new(inner: Box<dyn Exchange>, most: usize) -> Self {
        Self { inner, most, known: Vec::new(), numbers: 0, forwarded: 0 }
    }

    fn split(&self, traffic: &Traffic) -> Vec<Round> {
        let chunks = traffic.chunks.max(1);
        let rounds = chunks.min(self.most);
        let of = |parcels: &[Parcel], round| -> (Vec<usize>, Vec<Parcel>) {
            let here = |(_, parcel): &(usize, &Parcel)| {
                parcel.chunk.min(chunks - 1) * rounds / chunks == round
            };
            let copied = |(number, parcel): (usize, &Parcel)| (number, *parcel);
            parcels.iter().enumerate().filter(here).map(copied).unzip()
        };
        let round = |round| {
            let (sends, out) = of(&traffic.sends, round);
            let (recvs, come) = of(&traffic.recvs, round);
            let traffic = Traffic {
                reshape: self.numbers + round,
                chunks,
                shorter: traffic.shorter,
                sends: out,
                recvs: come,
                berths: None,
            };
            Round { traffic, sends, recvs }
        };
        (0..rounds).map(round).collect()
    }
}

/// A port for the messages of one round.
struct Part<'a> {
    port: &'a mut dyn Port,
    round: &'a Round,
    last: bool,
}

impl Port for Part<'_> {
    fn pack(&mut self, number: usize, message: &mut [u8]) -> usize {
        self.port.pack(self.round.sends[number], message)
    }

    fn own(&mut self) {
        if self.last {
            self.port.own();
        }
    }

    fn arrived(&mut self, number: usize, message: &[u8]) -> bool {
        let read = self.port.arrived(self.round.recvs[number], message);
        assert!(read, "a port of exchanges in rounds reads what comes");
        true
    }

    fn finish<'m>(&mut self, _message: &dyn Fn(usize) -> &'m [u8]) {
        if self.last {
            self.port.finish(&|_| &[]);
        }
    }
}

impl Exchange for Rounds {
    fn algorithm(&self) -> Algorithm {
        self.inner.algorithm()
    }

    fn pin(&mut self, pins: Arc<dyn Pins>) {
        self.inner.pin(pins);
    }

    /// As often as there are rounds.
    fn reserve(&mut self, traffic: &Traffic) -> Result<(), Error> {
        self.known.retain(|(reshape, _)| *reshape != traffic.reshape);
        let rounds = self.split(traffic);
        self.numbers += rounds.len();
        // A rank that lacks memory does not keep the others waiting.
        let mut result = Ok(());
        for round in &rounds {
            result = result.and(self.inner.reserve(&round.traffic));
        }
        self.known.push((traffic.reshape, rounds));
        result
    }

    fn run(&mut self, traffic: &Traffic, port: &mut dyn Port) -> Result<(), Error> {
        let Some((_, rounds)) = self.known.iter().find(|(reshape, _)| *reshape == traffic.reshape)
        else {
            let what = format!("reshape {}", traffic.reshape);
            return Err(Error::argument("traffic", what, "one that was reserved for"));
        };
        self.forwarded = 0;
        let mut result = Ok(());
        for (number, round) in rounds.iter().enumerate() {
            let mut part = Part { port, round, last: number + 1 == rounds.len() };
            // Others wait for what is to come, whatever went wrong here.
            result = result.and(self.inner.run(&round.traffic, &mut part));
            self.forwarded += self.inner.forwarded();
        }
        result
    }

    fn forwarded(&self) -> u64 {
        self.forwarded
    }

    fn memory(&self) -> usize {
        self.inner.memory()
    }
}
