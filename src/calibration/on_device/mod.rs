//! The machine of ranks with GPUs.
//!
//! ```text
//! the first rank of each GPU: copies, transforms and codecs, by itself
//! all ranks: transforms whose result moves to another rank, and transforms whose result stays
//! ```

mod alone;
mod links;

use std::collections::BTreeSet;

use fft_comm::broadcast_line;
use fft_core::{Comm, Error, How, Machine, Quantity, Topology, agree, assert_same};
use fft_gpu::Gpu;

use super::agreed::measure_until_agreed;
use crate::bound::DeviceOptions;
use crate::machines::parse;
use alone::Bench;
use links::Links;

/// Measures the machine of ranks with GPUs, for plans on these. Collective; the same on every rank,
/// bit by bit. It uses half of the memory that is free on each GPU at most.
///
/// As [`measure`](super::measure), it measures until two measurements agree, at most five times,
/// and warns if they do not.
///
/// A rank's processor is its GPU. `memory` is the rate of copies, `flops` the arithmetic beyond a
/// pass over memory, `launch` the time of a small transform, and `barrier` the time of a small
/// reshape. `near` and `far` are measured on whole reshapes, by the transport of the options.
/// `rounded` is the rate of `f32`; the model does not include that the host encodes shorter
/// formats. Links that do not exist, `lossless` and `congestion` keep the values of
/// [`Machine::default`], marked as assumed.
///
/// ```no_run
/// use thriffty::gpu::Gpu;
/// use thriffty::machine;
/// thriffty::run(2, |world| {
///     let gpu = Gpu::probe(0).map_err(|why| why.on(world.rank()));
///     let gpu = thriffty::planning::agree(world, gpu)?;
///     let machine = machine::measure_on_device(world, &gpu)?;
///     let plan = thriffty::c2c(world, [64, 64, 64]).machine(machine).on(&gpu).build()?;
///     println!("{:e} seconds", plan.recipe().predict().seconds);
///     Ok::<_, thriffty::Error>(())
/// })?;
/// # Ok::<(), thriffty::Error>(())
/// ```
///
/// # Errors
/// On every rank: [`Error::OnRank`] when one lacks memory or cuFFT, or the driver fails;
/// [`Error::Disagreement`] about the transport; the errors of plans with this transport.
pub fn measure_on_device(
    comm: &dyn Comm,
    device: impl Into<DeviceOptions>,
) -> Result<Machine, Error> {
    let device = device.into();
    assert_same(comm, &[("transport", device.transport.to_string())])?;
    measure_until_agreed(comm, &mut || measure_once(comm, &device))
}

/// One measurement of the machine. Collective.
fn measure_once(comm: &dyn Comm, device: &DeviceOptions) -> Result<Machine, Error> {
    let sharing = Sharing::of(comm, &device.gpu)?;
    let hosts = comm.topology();
    let source = format!(
        "{} ranks on {} of these hosts, by {}, {}",
        comm.size(),
        hosts.hosts(),
        comm.name(),
        device.transport
    );
    let measured = |value| Quantity::new(value, How::Measured, &*source);
    // The others wait meanwhile.
    let alone = sharing.is_first(comm.rank()).then(|| {
        let bench = Bench::new(device, comm.rank())?;
        bench.machine(&source)
    });
    let alone = agree(comm, alone.transpose())?;
    let mine = alone.as_ref().map_or(0.0, |machine| machine.memory.value);
    let mut machine = of_first(comm, &alone.unwrap_or_default())?;
    machine.name = broadcast_line(comm, &device.gpu.name())?;
    machine.gpu = Some(machine.name.clone());
    let (together, gpus) = sharing.fullest(comm, &hosts, mine)?;
    machine.host_memory = measured(together);
    machine.cores = measured(gpus as f64);
    Links::new(comm, device, hosts).measure(&mut machine, &measured)?;
    machine.check()?;
    Ok(machine)
}

/// Rank 0's machine, bit by bit. Collective.
fn of_first(comm: &dyn Comm, mine: &Machine) -> Result<Machine, Error> {
    let text = toml::to_string(mine).expect("numbers and names are TOML");
    let text = fft_comm::broadcast(comm, text.as_bytes())?;
    parse("of rank 0", &String::from_utf8_lossy(&text))
}

/// Which ranks share a GPU.
struct Sharing {
    /// The lowest rank with each rank's GPU.
    firsts: Vec<usize>,
}

impl Sharing {
    /// Collective.
    fn of(comm: &dyn Comm, gpu: &Gpu) -> Result<Self, Error> {
        let (rank, call) = (comm.rank(), "identifying a GPU");
        let uuid = gpu.context().uuid().map(|uuid| uuid.bytes.map(|byte| byte as u8));
        let failed = |why| Error::Transport { rank, call, text: format!("{why}") };
        let mine = agree(comm, uuid.map_err(failed))?;
        let mut all = vec![mine; comm.size()];
        comm.allgather(&mine, all.as_flattened_mut())?;
        Ok(Self::among(&all))
    }

    fn among(gpus: &[[u8; 16]]) -> Self {
        let first = |gpu| gpus.iter().position(|other| other == gpu);
        Self { firsts: gpus.iter().map(|gpu| first(gpu).expect("its own")).collect() }
    }

    fn is_first(&self, rank: usize) -> bool {
        self.firsts[rank] == rank
    }

    /// The sum of `mine` over the GPUs of the fullest host, and their number. Collective.
    fn fullest(&self, comm: &dyn Comm, hosts: &Topology, mine: f64) -> Result<(f64, usize), Error> {
        let mut all = vec![mine; comm.size()];
        comm.allgather(bytemuck::bytes_of(&mine), bytemuck::cast_slice_mut(&mut all))?;
        Ok(self.sum_of_fullest(hosts, &all))
    }

    fn sum_of_fullest(&self, hosts: &Topology, of_ranks: &[f64]) -> (f64, usize) {
        let mut ranks = (0..hosts.hosts()).map(|host| hosts.ranks_of(host));
        let fullest = ranks.find(|ranks| ranks.len() == hosts.ranks_per_host()).unwrap_or_default();
        // The first rank of a GPU may be on another host if hosts are simulated.
        let gpus: BTreeSet<_> = fullest.iter().map(|rank| self.firsts[*rank]).collect();
        (gpus.iter().map(|gpu| of_ranks[*gpu]).sum(), gpus.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_of_the_fullest_host_are_counted_once() {
        let gpus = [7, 7, 8, 9, 8].map(|gpu| [gpu; 16]);
        let sharing = Sharing::among(&gpus);
        assert_eq!(sharing.firsts, [0, 0, 2, 3, 2]);
        let hosts = Topology::new(&[0, 0, 1, 1, 1], 5);
        assert_eq!(sharing.sum_of_fullest(&hosts, &[1.0, 0.0, 2.0, 4.0, 0.0]), (6.0, 2));
        let pretended = Topology::new(&[0, 1, 1], 3);
        let one = Sharing::among(&[[7; 16]; 3]);
        assert_eq!(one.sum_of_fullest(&pretended, &[1.0, 0.0, 0.0]), (1.0, 1));
    }

    #[test]
    fn all_ranks_have_the_machine_of_the_first() {
        let found = crate::threads(3, |comm| {
            let mut mine = Machine { gpu: Some("a \"GPU\"".into()), ..Machine::default() };
            mine.memory.value = 1.0 / (3.0 + comm.rank() as f64);
            of_first(&comm, &mine)
        })
        .unwrap();
        assert!(found.iter().all(|machine| *machine == found[0]));
        assert_eq!(found[1].memory.value, 1.0 / 3.0);
    }
}
