//! A process group over Unix sockets: each pair of ranks has one for collectives, which blocks, and
//! one for messages, which does not.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use thriffty::group::{
    DeviceBuffer, DeviceMessages, GroupError, Messages, Parts, ProcessGroup, Request, Slot,
};

type Result<T, E = GroupError> = std::result::Result<T, E>;

pub(crate) struct SocketGroup {
    rank: usize,
    /// By rank; none to itself.
    collectives: Vec<Option<UnixStream>>,
    mail: RefCell<Mail>,
    /// What it says to be its host, and whether it offers messages.
    host: Option<String>,
    has_messages: bool,
    has_device_messages: bool,
    has_failed: Cell<bool>,
}

impl SocketGroup {
    /// The group of these processes; this one is `own`. Collective.
    pub(crate) fn connect(folder: &Path, name: &str, members: &[usize], own: usize) -> Self {
        let path = |member: usize| folder.join(format!("{name}-{member}"));
        let rank = members.iter().position(|member| *member == own).expect("a member");
        // Bound under another name first, so that whoever finds the socket can connect.
        let hidden = folder.join(format!("{name}-{own}-hidden"));
        let listener = UnixListener::bind(&hidden).expect("a socket");
        std::fs::rename(&hidden, path(own)).expect("a folder");
        let pairs = || members.iter().map(|_| None).collect::<Vec<Option<UnixStream>>>();
        let (mut collectives, mut mail) = (pairs(), pairs());
        for (other, member) in members[..rank].iter().enumerate() {
            for (number, place) in
                [&mut collectives[other], &mut mail[other]].into_iter().enumerate()
            {
                let mut stream = loop {
                    match UnixStream::connect(path(*member)) {
                        Ok(stream) => break stream,
                        Err(_) => std::thread::sleep(Duration::from_millis(5)),
                    }
                };
                stream.write_all(&[rank as u8, number as u8]).expect("a socket");
                *place = Some(stream);
            }
        }
        for _ in 0..2 * (members.len() - 1 - rank) {
            let (mut stream, _) = listener.accept().expect("a socket");
            let mut hello = [0; 2];
            stream.read_exact(&mut hello).expect("a socket");
            let all = if hello[1] == 0 { &mut collectives } else { &mut mail };
            all[usize::from(hello[0])] = Some(stream);
        }
        for stream in mail.iter().flatten() {
            stream.set_nonblocking(true).expect("a socket");
        }
        let mail = RefCell::new(Mail::new(mail));
        Self {
            rank,
            collectives,
            mail,
            host: None,
            has_messages: false,
            has_device_messages: false,
            has_failed: Cell::new(false),
        }
    }

    /// The same group with messages.
    pub(crate) fn with_messages(self) -> Self {
        Self { has_messages: true, ..self }
    }

    /// The same group with messages in memory of devices.
    pub(crate) fn with_device_messages(self) -> Self {
        Self { has_device_messages: true, ..self }
    }

    /// Pretends to be on a host.
    pub(crate) fn on_host(self, host: usize) -> Self {
        Self { host: Some(format!("host {host}")), ..self }
    }

    /// Sends to and receives from each other rank. All ranks take pairs in the same order, and the
    /// lower rank of a pair sends first, so that none waits in a circle.
    fn exchange(&self, send: &[&[u8]], recv: &mut [&mut [u8]]) -> Result<()> {
        for peer in 0..self.collectives.len() {
            let Some(mut stream) = self.collectives[peer].as_ref() else {
                recv[peer].copy_from_slice(send[peer]);
                continue;
            };
            let mut both = || {
                if self.rank < peer {
                    stream.write_all(send[peer])?;
                }
                stream.read_exact(recv[peer])?;
                if self.rank > peer {
                    stream.write_all(send[peer])?;
                }
                Ok(())
            };
            both().inspect_err(|_: &std::io::Error| self.has_failed.set(true))?;
        }
        Ok(())
    }
}

/// The parts of a buffer that can be written.
fn split<'b>(bytes: &'b mut [u8], parts: &[(usize, usize)]) -> Vec<&'b mut [u8]> {
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by_key(|&rank| (parts[rank].0, parts[rank].1));
    let mut found: Vec<&mut [u8]> = parts.iter().map(|_| &mut [][..]).collect();
    let (mut rest, mut at) = (bytes, 0);
    for rank in order.into_iter().filter(|&rank| parts[rank].1 > 0) {
        let (first, len) = parts[rank];
        let (part, behind) = rest.split_at_mut(first - at).1.split_at_mut(len);
        (found[rank], rest, at) = (part, behind, first + len);
    }
    found
}

