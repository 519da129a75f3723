//! Any exchange in rounds of a few chunks, with memory for one round.

use std::sync::Arc;

use fft_core::{
    Error, Exchange, Exchanger, MessageHandler, MessagePlan, MessageSpec, PinnedMemory,
};

use super::messages::unreserved;

/// A few consecutive chunks form an exchange of their own, which ends before the next begins. The
/// handler must read messages as they arrive. A plan that needs memory for all messages at once is
/// one round.
pub(crate) struct Rounds {
    inner: Box<dyn Exchanger>,
    /// Rounds at most.
    most: usize,
    /// By the number of the reshape.
    known: Vec<(usize, Vec<Round>)>,
    forwarded: u64,
}

/// The messages of one round, and their numbers in the whole plan.
struct Round {
    message_plan: MessagePlan,
    sends: Vec<usize>,
    recvs: Vec<usize>,
}

impl Round {
    fn memory(&self) -> usize {
        let numbers = size_of_val(&*self.sends) + size_of_val(&*self.recvs);
        size_of::<Self>() + self.message_plan.list_bytes() + numbers
    }
}

impl Rounds {
    pub(crate) fn new(inner: Box<dyn Exchanger>, most: usize) -> Self {
        Self { inner, most, known: Vec::new(), forwarded: 0 }
    }

    fn split(&self, message_plan: &MessagePlan) -> Vec<Round> {
        let chunks = message_plan.chunks.max(1);
        let rounds = if message_plan.buffers_all { 1 } else { chunks.min(self.most) };
        let of = |specs: &[MessageSpec], round| -> (Vec<usize>, Vec<MessageSpec>) {
            let here = |(_, spec): &(usize, &MessageSpec)| {
                spec.chunk.min(chunks - 1) * rounds / chunks == round
            };
            let copied = |(number, spec): (usize, &MessageSpec)| (number, *spec);
            let (mut numbers, mut specs): (Vec<_>, Vec<_>) =
                specs.iter().enumerate().filter(here).map(copied).unzip();
            numbers.shrink_to_fit();
            specs.shrink_to_fit();
            (numbers, specs)
        };
        let round = |round| {
            let (sends, out) = of(&message_plan.sends, round);
            let (recvs, come) = of(&message_plan.recvs, round);
            let message_plan = MessagePlan {
                // Unique among rounds, and the same whenever the reshape is reserved for.
                reshape: message_plan.reshape << (usize::BITS / 2) | round,
                // One chunk to the inner exchange, which has memory for all of it.
                chunks: 1,
                shorter: message_plan.shorter,
                buffers_all: true,
                sends: out,
                recvs: come,
                buffers: None,
            };
            Round { message_plan, sends, recvs }
        };
        (0..rounds).map(round).collect()
    }
}

struct Part<'a> {
    handler: &'a mut dyn MessageHandler,
    round: &'a Round,
    last: bool,
}

impl MessageHandler for Part<'_> {
    fn pack(&mut self, number: usize, message: &mut [u8]) -> usize {
        self.handler.pack(self.round.sends[number], message)
    }

    fn own(&mut self) {
        if self.last {
            self.handler.own();
        }
    }

    fn arrived(&mut self, number: usize, message: &[u8]) -> bool {
        let read = self.handler.arrived(self.round.recvs[number], message);
        assert!(read, "a handler of exchanges in rounds reads what comes");
        true
    }

    fn finish<'m>(&mut self, _message: &dyn Fn(usize) -> &'m [u8]) {
        if self.last {
            self.handler.finish(&|_| &[]);
        }
    }
}

impl Exchanger for Rounds {
    fn exchange(&self) -> Exchange {
        self.inner.exchange()
    }

    fn pin(&mut self, pins: Arc<dyn PinnedMemory>) {
        self.inner.pin(pins);
    }

