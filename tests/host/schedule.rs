//! Schedules say what plans do: as many bytes on the wire, from every rank.

use thriffty::planning::{Exchange, Schedule};
use thriffty::{C2c, Complex, Grid, Plan, Tolerance, Wire};

#[test]
fn every_rank_sends_what_its_schedule_says() {
    for exchange in [Exchange::P2p, Exchange::Pipelined, Exchange::Alltoallv] {
        for wire in [Wire::Raw, Wire::F32, Wire::Bits(16), Wire::Mantissa(20)] {
            thriffty::threads(5, |world| {
                let draft = Plan::<C2c, 3>::c2c(&world, Grid::new([60, 40, 48])?);
                let mut plan =
                    draft.exchange(exchange).wire(wire).ignore_shared_memory(true).build()?;
                let schedules = Schedule::of(plan.recipe());
                let rank = plan.comm().rank();
                let of = |(_, schedule): &(usize, Schedule)| -> u64 {
                    schedule.of_rank(rank).iter().map(|message| message.wire).sum()
                };
                let expected: u64 = schedules.iter().map(of).sum();
                let x = vec![Complex::new(0.5, 0.25); plan.input_len()];
                plan.clear_timings();
                plan.forward_into(&x, &mut vec![Complex::default(); plan.output_len()])?;
                assert!(expected > 0, "{}", plan.recipe());
                assert_eq!(plan.timings().sent, expected, "{}", plan.recipe());
                Ok::<_, thriffty::Error>(())
            })
            .unwrap();
        }
    }
}

#[test]
fn what_depends_on_the_data_is_expected_of_noise() {
    thriffty::threads(4, |world| {
        let draft = Plan::<C2c, 3>::c2c(&world, Grid::new([48, 48, 48])?);
        let draft = draft.exchange(Exchange::P2p).ignore_shared_memory(true);
        let mut plan = draft.tolerance(Tolerance::relative(1e-6)?).build()?;
        let rank = plan.comm().rank();
        let expected: u64 = (Schedule::of(plan.recipe()).iter())
            .flat_map(|(_, schedule)| schedule.of_rank(rank))
            .map(|message| message.wire)
            .sum();
        let mut state = rank as u64;
        let mut noise = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
        };
        let x: Vec<_> = (0..plan.input_len()).map(|_| Complex::new(noise(), noise())).collect();
        plan.clear_timings();
        plan.forward_into(&x, &mut vec![Complex::default(); plan.output_len()])?;
        let ratio = plan.timings().sent as f64 / expected as f64;
        assert!((0.85..1.15).contains(&ratio), "{ratio} of what is expected");
        Ok::<_, thriffty::Error>(())
    })
    .unwrap();
}
