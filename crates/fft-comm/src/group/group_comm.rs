//! The communicator of a process group.

use std::cell::RefCell;
use std::sync::{Arc, Once};

use bytemuck::{Pod, Zeroable};
use fft_core::{Error, agree};

use super::board::{Board, Gather};
use super::far::Far;
use super::flight::GroupFlight;
use super::host_memory::HostMemory;
use super::process_group::ProcessGroup;
use super::processes::Processes;
use crate::node_memory::{HostNodeMemory, on_rank_of};
use crate::signature::checksum;

static NOT_SHARED: Once = Once::new();

/// A communicator whose ranks are the processes of a [`ProcessGroup`].
///
/// Ranks of one host share memory, which needs Linux. All that they exchange goes through it,
/// except [messages of devices](super::DeviceMessages), and otherwise the group is used only to set
/// it up. If the process of a rank ends, calls on the other ranks of its host return
/// [`Error::Left`] with that rank within a second, and so do all later calls; while a rank waits in
/// the group's own call, the group must fail. The others can then make a new communicator of a
/// smaller group.
///
/// A process that was forked from a rank is not a rank; calls there return errors.
pub struct GroupComm {
    /// The ranks of this host.
    pub(super) board: Arc<Board>,
    /// The group, if ranks are on several hosts.
    pub(super) far: Option<Arc<Far>>,
    /// The group, if on every rank it has messages in memory of devices.
    pub(super) device: Option<Arc<Far>>,
    /// The lowest rank of each rank's host.
    pub(super) hosts: Arc<[usize]>,
    /// The messages of the all-to-all, if all ranks are on this host.
    pub(super) flight: RefCell<GroupFlight>,
    /// Memory of collectives, kept so that they allocate nothing.
    pub(super) scratch: RefCell<Vec<f64>>,
}

impl GroupComm {
    /// A communicator of all ranks of a group. Collective.
    ///
    /// If some ranks of a host cannot open each other's memory, for example in different
    /// containers, each of them counts as a host of its own, and they exchange messages by the
    /// group.
    ///
    /// # Errors
    /// When the group fails, gathers in another order than by ranks, or a rank has ended.
    pub fn new(group: impl ProcessGroup + 'static) -> Result<Self, Error> {
        let far = Arc::new(Far::new(Box::new(group)));
        let all = processes(&far)?;
        let made = board(&far, &all);
        let mut ready = vec![[0; 2]; far.size];
        let mine = [u8::from(made.is_ok()), u8::from(far.has_device_messages)];
        far.allgather(&mine, ready.as_flattened_mut())?;

        let is_shared = |rank: usize| shared_by(&all, rank).all(|other| ready[other][0] == 1);
        let lowest = |rank: usize| shared_by(&all, rank).next().unwrap_or(rank);
        let host = |rank: usize| if is_shared(rank) { lowest(rank) } else { rank };
        let hosts: Arc<[usize]> = (0..far.size).map(host).collect();
        let board = match made {
            Ok(board) if is_shared(far.rank) => board,
            other => {
                let why = other.err().map_or("another rank cannot".into(), |why| why.to_string());
                NOT_SHARED.call_once(|| {
                    log::warn!(
                        "ranks of this host send messages, as they cannot share memory: {why}"
                    );
                });
                board_alone(far.rank)?
            }
        };
        let several = hosts.iter().any(|host| *host != hosts[0]);
        let device = ready.iter().all(|[_, device]| *device == 1).then(|| far.clone());
        let far = several.then_some(far);
        let mut comm = Self::on(board, far, hosts);
        comm.device = device;
        if let Some(group) = comm.far.as_ref().or(comm.device.as_ref()) {
            group.warn_at(&comm.board);
        }
        Ok(comm)
    }

    /// The ranks of a board and of other hosts, without messages of devices.
    pub(super) fn on(board: Board, far: Option<Arc<Far>>, hosts: Arc<[usize]>) -> Self {
        let board = Arc::new(board);
        // Between hosts the group has a collective.
        let flight = RefCell::new(GroupFlight::new(board.clone(), None));
        Self { board, far, device: None, hosts, flight, scratch: RefCell::default() }
    }

