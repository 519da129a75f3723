//! The functions of a C program as a process group.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};
use std::mem::{MaybeUninit, offset_of};

use thriffty::group::{
    DeviceBuffer, DeviceMessages, GroupComm, GroupError, Messages, Part, Parts, ProcessGroup,
    Request, Slot, default_host,
};
use thriffty::{Comm, Error};

use super::addresses::null;
use crate::values::GroupCallbacks;

type Result<T, E = GroupError> = std::result::Result<T, E>;

/// The function of an all-to-all.
type Alltoallv = unsafe extern "C" fn(
    *mut c_void,
    *const c_void,
    *const usize,
    *const usize,
    *mut c_void,
    *const usize,
    *const usize,
) -> i32;

/// The communicator of a program's group. Collective.
///
/// # Safety
/// The functions do what [`GroupCallbacks`] says, with this context, on any thread, as long as the
/// result and everything made from it live.
///
/// # Errors
/// [`Error::Argument`], on this rank only; the errors of [`GroupComm::new`].
pub(super) unsafe fn communicator(
    place: (i32, i32),
    calls: GroupCallbacks,
    context: *mut c_void,
) -> Result<Box<dyn Comm>, Error> {
    Ok(Box::new(GroupComm::new(ProgramGroup::new(place, calls, context)?)?))
}

/// The struct of a program whose header has its first `bytes` bytes. Other functions are NULL.
///
/// # Safety
/// `program` points at `bytes` bytes of such a struct, aligned or not.
///
/// # Errors
/// [`Error::Argument`] for a size without the collectives, or beyond the struct.
pub(super) unsafe fn read(
    program: *const GroupCallbacks,
    bytes: usize,
) -> Result<GroupCallbacks, Error> {
    let (least, most) = (offset_of!(GroupCallbacks, isend), size_of::<GroupCallbacks>());
    if !(least..=most).contains(&bytes) {
        let expected = format!("{least} to {most}");
        return Err(Error::argument("size of the callbacks", bytes, expected));
    }
    let mut found = MaybeUninit::<GroupCallbacks>::zeroed();
    // SAFETY: the caller vouches for the bytes, which are no more than the struct has. Zeros stand
    // for missing functions.
    unsafe {
        program.cast::<u8>().copy_to_nonoverlapping(found.as_mut_ptr().cast(), bytes);
        Ok(found.assume_init())
    }
}

/// The group of a program, whose functions may be called as [`communicator`] says.
struct ProgramGroup {
    calls: GroupCallbacks,
    context: *mut c_void,
    rank: usize,
    size: usize,
    /// Bytes and offsets of each rank's part: those that are sent, and those that are received.
    parts: RefCell<[Vec<usize>; 4]>,
    /// Messages that the program sends or receives. It has their addresses.
    under_way: RefCell<HashMap<Request, Slot>>,
    /// A rank that has ended, as reported by the program.
    lost: Cell<Option<usize>>,
}

// SAFETY: the caller of `communicator` vouches that the functions may be called on any thread.
unsafe impl Send for ProgramGroup {}

/// Messages that have not arrived may still be written to.
impl Drop for ProgramGroup {
    fn drop(&mut self) {
        self.under_way.take().into_values().for_each(std::mem::forget);
    }
}

impl ProgramGroup {
    fn new(
        (rank, size): (i32, i32),
        calls: GroupCallbacks,
        context: *mut c_void,
    ) -> Result<Self, Error> {
        let count = usize::try_from(size).ok().filter(|count| *count > 0);
        let count = count.ok_or_else(|| Error::argument("size of the group", size, "1 or more"))?;
        let number = usize::try_from(rank).ok().filter(|number| *number < count);
        let expected = || format!("0 to {}", count - 1);
        let number = number.ok_or_else(|| Error::argument("rank", rank, expected()))?;
        if calls.allgather.is_none() {
            return Err(null("allgather"));
        }
        if calls.alltoallv.is_none() {
            return Err(null("alltoallv"));
        }
        let messages = [calls.isend.is_some(), calls.irecv.is_some(), calls.test.is_some()];
        if messages.contains(&true) && messages.contains(&false) {
            let (what, found) = ("isend, irecv and test", "some of them NULL");
            return Err(Error::argument(what, found, "functions, or NULL for all of them"));
        }
        let parts = RefCell::new(std::array::from_fn(|_| Vec::with_capacity(count)));
        let (under_way, lost) = Default::default();
        Ok(Self { calls, context, rank: number, size: count, parts, under_way, lost })
    }

    /// The result of a callback's status.
    fn outcome(&self, status: i32) -> Result<()> {
        match status {
            0 => Ok(()),
            status => Err(self.why(status).into()),
        }
    }

    fn why(&self, status: i32) -> String {
        // SAFETY: the caller of `communicator` vouches for the function.
        let text = self.calls.error.map(|call| unsafe { call(self.context) });
        // SAFETY: as above; it is valid until the next callback.
        let text = text.and_then(|text| unsafe { copied(text) });
        text.unwrap_or_else(|| format!("the callback returned {status}"))
    }

    /// Calls an all-to-all. It reads and writes parts of arrays at these addresses.
    ///
    /// # Safety
    /// The array has the parts, one for each rank, and nobody else touches them.
    unsafe fn exchange(
        &self,
        call: Option<Alltoallv>,
        [(send, sent), (recv, received)]: [(*mut c_void, &[Part]); 2],
    ) -> Result<()> {
        let call = call.expect("a function that was asked for before");
        let mut parts = self.parts.borrow_mut();
        parts.iter_mut().for_each(Vec::clear);
        let [send_bytes, send_offsets, recv_bytes, recv_offsets] = &mut *parts;
        for (parts, bytes, offsets) in
            [(sent, send_bytes, send_offsets), (received, recv_bytes, recv_offsets)]
        {
            bytes.extend(parts.iter().map(|part| part.1));
            offsets.extend(parts.iter().map(|part| part.0));
        }
        let [send_bytes, send_offsets, recv_bytes, recv_offsets] =
            parts.each_ref().map(|numbers| numbers.as_ptr());
        // SAFETY: the caller of `communicator` vouches for the function, and the caller for the
        // arrays.
        self.outcome(unsafe {
            call(self.context, send, send_bytes, send_offsets, recv, recv_bytes, recv_offsets)
        })
    }

