//! Windows, and the exchange over them, between MPI processes.

use std::time::Instant;

use fft_comm::exchanger_in;
use fft_core::{Comm, MessageHandler, MessagePlan, MessageSpec, Parts, SLOT_ALIGN, Slot};
use thriffty::mpi::rsmpi::topology::{Color, Communicator, SimpleCommunicator};
use thriffty::mpi::{MpiComm, Rma, Window};
use thriffty::planning::{Epochs, Exchange, agree};
use thriffty::{Error, ErrorKind, Grid, Plan};

use crate::common::failures::{culprits, everywhere};
use crate::common::faulty::{Fault as DeviceFault, Switch};
use crate::common::injected::{MEMORY, Setup, bind, transform_of_ones};
use crate::common::message_buffers::letter;
use crate::common::weak::{Fault, Weak, failure};

type Done = Result<(), Error>;

const BOTH: [Epochs; 2] = [Epochs::Fence, Epochs::Flush];

/// All checks below, if this MPI can put; whether it can is the same on all ranks.
pub(crate) fn all(world: &MpiComm) -> Done {
    let Some(rma) = Rma::probe(world)? else {
        return skipped(world);
    };
    patterns(world, &rma)?;
    let pieces = world_in_pieces()?;
    patterns(&pieces, &Rma::probe(&pieces)?.expect("as before"))?;
    out_of_range(world, &rma)?;
    no_memory(world, &rma)?;
    dropped(&rma)?;
    halves()?;
    slots(world, 1)?;
    slots(world, 6)?;
    unreserved(world)?;
    if world.size() > 1 {
        faults(world)?;
    }
    Ok(())
}

fn skipped(world: &MpiComm) -> Done {
    if world.rank() == 0 {
        println!("skipped: windows, since this MPI cannot put");
    }
    Ok(())
}

/// The same ranks, putting 7 bytes at a time.
fn world_in_pieces() -> Result<MpiComm, Error> {
    Ok(MpiComm::of(&SimpleCommunicator::world())?.with_pieces_of(7))
}

/// Elements that rank `from` puts to rank `to`: from none to 26.
fn count(from: usize, to: usize) -> usize {
    (5 * from + 3 * to) % 27
}

fn value(from: usize, to: usize, round: usize, i: usize) -> u32 {
    (((from * 8 + to) * 8 + round) * 100 + i) as u32
}

fn epoch<'env>(
    window: &mut Window<u32>,
    how: Epochs,
    body: impl FnOnce(&thriffty::mpi::window::Epoch<'_, 'env, u32>) -> Done,
) -> Done {
    match how {
        Epochs::Fence => window.fence(body),
        Epochs::Flush => window.flush(body),
        other => panic!("{other:?}"),
    }
}

/// Every rank puts to every rank, odd numbers of elements to odd places, several times and in both
/// kinds of epoch. Every second round checks data that was written locally, which no other rank's
/// put may overwrite.
fn patterns(world: &MpiComm, rma: &Rma) -> Done {
    let (rank, size) = (world.rank(), world.size());
    let place = |to: usize, from: usize| 1 + (0..from).map(|f| count(f, to)).sum::<usize>();
    let len = place(rank, size) + 1;
    let mut window = rma.window::<u32>(len)?;
    assert_eq!(window.local(), vec![0; len]);
    for round in 0..8 {
        let how = BOTH[(round / 2 + round) % 2];
        window.local_mut().fill(u32::MAX);
        let data: Vec<Vec<u32>> = (0..size)
            .map(|to| (0..count(rank, to)).map(|i| value(rank, to, round, i)).collect())
            .collect();
        epoch(&mut window, how, |epoch| {
            (0..size).try_for_each(|to| epoch.put(to, place(to, rank), &data[to]))
        })?;
        let mut expected = vec![u32::MAX];
        for from in 0..size {
            expected.extend((0..count(from, rank)).map(|i| value(from, rank, round, i)));
        }
        expected.push(u32::MAX);
        assert_eq!(window.local(), expected, "round {round}, {how:?}, rank {rank} of {size}");
    }
    window.free()
}