    /// Another board of the ranks of this host. Collective over all ranks, with the same error.
    pub(super) fn another_board(&self) -> Result<Board, Error> {
        let board = self.board.another();
        match &self.far {
            None => board,
            Some(_) => agree(self, board.map_err(|error| on_rank_of(error, self.board.ranks()))),
        }
    }

    /// A communicator of the ranks of this host. Collective on it.
    fn near(&self) -> Result<Self, Error> {
        let board = self.board.another()?;
        let hosts = vec![0; board.len()];
        Ok(Self::on(board, None, hosts.into()))
    }

    /// Memory of the ranks of this host. Collective on it.
    pub(super) fn host_memory(&self) -> Result<HostNodeMemory<HostMemory>, Error> {
        let ranks = self.board.ranks();
        let made = || Ok((HostMemory::new(self.board.another()?), self.near()?));
        let (space, comm) = made().map_err(|error| on_rank_of(error, ranks))?;
        Ok(HostNodeMemory::new(space, Box::new(comm), ranks.to_vec()))
    }
}

/// Other objects may still use the board.
impl Drop for GroupComm {
    fn drop(&mut self) {
        self.board.leave();
    }
}

/// The process of a rank, and a number for the name of its host.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct RankProcess {
    rank: u64,
    host: u64,
    id: u64,
}

/// The processes of all ranks. Collective.
fn processes(far: &Far) -> Result<Vec<RankProcess>, Error> {
    let (rank, host) = (far.rank as u64, checksum(far.host().as_bytes()));
    let mine = RankProcess { rank, host, id: std::process::id().into() };
    let mut all = vec![mine; far.size];
    far.allgather(bytemuck::bytes_of(&mine), bytemuck::cast_slice_mut(&mut all))?;
    // The order may be wrong on one rank only.
    let wrong = (0..far.size).find(|&rank| all[rank].rank != rank as u64);
    let mut wrongs = vec![0; far.size];
    far.allgather(&[u8::from(wrong.is_some())], &mut wrongs)?;
    let what = "allgather of a process group";
    match wrong {
        None if wrongs.contains(&1) => {
            Err(Error::argument(what, "another order on another rank", "the order of ranks"))
        }
        None => Ok(all),
        Some(rank) => {
            let found = format!("data of rank {}", all[rank].rank);
            Err(Error::argument(what, found, format!("data of rank {rank} in its place")))
        }
    }
}

/// The ranks of the host of a rank, ascending.
fn shared_by(all: &[RankProcess], rank: usize) -> impl Iterator<Item = usize> {
    let host = all[rank].host;
    (0..all.len()).filter(move |&other| all[other].host == host)
}

/// The first board of the ranks of this host. Collective, but each rank has its own result.
fn board(far: &Far, all: &[RankProcess]) -> Result<Board, Error> {
    let ranks: Arc<[usize]> = shared_by(all, far.rank).collect();
    let ids: Vec<u32> = ranks.iter().map(|&rank| all[rank].id as u32).collect();
    let own = ranks.iter().position(|&rank| rank == far.rank).expect("itself");
    let gather: Gather<'_> = &mut |mine, gathered| {
        let mut of_all = vec![0; mine.len() * far.size];
        far.allgather(mine, &mut of_all)?;
        for (place, rank) in gathered.chunks_exact_mut(mine.len()).zip(&*ranks) {
            place.copy_from_slice(&of_all[rank * mine.len()..][..mine.len()]);
        }
        Ok(())
    };
    Board::new(Arc::new(Processes::new(&ids)), own, ranks.clone(), gather)
}

/// A board of one rank.
fn board_alone(rank: usize) -> Result<Board, Error> {
    let processes = Arc::new(Processes::new(&[std::process::id()]));
    let gather: Gather<'_> = &mut |mine, gathered| {
        gathered.copy_from_slice(mine);
        Ok(())
    };
    Board::new(processes, 0, [rank].into(), gather)
}
