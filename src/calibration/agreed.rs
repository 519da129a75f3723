//! Repeats measurements of a machine until they agree.
//!
//! Another program that runs for a part of a second changes a number of one measurement by any
//! factor. So a machine is measured until two measurements agree on every number.

use fft_core::{Comm, Error, Machine};

use super::load::{Load, QUIET};

/// The most measurements.
const MOST: usize = 5;
/// Two values agree within this factor.
const AGREE: f64 = 1.5;
/// Two times also agree if they differ by at most this number of seconds, because small times vary
/// most and matter least.
const AGREE_SECONDS: f64 = 1e-6;
/// The most numbers that a warning names.
const NAMED: usize = 3;

/// A number for which no two measurements agree.
#[derive(Clone, Debug, PartialEq)]
struct Doubt {
    name: String,
    least: f64,
    most: f64,
}

/// A machine whose numbers are the medians of several measurements.
#[derive(Clone, Debug, PartialEq)]
struct Agreed {
    machine: Machine,
    doubts: Vec<Doubt>,
}

/// Measures a machine until two measurements agree, or five have been made. Warns if they disagree,
/// and if other programs kept cores busy. `measure` is collective, its result the same on every
/// rank. Collective.
pub(super) fn measure_until_agreed(
    comm: &dyn Comm,
    measure: &mut dyn FnMut() -> Result<Machine, Error>,
) -> Result<Machine, Error> {
    let load = Load::begin();
    let mut measured = vec![measure()?];
    let agreed = loop {
        measured.push(measure()?);
        let agreed = agreed(&measured);
        if agreed.doubts.is_empty() || measured.len() == MOST {
            break agreed;
        }
    };
    let busy = load.of_others(comm)?;
    if comm.rank() == 0 {
        for warning in warnings(&agreed.doubts, busy) {
            log::warn!("{warning}; measure again when nothing else runs");
        }
    }
    Ok(agreed.machine)
}

/// The medians of at least one measurement of one machine, and the numbers in doubt.
fn agreed(measured: &[Machine]) -> Agreed {
    let mut machine = measured[0].clone();
    let names: Vec<_> = machine.quantities().into_iter().map(|(name, _)| name).collect();
    let mut doubts = Vec::new();
    for ((place, name), quantity) in names.into_iter().enumerate().zip(machine.quantities_mut()) {
        let mut values: Vec<_> =
            measured.iter().map(|one| one.quantities()[place].1.value).collect();
        values.sort_by(f64::total_cmp);
        quantity.value = median(&values);
        if !is_agreed(&values, is_time(&name)) {
            doubts.push(Doubt { name, least: values[0], most: values[values.len() - 1] });
        }
    }
    Agreed { machine, doubts }
}

/// The median of sorted values; for an even number, the geometric mean of the middle two.
fn median(values: &[f64]) -> f64 {
    let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
    if low == high { low } else { (low * high).sqrt() }
}

/// Whether the median of sorted values was measured twice, about.
fn is_agreed(values: &[f64], are_times: bool) -> bool {
    let close =
        |low: f64, high: f64| high <= AGREE * low || are_times && high - low <= AGREE_SECONDS;
    let middle = values.len() / 2;
    let below = middle > 0 && close(values[middle - 1], values[middle]);
    let above = values.len() % 2 == 1
        && values.get(middle + 1).is_some_and(|above| close(values[middle], *above));
    values.len() == 1 || below || above
}

/// Whether a number of a machine is a time, in seconds.
fn is_time(name: &str) -> bool {
    ["launch", "barrier", "latency", "overhead"].iter().any(|time| name.ends_with(time))
}

