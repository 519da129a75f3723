//! Ranks that do not mean the same messages: they hear of it before anything is sent.

use std::sync::{Arc, Mutex};

use fft_comm::exchange_in;
use fft_core::{Exchange, MakeExchange, Port, Traffic, matching};
use thriffty::{Algorithm, Comm, Error};

use super::failures::{culprits, everywhere};
use super::faulty::{Fault, Switch};
use super::injected::{HOWMANY, MEMORY, Setup, Who, bind, bind_with, transform_of_ones};

/// An exchange that tells which messages it is reserved for.
struct Told {
    exchange: Box<dyn Exchange>,
    traffics: Arc<Mutex<Vec<Traffic>>>,
}

impl Exchange for Told {
    fn algorithm(&self) -> Algorithm {
        self.exchange.algorithm()
    }

    fn reserve(&mut self, traffic: &Traffic) -> Result<(), Error> {
        self.traffics.lock().expect("nobody panics").push(traffic.clone());
        self.exchange.reserve(traffic)
    }

    fn run(&mut self, traffic: &Traffic, port: &mut dyn Port) -> Result<(), Error> {
        self.exchange.run(traffic, port)
    }

    fn memory(&self) -> usize {
        self.exchange.memory()
    }
}

/// All ways to send messages.
fn setups(comm: &dyn Comm) -> impl Iterator<Item = Setup> {
    let rows = matches!(comm.size(), 4 | 6).then_some(Who::Rows);
    let who = move || [Who::Everyone, Who::Next].into_iter().chain(rows);
    MEMORY.into_iter().flat_map(move |memory| {
        let all = Algorithm::ALL.into_iter().filter(|all| *all != Algorithm::Shared);
        all.flat_map(move |exchange| {
            who().map(move |who| Setup { who, ..Setup::new(exchange, memory) })
        })
    })
}

/// One rank has another idea of how long a message of a plan is than the other end of it, or none.
pub(crate) fn messages(comm: &dyn Comm) -> Result<(), Error> {
    let device = Switch::new(Fault::Nothing);
    for setup in setups(comm) {
        let traffics = Arc::new(Mutex::new(Vec::new()));
        let make = |algorithm, comm: &dyn Comm| -> Result<Box<dyn Exchange>, Error> {
            let exchange = exchange_in(setup.memory)(algorithm, comm)?;
            Ok(Box::new(Told { exchange, traffics: traffics.clone() }))
        };
        let make: MakeExchange<'_> = &make;
        drop(bind_with(comm, &device, setup, make)?);
        let traffics = traffics.lock().expect("nobody panics");
        matching(comm, &*traffics)?;
        for (culprit, out) in culprits(comm).into_iter().flat_map(|c| [(c, true), (c, false)]) {
            // The last has nobody to send to, and the first nobody to receive from.
            if setup.who == Who::Next && culprit == if out { comm.size() - 1 } else { 0 } {
                continue;
            }
            for more in [Some(-1), Some(1), Some(1 << 20), None] {
                let what = format!("{more:?} bytes more on {culprit}, {setup:?}");
                let mut other = traffics.clone();
                if comm.rank() == culprit {
                    change(&mut other, out, more);
                }
                let error = everywhere(comm, &what, matching(comm, &other))?;
                let Error::Disagreement { what: which, rank_a, a, rank_b, b } = error else {
                    panic!("{what}: {error:?}");
                };
                assert_eq!(culprit, if out { rank_a } else { rank_b }, "{what}");
                assert!(which.starts_with("message"), "{what}: {which}");
                assert!(
                    which.ends_with(&format!(" from rank {rank_a} to rank {rank_b}")),
                    "{what}: {which}"
                );
                let [changed, whole] = if out { [a, b] } else { [b, a] };
                let bytes =
                    |text: &str| text.strip_suffix(" bytes").and_then(|n| n.parse::<isize>().ok());
                match more {
                    None => assert_eq!(
                        (changed.as_str(), bytes(&whole).is_some()),
                        ("none", true),
                        "{what}"
                    ),
                    more => assert_eq!(
                        bytes(&changed).zip(bytes(&whole)).map(|(a, b)| a - b),
                        more,
                        "{what}"
                    ),
                }
            }
        }
    }
    Ok(())
}

/// The last message out, or in, of the last reshape that has one is longer by so much, or not there.
fn change(traffics: &mut [Traffic], out: bool, more: Option<isize>) {
    let lists = traffics.iter_mut().rev();
    let mut lists = lists.map(|one| if out { &mut one.sends } else { &mut one.recvs });
    let list = lists.find(|list| !list.is_empty()).expect("a message");
    let last = list.last_mut().expect("a message");
    match more {
        Some(more) => last.bytes = last.bytes.checked_add_signed(more).expect("of some bytes"),
        None => drop(list.pop()),
    }
}

/// One rank has a recipe for more data than others: none has a plan.
pub(crate) fn recipes(comm: &dyn Comm) -> Result<(), Error> {
    let device = Switch::new(Fault::Nothing);
    for setup in setups(comm) {
        for culprit in culprits(comm) {
            let more = usize::from(comm.rank() == culprit);
            let mine = Setup { howmany: HOWMANY + more, ..setup };
            let what = format!("more data on {culprit}, {setup:?}");
            let bound = bind(comm, &device, mine).map(drop);
            let error = everywhere(comm, &what, bound)?;
            let Error::Disagreement { what: which, rank_a, rank_b, .. } = error else {
                panic!("{what}: {error:?}");
            };
            assert!(which.starts_with("message"), "{what}: {which}");
            assert!([rank_a, rank_b].contains(&culprit), "{what}: {which}");
        }
        // All is well with those that agree.
        transform_of_ones(&mut bind(comm, &device, setup)?, setup)?;
    }
    Ok(())
}