/// A put beyond the end is the same error on every rank, and the others' puts of that epoch and all
/// later ones arrive.
fn out_of_range(world: &MpiComm, rma: &Rma) -> Done {
    let (rank, size) = (world.rank(), world.size());
    for culprit in [0, size - 1] {
        for how in BOTH {
            // Windows differ in length, so that it matters whose length is checked.
            let mut window = rma.window::<u32>(size + rank)?;
            let to = (culprit + 1) % size;
            let room = 4 * (size + to);
            for (peer, at, found) in [
                (to, size + to, format!("bytes {room}..{}", room + 4)),
                (to, usize::MAX, format!("bytes {}..{}", usize::MAX, usize::MAX)),
                (size, 0, "bytes 0..4".into()),
            ] {
                let mine = [rank as u32 + 1];
                let result = epoch(&mut window, how, |epoch| {
                    if rank == culprit {
                        return epoch.put(peer, at, &mine);
                    }
                    (0..size).try_for_each(|to| epoch.put(to, rank, &mine))
                });
                let room = if peer == size { 0 } else { room };
                match everywhere(world, "put out of range", result)? {
                    Error::OnRank { rank, kind: ErrorKind::Argument, message } => {
                        assert_eq!(rank, culprit);
                        let what = format!("put of rank {culprit} into the window of rank {peer}");
                        let expected = format!("expected an end within its {room} bytes");
                        assert_eq!(message, format!("{what}: found {found}, {expected}"));
                    }
                    other => panic!("{other:?}"),
                }
                for from in (0..size).filter(|&from| from != culprit) {
                    assert_eq!(window.local()[from], from as u32 + 1, "{how:?}");
                }
                assert_eq!(window.local()[culprit], 0);
            }
            let last = [7];
            epoch(&mut window, how, |epoch| epoch.put((rank + 1) % size, size, &last).or(Ok(())))?;
            window.free()?;
        }
    }
    Ok(())
}

/// One rank requests more memory than there is.
fn no_memory(world: &MpiComm, rma: &Rma) -> Done {
    for culprit in [0, world.size() - 1] {
        for len in [1 << 60, usize::MAX] {
            let len = if world.rank() == culprit { len } else { 5 };
            let made = rma.window::<u32>(len).map(drop);
            match everywhere(world, "no memory", made)? {
                Error::OnRank { rank, kind: ErrorKind::Memory, .. } => assert_eq!(rank, culprit),
                other => panic!("{other:?}"),
            }
        }
    }
    // A window of nothing is one.
    let mut empty = rma.window::<u32>(0)?;
    empty.fence(|_| Ok(()))?;
    assert!(empty.local().is_empty());
    empty.free()
}

/// Dropped windows are freed on all ranks, so there is room for many, one after another.
fn dropped(rma: &Rma) -> Done {
    for _ in 0..50 {
        let mut window = rma.window::<u64>(1000)?;
        window.flush(|epoch| epoch.put(0, 0, &[]))?;
    }
    Ok(())
}

/// Communicators without a rank in common make windows at the same time, if they can. Open MPI
/// gives them the same number, and uses that as a name.
fn halves() -> Done {
    let world = SimpleCommunicator::world();
    for _ in 0..5 {
        let half = world.split_by_color(Color::with_value(world.rank() % 2));
        let half = MpiComm::of(&half.expect("every rank has a color"))?;
        if let Some(rma) = Rma::probe(&half)? {
            patterns(&half, &rma)?;
        }
    }
    Ok(())
}

/// Messages with as many bytes as their spec allows, or fewer; records the received ones.
struct Mail<'a> {
    rank: usize,
    round: usize,
    message_plan: &'a MessagePlan,
    /// The chunk of the last message that was packed.
    chunk: usize,
    came: Vec<Vec<u8>>,
    finished: bool,
}

