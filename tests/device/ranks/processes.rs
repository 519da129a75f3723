//! Ranks as processes on the available devices: mapped memory, and messages from device memory or
//! through the host.

use crate::common::job;

use super::lossy::lost;
use super::*;

/// On a GPU, with messages for all data that changes ranks.
struct By(Gpu, GpuTransport);

impl Place for By {
    fn plan<'a, K: Make, const D: usize>(&self, draft: Draft<'a, K, D>) -> DeviceDraft<'a, K, D>
    where
        K::Real: GpuReal,
    {
        draft.on(&self.0).transport(self.1)
    }
}

#[test]
fn that_share_devices_transform_as_defined() {
    if gpu().is_some() {
        for ranks in [2, 4, 8] {
            job::must_succeed(ranks, "ranks::processes::body");
        }
    }
}

#[test]
#[ignore = "started under mpirun by another test"]
fn body() {
    let library = thriffty::mpi::init().expect("MPI is initialised once");
    let world = library.world().expect("the world");
    job::assert_ranks(world.size());
    let gpu = gpu_of(world.rank()).expect("asked before");
    coded(&world, &gpu, Exchange::P2p).unwrap();
    everything(&world, &gpu).unwrap();
    fetched::cases(&world, &gpu, false).unwrap();
    let joined = fetched::joined(&world, &gpu).unwrap();
    shared::cases(&world, &gpu, joined, false).unwrap();
    refused(&world, &gpu).unwrap();
    damaged::in_windows(&world, &gpu).unwrap();
    for transport in [GpuTransport::PeerToPeer, GpuTransport::HostStaged] {
        arrays::cases(&world, &gpu, transport, 0..4).unwrap();
    }
    let by_host = By(gpu.clone(), GpuTransport::HostStaged);
    everything(&world, &by_host).unwrap();
    for exchange in Exchange::ALL {
        println!("messages through the host by {exchange}");
        small(&world, &by_host, exchange).unwrap();
    }
    // Processes on one device take turns.
    let many = world.size() > 4;
    if !many {
        coded(&world, &by_host, Exchange::Pipelined).unwrap();
    }
    // All ranks agree whether MPI sends from devices.
    let case = Case::new([6, 5, 4], [C2C; 3]).exchange(Exchange::P2p);
    let draft = case.draft::<C2c<f64>>(&world).unwrap().on(&gpu);
    match draft.transport(GpuTransport::GpuDirect).build() {
        Ok(plan) => assert_eq!(plan.transport(), GpuTransport::GpuDirect),
        Err(why) => return println!("not run: messages on the device, {why}"),
    }
    damaged::on_device(&world, &gpu).unwrap();
    let gpu = By(gpu, GpuTransport::GpuDirect);
    everything(&world, &gpu).unwrap();
    // The host encodes these.
    for wire in [Wire::F16, Wire::Lossless] {
        let draft = case.draft::<C2c<f64>>(&world).unwrap().wire(wire).ignore_shared_memory(true);
        let draft = draft.on(&gpu.0).transport(GpuTransport::GpuDirect);
        let error = draft.build().map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Argument, "{error}");
    }
    for exchange in Exchange::ALL {
        if matches!(exchange, Exchange::KWay(_)) {
            continue;
        }
        println!("messages on the device by {exchange}");
        small(&world, &gpu, exchange).unwrap();
        if !many || exchange == Exchange::Alltoallv {
            coded(&world, &gpu, exchange).unwrap();
        }
    }
}

/// Short messages, and pairs of ranks without any.
fn small(world: &dyn Comm, gpu: &impl Place, exchange: Exchange) -> Done {
    let case = Case::new([9, 12, 10], [C2C; 3]).tiling(3).exchange(exchange);
    complex(world, gpu, &case)?;
    let case = Case::new([9, 12, 10], [C2C, C2C, R2C]).exchange(exchange);
    halved(world, gpu, &case)
}

/// Coded messages, and messages in chunks.
fn coded(world: &dyn Comm, gpu: &impl Place, exchange: Exchange) -> Done {
    let case = Case::new([48, 40, 50], [C2C, C2C, R2C]).exchange(exchange);
    let large = Case::new([192, 160, 256], [C2C; 3]).exchange(exchange);
    let forward = Direction::Forward;
    for wire in [Wire::F32, Wire::Bits(16)] {
        let (error, reported) =
            lost::<R2c<f64>, 3>(world, gpu, &case, forward, |x| x, |d| d.wire(wire))?;
        assert!((reported.estimate / error - 1.0).abs() < 0.1, "{wire} {error:e} {reported:?}");
        let (error, reported) =
            lost::<C2c<f64>, 3>(world, gpu, &large, forward, |x| x, |d| d.wire(wire))?;
        assert!((reported.estimate / error - 1.0).abs() < 0.02, "{wire} {error:e} {reported:?}");
    }
    let option = Tolerance::relative(1e-6)?;
    for direction in [Direction::Forward, Direction::Inverse] {
        let (error, reported) =
            lost::<R2c<f64>, 3>(world, gpu, &case, direction, |x| x, |d| d.tolerance(option))?;
        assert!(error <= 1e-6 && error <= reported.bound, "{error:e}, {reported:?}");
    }
    let (error, reported) =
        lost::<C2c<f64>, 3>(world, gpu, &large, forward, |x| x, |d| d.tolerance(option))?;
    assert!(error <= 1e-6 && error <= reported.bound, "{error:e}, {reported:?}");
    Ok(())
}

/// Ranks that request different transports, or impossible ones, all get an error.
fn refused(world: &dyn Comm, gpu: &Gpu) -> Done {
    let case = Case::new([6, 5, 4], [C2C; 3]);
    let mine = if world.rank() == 1 { GpuTransport::HostStaged } else { GpuTransport::PeerToPeer };
    let draft = case.clone().exchange(Exchange::P2p).draft::<C2c<f64>>(world)?;
    let error = draft.on(gpu).transport(mine).build().map(drop).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the ranks disagree on the transport: rank 0 has peer_to_peer, rank 1 has host_staged"
    );
    let draft = case.exchange(Exchange::KWay(2)).draft::<C2c<f64>>(world)?;
    let error = draft.on(gpu).transport(GpuTransport::GpuDirect).build().map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Argument, "{error}");
    Ok(())
}
