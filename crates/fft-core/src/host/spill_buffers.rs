//! The buffers of data that is held in two pieces.

use std::borrow::{Borrow, BorrowMut};

use super::processor::Processor;
use crate::base::Real;

/// Both pieces of memory with a node's data, to be read.
pub(crate) type Read<'a, M> = [&'a M; 2];
/// The same, to be written.
pub(crate) type Written<'a, M> = [&'a mut M; 2];

/// The rest of a piece of memory.
pub(crate) fn rest<T: Real, Dev: Processor<T>>(memory: &Dev::Memory, first: usize) -> &Dev::Memory {
    Dev::memory(&Dev::bytes(memory)[first * size_of::<T>()..])
}

/// The rest of a piece of memory, to be written.
pub(crate) fn rest_mut<T: Real, Dev: Processor<T>>(
    memory: &mut Dev::Memory,
    first: usize,
) -> &mut Dev::Memory {
    Dev::memory_mut(&mut Dev::bytes_mut(memory)[first * size_of::<T>()..])
}

/// Two buffers, of which one at most is not empty: what is read beside the one piece of memory, and what is written.
pub(crate) struct SpillBuffers<B> {
    buffer: B,
    none: B,
    read: bool,
}

impl<B: Default> SpillBuffers<B> {
    pub(crate) fn new(buffer: B, read: bool) -> Self {
        Self { buffer, none: B::default(), read }
    }

    pub(crate) fn split<M: ?Sized>(&mut self) -> (&M, &mut M)
    where
        B: BorrowMut<M>,
    {
        let Self { buffer, none, read } = self;
        match read {
            true => (Borrow::borrow(&*buffer), none.borrow_mut()),
            false => (Borrow::borrow(&*none), buffer.borrow_mut()),
        }
    }

    pub(crate) fn end(self) -> B {
        self.buffer
    }
}
