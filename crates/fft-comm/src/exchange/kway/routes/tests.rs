//! Every message arrives, whatever P and k are.

use std::collections::HashSet;

use super::*;

/// ⌈log_k ranks⌉
fn rounds(ranks: usize, k: usize) -> usize {
    (0..).find(|round| k.pow(*round) >= ranks).unwrap() as usize
}

fn bytes(origin: usize, destination: usize) -> usize {
    origin * 7 + destination * 3 + 1
}

/// Messages between these pairs, in order of origin, each origin beginning with the rank after
/// itself.
fn all(ranks: usize, sent: impl Fn(usize, usize) -> bool) -> Vec<Label> {
    let pairs = (0..ranks).flat_map(|a| (1..ranks).map(move |d| (a, (a + d) % ranks)));
    let label =
        |(origin, destination)| Label { origin, destination, bound: bytes(origin, destination) };
    pairs.filter(|&(a, b)| sent(a, b)).map(label).collect()
}

fn message_plan(rank: usize, messages: &[Label]) -> MessagePlan {
    let specs = |mine: fn(&Label) -> usize, peer: fn(&Label) -> usize| {
        let there = messages.iter().filter(|label| mine(label) == rank);
        there.map(|label| MessageSpec { peer: peer(label), bytes: label.bound, chunk: 0 }).collect()
    };
    MessagePlan {
        chunks: 1,
        shorter: false,
        sends: specs(|l| l.origin, |l| l.destination),
        recvs: specs(|l| l.destination, |l| l.origin),
        ..MessagePlan::default()
    }
}

/// Redistribution messages from rank to rank as the routes say.
fn simulate(ranks: usize, k: usize, messages: &[Label]) {
    let routes: Vec<Routes> = (0..ranks)
        .map(|r| Routes::new(r, ranks, k, &message_plan(r, messages), messages).unwrap())
        .collect();
    let mut held: Vec<HashSet<(usize, usize)>> = vec![HashSet::new(); ranks];
    for label in messages {
        held[label.origin].insert((label.origin, label.destination));
    }
    for round in 0..rounds(ranks, k) {
        let before = held.clone();
        for (rank, here) in routes.iter().enumerate() {
            let now = |bundles: &[Bundle]| bundles.iter().filter(|b| b.round == round).count();
            assert!(now(&here.sends) < k && now(&here.recvs) < k, "{ranks} ranks, k = {k}");
            for bundle in here.sends.iter().filter(|bundle| bundle.round == round) {
                let there = &routes[bundle.peer];
                let same = |b: &&Bundle| (b.round, b.peer) == (round, rank);
                let end = there.recvs.iter().find(same).expect("the receiver expects it");
                let sent: Vec<_> =
                    here.outgoing[bundle.items.clone()].iter().map(|o| o.label).collect();
                let come: Vec<_> =
                    there.incoming[end.items.clone()].iter().map(|i| i.label).collect();
                assert_eq!((&sent, bundle.bytes), (&come, end.bytes), "both ends agree");
                assert!(!sent.is_empty(), "nothing is not sent");
                for Label { origin, destination, .. } in sent {
                    assert!(before[rank].contains(&(origin, destination)), "it is there");
                    held[rank].remove(&(origin, destination));
                    held[bundle.peer].insert((origin, destination));
                }
            }
        }
    }
    let last = |bundle: &Bundle| bundle.round < rounds(ranks, k);
    for (rank, here) in routes.iter().enumerate() {
        let expected: HashSet<_> = (messages.iter().filter(|l| l.destination == rank))
            .map(|l| (l.origin, l.destination))
            .collect();
        assert_eq!(held[rank], expected, "{ranks} ranks, k = {k}");
        assert!(here.sends.iter().chain(&here.recvs).all(last), "{ranks} ranks, k = {k}");
        let sends: usize = here.sends.iter().map(|b| b.items.len()).sum();
        assert_eq!(sends, here.outgoing.len());
        let peers: HashSet<_> = here.sends.iter().map(|b| b.peer).collect();
        assert_eq!(peers.len(), here.sends.len(), "one bundle per peer");
        for (spec, &at) in message_plan(rank, messages).recvs.iter().zip(&here.arrivals) {
            let item = &here.incoming[at];
            assert_eq!((item.label.origin, item.label.bound), (spec.peer, spec.bytes));
            assert!(here.recvs[item.bundle].items.contains(&at));
        }
    }
}

#[test]
fn every_message_arrives_in_so_many_rounds_and_sends() {
    for ranks in 1..=33 {
        for k in 2..=9 {
            simulate(ranks, k, &all(ranks, |_, _| true));
            simulate(ranks, k, &all(ranks, |a, b| (a * 5 + b * 3) % 4 == 0 && a % 3 != 1));
        }
    }
}

#[test]
fn with_k_not_below_the_ranks_all_go_directly() {
    for ranks in 2..12 {
        let messages = all(ranks, |_, _| true);
        let routes = Routes::new(1, ranks, ranks, &message_plan(1, &messages), &messages).unwrap();
        assert!(routes.sends.iter().all(|bundle| (bundle.round, bundle.items.len()) == (0, 1)));
        assert_eq!(routes.sends.len(), ranks - 1);
    }
}

#[test]
fn distances_are_read_from_the_lowest_digit() {
    let hops: Vec<_> = path(5, 4, 7, 2).map(|hop| (hop.round, hop.from, hop.to)).collect();
    assert_eq!(hops, [(1, 5, 0), (2, 0, 4)]);
    assert_eq!(path(3, 3, 7, 2).count(), 0);
    // Powers of k beyond the ranks are not computed: they would not fit.
    let far = path(0, usize::MAX / 2 - 1, usize::MAX / 2, 1 << 62).last().unwrap();
    assert_eq!(far.to, usize::MAX / 2 - 1);
}

#[test]
fn ranks_that_disagree_on_a_message_are_told() {
    let messages = all(3, |_, _| true);
    let good = message_plan(1, &messages);
    let text = |message_plan: &MessagePlan| {
        Routes::new(1, 3, 2, message_plan, &messages).map(drop).unwrap_err().to_string()
    };
    let mut other = good.clone();
    other.recvs[0].bytes += 8;
    assert!(text(&other).contains("message from rank 0 to rank 1"), "{}", text(&other));
    other.recvs.remove(0);
    assert!(text(&other).ends_with("rank 0 has 4 bytes, rank 1 has 0 bytes"), "{}", text(&other));
    let fewer = all(3, |a, b| (a, b) != (0, 1));
    let error = Routes::new(1, 3, 2, &good, &fewer).map(drop).unwrap_err().to_string();
    assert!(error.ends_with("rank 0 has 0 bytes, rank 1 has 4 bytes"), "{error}");
}
