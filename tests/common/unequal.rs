//! Ranks that do not agree on the messages: they get an error before anything is sent.

use std::sync::{Arc, Mutex};

use fft_comm::exchanger_in;
use fft_core::{Exchanger, MakeExchanger, MessageHandler, MessagePlan, Reduce, matching};
use thriffty::planning::Exchange;
use thriffty::{Comm, Error};

use super::failures::{culprits, everywhere};
use super::faulty::{Fault, Switch};
use super::injected::{BATCH, MEMORY, Setup, Who, bind, bind_with, transform_of_ones};

/// An exchange that records the messages it is reserved for.
struct Told {
    exchange: Box<dyn Exchanger>,
    traffics: Arc<Mutex<Vec<MessagePlan>>>,
}

impl Exchanger for Told {
    fn exchange(&self) -> Exchange {
        self.exchange.exchange()
    }

    fn reserve(&mut self, message_plan: &MessagePlan) -> Result<(), Error> {
        self.traffics.lock().expect("nobody panics").push(message_plan.clone());
        self.exchange.reserve(message_plan)
    }

    fn run(
        &mut self,
        message_plan: &MessagePlan,
        handler: &mut dyn MessageHandler,
    ) -> Result<(), Error> {
        self.exchange.run(message_plan, handler)
    }

    fn memory(&self) -> usize {
        self.exchange.memory()
    }
}

/// These ways to send messages, between all and between some.
fn setups(comm: &dyn Comm, exchanges: &[Exchange]) -> impl Iterator<Item = Setup> {
    let rows = matches!(comm.size(), 4 | 6).then_some(Who::Rows);
    let who = move || [Who::Everyone, Who::Next].into_iter().chain(rows);
    MEMORY.into_iter().flat_map(move |memory| {
        let of =
            move |exchange| who().map(move |who| Setup { who, ..Setup::new(exchange, memory) });
        exchanges.iter().copied().flat_map(of)
    })
}

/// The part of the messages in which one rank differs.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Change {
    /// The length of the last message of the last reshape that has one, by this number.
    Longer(isize),
    /// That there is one.
    Missing,
    /// Which chunk it is of.
    Chunk,
    /// The same bytes in all, in other messages.
    Shifted,
    /// For the last reshape: how many chunks there are; whether messages may be shorter; whether
    /// they are there at once.
    Chunks,
    Shorter,
    AtOnce,
}

/// One rank's messages of a plan differ from the others'.
pub(crate) fn messages(comm: &dyn Comm) -> Result<(), Error> {
    use Change::{AtOnce, Chunk, Chunks, Longer, Missing, Shifted, Shorter};
    let all = [Longer(-1), Longer(1), Longer(1 << 20), Missing, Chunk, Shifted];
    let all = || all.into_iter().chain([Chunks, Shorter, AtOnce]);
    let device = Switch::new(Fault::Nothing);
    for setup in setups(comm, &[Exchange::P2p, Exchange::Pipelined]) {
        let traffics = Arc::new(Mutex::new(Vec::new()));
        let make = |exchange, comm: &dyn Comm| -> Result<Box<dyn Exchanger>, Error> {
            let exchange = exchanger_in(setup.memory)(exchange, comm)?;
            Ok(Box::new(Told { exchange, traffics: traffics.clone() }))
        };
        let make: MakeExchanger<'_> = &make;
        drop(bind_with(comm, &device, setup, make)?);
        let traffics = traffics.lock().expect("nobody panics");
        matching(comm, &*traffics)?;
        for (culprit, out) in culprits(comm).into_iter().flat_map(|c| [(c, true), (c, false)]) {
            for change in all() {
                // The last has nobody to send to, and the first nobody to receive from.
                let idle = if out { comm.size() - 1 } else { 0 };
                if change.is_of_message() && setup.who == Who::Next && culprit == idle {
                    continue;
                }
                let mut other = traffics.clone();
                let mut there = true;
                if comm.rank() == culprit {
                    there = make_other(&mut other, out, change);
                }
                // Only one rank can tell whether there are two messages to be shifted.
                let mut found = [f64::from(there)];
                comm.allreduce(Reduce::Min, &mut found)?;
                if found == [0.0] {
                    continue;
                }
                let what = format!("{change:?} on {culprit}, out: {out}, {setup:?}");
                let error = everywhere(comm, &what, matching(comm, &other))?;
                change.assert_told(&error, culprit, out, &what);
            }
        }
    }
    Ok(())
}