/// For memory that the host can copy to and from.
impl DeviceMessages for SocketGroup {
    fn alltoallv(
        &self,
        send: Parts<'_, &DeviceBuffer>,
        recv: Parts<'_, &DeviceBuffer>,
    ) -> Result<()> {
        let (mut out, mut come) = (vec![0; send.bytes.bytes()], vec![0; recv.bytes.bytes()]);
        send.bytes.read(&mut out)?;
        let parts = Parts { bytes: &out[..], parts: send.parts };
        ProcessGroup::alltoallv(self, parts, Parts { bytes: &mut come, parts: recv.parts })?;
        for &(first, bytes) in recv.parts {
            recv.bytes.part(first..first + bytes).write(&come[first..first + bytes])?;
        }
        Ok(())
    }
}

impl ProcessGroup for SocketGroup {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.collectives.len()
    }

    fn allgather(&self, mine: &[u8], all: &mut [u8]) -> Result<()> {
        let send = vec![mine; self.size()];
        let mut recv: Vec<_> = all.chunks_exact_mut(mine.len()).collect();
        self.exchange(&send, &mut recv)
    }

    fn alltoallv(&self, send: Parts<'_, &[u8]>, recv: Parts<'_, &mut [u8]>) -> Result<()> {
        let part = |&(first, len): &(usize, usize)| &send.bytes[first..][..len];
        let parts: Vec<_> = send.parts.iter().map(part).collect();
        self.exchange(&parts, &mut split(recv.bytes, recv.parts))
    }

    fn device_messages(&self) -> Option<&dyn DeviceMessages> {
        self.has_device_messages.then_some(self)
    }

    fn messages(&self) -> Option<&dyn Messages> {
        self.has_messages.then_some(self as _)
    }

    fn host(&self) -> String {
        match &self.host {
            Some(host) => host.clone(),
            None => thriffty::group::default_host(),
        }
    }

    /// A rank whose sockets are closed without a farewell. The two of a pair close one after the
    /// other.
    fn lost(&self) -> Option<usize> {
        for _ in 0..if self.has_failed.get() { PATIENCE } else { 1 } {
            let mail = &mut *self.mail.borrow_mut();
            (0..self.size()).for_each(|peer| mail.pump(peer));
            let lost = (0..self.size()).find(|&peer| mail.is_closed[peer] && !mail.farewell[peer]);
            if lost.is_some() {
                return lost;
            }
            std::thread::sleep(POLL);
        }
        None
    }

    /// Says farewell, and closes the sockets.
    fn abandon(&self) {
        for peer in (0..self.size()).filter(|&peer| peer != self.rank) {
            let mail = &mut *self.mail.borrow_mut();
            mail.queue(peer, FAREWELL, &[]);
            mail.pump(peer);
            for stream in [&self.collectives[peer], &mail.streams[peer]].into_iter().flatten() {
                // It may be closed at the other end.
                let _ = stream.shutdown(std::net::Shutdown::Write);
            }
        }
    }
}

impl Messages for SocketGroup {
    fn isend(&self, to: usize, tag: u32, message: Slot) -> Result<Request> {
        Ok(self.mail.borrow_mut().send(to, tag, message))
    }

    fn irecv(&self, from: usize, tag: u32, room: Slot) -> Result<Request> {
        Ok(self.mail.borrow_mut().receive(from, tag, room))
    }

    fn test(&self, request: Request) -> Result<Option<Slot>> {
        self.mail.borrow_mut().test(request)
    }
}

/// How often a failed group looks for the rank that has ended, and the time between two looks.
const PATIENCE: usize = 200;
const POLL: Duration = Duration::from_millis(5);

/// Tag and length, before each message.
const HEADER: usize = 12;

/// The tag of the last message of a rank that gives up.
const FAREWELL: u32 = u32::MAX;

/// Messages under way.
struct Mail {
    streams: Vec<Option<UnixStream>>,
    next: Request,
    /// By receiver: bytes that are not sent yet, and at which byte of all each message ends.
    leaving: Vec<VecDeque<u8>>,
    sent: Vec<u64>,
    queued: Vec<u64>,
    ends: HashMap<Request, (usize, u64, Slot)>,
    /// By sender: bytes that are no whole message yet.
    coming: Vec<VecDeque<u8>>,
    arrived: HashMap<(usize, u32), VecDeque<Vec<u8>>>,
    rooms: HashMap<Request, (usize, u32, Slot)>,
    is_closed: Vec<bool>,
    farewell: Vec<bool>,
}