impl MessageHandler for Mail<'_> {
    fn pack(&mut self, number: usize, message: &mut [u8]) -> usize {
        let spec = &self.message_plan.sends[number];
        assert_eq!(message.len(), spec.bytes);
        assert!(spec.chunk >= self.chunk, "chunk {} after {}", spec.chunk, self.chunk);
        self.chunk = spec.chunk;
        let letter = letter(self.rank, spec.peer, self.round, spec);
        message[..letter.len()].copy_from_slice(&letter);
        letter.len()
    }

    fn own(&mut self) {}

    fn arrived(&mut self, number: usize, message: &[u8]) -> bool {
        assert_eq!(message.as_ptr() as usize % 64, 0, "messages start at a line");
        self.came[number] = message.to_vec();
        number.is_multiple_of(2) || self.message_plan.chunks > 1
    }

    fn finish<'m>(&mut self, message: &dyn Fn(usize) -> &'m [u8]) {
        if self.message_plan.chunks == 1 {
            for number in (1..self.message_plan.recvs.len()).step_by(2) {
                assert_eq!(message(number), self.came[number]);
            }
        }
        self.finished = true;
    }
}

/// Reshapes that are the same for rank 0 but not for its peers, so that its own message plan alone
/// does not determine where they expect its message. The data of a rank is in as many chunks, some
/// of which go to some ranks only.
fn slots(world: &MpiComm, chunks: usize) -> Done {
    let (rank, size) = (world.rank(), world.size());
    let bytes = |which: usize, from: usize, to: usize| match (which, from, to) {
        (_, 0, _) => 3,
        (_, _, 0) => 65,
        (0, ..) => 0,
        (which, from, to) => 100 * which * from + to,
    };
    let message_plan = |which: usize| {
        let others = |rank: usize| {
            (0..chunks)
                .flat_map(move |chunk| (1..size).map(move |k| ((rank + k) % size, chunk)))
                .filter(move |(peer, chunk)| {
                    chunks == 1 || !(rank + peer + chunk).is_multiple_of(3)
                })
        };
        let some = |peer, bytes, chunk| (bytes > 0).then_some(MessageSpec { peer, bytes, chunk });
        let to = |(to, chunk)| some(to, bytes(which, rank, to), chunk);
        let from = |(from, chunk)| some(from, bytes(which, from, rank), chunk);
        MessagePlan {
            reshape: which,
            chunks,
            shorter: true,
            buffers_all: false,
            sends: others(rank).filter_map(to).collect(),
            recvs: others(rank).filter_map(from).collect(),
            buffers: None,
        }
    };
    for epochs in BOTH {
        let mut exchanger = fft_comm::exchanger(Exchange::Ring(epochs), world)?;
        for round in 0..12 {
            if round < 3 {
                exchanger.reserve(&message_plan(round))?;
                exchanger.reserve(&message_plan(0))?;
            }
            let message_plan = message_plan(if round < 3 { round } else { 2 * round % 3 });
            let came = vec![Vec::new(); message_plan.recvs.len()];
            let mut mail =
                Mail { rank, round, message_plan: &message_plan, chunk: 0, came, finished: false };
            exchanger.run(&message_plan, &mut mail)?;
            assert!(mail.finished);
            for (came, spec) in mail.came.iter().zip(&message_plan.recvs) {
                let expected = letter(spec.peer, rank, round, spec);
                assert_eq!(*came, expected, "{epochs:?} round {round}: {} to {rank}", spec.peer);
            }
        }
    }
    Ok(())
}