/// The warnings that a measurement gives rise to.
fn warnings(doubts: &[Doubt], busy: f64) -> Vec<String> {
    let mut warnings = Vec::new();
    if busy > QUIET {
        let percent = 100.0 * busy;
        warnings.push(format!(
            "other programs kept {percent:.0}% of the cores busy while the machine was measured"
        ));
    }
    if !doubts.is_empty() {
        let named = doubts
            .iter()
            .take(NAMED)
            .map(|Doubt { name, least, most }| format!("{name} from {least:.2e} to {most:.2e}"));
        let named = named.collect::<Vec<_>>().join(", ");
        let others = match doubts.len().saturating_sub(NAMED) {
            0 => String::new(),
            others => format!(" and {others} more"),
        };
        warnings.push(format!("{MOST} measurements of the machine disagree: {named}{others}"));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The default machine with another latency and rate of memory.
    fn machine(latency: f64, memory: f64) -> Machine {
        let mut machine = Machine::default();
        (machine.near.latency.value, machine.memory.value) = (latency, memory);
        machine
    }

    #[test]
    fn one_disturbed_measurement_of_three_does_not_count() {
        let found =
            agreed(&[machine(1657e-6, 2e10), machine(1.23e-6, 2e9), machine(1.58e-6, 2e10)]);
        assert_eq!(found, Agreed { machine: machine(1.58e-6, 2e10), doubts: Vec::new() });
        for place in 0..3 {
            let mut latencies = [1.2e-6, 1.3e-6, 1.4e-6];
            latencies[place] = 1e-3;
            let found = agreed(&latencies.map(|latency| machine(latency, 2e10)));
            assert!(found.machine.near.latency.value < 1.5e-6 && found.doubts.is_empty());
        }
    }

    #[test]
    fn two_that_agree_count_by_their_mean_and_others_are_in_doubt() {
        let found = agreed(&[machine(1e-6, 2e10), machine(1e-6, 2.42e10)]);
        assert!((found.machine.memory.value / 2.2e10 - 1.0).abs() < 1e-12);
        assert_eq!(found.doubts, []);
        let doubts = agreed(&[machine(4e-6, 2e10), machine(1657e-6, 2e10)]).doubts;
        let doubt = Doubt { name: "near.latency".into(), least: 4e-6, most: 1657e-6 };
        assert_eq!(doubts, [doubt]);
        // Small times may differ by any factor, rates may not.
        assert_eq!(agreed(&[machine(0.0, 2e10), machine(9e-7, 2e10)]).doubts, []);
        assert_eq!(agreed(&[machine(0.0, 2e10), machine(9e-7, 1e10)]).doubts.len(), 1);
        // Five without two that are close.
        let spread = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2].map(|latency| machine(latency, 2e10));
        let found = agreed(&spread);
        assert_eq!((found.machine.near.latency.value, found.doubts.len()), (1e-4, 1));
    }

    /// Measures what a list says, on two ranks; how often, and the machine.
    fn measured(latencies: &[f64]) -> (usize, Machine) {
        let found = fft_comm::threads(2, |comm| {
            let mut left = latencies.iter();
            let mut count = 0;
            let machine = measure_until_agreed(&comm, &mut || {
                count += 1;
                Ok(machine(*left.next().expect("no more than there are"), 2e10))
            });
            (count, machine.unwrap())
        });
        assert_eq!(found[0], found[1]);
        found.into_iter().next().unwrap()
    }

    #[test]
    fn it_is_measured_until_two_agree_and_at_most_five_times() {
        assert_eq!(measured(&[1e-5; 2]), (2, machine(1e-5, 2e10)));
        assert_eq!(measured(&[1e-2, 1e-5, 1e-5]), (3, machine(1e-5, 2e10)));
        assert_eq!(measured(&[1e-2, 1e-3, 1e-4, 1e-5, 1.1e-4]), (5, machine(1.1e-4, 2e10)));
        assert_eq!(measured(&[1e-2, 1e-3, 1e-4, 1e-5, 1e-6]), (5, machine(1e-4, 2e10)));
    }

    #[test]
    fn errors_end_the_measurement() {
        let found = fft_comm::threads(2, |comm| {
            measure_until_agreed(&comm, &mut || Err(Error::argument("bench", 1, 2)))
        });
        assert!(found.iter().all(Result::is_err));
    }

    #[test]
    fn warnings_name_what_is_in_doubt_and_say_that_cores_were_busy() {
        assert_eq!(warnings(&[], 0.09), [""; 0]);
        let doubt = |name: &str| Doubt { name: name.into(), least: 1.23e-6, most: 1.657e-3 };
        let said = warnings(&[doubt("near.latency")], 0.5);
        assert_eq!(
            said,
            [
                "other programs kept 50% of the cores busy while the machine was measured",
                "5 measurements of the machine disagree: near.latency from 1.23e-6 to 1.66e-3"
            ]
        );
        let said = warnings(&["a", "b", "c", "d", "e"].map(doubt), 0.0);
        assert!(said.len() == 1 && said[0].ends_with(" and 2 more"), "{said:?}");
    }
}