impl Mail {
    fn new(streams: Vec<Option<UnixStream>>) -> Self {
        let size = streams.len();
        let bytes = || vec![VecDeque::new(); size];
        Self {
            streams,
            next: 0,
            leaving: bytes(),
            sent: vec![0; size],
            queued: vec![0; size],
            ends: HashMap::new(),
            coming: bytes(),
            arrived: HashMap::new(),
            rooms: HashMap::new(),
            is_closed: vec![false; size],
            farewell: vec![false; size],
        }
    }

    fn queue(&mut self, to: usize, tag: u32, bytes: &[u8]) {
        self.leaving[to].extend(tag.to_le_bytes());
        self.leaving[to].extend((bytes.len() as u64).to_le_bytes());
        self.leaving[to].extend(bytes);
        self.queued[to] += (HEADER + bytes.len()) as u64;
    }

    fn send(&mut self, to: usize, tag: u32, message: Slot) -> Request {
        self.queue(to, tag, message.bytes());
        self.next += 1;
        self.ends.insert(self.next, (to, self.queued[to], message));
        self.next
    }

    fn receive(&mut self, from: usize, tag: u32, room: Slot) -> Request {
        self.next += 1;
        self.rooms.insert(self.next, (from, tag, room));
        self.next
    }

    fn test(&mut self, request: Request) -> Result<Option<Slot>> {
        for peer in 0..self.streams.len() {
            self.pump(peer);
        }
        if let Some((to, end, _)) = self.ends.get(&request) {
            let (to, is_sent) = (*to, self.sent[*to] >= *end);
            if !is_sent && !self.is_closed[to] {
                return Ok(None);
            }
            let (_, _, message) = self.ends.remove(&request).expect("just found");
            return if is_sent { Ok(Some(message)) } else { Err("the receiver has ended".into()) };
        }
        let (from, tag, _) = self.rooms[&request];
        let Some(bytes) = self.arrived.get_mut(&(from, tag)).and_then(VecDeque::pop_front) else {
            if self.is_closed[from] {
                self.rooms.remove(&request);
                return Err("the sender has ended".into());
            }
            return Ok(None);
        };
        let (_, _, mut room) = self.rooms.remove(&request).expect("just found");
        if bytes.len() > room.capacity() {
            return Err(format!("{} bytes for a room of {room:?}", bytes.len()).into());
        }
        room.set_len(bytes.len());
        room.bytes_mut().copy_from_slice(&bytes);
        Ok(Some(room))
    }

    /// Sends and receives what can be.
    fn pump(&mut self, peer: usize) {
        let Some(stream) = &mut self.streams[peer] else { return };
        let leaving = &mut self.leaving[peer];
        while !leaving.is_empty() {
            match stream.write(leaving.as_slices().0) {
                Ok(bytes) => {
                    leaving.drain(..bytes);
                    self.sent[peer] += bytes as u64;
                }
                Err(why) if why.kind() == ErrorKind::WouldBlock => break,
                Err(_) => {
                    self.is_closed[peer] = true;
                    break;
                }
            }
        }
        let coming = &mut self.coming[peer];
        let mut bytes = [0; 1 << 16];
        loop {
            match stream.read(&mut bytes) {
                Ok(0) => {
                    self.is_closed[peer] = true;
                    break;
                }
                Ok(n) => coming.extend(&bytes[..n]),
                Err(why) if why.kind() == ErrorKind::WouldBlock => break,
                Err(_) => {
                    self.is_closed[peer] = true;
                    break;
                }
            }
        }
        while coming.len() >= HEADER {
            let header: Vec<u8> = coming.range(..HEADER).copied().collect();
            let tag = u32::from_le_bytes(header[..4].try_into().expect("4 bytes"));
            let len = u64::from_le_bytes(header[4..].try_into().expect("8 bytes")) as usize;
            if coming.len() < HEADER + len {
                break;
            }
            coming.drain(..HEADER);
            let message = coming.drain(..len).collect();
            self.farewell[peer] |= tag == FAREWELL;
            self.arrived.entry((peer, tag)).or_default().push_back(message);
        }
    }
}