    /// Keeps a message until it has left or arrived.
    fn keep(&self, request: Request, message: Slot) -> Result<Request> {
        match self.under_way.borrow_mut().insert(request, message) {
            None => Ok(request),
            Some(other) => {
                // The program still has its address.
                std::mem::forget(other);
                Err(format!("request {request} was given to two messages").into())
            }
        }
    }
}

/// The text at an address, if there is one.
///
/// # Safety
/// It is NULL, or a text that ends with a zero.
unsafe fn copied(text: *const c_char) -> Option<String> {
    // SAFETY: the caller's.
    let text = (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) });
    text.map(|text| text.to_string_lossy().into_owned())
}

/// The rank in the type that programs use.
fn number(rank: usize) -> i32 {
    i32::try_from(rank).expect("ranks of a program's group are 32-bit numbers")
}

impl ProcessGroup for ProgramGroup {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn allgather(&self, mine: &[u8], all: &mut [u8]) -> Result<()> {
        let call = self.calls.allgather.expect("not NULL, as `new` has checked");
        // SAFETY: the caller of `communicator` vouches for the function; both arrays have their
        // bytes.
        self.outcome(unsafe {
            call(self.context, mine.as_ptr().cast(), all.as_mut_ptr().cast(), mine.len())
        })
    }

    fn alltoallv(&self, send: Parts<'_, &[u8]>, recv: Parts<'_, &mut [u8]>) -> Result<()> {
        let from = send.bytes.as_ptr().cast_mut().cast();
        let to = recv.bytes.as_mut_ptr().cast();
        // SAFETY: the parts are inside of the arrays.
        unsafe { self.exchange(self.calls.alltoallv, [(from, send.parts), (to, recv.parts)]) }
    }

    fn messages(&self) -> Option<&dyn Messages> {
        self.calls.isend.is_some().then_some(self)
    }

    fn device_messages(&self) -> Option<&dyn DeviceMessages> {
        self.calls.device_alltoallv.is_some().then_some(self)
    }

    fn host(&self) -> String {
        // SAFETY: the caller of `communicator` vouches for the function.
        let name = self.calls.host.map(|call| unsafe { call(self.context) });
        // SAFETY: as above.
        name.and_then(|name| unsafe { copied(name) }).unwrap_or_else(default_host)
    }

    fn lost(&self) -> Option<usize> {
        if self.lost.get().is_none() {
            // SAFETY: the caller of `communicator` vouches for the function.
            let found = self.calls.lost.map(|call| unsafe { call(self.context) });
            let found = found.and_then(|rank| usize::try_from(rank).ok());
            self.lost.set(found.filter(|rank| *rank < self.size));
        }
        self.lost.get()
    }

    fn abandon(&self) {
        if let Some(call) = self.calls.abandon {
            // SAFETY: the caller of `communicator` vouches for the function.
            unsafe { call(self.context) };
        }
    }
}

impl DeviceMessages for ProgramGroup {
    fn alltoallv(
        &self,
        send: Parts<'_, &DeviceBuffer>,
        recv: Parts<'_, &DeviceBuffer>,
    ) -> Result<()> {
        let (from, to) = (send.bytes.address().cast(), recv.bytes.address().cast());
        // SAFETY: the parts are inside of the memory, which messages have for themselves.
        unsafe {
            self.exchange(self.calls.device_alltoallv, [(from, send.parts), (to, recv.parts)])
        }
    }
}

impl Messages for ProgramGroup {
    fn isend(&self, to: usize, tag: u32, message: Slot) -> Result<Request> {
        let call = self.calls.isend.expect("a group with messages");
        let (at, bytes, mut request) = (message.address().cast(), message.len(), 0);
        // SAFETY: the caller of `communicator` vouches for the function; the message stays where it
        // is, as it is kept until it has left.
        self.outcome(unsafe { call(self.context, number(to), tag, at, bytes, &raw mut request) })?;
        self.keep(request, message)
    }

    fn irecv(&self, from: usize, tag: u32, mut room: Slot) -> Result<Request> {
        let call = self.calls.irecv.expect("a group with messages");
        let (at, bytes, mut request) = (room.address_mut().cast(), room.len(), 0);
        // SAFETY: as above.
        self.outcome(unsafe {
            call(self.context, number(from), tag, at, bytes, &raw mut request)
        })?;
        self.keep(request, room)
    }

    fn test(&self, request: Request) -> Result<Option<Slot>> {
        let call = self.calls.test.expect("a group with messages");
        let mut under_way = self.under_way.borrow_mut();
        let room = under_way.get(&request).map_or(0, Slot::len);
        let (mut is_done, mut bytes) = (0, room);
        // SAFETY: the caller of `communicator` vouches for the function.
        let status = unsafe { call(self.context, request, &raw mut is_done, &raw mut bytes) };
        if status == 0 && is_done == 0 {
            return Ok(None);
        }
        let message = under_way.remove(&request);
        self.outcome(status)?;
        let mut message = message.ok_or("a request that is none")?;
        if bytes > room {
            return Err(format!("{bytes} bytes in a message of at most {room}").into());
        }
        message.set_len(bytes);
        Ok(Some(message))
    }
}