    fn reserve(&mut self, message_plan: &MessagePlan) -> Result<(), Error> {
        self.known.retain(|(reshape, _)| *reshape != message_plan.reshape);
        let rounds = self.split(message_plan);
        // Also after an error, because reserving is collective.
        let mut result = Ok(());
        for round in &rounds {
            result = result.and(self.inner.reserve(&round.message_plan));
        }
        self.known.push((message_plan.reshape, rounds));
        result
    }

    fn run(
        &mut self,
        message_plan: &MessagePlan,
        handler: &mut dyn MessageHandler,
    ) -> Result<(), Error> {
        let Some((_, rounds)) =
            self.known.iter().find(|(reshape, _)| *reshape == message_plan.reshape)
        else {
            return Err(unreserved(message_plan));
        };
        // Its messages have the handler's numbers, and may be kept.
        if let [only] = &rounds[..] {
            let result = self.inner.run(&only.message_plan, handler);
            self.forwarded = self.inner.forwarded();
            return result;
        }
        self.forwarded = 0;
        let mut result = Ok(());
        for (number, round) in rounds.iter().enumerate() {
            let mut part = Part { handler, round, last: number + 1 == rounds.len() };
            // Also after an error, because others wait for the remaining rounds.
            result = result.and(self.inner.run(&round.message_plan, &mut part));
            self.forwarded += self.inner.forwarded();
        }
        result
    }

    fn forwarded(&self) -> u64 {
        self.forwarded
    }

