//! Messages with contents that tests can compute, packed and checked.

use fft_core::{Error, Exchanger, MessageHandler, MessagePlan, MessageSpec};

/// Patterns of messages: all to all, some pairs of uneven sizes with ranks that neither send nor
/// receive, one to all, all to one, none.
pub(crate) const RESHAPES: usize = 5;

/// The most bytes of a message, at least one if all send to all; `None` if there is no message.
fn bound(reshape: usize, from: usize, to: usize) -> Option<usize> {
    let there = match reshape {
        0 => true,
        1 => (from + 2 * to) % 3 == 1 && from % 4 != 2 && to % 5 != 3,
        2 => from == 0,
        3 => to == 1,
        _ => false,
    };
    (from != to && there).then_some((from * 37 + to * 11) % 90 + usize::from(reshape == 0))
}

pub(crate) fn message_plan(rank: usize, ranks: usize, reshape: usize) -> MessagePlan {
    let spec =
        |peer, bytes: Option<usize>| bytes.map(|bytes| MessageSpec { peer, bytes, chunk: 0 });
    let after = || (1..ranks).map(|d| (rank + d) % ranks);
    let before = (1..ranks).map(|d| (rank + ranks - d) % ranks);
    MessagePlan {
        chunks: 1,
        shorter: false,
        buffers_all: false,
        reshape,
        sends: after().filter_map(|to| spec(to, bound(reshape, rank, to))).collect(),
        recvs: before.filter_map(|from| spec(from, bound(reshape, from, rank))).collect(),
        buffers: None,
    }
}

/// What a message says: as many bytes as its bound, or fewer.
fn text(round: usize, from: usize, to: usize, bound: usize) -> Vec<u8> {
    let fewer = (bound * (to + 1) / (from + to + 1)).max(bound.min(1));
    let len = if (round + from + to).is_multiple_of(3) { bound } else { fewer };
    (0..len).map(|i| (round * 31 + from * 7 + to * 3 + i) as u8).collect()
}

/// A rank's messages in one exchange; reads every other one when it comes, the others at the end.
pub(crate) struct Desk<'a> {
    pub(crate) rank: usize,
    pub(crate) round: usize,
    pub(crate) message_plan: &'a MessagePlan,
    pub(crate) packed: usize,
    pub(crate) owned: usize,
    /// What came of each message, by number.
    pub(crate) came: Vec<Option<Vec<u8>>>,
}

impl MessageHandler for Desk<'_> {
    fn pack(&mut self, number: usize, message: &mut [u8]) -> usize {
        assert_eq!(self.owned, 0, "own data is copied when nothing is left to pack");
        let MessageSpec { peer, bytes, .. } = self.message_plan.sends[number];
        let text = text(self.round, self.rank, peer, bytes);
        message[..text.len()].copy_from_slice(&text);
        self.packed += 1;
        text.len()
    }

    fn own(&mut self) {
        self.owned += 1;
    }

    fn arrived(&mut self, number: usize, message: &[u8]) -> bool {
        assert_eq!(message.as_ptr().align_offset(16), 0, "numbers of any type may begin here");
        assert_eq!(self.came[number].replace(message.to_vec()), None, "arrived twice");
        number.is_multiple_of(2)
    }

    fn finish<'m>(&mut self, message: &dyn Fn(usize) -> &'m [u8]) {
        for (number, came) in self.came.iter().enumerate().filter(|(n, _)| !n.is_multiple_of(2)) {
            assert_eq!(came.as_deref(), Some(message(number)), "it is still there at the end");
        }
    }
}

/// One exchange, and which messages were not what they must be.
pub(crate) fn run(
    exchanger: &mut dyn Exchanger,
    rank: usize,
    message_plan: &MessagePlan,
    round: usize,
) -> (Result<(), Error>, Vec<usize>) {
    let came = vec![None; message_plan.recvs.len()];
    let mut desk = Desk { rank, round, message_plan, packed: 0, owned: 0, came };
    let result = exchanger.run(message_plan, &mut desk);
    assert_eq!((desk.packed, desk.owned), (message_plan.sends.len(), 1));
    let right = |(spec, came): &(&MessageSpec, &Option<Vec<u8>>)| {
        **came == Some(text(round, spec.peer, rank, spec.bytes))
    };
    let all = message_plan.recvs.iter().zip(&desk.came);
    (result, all.filter(|pair| !right(pair)).map(|(spec, _)| spec.peer).collect())
}
