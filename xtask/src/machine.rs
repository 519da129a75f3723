//! The machine and the tools of a benchmark.

use crate::tools::{self, FNV, command, fnv1a};

/// Names and values, in the order in which they are shown.
pub(crate) type Description = Vec<(&'static str, String)>;

/// Describes this machine; properties that cannot be found are `unknown`.
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

/// The variable of the launcher on a network, `mpirun` by default.
pub(crate) const LAUNCHER: &str = "NETLAB_MPIEXEC";

/// Open MPI's variable of the binding of ranks.
const BINDING: &str = "OMPI_MCA_hwloc_base_binding_policy";

/// The MPI by its launcher. MPICH's prints a heading first.
fn launcher() -> String {
    let launcher = std::env::var(LAUNCHER).unwrap_or_else(|_| "mpirun".into());
    let said = tools::output(command(&launcher).arg("--version")).unwrap_or_default();
    match field(&said, "Version") {
        Some(version) => format!("MPICH {version}"),
        None => known(said.lines().next()),
    }
}

/// Six hexadecimal digits that identify this machine alone.
pub(crate) fn short_id() -> String {
    let id = ["/etc/machine-id", "/proc/sys/kernel/hostname"]
        .iter()
        .find_map(|path| std::fs::read(path).ok().filter(|bytes| !bytes.is_empty()))
        .unwrap_or_default();
    format!("{:06x}", fnv1a(FNV, &id) & 0xff_ffff)
}

/// The commit, marked if there are changes on top.
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
}