impl Change {
    /// Whether it is of a message, and not of all of a reshape.
    fn is_of_message(self) -> bool {
        !matches!(self, Self::Chunks | Self::Shorter | Self::AtOnce)
    }

    /// The error names the message, and the rank that differs, with both values.
    fn assert_told(self, error: &Error, culprit: usize, out: bool, what: &str) {
        let Error::Disagreement { what: which, rank_a, a, rank_b, b } = error else {
            panic!("{what}: {error:?}");
        };
        let what = format!("{what}: {error}");
        if !self.is_of_message() {
            assert!(which.starts_with("messages of reshape "), "{what}");
            assert!([*rank_a, *rank_b].contains(&culprit), "{what}");
            return;
        }
        assert_eq!(culprit, if out { *rank_a } else { *rank_b }, "{what}");
        assert!(which.starts_with("message "), "{what}");
        assert!(which.ends_with(&format!(" from rank {rank_a} to rank {rank_b}")), "{what}");
        let [changed, whole] = if out { [a, b] } else { [b, a] };
        let bytes = |text: &str| -> Option<isize> { text.strip_suffix(" bytes")?.parse().ok() };
        let more = || Some(bytes(changed)? - bytes(whole)?);
        match self {
            Self::Longer(by) => assert_eq!(more(), Some(by), "{what}"),
            // The first of the two.
            Self::Shifted => assert_eq!(more(), Some(8), "{what}"),
            Self::Missing => assert!(changed == "none" && bytes(whole).is_some(), "{what}"),
            _ => {
                let chunk = |text: &str| -> Option<(String, isize)> {
                    let (bytes, chunk) = text.split_once(" bytes in chunk ")?;
                    Some((bytes.to_owned(), chunk.parse().ok()?))
                };
                let (found, chunk_there) = chunk(changed).expect(&what);
                assert_eq!(chunk(whole), Some((found, chunk_there - 1)), "{what}");
            }
        }
    }
}

/// Makes the change to the messages out, or in; `false` if there is nothing to change.
fn make_other(traffics: &mut [MessagePlan], out: bool, change: Change) -> bool {
    let last = traffics.last_mut().expect("a reshape");
    match change {
        Change::Chunks => last.chunks += 1,
        Change::Shorter => last.shorter ^= true,
        Change::AtOnce => last.buffers_all ^= true,
        _ => {
            let lists = traffics.iter_mut().rev();
            let mut lists = lists.map(|one| if out { &mut one.sends } else { &mut one.recvs });
            let list = lists.find(|list| !list.is_empty()).expect("a message");
            let last = list.last_mut().expect("a message");
            match change {
                Change::Longer(by) => {
                    last.bytes = last.bytes.checked_add_signed(by).expect("of some bytes");
                }
                Change::Missing => drop(list.pop()),
                Change::Chunk => last.chunk += 1,
                _ => {
                    // Two messages of different ranks; the lower rank gets more.
                    let peers = || list.iter().map(|spec| spec.peer);
                    let (low, high) = (peers().min(), peers().max());
                    if low == high {
                        return false;
                    }
                    for (peer, more) in [(low, 8), (high, -8)] {
                        let mut first = list.iter_mut().filter(|spec| Some(spec.peer) == peer);
                        let first = first.next().expect("a message");
                        first.bytes = first.bytes.checked_add_signed(more).expect("of some bytes");
                    }
                }
            }
        }
    }
    true
}

/// One rank has a recipe for more data than others: none has a plan.
pub(crate) fn recipes(comm: &dyn Comm) -> Result<(), Error> {
    let device = Switch::new(Fault::Nothing);
    let sent: Vec<_> = Exchange::ALL.into_iter().filter(|all| *all != Exchange::Shared).collect();
    for setup in setups(comm, &sent) {
        for culprit in culprits(comm) {
            let more = usize::from(comm.rank() == culprit);
            let mine = Setup { batch: BATCH + more, ..setup };
            let what = format!("more data on {culprit}, {setup:?}");
            let bound = bind(comm, &device, mine).map(drop);
            let error = everywhere(comm, &what, bound)?;
            let Error::Disagreement { what: which, rank_a, rank_b, .. } = error else {
                panic!("{what}: {error:?}");
            };
            assert!(which.starts_with("message"), "{what}: {which}");
            assert!([rank_a, rank_b].contains(&culprit), "{what}: {which}");
        }
        // Ranks that agree can transform.
        transform_of_ones(&mut bind(comm, &device, setup)?, setup)?;
    }
    Ok(())
}
