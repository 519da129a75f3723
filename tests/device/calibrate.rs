//! Machines that are measured on CUDA devices. Without a GPU the test prints why and passes.

use crate::common::check::Case;
use crate::common::data::{C64, bound, cut, distance, norm, random, widen};
use crate::gpu::{few, gpu, gpu_of};
use thriffty::Kind::C2C;
use thriffty::gpu::{DeviceOptions, GpuTransport};
use thriffty::machine::{self, How, Machine};
use thriffty::planning::Direction;
use thriffty::{C2c, Comm, Error};

/// Plans with a machine transform as defined.
fn transforms(comm: &dyn Comm, device: &DeviceOptions, machine: &Machine) -> Result<(), Error> {
    let case = Case::new([16, 12, 20], [C2C; 3]);
    let (rank, [input, output]) = (comm.rank(), case.bricks(comm.size())?);
    let shape = case.grids()?.map(|grid| grid.shape());
    let x: Vec<C64> = random(16 * 12 * 20, 1);
    let expected = case.expected(Direction::Forward, &widen(&x));
    let draft = case.draft::<C2c<f64>>(comm)?.machine(machine.clone());
    let mut plan = draft.on(device.clone()).build()?;
    assert!(plan.recipe().predict().seconds > 0.0);
    let stream = plan.stream().clone();
    let mine = cut(&x, shape[0], input[rank], case.orders[0]);
    let numbers: &[f64] = bytemuck::cast_slice(&mine);
    let src = stream.clone_htod(numbers).unwrap();
    let mut dst = stream.alloc_zeros::<f64>(2 * plan.output_len()).unwrap();
    plan.forward_into(&src, &mut dst)?;
    let found = stream.clone_dtoh(&dst).unwrap();
    stream.synchronize().unwrap();
    let found: &[C64] = bytemuck::cast_slice(&found);
    let here = cut(&expected, shape[1], output[rank], case.orders[1]);
    let error = distance(found, &here) / norm(&expected);
    assert!(error <= bound(f64::EPSILON, x.len()), "{error:e}: {}", plan.recipe());
    Ok(())
}

#[test]
fn all_ranks_measure_the_same_machine_and_plan_with_it() {
    let Some(first) = gpu() else { return };
    let transports = [GpuTransport::PeerToPeer, GpuTransport::HostStaged];
    let cases = [(&[0][..], 0), (&[0, 0], 0), (&[0, 0, 0, 0], 0), (&[0, 0], 1), (&[0, 1, 1], 0)];
    for (hosts, transport) in &cases[..if few() { 2 } else { cases.len() }] {
        let transport = transports[*transport];
        let found = fft_comm::threads_on(hosts, |comm| {
            let gpu = gpu_of(comm.rank()).expect("as the first");
            let device = DeviceOptions { transport, ..(&gpu).into() };
            let machine = machine::measure_on_device(&comm, device.clone()).unwrap();
            transforms(&comm, &device, &machine).unwrap();
            machine
        });
        let machine = &found[0];
        println!("{hosts:?} {transport}: {machine:#?}");
        assert!(found.iter().all(|other| other == machine));
        machine.check().unwrap();
        assert_eq!(machine.gpu.as_deref(), Some(&*first.name()));
        assert!(machine.host_memory.value >= machine.memory.value / 2.0);
        let how = |ranks: usize| if ranks > 1 { How::Measured } else { How::Assumed };
        let shared = hosts.iter().filter(|host| **host == hosts[hosts.len() - 1]).count();
        assert_eq!(machine.near.latency.how, how(shared));
        assert_eq!(machine.far.latency.how, how(1 + hosts[hosts.len() - 1]));
    }
}

#[test]
fn a_machine_of_a_gpu_is_not_loaded_for_the_host() {
    let Some(gpu) = gpu() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("machine.toml");
    thriffty::threads(2, |comm| {
        let machine = Machine { gpu: Some(gpu.name()), ..Machine::default() };
        machine::save(&comm, &machine, &path)?;
        assert_eq!(machine::load_on_device(&comm, &gpu, &path)?, Some(machine.clone()));
        assert_eq!(machine::read_on_device(&comm, &gpu, &path)?, machine);
        assert_eq!(machine::load(&comm, &path)?, None);
        Ok::<_, Error>(())
    })
    .unwrap();
}