/// A message plan that one rank has not reserved is an error there, and nobody hangs.
fn unreserved(world: &MpiComm) -> Done {
    for epochs in BOTH {
        let mut exchanger = fft_comm::exchanger(Exchange::Ring(epochs), world)?;
        exchanger.reserve(&MessagePlan::default())?;
        let mut message_plan = MessagePlan::default();
        let last = world.rank() + 1 == world.size();
        if last {
            message_plan.sends.push(MessageSpec { peer: 0, bytes: 1, chunk: 0 });
        }
        let (rank, came) = (world.rank(), vec![]);
        let mut mail =
            Mail { rank, round: 0, message_plan: &message_plan, chunk: 0, came, finished: false };
        let result = exchanger.run(&message_plan, &mut mail);
        assert_eq!(result.is_err(), last, "{result:?}");
        let error = everywhere(world, "unreserved", agree(world, result))?;
        assert_eq!(error.kind(), ErrorKind::Argument);
    }
    Ok(())
}

/// Failures of one rank at every stage are the same error on all; after a failed run, the same plan
/// works again as far as it can.
fn faults(world: &MpiComm) -> Done {
    for culprit in culprits(world) {
        let setups = MEMORY
            .into_iter()
            .flat_map(|memory| BOTH.map(|epochs| Setup::new(Exchange::Ring(epochs), memory)));
        for setup in setups {
            for fault in [Fault::Window, Fault::Make, Fault::Put, Fault::Early] {
                let here = if world.rank() == culprit { fault } else { Fault::Nothing };
                let weak = Weak::new(world, here)?;
                let device = Switch::new(DeviceFault::Nothing);
                let what = format!("{fault:?} on {culprit}, {setup:?}");
                let result = match bind(&weak, &device, setup) {
                    Err(error) => Err(error),
                    Ok(_) if matches!(fault, Fault::Window | Fault::Make) => {
                        panic!("{what}: bound all the same")
                    }
                    // Twice: the first failure must leave the exchange in order.
                    Ok(mut bound) => {
                        let first = transform_of_ones(&mut bound, setup);
                        assert_eq!(first, transform_of_ones(&mut bound, setup), "{what}");
                        first
                    }
                };
                match everywhere(world, &what, result)? {
                    // The receiver may have the lower rank, and reports a message that has not
                    // come.
                    Error::OnRank { kind: ErrorKind::Message, rank, .. } => {
                        assert!(culprit > 0 && rank == 0, "{what}: rank {rank}");
                        assert!([Fault::Put, Fault::Early].contains(&fault), "{what}");
                    }
                    Error::OnRank { kind: ErrorKind::Argument, rank, .. } => {
                        assert_eq!((rank, fault), (culprit, Fault::Put));
                    }
                    Error::OnRank { rank, message, .. } => {
                        assert_eq!((rank, message), (culprit, failure(culprit).to_string()));
                    }
                    other => panic!("{what}: {other:?}"),
                }
            }
        }
        reserve_without_memory(world, culprit)?;
    }
    Ok(())
}

/// A message too long for one rank's memory, at either end.
fn reserve_without_memory(world: &MpiComm, culprit: usize) -> Done {
    for (outgoing, memory) in [true, false].into_iter().flat_map(|out| MEMORY.map(|m| (out, m))) {
        let make = || exchanger_in(memory)(Exchange::Ring(Epochs::Fence), world);
        let mut exchanger = make()?;
        let mut message_plan = MessagePlan::default();
        if world.rank() == culprit {
            let spec = MessageSpec { peer: (culprit + 1) % world.size(), bytes: 1 << 62, chunk: 0 };
            if outgoing { message_plan.sends.push(spec) } else { message_plan.recvs.push(spec) }
        }
        match everywhere(world, "reserving", exchanger.reserve(&message_plan))? {
            Error::OnRank { rank, kind: ErrorKind::Memory, .. } => assert_eq!(rank, culprit),
            other => panic!("{other:?}"),
        }
        // It can be used for less.
        exchanger = make()?;
        exchanger.reserve(&MessagePlan::default())?;
    }
    let mut plan = Plan::<thriffty::C2c, 2>::c2c(world, Grid::new([6, 8])?)
        .exchange(Exchange::Ring(Epochs::Flush))
        .build()?;
    let mut data = vec![Default::default(); plan.in_place_len()];
    plan.forward_in_place(&mut data)
}

