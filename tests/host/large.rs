//! Data so large that it is sent in chunks by default, a few of which are under way at once: over
//! threads.

use crate::common::check::{Case, Make, check};
use crate::common::on_hosts;
use thriffty::planning::{Exchange, Recipe};
use thriffty::{C2c, Comm, Error, Kind, R2c};

/// Bytes of the same plan with whole messages, in chunks that are larger than all data.
fn whole<K: Make>(comm: &dyn Comm, case: &Case<3>) -> Result<usize, Error> {
    let case = case.clone().exchange(Exchange::P2p);
    let mut problem = case.plan::<K>(comm)?.recipe().problem().clone();
    problem.options.chunk = 1 << 40;
    let recipe = Recipe::new(problem)?.to_string();
    Ok(case.exactly(recipe).plan::<K>(comm)?.workspace_bytes())
}

/// Results match the definition, in less memory than whole messages take.
fn streamed<K: Make>(comm: &dyn Comm, case: &Case<3>) -> Result<(), Error> {
    check::<K, 3>(comm, case)?;
    let (plan, whole) = (case.plan::<K>(comm)?, whole::<K>(comm, case)?);
    let found = plan.workspace_bytes();
    let [input, output] =
        [plan.input_len() * size_of::<K::Physical>(), plan.output_len() * size_of::<K::Spectral>()];
    assert!(found + input.max(output) / 8 < whole, "{found} bytes, {whole}: {case:?}");
    // Complex data is in one place besides the output. A tile of a chunk, and the chunks under way,
    // some part of which stays here.
    let bound = output + output / 4 + (1 << 19) + (1 << 16);
    assert!(input != output || found <= bound, "{found} bytes, {bound} allowed: {case:?}");
    Ok(())
}

#[test]
fn large_data_takes_little_memory() {
    use Exchange::{Alltoallv, KWay, P2p, Pipelined, Shared};
    for (hosts, exchanges) in
        [(&[0, 1][..], &[P2p, Alltoallv, Shared][..]), (&[0, 1, 2], &[Pipelined, KWay(2)])]
    {
        for &exchange in exchanges {
            on_hosts(hosts, |comm| {
                let case = |shape, kinds| Case::new(shape, kinds).exchange(exchange);
                streamed::<C2c<f64>>(&comm, &case([102, 96, 90], [Kind::C2C; 3]))?;
                let half = [Kind::C2C, Kind::C2C, Kind::R2C];
                streamed::<R2c<f64>>(&comm, &case([126, 128, 120], half))
            });
        }
    }
}
