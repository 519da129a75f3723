//! The machine and the tools that a benchmark's numbers belong to: without them the numbers say nothing.

use crate::tools::{self, command};

/// Names and values, in the order in which they are shown.
pub(crate) type Description = Vec<(&'static str, String)>;

/// Describes this machine. What cannot be found out is `unknown`: no reason to lose the measurement.
pub(crate) fn describe(fftw: Option<&str>) -> Description {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, |n| n.get());
    vec![
        ("cpu", known(field(&read("/proc/cpuinfo"), "model name"))),
        ("cores", cores.to_string()),
        ("memory", known(field(&read("/proc/meminfo"), "MemTotal"))),
        ("kernel", known(Some(read("/proc/sys/kernel/osrelease").trim()))),
        ("mpi", launcher()),
        ("bound", std::env::var(BINDING).unwrap_or_else(|_| "as the launcher does".into())),
        ("rustc", first_line("rustc", &["--version"])),
        ("commit", commit()),
        ("fftw", known(fftw)),
    ]
}

/// The program that starts ranks on the hosts of a network, where it is not `mpirun`.
pub(crate) const LAUNCHER: &str = "NETLAB_MPIEXEC";

/// Where Open MPI is told to what ranks are bound: all programs' alike.
const BINDING: &str = "OMPI_MCA_hwloc_base_binding_policy";

/// The MPI, as its launcher names it. MPICH's has a heading first.
fn launcher() -> String {
    let launcher = std::env::var(LAUNCHER).unwrap_or_else(|_| "mpirun".into());
    let said = tools::output(command(&launcher).arg("--version")).unwrap_or_default();
    match field(&said, "Version") {
        Some(version) => format!("MPICH {version}"),
        None => known(said.lines().next()),
    }
}

/// Six hexadecimal digits that stay the same on one machine and say nothing else about it.
pub(crate) fn short_id() -> String {
    let id = ["/etc/machine-id", "/proc/sys/kernel/hostname"]
        .iter()
        .find_map(|path| std::fs::read(path).ok().filter(|bytes| !bytes.is_empty()))
        .unwrap_or_default();
    format!("{:06x}", fnv1a(&id) & 0xff_ffff)
}

/// The hash of Fowler, Noll and Vo; the standard library's promises nothing from one release to the next.
fn fnv1a(bytes: &[u8]) -> u64 {
    let prime = 0x0000_0100_0000_01b3;
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &b| (hash ^ u64::from(b)).wrapping_mul(prime))
}

/// A commit with changes on top is marked: its numbers belong to no commit.
fn commit() -> String {
    let head = first_line("git", &["rev-parse", "--short=12", "HEAD"]);
    let mut status = command("git");
    match tools::output(status.args(["status", "--porcelain", "--untracked-files=no"])) {
        Ok(changes) if !changes.is_empty() => format!("{head} with changes"),
        _ => head,
    }
}

/// The value of the first line `name : value`.
fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

fn first_line(program: &str, arguments: &[&str]) -> String {
    let output = tools::output(command(program).args(arguments)).ok();
    known(output.as_deref().and_then(|text| text.lines().next()))
}

fn known(value: Option<&str>) -> String {
    value.filter(|value| !value.is_empty()).unwrap_or("unknown").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "model\t\t: 207\nmodel name\t: A CPU @ 2:1\nmodel name\t: another\n";
        assert_eq!(field(text, "model name"), Some("A CPU @ 2:1"));
        assert_eq!(field(text, "memory"), None);
    }

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
    }
}
