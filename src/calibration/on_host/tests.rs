//! Tests of machines measured on threads: they are the same on all ranks, and numbers are measured.

use fft_comm::threads_on;
use fft_core::{How, Machine};

use super::calibrate;

/// What was measured, and what was not, on ranks of these hosts.
fn check(hosts: &[usize], near: bool, far: bool) {
    let found = threads_on(hosts, |comm| calibrate(&comm).unwrap());
    let machine = &found[0];
    assert!(found.iter().all(|other| other == machine), "{hosts:?}");
    machine.check().unwrap();
    for (name, quantity) in machine.quantities() {
        let expected = match name.as_str() {
            "launch" | "congestion" => false,
            "barrier" => near,
            "host" => far,
            name if name.starts_with("near.") => near,
            name if name.starts_with("far.") => far,
            _ => true,
        };
        assert_eq!(quantity.how == How::Measured, expected, "{name} on {hosts:?}");
    }
    let lengths: Vec<_> = machine.flops.iter().map(|rate| rate.n).collect();
    assert_eq!(lengths, [16, 32, 64, 128, 256, 512, 1024]);
    // Numbers that are not measured keep their values.
    let default = Machine::default();
    assert!(near || machine.near == default.near);
    assert!(far || machine.far == default.far && machine.host == default.host);
    let crew = hosts.iter().map(|host| hosts.iter().filter(|other| *other == host).count()).max();
    assert!(machine.cores.value <= crew.unwrap() as f64 && machine.cores.value > 0.0);
    assert!(machine.strided.value >= 1.0);
}

#[test]
fn one_rank_has_no_links() {
    check(&[0], false, false);
}

#[test]
fn ranks_of_a_host_have_links_within_it() {
    check(&[0; 3], true, false);
}

#[test]
fn ranks_of_hosts_have_links_between_them() {
    check(&[0, 1], false, true);
    check(&[4, 7, 7, 4, 4], true, true);
}