/// More bytes than an int can count, from each of two ranks to the other: put, as a message, and by
/// the collective.
pub(crate) fn more_than_2_gib(world: &MpiComm) -> Done {
    const LEN: usize = (1 << 31) + 12_345;
    let (rank, peer) = (world.rank(), 1 - world.rank());
    let byte = |from: usize, i: usize| ((i * 2_654_435_761) >> 13) as u8 ^ (0x55 * from as u8);
    let fill = |to: &mut [u8]| {
        to.iter_mut().enumerate().for_each(|(i, place)| *place = byte(rank, i));
    };
    // The ends, the places around 2^31, where pieces end, and some others.
    let came = |found: &[u8], how: &str| {
        let near = |at: usize| at.saturating_sub(200)..(at + 200).min(LEN);
        let places = [0, (1 << 31) - 64, 1 << 31, LEN].into_iter().flat_map(near);
        for i in places.chain((0..LEN).step_by(4099)) {
            assert_eq!(found[i], byte(peer, i), "{how}: byte {i}");
        }
    };
    let say = |how: &str, start: Instant| {
        if rank == 0 {
            println!("{LEN} bytes each way, {how}: {:.1} s", start.elapsed().as_secs_f64());
        }
    };
    let mut data = Slot::new(LEN.next_multiple_of(SLOT_ALIGN), rank)?;
    fill(&mut data.bytes_mut()[..LEN]);

    if let Some(rma) = Rma::probe(world)? {
        let (mut window, mine) = (rma.window::<u8>(LEN + 3)?, &data.bytes()[..LEN]);
        for how in BOTH {
            window.local_mut().fill(0);
            let start = Instant::now();
            match how {
                Epochs::Fence => window.fence(|epoch| epoch.put(peer, 3, mine))?,
                _ => window.flush(|epoch| epoch.put(peer, 3, mine))?,
            }
            say(&format!("put, {how:?}"), start);
            assert_eq!(window.local()[..3], [0; 3]);
            came(&window.local()[3..], "put");
        }
        window.free()?;
    } else {
        skipped(world)?;
    }

    let mut room = Slot::new(data.len(), rank)?;
    let part = |to: usize| if to == peer { (0, LEN) } else { (0, 0) };
    let parts = [part(0), part(1)];
    world.reserve_alltoallv(&parts, &parts)?;
    let start = Instant::now();
    let send = Parts { bytes: data.bytes(), parts: &parts };
    world.alltoallv(send, Parts { bytes: room.bytes_mut(), parts: &parts })?;
    say("alltoallv", start);
    came(room.bytes(), "alltoallv");
    drop(room);

    let mut flight = world.flight(None)?;
    let start = Instant::now();
    flight.post_recv(peer, LEN)?;
    data.set_len(LEN);
    flight.send(peer, LEN, data)?;
    let arrival = flight.wait_any()?.expect("one was announced");
    assert_eq!(arrival.message.len(), LEN);
    say("message", start);
    came(arrival.message.bytes(), "message");
    flight.recycle(arrival);
    flight.wait_all()
}

/// The collective counts in lines of 64 bytes: of 2^31 such lines it says that they are too many,
/// and of one less nothing.
pub(crate) fn more_than_can_be_counted(world: &dyn Comm) -> Done {
    let most = i32::MAX as usize * SLOT_ALIGN;
    let parts = |first, bytes| vec![(first, bytes); world.size()];
    let fits = parts(most, most);
    world.reserve_alltoallv(&fits, &fits)?;
    for beyond in [parts(0, most + 1), parts(most + SLOT_ALIGN, 1)] {
        for (send, recv) in [(&beyond, &fits), (&fits, &beyond)] {
            let error = world.reserve_alltoallv(send, recv).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Transport);
            let said = format!("{} exceeds what this call can count", 1usize << 31);
            assert!(error.to_string().contains(&said), "{error}");
        }
    }
    Ok(())
}
