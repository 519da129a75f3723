//! Messages in memory that the host does not access, between MPI processes.

use thriffty::mpi::MpiComm;
use thriffty::mpi::rsmpi::topology::SimpleCommunicator;
use thriffty::planning::{Epochs, Exchange};
use thriffty::{Error, ThreadComm};

use crate::common::message_buffers::{memory, message_plan, moves, reaches};

type Done = Result<(), Error>;

/// Exchanges that take messages there.
const TAKERS: [Exchange; 3] = [Exchange::P2p, Exchange::Pipelined, Exchange::Alltoallv];
/// Exchanges that do not.
const REFUSERS: [Exchange; 2] = [Exchange::KWay(2), Exchange::Ring(Epochs::Fence)];

/// All checks below.
pub(crate) fn all(world: &MpiComm) -> Done {
    assert!(reaches(world, &memory(1, true))?, "any MPI sends from memory of the host");
    for exchange in TAKERS {
        moves(world, exchange)?;
        moves(&MpiComm::of(&SimpleCommunicator::world())?.with_pieces_of(50), exchange)?;
    }
    for exchange in REFUSERS {
        // If ranks cannot put, other exchanges than the requested ones are made.
        let made = fft_comm::exchanger(exchange, world)?;
        let message_plan = message_plan(world, 0, 1, &[memory(1, true), memory(1, true)]);
        let takes = made.takes_message_buffers(&message_plan);
        assert!(made.exchange() != exchange || !takes, "{exchange}");
    }
    devices(world)
}

/// A library that does not claim to accept addresses of devices gets none, and neither do threads.
fn devices(world: &MpiComm) -> Done {
    // Memory of the host, so that a library that would send it anyway does no harm.
    let answers = [reaches(world, &memory(1, false))?, reaches(world, &memory(1, false))?];
    assert_eq!(answers[0], answers[1]);
    let threads = |comm: ThreadComm| reaches(&comm, &memory(1, true));
    assert_eq!(thriffty::threads(2, threads)?, [false, false]);
    Ok(())
}
