//! Transforms on demand, so that benchmarks can alternate between programs.
//!
//! Rank 0 sleeps on standard input and sends each order to the other ranks. These poll rarely
//! instead of waiting in a collective, because MPI would spin there and disturb the program that
//! runs.

use std::io::{self, BufRead};
use std::time::Duration;

use thriffty::planning::Flight;
use thriffty::{Comm, Error};

use crate::ranks::world::{Failure, agree, print};

/// The time between polls. Waking late does not count: a barrier precedes each transform.
const NAP: Duration = Duration::from_millis(50);

/// A line of standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Order {
    /// `quit`, or the end of the input.
    Quit,
    /// `go`: one transform.
    Go,
    /// `timings`: seconds of each part.
    Timings,
}

/// Prints `ready`, then the result of `answer` for every order, until [`Order::Quit`]. Collective.
pub(super) fn run(
    comm: &dyn Comm,
    mut answer: impl FnMut(Order) -> Result<String, Failure>,
) -> Result<(), Failure> {
    let mut flight = comm.flight(None)?;
    print(comm, "ready\n")?;
    loop {
        let mine = if comm.rank() == 0 { read(io::stdin().lock()) } else { Ok(Order::Quit) };
        // The other ranks wait for an order even if this one is not understood.
        let order = broadcast(comm, flight.as_mut(), *mine.as_ref().unwrap_or(&Order::Quit))?;
        agree(comm, mine)?;
        if order == Order::Quit {
            return Ok(());
        }
        let text = answer(order)?;
        print(comm, &format!("{text}\n"))?;
    }
}

/// Rank 0's order. Collective.
fn broadcast(comm: &dyn Comm, flight: &mut dyn Flight, order: Order) -> Result<Order, Error> {
    if comm.rank() == 0 {
        for to in 1..comm.size() {
            let mut slot = flight.slot(1)?;
            slot.bytes_mut()[0] = order as u8;
            flight.send(to, 1, slot)?;
        }
        flight.wait_all()?;
        return Ok(order);
    }
    flight.post_recv(0, 1)?;
    let arrival = loop {
        // Threads park until the order comes, MPI would spin.
        let found = if comm.name() == "mpi" { flight.test_any()? } else { flight.wait_any()? };
        match found {
            Some(arrival) => break arrival,
            None => std::thread::sleep(NAP),
        }
    };
    let said = arrival.message.bytes().first().copied();
    let all = [Order::Quit, Order::Go, Order::Timings];
    let found = all.into_iter().find(|order| Some(*order as u8) == said).unwrap_or(Order::Quit);
    flight.recycle(arrival);
    flight.wait_all()?;
    Ok(found)
}

fn read(mut input: impl BufRead) -> io::Result<Order> {
    let mut line = String::new();
    let read = input.read_line(&mut line)?;
    match line.trim_end() {
        "go" => Ok(Order::Go),
        "timings" => Ok(Order::Timings),
        "quit" => Ok(Order::Quit),
        _ if read == 0 => Ok(Order::Quit),
        other => Err(io::Error::other(format!(
            "found `{other}` on standard input, expected go, timings or quit"
        ))),
    }
}
