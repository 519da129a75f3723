//! Plans with [`Memory::Least`], and plans with shared arrays, over threads.

use std::time::Duration;

use crate::common::check::check;
use crate::common::weak::{Fault, HALVED, Weak};
use crate::common::{HOSTS, arrays, cases, little, lossy, on_all_ranks, on_hosts};
use thriffty::planning::{Exchange, Memory};
use thriffty::{C2c, Comm, Complex, Error, Grid, Plan, R2c, Tuning};

#[test]
fn results_are_those_of_the_definition() {
    on_all_ranks(little::right);
}

#[test]
fn workspace_is_bounded() {
    on_all_ranks(little::bounded);
}

#[test]
fn large_data_takes_little_more_by_default() {
    for ranks in [2, 3, 4] {
        let hosts: Vec<_> = (0..ranks).collect();
        for hosts in [vec![0; ranks], hosts] {
            on_hosts(&hosts, |comm| little::modest(&comm));
        }
    }
}

#[test]
fn arrays_that_are_shared() {
    on_all_ranks(arrays::all);
}

/// Threads that can access no arrays but their own, like processes: the data that no other rank
/// transforms stays in the output.
#[test]
fn ranks_with_memory_of_their_own() {
    on_all_ranks(|comm| {
        let apart = Weak::new(comm, Fault::Apart)?;
        cases::all(&apart)?;
        cases::many_neighbours(&apart)?;
        little::modest(&apart)
    });
}

/// Ranks that run different directions get the same error, and the next run succeeds.
#[test]
fn ranks_with_memory_of_their_own_that_disagree() {
    thriffty::threads(3, |comm| {
        let apart = Weak::new(&comm, Fault::Apart)?;
        let mut plan = Plan::<C2c>::c2c(&apart, Grid::new([12, 10, 8])?).build()?;
        let x = vec![Complex::new(1.0, 0.0); plan.input_len()];
        let mut y = x.clone();
        let odd = comm.rank() == 1;
        let found = if odd { plan.inverse_into(&x, &mut y) } else { plan.forward_into(&x, &mut y) };
        let found = found.expect_err("ranks disagree").to_string();
        assert!(found.contains("disagree on the partition of the epoch: rank 0"), "{found}");
        plan.forward_into(&x, &mut y)
    })
    .unwrap();
}

/// From pencils to pencils, half a spectrum is made in the first pass across ranks, and transposed
/// back in the last, if callers' arrays can be accessed and least memory is not set.
#[test]
fn half_a_spectrum_takes_no_pass_of_its_own() {
    for (memory, passes) in [(Memory::Ample, 2), (Memory::Least, 0)] {
        let found = thriffty::threads(4, |comm| {
            let weak = Weak::new(&comm, Fault::Nothing)?;
            let case = cases::pencils([8, 6, 10], 2, 1, &weak).expect("a case for four ranks");
            check::<R2c, 3>(&weak, &case.memory(memory))?;
            Ok::<_, Error>(HALVED.get())
        });
        assert_eq!(found.unwrap(), [passes; 4], "{memory}");
    }
}

/// Some ranks share memory and others do not.
#[test]
fn also_on_several_hosts() {
    let bodies = [little::right, little::bounded, arrays::all];
    // Each with another kind of hosts, because each takes long.
    for (hosts, body) in HOSTS.into_iter().zip(bodies.into_iter().cycle()) {
        on_hosts(hosts, |comm| body(&comm));
    }
}

#[test]
fn wires_keep_their_promises() {
    for ranks in [2, 3] {
        thriffty::threads(ranks, |comm| lossy::all(&comm, Memory::Least)).unwrap();
    }
}

#[test]
fn ranks_that_disagree_are_told() {
    let found = fft_comm::threads(2, |comm| {
        let memory = if comm.rank() == 0 { Memory::Ample } else { Memory::Least };
        let draft = Plan::<C2c, 2>::c2c(&comm, Grid::new([8, 8])?);
        draft.exchange(Exchange::P2p).memory(memory).build().map(drop)
    });
    for error in found.into_iter().map(Result::unwrap_err) {
        assert!(matches!(&error, Error::Disagreement { what, .. } if what == "memory"), "{error}");
    }
}

/// The tuner makes exchanges as plans do. The ranks are threads that act as if each had a host of
/// its own, with uneven parts.
#[test]
fn what_the_clock_chooses_is_as_little() {
    for ranks in [2, 3, 4] {
        let hosts: Vec<_> = (0..ranks).collect();
        let found = fft_comm::threads_on(&hosts, |comm| {
            let draft = Plan::<C2c, 3>::c2c(&comm, Grid::new([60, 34, 42])?);
            let tuning = Tuning::Measure { budget: Duration::from_millis(200) };
            let mut plan = draft.memory(Memory::Least).tuning(tuning).build()?;
            let mut data = vec![Default::default(); plan.in_place_len()];
            let bytes = size_of_val(&data[..]);
            // With parts this small, messages of a few chunks take as much again.
            assert!(
                plan.workspace_bytes() < 2 * bytes + (1 << 17),
                "{} of {bytes}",
                plan.workspace_bytes()
            );
            let points = plan.input_len();
            data[..points].fill(Complex::new(1.0, 0.0));
            plan.forward_in_place(&mut data)?;
            let timed = plan.report().rows.iter().filter(|row| row.outcome.seconds().is_some());
            assert!(timed.count() > 0, "{}", plan.report());
            Ok::<_, Error>(data[0].re)
        });
        let sums: Vec<f64> = found.into_iter().map(Result::unwrap).collect();
        assert!((sums[0] - 60.0 * 34.0 * 42.0).abs() < 1e-6, "{sums:?}");
    }
}