    fn memory(&self) -> usize {
        let rounds = self.known.iter().flat_map(|(_, rounds)| rounds);
        self.inner.memory() + rounds.map(Round::memory).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    /// A rank's message plan in `chunks` chunks, each with a message to all but every third rank;
    /// every other rank has one chunk less.
    fn message_plan(rank: usize, ranks: usize, chunks: usize) -> MessagePlan {
        let there = |from: usize, to: usize, chunk: usize| {
            from != to && !(from + to + chunk).is_multiple_of(3) && chunk + from % 2 < chunks.max(1)
        };
        let specs = |there: &dyn Fn(usize, usize) -> bool| -> Vec<MessageSpec> {
            let all =
                (0..chunks.max(1)).flat_map(|chunk| (0..ranks).map(move |peer| (chunk, peer)));
            let spec = |(chunk, peer)| MessageSpec { peer, bytes: 10 * chunk + peer, chunk };
            all.filter(|&(chunk, peer)| there(peer, chunk)).map(spec).collect()
        };
        MessagePlan {
            reshape: 3,
            chunks,
            shorter: true,
            buffers_all: false,
            sends: specs(&|peer, chunk| there(rank, peer, chunk)),
            recvs: specs(&|peer, chunk| there(peer, rank, chunk)),
            buffers: None,
        }
    }

    /// Records the plans that it was reserved for.
    struct Inner(Sender<usize>);

    impl Exchanger for Inner {
        fn exchange(&self) -> Exchange {
            Exchange::P2p
        }

        fn reserve(&mut self, message_plan: &MessagePlan) -> Result<(), Error> {
            self.0.send(message_plan.reshape).expect("the test listens");
            Ok(())
        }

        fn run(
            &mut self,
            _traffic: &MessagePlan,
            _port: &mut dyn MessageHandler,
        ) -> Result<(), Error> {
            Ok(())
        }

        fn memory(&self) -> usize {
            0
        }
    }

    fn split(message_plan: &MessagePlan, most: usize) -> Vec<Round> {
        Rounds::new(Box::new(Inner(channel().0)), most).split(message_plan)
    }

    const CASES: [(usize, usize); 8] =
        [(0, 64), (1, 64), (1, 1), (7, 1), (7, 3), (64, 64), (65, 64), (100, usize::MAX)];

    #[test]
    fn every_message_is_of_one_round_and_in_the_order_of_its_traffic() {
        for (chunks, most) in CASES {
            let message_plan = message_plan(1, 5, chunks);
            let rounds = split(&message_plan, most);
            assert_eq!(rounds.len(), chunks.clamp(1, most), "{chunks} chunks, {most} at most");
            type Side = (fn(&Round) -> &[usize], fn(&MessagePlan) -> &[MessageSpec]);
            let sides: [Side; 2] = [(|r| &r.sends, |t| &t.sends), (|r| &r.recvs, |t| &t.recvs)];
            for (numbers, specs) in sides {
                for round in &rounds {
                    let here = numbers(round).iter().map(|n| specs(&message_plan)[*n]);
                    assert!(specs(&round.message_plan).iter().copied().eq(here));
                    assert!(numbers(round).is_sorted_by(|a, b| a < b));
                    assert_eq!((round.message_plan.shorter, round.message_plan.chunks), (true, 1));
                }
                // As chunks are in order of numbers, rounds are of neighbouring chunks.
                let all: Vec<_> = rounds.iter().flat_map(numbers).copied().collect();
                assert_eq!(all, (0..specs(&message_plan).len()).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn what_is_to_be_there_at_once_is_one_round() {
        for (chunks, most) in CASES {
            let message_plan = MessagePlan { buffers_all: true, ..message_plan(1, 5, chunks) };
            let rounds = split(&message_plan, most);
            let [only] = &rounds[..] else { panic!("{} rounds of {chunks} chunks", rounds.len()) };
            assert_eq!(
                (&only.message_plan.sends, &only.message_plan.recvs),
                (&message_plan.sends, &message_plan.recvs)
            );
            assert!(
                only.message_plan.buffers_all
                    && only.sends.iter().copied().eq(0..message_plan.sends.len())
            );
        }
    }

    #[test]
    fn rounds_have_as_many_chunks_as_others_or_one_more() {
        for (chunks, most) in CASES {
            let rounds = split(&message_plan(0, 7, chunks), most);
            let of = |round: &Round| {
                let mut of: Vec<_> = round.message_plan.sends.iter().map(|p| p.chunk).collect();
                of.dedup();
                of.len()
            };
            let (least, even) = (rounds.iter().map(of).min(), chunks.max(1) / rounds.len());
            assert!(least >= Some(even), "{least:?} in a round, {chunks} chunks, {most} at most");
            assert!(
                rounds.iter().map(of).all(|n| n <= even + 1),
                "{chunks} chunks, {most} at most"
            );
        }
    }

    #[test]
    fn both_ends_have_a_message_in_the_same_round() {
        for (count, most) in CASES {
            let rounds: Vec<_> =
                (0..5).map(|rank| split(&message_plan(rank, 5, count), most)).collect();
            for (from, to) in (0..5).flat_map(|from| (0..5).map(move |to| (from, to))) {
                for (out, come) in rounds[from].iter().zip(&rounds[to]) {
                    assert_eq!(out.message_plan.reshape, come.message_plan.reshape);
                    let chunks = |specs: &[MessageSpec], peer| -> Vec<usize> {
                        let with = specs.iter().filter(|spec| spec.peer == peer);
                        with.map(|spec| spec.chunk).collect()
                    };
                    let (sent, expected) = (
                        chunks(&out.message_plan.sends, to),
                        chunks(&come.message_plan.recvs, from),
                    );
                    assert_eq!(sent, expected, "{from} to {to}");
                }
            }
        }
    }

    #[test]
    fn a_reshape_that_is_reserved_for_again_is_the_same_to_the_exchange_within() {
        let (told, numbers) = channel();
        let mut rounds = Rounds::new(Box::new(Inner(told)), 64);
        let first = message_plan(0, 3, 9);
        let second = MessagePlan { reshape: 4, ..first.clone() };
        let mut reserve = |message_plan| -> Vec<usize> {
            rounds.reserve(message_plan).expect("it cannot fail");
            numbers.try_iter().collect()
        };
        let [one, other] = [&first, &second].map(&mut reserve);
        assert_eq!((one.len(), other.len()), (9, 9));
        assert!(one.iter().all(|number| !other.contains(number)), "{one:?} {other:?}");
        assert_eq!((reserve(&first), reserve(&second)), (one, other));
        assert_eq!(rounds.known.len(), 2);
    }
}
