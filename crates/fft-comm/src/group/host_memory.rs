//! The memory that the ranks of a host share for exposure epochs.
#![allow(unsafe_code)]

use std::sync::Arc;

use fft_core::{Error, SharedMemory};

use super::board::Board;
use super::shared_memory::SharedMapping;
use crate::node_memory::{AddressSpace, Room, SyncFlags, check_room};

/// Mappings of all ranks' memory, by index.
type Mappings = Arc<Vec<SharedMapping>>;

pub(super) struct HostMemory {
    board: Board,
    allocations: Vec<Mappings>,
}

impl HostMemory {
    pub(super) fn new(board: Board) -> Self {
        Self { board, allocations: Vec::new() }
    }
}

// SAFETY: the flags are in the memory of a board, which all ranks map. Allocations have the same
// numbers on all ranks, because they are made collectively and kept. A rank locates bytes of its
// own mapping.
unsafe impl AddressSpace for HostMemory {
    const EVERYWHERE: bool = false;

    fn flags(&self, i: usize) -> &SyncFlags {
        self.board.sync_flags(i)
    }

    fn ready(&self) -> Result<(), Error> {
        self.board.check()
    }

    fn progress(&self) {
        self.board.processes().watch();
    }

    fn has_left(&self, i: usize) -> bool {
        self.board.has_left(i)
    }

    fn is_gone(&self, i: usize) -> bool {
        self.board.is_gone(i)
    }

    fn locate(&self, bytes: *const [u8]) -> Option<(usize, usize)> {
        let at = bytes.cast::<u8>().addr();
        self.allocations.iter().enumerate().find_map(|(number, mappings)| {
            let own = &mappings[self.board.own()];
            let first = at.checked_sub(own.at().addr())?;
            (first + bytes.len() <= own.bytes()).then_some((number, first))
        })
    }

    fn reach(&self, i: usize, space: usize, at: usize) -> *mut u8 {
        self.allocations[space][i].at().wrapping_add(at)
    }

    fn allocate(&mut self, bytes: usize) -> Result<Box<dyn SharedMemory>, Error> {
        let board = &self.board;
        let reduce = |how, value| {
            let mut result = [value];
            board.allreduce(how, &mut result).map(|()| result[0])
        };
        check_room(&Room::in_memory(), board.ranks()[board.own()], bytes, &reduce)?;
        let mappings = Arc::new(board.share(bytes)?);
        self.allocations.push(mappings.clone());
        Ok(Box::new(Part { mappings, own: board.own() }))
    }
}

/// This process's mapping: the only access to it, apart from exposure epochs, which borrow it.
struct Part {
    mappings: Mappings,
    own: usize,
}

impl SharedMemory for Part {
    fn bytes(&self) -> &[u8] {
        let own = &self.mappings[self.own];
        // SAFETY: the mapping has this number of bytes, was zeroed, and lives as long as this
        // object. This is the only `Part` of this process. Other processes access it only while an
        // exposure epoch borrows it.
        unsafe { std::slice::from_raw_parts(own.at(), own.bytes()) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        let own = &self.mappings[self.own];
        // SAFETY: as above, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(own.at(), own.bytes()) }
    }
}
